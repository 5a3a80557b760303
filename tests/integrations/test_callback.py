"""HealthCallback through transformers' own callback handler, with its own state and control, fed with what real
trainers logged.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlhealth.errors import RlhealthError
from tests.integrations.test_monitor import Loop, climbing
from tests.logged_rows import read, rows_of

transformers = pytest.importorskip("transformers")
from transformers.trainer_callback import CallbackHandler, TrainerControl, TrainerState  # noqa: E402

from rlhealth.callback import HealthCallback  # noqa: E402


class Trainer:
    """What a trainer's loop does with its callbacks; the arguments stand in for TrainingArguments, which need torch."""

    def __init__(self, callback: HealthCallback, output: Path, config: dict[str, Any], main: bool = True) -> None:
        self.callback, self.clock = callback, Loop()
        self.handler = CallbackHandler([callback], None, None, None, None)
        self.args = SimpleNamespace(output_dir=str(output), world_size=1, to_dict=lambda: config)
        self.state = TrainerState(max_steps=100, is_world_process_zero=main, is_local_process_zero=main)
        self.control = TrainerControl()

    def train(self, rows: list[tuple[int, dict[str, float]]]) -> int:
        """Goes through the rows until told to stop, a minute for each; returns the last step."""
        self.control = self.handler.on_train_begin(self.args, self.state, self.control)
        if self.callback.monitor is not None:
            self.callback.monitor._clock = self.clock
        for step, row in rows:
            self.clock.seconds += 60.0
            self.state.global_step = step
            self.control = self.handler.on_step_end(self.args, self.state, self.control)
            self.control = self.handler.on_log(self.args, self.state, self.control, dict(row))
            if self.control.should_training_stop:
                break
        self.control = self.handler.on_train_end(self.args, self.state, self.control)
        return self.state.global_step


@pytest.fixture
def sick() -> Any:
    return read("tensorboard/grpo-sentences")


def test_training_is_stopped_at_the_first_critical_finding(sick: Any, tmp_path: Path) -> None:
    callback = HealthCallback(stop_on="critical")
    last = Trainer(callback, tmp_path, sick.config).train(rows_of(sick))
    assert last < 15, "the policy is lost at step 4; an allowance of a few steps"
    assert callback.stopped_by is not None and callback.stopped_by.severity.name == "CRITICAL"


def test_without_stop_on_training_runs_to_its_end_and_the_report_lies_beside_the_checkpoints(
    sick: Any, tmp_path: Path
) -> None:
    assert Trainer(HealthCallback(), tmp_path, sick.config).train(rows_of(sick)) == 100
    report = json.loads((tmp_path / "rlhealth.json").read_text())
    assert (
        report["verdict"] == "critical"
        and report["runs"][0]["framework"] == "trl-grpo"
        and report["runs"][0]["state"] == "finished"
    )
    assert (tmp_path / "rlhealth.md").exists()


def test_without_report_nothing_is_written(sick: Any, tmp_path: Path) -> None:
    Trainer(HealthCallback(report=False), tmp_path, sick.config).train(rows_of(sick)[:20])
    assert list(tmp_path.iterdir()) == []


def test_a_healthy_run_is_not_stopped(tmp_path: Path) -> None:
    run = read("tensorboard/grpo-sort")
    callback = HealthCallback(stop_on="warning")
    assert Trainer(callback, tmp_path, run.config).train(rows_of(run)) == run.last_step
    assert callback.stopped_by is None


def test_only_the_main_process_judges(sick: Any, tmp_path: Path) -> None:
    callback = HealthCallback(stop_on="critical")
    assert Trainer(callback, tmp_path, sick.config, main=False).train(rows_of(sick)) == 100
    assert callback.monitor is None and list(tmp_path.iterdir()) == []


