"""`rlhealth advise`: what to change, as a table, YAML, flags, and as a patch of a config file that is written only when asked."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

import rlhealth
from rlhealth.metrics.recognise import recognise
from rlhealth.metrics.to_log import to_log
from tests.conftest import FIXTURES, SICK, Cli

TOO_HIGH = FIXTURES / "tensorboard" / "grpo-sentences"  # learning_rate 0.03
HEALTHY = FIXTURES / "reports" / "sort"


def test_the_table_names_the_change_in_the_trainers_own_words(cli: Cli) -> None:
    done = cli("advise", TOO_HIGH)
    assert (done.returncode, done.stderr) == (0, "")
    [row] = [line.split() for line in done.stdout.splitlines() if "learning_rate" in line]
    assert row[:3] == ["learning_rate", "0.03", "0.003"]


def test_yaml_is_yaml_of_the_changes_alone(cli: Cli) -> None:
    assert yaml.safe_load(cli("advise", TOO_HIGH, "-f", "yaml").stdout) == {"learning_rate": 0.003}


def test_flags_can_be_pasted_behind_a_command(cli: Cli) -> None:
    assert cli("advise", TOO_HIGH, "-f", "flags").stdout == "--learning_rate 0.003\n"


def test_a_config_file_is_shown_as_a_patch_and_not_touched(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "train.yaml"
    config.write_text("model: x\nlearning_rate: 3.0e-2  # tuned on Friday\nbeta: 0.04\n")
    before = config.read_bytes()
    done = cli("advise", TOO_HIGH, "--config", "train.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert "-learning_rate: 3.0e-2  # tuned on Friday\n+learning_rate: 0.003  # tuned on Friday\n" in done.stdout
    assert config.read_bytes() == before
    subprocess.run(["patch", "-p0"], input=done.stdout, text=True, check=True, cwd=tmp_path, capture_output=True)
    assert yaml.safe_load(config.read_text()) == {"model": "x", "learning_rate": 0.003, "beta": 0.04}


def test_the_changed_config_is_written_where_o_says(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "train.json"
    config.write_text(json.dumps({"args": {"learning_rate": 0.03}}, indent=2))
    done = cli("advise", TOO_HIGH, "--config", config, "-o", tmp_path / "next.json")
    assert done.returncode == 0
    assert json.loads((tmp_path / "next.json").read_text()) == {"args": {"learning_rate": 0.003}}
    assert json.loads(config.read_text()) == {"args": {"learning_rate": 0.03}}


def test_advice_that_is_no_setting_says_at_which_steps_to_look(cli: Cli, tmp_path: Path) -> None:
    done = cli("advise", SICK)
    assert done.returncode == 0
    assert "no setting to change (learning-rate-jump)" in done.stdout
    assert "step 82" in done.stdout
    assert cli("advise", SICK, "-f", "flags").stdout.startswith("#")
    assert yaml.safe_load(cli("advise", SICK, "-f", "yaml").stdout) is None
    config = tmp_path / "train.yaml"
    config.write_text("learning_rate: 0.02\n")
    patch = cli("advise", SICK, "--config", config)
    assert (patch.stdout, "no setting to change" in patch.stderr) == ("", True)


def test_a_healthy_run_has_nothing_to_change(cli: Cli) -> None:
    done = cli("advise", HEALTHY)
    assert done.returncode == 0
    assert "nothing to change" in done.stdout


def test_what_to_log_is_named_only_where_the_version_is_known_to_have_it(cli: Cli) -> None:
    assert "log_completions" in cli("advise", TOO_HIGH).stdout
    for place in ("grpo-old", "grpo-sort", "ppo-sentences", "legacy-ppo", "cartpole"):
        [run] = rlhealth.check(FIXTURES / "tensorboard" / place).runs
        known = recognise(run.run)
        named = {one.option for one in to_log(run.run, run.translation)}
        is_grpo = run.translation.framework == "trl-grpo" and known.low is not None and known.low >= (0, 14, 0)
        assert ("log_completions" in named) == is_grpo, place


def test_settings_that_no_file_holds_are_asked_for() -> None:
    [run] = rlhealth.check(FIXTURES / "everywhere" / "grpo-short", source="trainer_state").runs
    assert "report_to" in {one.option for one in to_log(run.run, run.translation)}
    [verdict] = rlhealth.check(FIXTURES / "everywhere" / "grpo-short", source="tensorboard").runs
    assert "report_to" not in {one.option for one in to_log(verdict.run, verdict.translation)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere"),
        ([str(FIXTURES / "compare")], "holds"),
        ([str(TOO_HIGH), "--config", "nowhere.yaml"], "nowhere.yaml"),
        ([str(TOO_HIGH), "--config", "broken.yaml"], "broken.yaml:2:1"),
        ([str(TOO_HIGH), "-f", "xml"], "xml"),
    ],
)
def test_what_cannot_be_read_exits_with_2_and_names_the_place(
    cli: Cli, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "broken.yaml").write_text("a: [1,\n")
    done = cli("advise", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
