"""`rlhealth metrics` and `rlhealth report`: what a run holds, what is missing, and all of it as a table or a page."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rlhealth.check import check
from rlhealth.engine.inventory import Inventory, inventory
from rlhealth.metrics.spellings import spellings
from rlhealth.reports import ReportOptions
from rlhealth.reports.export import table
from rlhealth.reports.inventory import render
from rlhealth.rules.loading import load_rules
from rlhealth.sources import open_runs
from tests.conftest import FIXTURES, ROOT, SICK, Cli

GRPO = FIXTURES / "trainer_state" / "grpo-inf"
PPO = FIXTURES / "trainer_state" / "ppo-nan"
CARTPOLE = FIXTURES / "tensorboard" / "cartpole"


def taken(where: Path) -> Inventory:
    rules = load_rules()
    return inventory(check(where, rules=rules).runs[0], rules)


def test_every_metric_is_listed_once_and_every_rule_that_could_not_look_is_accounted_for() -> None:
    one = taken(SICK)
    assert [metric.name for metric in one.metrics] == sorted(
        name for name, metric in one.judged.translation.metrics.items() if len(metric)
    )
    told = [rule for wanted in one.wanted for rule in wanted.rules] + [skipped.rule for skipped in one.others]
    assert sorted(told) == sorted(skipped.rule for skipped in one.judged.skipped)


def test_what_the_trainer_could_log_is_named_as_it_names_it() -> None:
    wanted = {metric: one for one in taken(PPO).wanted for metric in one.metrics}
    assert [one.tag for one in wanted["grad_norm"].spellings] == ["grad_norm"]
    assert "grad-norm-spike" in wanted["grad_norm"].rules
    assert wanted["frac_reward_zero_std"].spellings == ()


def test_a_name_is_given_with_the_prefix_that_this_tracker_puts_before_it() -> None:
    run = open_runs(str(SICK))[0]
    assert [one.tag for one in spellings(run, "kl")] == ["train/kl"]
    assert [one.tag for one in spellings(open_runs(str(GRPO))[0], "kl")] == ["kl"]


def test_a_name_of_another_version_is_not_offered() -> None:
    old = open_runs(str(FIXTURES / "trainer_state" / "grpo-old"))[0]
    assert [one.tag for one in spellings(old, "reward_group_std")] == ["reward_std"]
    assert spellings(old, "reward_std") == ()


def test_what_rlhealth_measures_itself_is_no_name_of_a_trainer() -> None:
    one = taken(SICK)
    assert spellings(one.judged.run, "text/empty") == ()
    shown = " ".join(render([one], [], ReportOptions(width=200)).split())
    asked, _, rest = shown.partition("With the texts of completions")
    assert "text" + "/" not in shown
    assert "text-empty" not in asked
    assert rest.startswith(" rlhealth measures them; TRL writes them with log_completions=True")
    assert "text-empty" in rest


def test_a_trainer_of_control_is_not_asked_for_texts() -> None:
    one = taken(CARTPOLE)
    assert not any(wanted.is_measured for wanted in one.wanted)
    assert "it is about texts, and Stable-Baselines3 trains on none" in {skipped.reason for skipped in one.others}


@pytest.mark.parametrize("where", [SICK, CARTPOLE])
def test_names_that_every_run_has_are_not_missing(where: Path) -> None:
    assert not {name for wanted in taken(where).wanted for name in wanted.metrics} & {"same", "step"}


def test_logging_what_is_asked_for_lets_the_rules_look(tmp_path: Path) -> None:
    before = taken(PPO)
    wanted = next(one for one in before.wanted if "grad_norm" in one.metrics)
    state = json.loads(next(PPO.rglob("trainer_state.json")).read_text())
    for row in state["log_history"]:
        row[wanted.spellings[0].tag] = 1.0
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    after = taken(tmp_path)
    assert not any("grad_norm" in one.metrics for one in after.wanted)
    assert len(after.judged.skipped) < len(before.judged.skipped)


def test_an_unknown_tag_that_may_be_what_is_missing_is_offered_as_an_alias(cli: Cli, tmp_path: Path) -> None:
    state = json.loads(next(GRPO.rglob("trainer_state.json")).read_text())
    for row in state["log_history"]:
        if "kl" in row:
            row["mine/kl"] = row.pop("kl")
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    shown = cli("metrics", tmp_path, "--width", "100").stdout
    assert "Not recognised: 1 tag" in shown
    assert "if mine/kl is this: --alias mine/kl=kl" in shown
    named = cli("metrics", tmp_path, "--width", "100", "--alias", "mine/kl=kl").stdout
    assert "Not recognised" not in named


def test_a_suggested_alias_can_be_pasted(tmp_path: Path) -> None:
    rows = "".join(f"{step},{step * 0.5}\n" for step in range(1, 30))
    (tmp_path / "odd.csv").write_text("step,Mean Return (per ep)\n" + rows)
    shown = " ".join(render([taken(tmp_path / "odd.csv")], [], ReportOptions(width=140)).split())
    assert "--alias 'Mean Return (per ep)=reward'" in shown


def test_a_tag_that_is_known_and_not_used_says_why(tmp_path: Path) -> None:
    rows = [
        {"step": step, "reward": 0.1, "reward_std": 0.1, "completions/mean_length": 9.0, "clip_ratio": 0.9}
        for step in range(1, 30)
    ]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": rows, "max_steps": 29}))
    run = open_runs(str(tmp_path))[0]
    run.versions["trl"] = "0.16.0"
    from rlhealth.check import judge

    rules = load_rules()
    text = render([inventory(judge(run, rules), rules)], [], ReportOptions(width=100))
    assert "clip_ratio: clip_ratio of TRL 0.16 counts the tokens that are NOT clipped" in text


def test_lines_are_fields_apart_by_tabs_where_piped(cli: Cli) -> None:
    done = cli("metrics", CARTPOLE)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert rows[0] == ["run", "kind", "name", "tag", "unit", "points", "first", "last", "note"]
    assert {len(row) for row in rows} == {9}
    entropy = next(row for row in rows if row[1:3] == ["metric", "entropy"])
    assert entropy[3] == "train/entropy_loss"
    assert float(entropy[6]) > 0  # SB3 logs minus the entropy


@pytest.mark.parametrize("width", [40, 64, 80, 100, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for where in (SICK, CARTPOLE, FIXTURES / "tensorboard" / "legacy-ppo"):
        lines = render([taken(where)], [], ReportOptions(width=width)).splitlines()
        assert max(map(len, lines)) <= width


def test_the_distinctive_end_of_a_name_is_never_cut() -> None:
    lines = render([taken(SICK)], [], ReportOptions(width=80)).splitlines()
    for name in ("mean_length", "mean_terminated_length", "min_terminated_length", "max_terminated_length"):
        assert any(line.split()[0].endswith(name) for line in lines if line.split())


def test_hostile_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    rows = [{"step": step, "reward": 0.5, "\x1b[31mred\ttab\n": 1.0} for step in range(1, 20)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for look in (ReportOptions(width=80), ReportOptions(piped=True), ReportOptions(width=80, ascii=True)):
        text = render([taken(tmp_path)], [], look)
        assert "\x1b" not in text
        assert "\\x1b[31mred\\ttab\\n" in text
        assert text.isascii() or not look.ascii


def test_the_table_holds_every_point_and_tells_metrics_from_other_tags() -> None:
    judged = check(CARTPOLE).runs[0]
    made = table([(judged.run, judged.translation)])
    assert list(made.columns) == ["run", "metric", "tag", "step", "time", "value"]
    for name, metric in judged.translation.metrics.items():
        assert made[made.metric == name].value.tolist() == metric.values.tolist()
        assert made[made.metric == name].step.tolist() == metric.steps.tolist()
    assert set(made[made.metric.isna()].tag) == set(judged.run.series) - {
        one.tag for one in judged.translation.metrics.values()
    }


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_an_export_is_read_back_with_nan_and_infinity_as_they_were(cli: Cli, tmp_path: Path, ending: str) -> None:
    import pandas as pd

    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"run{ending}"
    done = cli("metrics", GRPO, "--export", file)
    assert (done.returncode, done.stderr) == (0, "")
    read = pd.read_parquet(file) if ending == ".parquet" else pd.read_csv(file, dtype={"value": str})
    judged = check(GRPO).runs[0]
    rewards = judged.translation.metrics["reward"].values
    assert not np.isfinite(rewards).all()
    np.testing.assert_array_equal(read[read.metric == "reward"].value.astype(float), rewards)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; sys.modules['fastparquet'] = None\n"
        f"sys.argv = ['rlhealth', 'metrics', {str(GRPO)!r}, '--export', {str(tmp_path / 'run.parquet')!r}]\n"
        "from rlhealth.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert "pip install pyarrow" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "said"), [("run.xlsx", "its ending is none of"), ("no such folder/run.csv", "a folder that exists")]
)
def test_an_export_that_cannot_be_written_says_so(cli: Cli, tmp_path: Path, name: str, said: str) -> None:
    done = cli("metrics", GRPO, "--export", tmp_path / name)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("look", [[], ["--width", "90"]])
def test_quiet_prints_the_last_line_alone(cli: Cli, look: list[str]) -> None:
    (line,) = cli("metrics", GRPO, "-q", *look).stdout.split("\n")[:-1]
    assert line.strip().startswith("1 run") and "rules could not run" in line


def test_a_run_that_cannot_be_read_is_reported_beside_those_that_can(cli: Cli, tmp_path: Path) -> None:
    done = cli("metrics", GRPO, tmp_path / "nowhere", "--width", "90")
    assert done.returncode == 2
    assert "no such file or folder" in " ".join(done.stdout.split())
    assert "1 unreadable" in done.stdout.splitlines()[-1]


def test_a_report_is_a_page_that_says_where_it_was_written(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(SICK, tmp_path / "run")
    done = cli("report", tmp_path / "run", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("health.html: 1 run: 1 critical")
    assert "<html" in (tmp_path / "health.html").read_text(encoding="utf-8")
    assert cli("report", tmp_path / "run", "-o", tmp_path / "x.html", "--fail-on", "critical").returncode == 1
    assert cli("report", tmp_path / "nowhere", "-o", tmp_path / "y.html").returncode == 2


def test_a_report_opens_in_the_browser_that_the_machine_has(cli: Cli, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    done = cli("report", SICK, "-o", tmp_path / "health.html", "--open", BROWSER=f"{browser} %s")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "opened").read_text().strip() == (tmp_path / "health.html").as_uri()