def test_an_error_inside_is_logged_once_and_training_goes_on(
    sick: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    callback = HealthCallback(stop_on="critical")
    trainer = Trainer(callback, tmp_path, sick.config)
    broken = [(step, row | {"kl": Unfit()} if step == 3 else row) for step, row in rows_of(sick)]
    with caplog.at_level(logging.ERROR, logger="rlhealth"):
        assert trainer.train(broken) == 100
    assert len([one for one in caplog.records if "training continues" in one.getMessage()]) == 1
    assert callback.broken


class Unfit:
    """A value whose very number fails, as a tensor on a lost device does."""

    def item(self) -> float:
        raise KeyError("CUDA error: device-side assert triggered")


def test_a_folder_that_cannot_be_written_to_does_not_stop_training(sick: Any, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    assert Trainer(HealthCallback(), tmp_path / "taken", sick.config).train(rows_of(sick)) == 100


def resumed(callback: HealthCallback, output: Path, run: Any, at: int) -> Trainer:
    """A trainer that goes on from the checkpoint of a step, with the log that the checkpoint holds."""
    trainer = Trainer(callback, output, run.config)
    trainer.state.global_step = at
    trainer.state.log_history = [row | {"step": step} for step, row in rows_of(run) if step <= at]
    return trainer


def test_a_resumed_run_is_judged_with_what_it_logged_before_its_checkpoint(sick: Any, tmp_path: Path) -> None:
    whole, part = HealthCallback(), HealthCallback()
    Trainer(whole, tmp_path / "whole", sick.config).train(rows_of(sick))
    resumed(part, tmp_path / "part", sick, 40).train([one for one in rows_of(sick) if one[0] > 40])
    assert whole.monitor is not None and part.monitor is not None
    seen = [
        {(one.rule, one.first_step, one.severity) for one in monitor.verdict().findings}
        for monitor in (whole.monitor, part.monitor)
    ]
    assert seen[0] == seen[1]


def test_a_resumed_run_is_not_stopped_by_what_was_found_before_its_checkpoint(sick: Any, tmp_path: Path) -> None:
    callback = HealthCallback(stop_on="critical")
    rows = rows_of(sick)
    assert Trainer(callback, tmp_path, sick.config).train(rows) < 15
    again = HealthCallback(stop_on="critical")
    last = resumed(again, tmp_path, sick, 60).train([one for one in rows if one[0] > 60])
    raised = [] if again.stopped_by is None else [again.stopped_by.episodes[-1].raised_step]
    assert last == 100 or raised[0] > 60


def test_the_models_own_config_is_taken_in_as_trackers_log_it(sick: Any, tmp_path: Path) -> None:
    callback = HealthCallback()
    trainer = Trainer(callback, tmp_path, sick.config)
    model = SimpleNamespace(config=transformers.PretrainedConfig(hidden_size=64, num_hidden_layers=2))
    callback.on_train_begin(trainer.args, trainer.state, trainer.control, model=model)
    assert callback.monitor is not None
    assert callback.monitor.run.config["model_config.hidden_size"] == 64


def test_findings_are_logged_with_their_severity(sick: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rlhealth"):
        Trainer(HealthCallback(), tmp_path, sick.config).train(rows_of(sick))
    logged = [(one.levelname, one.getMessage()) for one in caplog.records]
    assert any(level == "ERROR" and "worsened critical" in message for level, message in logged)


def test_a_severity_that_there_is_not_is_reported_at_once() -> None:
    with pytest.raises(RlhealthError, match="no such severity"):
        HealthCallback(stop_on="fatal")


def test_the_module_can_be_imported_without_transformers_and_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['transformers'] = None\n"
        "import rlhealth.callback\n"
        "try:\n    from rlhealth.callback import HealthCallback\n"
        "except rlhealth.RlhealthError as error: print(error, error.hint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    assert "needs transformers" in done.stdout and 'pip install "rlhealth[callback]"' in done.stdout


def test_training_is_stopped_when_what_was_a_warning_becomes_critical(tmp_path: Path) -> None:
    callback = HealthCallback(stop_on="critical")
    rows = climbing(200)
    last = Trainer(callback, tmp_path, {"beta": 0.04}).train(rows)
    warned = HealthCallback(stop_on="warning")
    assert 40 < Trainer(warned, tmp_path, {"beta": 0.04}).train(rows) < last < 80
    assert callback.stopped_by is not None and callback.stopped_by.severity.name == "CRITICAL"
    assert warned.stopped_by is not None and warned.stopped_by.severity.name == "WARNING"
