"""Monitor: a loop of one's own is judged as its log would be."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import rlhealth
from rlhealth.check import judge
from rlhealth.errors import RlhealthError
from rlhealth.integrations.monitor import Monitor
from rlhealth.rules.loading import load_rules
from rlhealth.verdict.findings import Severity
from tests.logged_rows import read, rows_of

RULES = load_rules()


class Loop:
    """A clock that is wound by hand: how long a step takes."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def monitored(folder: str) -> tuple[Monitor, list[tuple[int, str, str, int]]]:
    """A real run, logged again row by row; and what was reported, with the step at which it was."""
    run = read(folder)
    monitor = Monitor("again", config=run.config, versions=run.versions, rules=RULES, clock=Loop())
    reported = [
        (step, one.kind, one.finding.rule, one.finding.raised_step)
        for step, row in rows_of(run)
        for one in monitor.log(step, row)
    ]
    return monitor, reported


@pytest.mark.parametrize(
    "folder",
    ["tensorboard/grpo-sentences", "tensorboard/grpo-sort", "tensorboard/grpo-old", "tensorboard/ppo-sentences"],
)
def test_a_run_that_is_monitored_is_judged_as_its_log_is(folder: str) -> None:
    monitor, _ = monitored(folder)
    mine, logged = monitor.verdict(), judge(read(folder), RULES)
    assert mine.translation.framework == logged.translation.framework
    facts = [
        [
            (one.rule, one.metric, one.severity, one.first_step, one.raised_step)
            for one in found.findings
            if one.family != "stalled"
        ]
        for found in (mine, logged)
    ]
    assert facts[0] == facts[1]


def test_a_finding_is_returned_by_the_call_that_raised_it_and_once() -> None:
    _, reported = monitored("tensorboard/grpo-sentences")
    assert (4, "raised", "kl-high-per-token", 4) in reported
    assert [(kind, rule) for _, kind, rule, _ in reported if rule == "step-size-too-large"] == [
        ("explained", "step-size-too-large")
    ]
    assert len(reported) <= 4, "the whole wreck"


def test_where_steps_are_fast_several_are_judged_at_once_and_nothing_is_lost() -> None:
    clock = Loop()
    run = read("tensorboard/grpo-sentences")
    monitor = Monitor("fast", config=run.config, versions=run.versions, rules=RULES, clock=clock)
    looks = 0
    advance = monitor._judge.advance

    def counted(*args: int) -> None:
        nonlocal looks
        looks += 1
        clock.seconds += 0.020  # a slow machine
        advance(*args)

    monitor._judge.advance = counted  # type: ignore[method-assign]
    reported = [one for step, row in rows_of(run) for one in monitor.log(step, row)]
    assert looks < 20, "the allowance at the start, then one look in forty calls"
    monitor.verdict()
    reported += monitor.log(101, {})
    [incident] = {one.incident.number for one in reported if one.incident is not None}
    assert incident == 1 and reported[-1].incident is not None
    graded = [one for one in monitor.verdict().findings if one.severity > Severity.INFO]
    assert graded and all(monitor._ledger.incidents.of(one) is not None for one in graded)


def test_what_is_no_number_is_left_out_and_what_holds_one_is_taken() -> None:
    monitor = Monitor(rules=RULES)
    monitor.log(
        1,
        {
            "loss": np.float32(0.5),
            "kl": np.array([0.25]),
            "reward": "nan",
            "text": "a word",
            "table": np.zeros(3),
            "nothing": None,
            "grad_norm": "1.5",
            7: 1.0,
        },
    )
    assert {tag: float(one.values[0]) for tag, one in monitor.run.series.items() if tag != "reward"} == {
        "loss": 0.5,
        "kl": 0.25,
        "grad_norm": 1.5,
        "7": 1.0,
    }
    assert math.isnan(monitor.run.series["reward"].values[0])


def test_a_loop_that_ended_is_finished_and_one_that_failed_died() -> None:
    monitor, _ = monitored("tensorboard/grpo-sort")
    assert monitor.finish().state == "finished"
    broken, _ = monitored("tensorboard/grpo-sort")
    assert "run-died" in {one.rule for one in broken.finish(1).findings}


def test_the_report_is_left_in_a_folder(tmp_path: Path) -> None:
    monitor, _ = monitored("tensorboard/grpo-sentences")
    written = monitor.report(tmp_path / "new")
    assert [path.name for path in written] == ["rlhealth.json", "rlhealth.md"]
    assert json.loads(written[0].read_text())["verdict"] == "critical"
    (tmp_path / "file").write_text("")
    with pytest.raises(RlhealthError, match="file"):
        monitor.report(tmp_path / "file")


def test_monitor_is_a_public_name() -> None:
    assert rlhealth.Monitor is Monitor


def test_what_stands_at_a_severity_is_known_whatever_was_reported_of_it() -> None:
    monitor = Monitor(config={"beta": 0.04}, rules=RULES, clock=Loop())
    kinds, critical = [], None
    for step, row in climbing(120):
        kinds += [(one.kind, str(one.finding.severity)) for one in monitor.log(step, row)]
        if critical is None and monitor.worst(Severity.CRITICAL) is not None:
            critical = step
    assert kinds[0] == ("raised", "warning") and critical is not None
    assert ("worsened", "critical") in kinds
    first = min(one.raised_step for one in monitor.verdict().findings if one.severity is Severity.CRITICAL)
    assert first <= critical <= first + 1


def climbing(steps: int) -> list[tuple[int, dict[str, float]]]:
    """Rows of a GRPO run whose KL climbs past the limit of a warning, and ten steps later past that of critical."""
    random = np.random.default_rng(0)
    rows = []
    for step in range(1, steps + 1):
        noise = 0.01 * random.normal()
        rows.append(
            (
                step,
                {
                    "loss": 0.1 + noise,
                    "reward": 0.5 + noise,
                    "reward_std": 0.3 + noise,
                    "kl": 0.02 if step < 40 else 0.02 + 0.13 * (step - 40),
                    "entropy": 1.5 + noise,
                    "completions/mean_length": 100 + 100 * noise,
                    "completions/clipped_ratio": 0.01,
                    "frac_reward_zero_std": 0.1,
                },
            )
        )
    return rows
