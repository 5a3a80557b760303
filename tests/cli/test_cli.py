"""The command line: what it prints where, and with which code it leaves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FIXTURES, ROOT, SICK, Cli

HEALTHY = FIXTURES / "reports" / "sort"


def test_a_sick_run_fails_the_gate_and_names_its_cause_first(cli: Cli) -> None:
    done = cli("check", SICK, "--width", "100", "--color", "never")
    assert done.returncode == 1
    first = next(line for line in done.stdout.splitlines() if "[" in line)
    assert "learning-rate-jump" in first
    assert done.stdout.splitlines()[-1].rstrip().endswith("exit 1")
    assert done.stderr == ""


def test_a_healthy_run_passes(cli: Cli) -> None:
    done = cli("check", HEALTHY)
    assert (done.returncode, done.stderr) == (0, "")
    assert "healthy" in done.stdout


def test_fail_on_never_and_exit_zero_report_without_failing(cli: Cli) -> None:
    assert cli("check", SICK, "--fail-on", "never").returncode == 0
    assert cli("check", SICK, "--exit-zero").returncode == 0
    assert cli("check", SICK.parent / "nowhere", "--exit-zero").returncode == 2
    assert "with 2 only if no run could be read" in " ".join(cli("check", "--help").stdout.split())


def test_the_last_line_names_everything_that_the_gate_asks_for(cli: Cli) -> None:
    asked = ["--fail-on-past", "--min-steps", "9", "--strict", "--exit-zero", "--require", "critic-lost", "-q"]
    (line,) = cli("check", SICK, *asked).stdout.splitlines()
    assert "1 required rule could not run" in line
    assert line.endswith("; fail-on critical, fail-on-past, min-steps 9, strict, exit-zero; exit 0")


@pytest.mark.parametrize(
    ("select", "reason"),
    [
        ("diagnosis", "name causes of what other rules find"),
        ("learning-rate-jump", "name causes of what other rules find"),
        ("stalled", "judge how a run ended, and no metric"),
        ("stalled,diagnosis", "judge how a run ended, and no metric"),
    ],
)
def test_rules_that_look_at_no_metric_pass_no_run(cli: Cli, select: str, reason: str) -> None:
    done = cli("check", SICK, "--select", select)
    assert done.returncode == 2
    assert f"unknown: the chosen rules {reason}" in done.stdout
    assert cli("check", HEALTHY, "--select", f"{select},kl-negative").returncode == 0


@pytest.mark.parametrize("name", ["learning-rate-jump", "diagnosis"])
def test_a_cause_that_is_ignored_is_counted_and_explains_nothing(cli: Cli, name: str) -> None:
    report = json.loads(cli("check", SICK, "--ignore", name, "-f", "json").stdout)
    (run,) = report["runs"]
    assert [one["rule"] for one in run["ignored"]] == ["learning-rate-jump"]
    assert not any(one["explained_by"] for one in run["findings"])
    assert "; 1 ignored, " in cli("check", SICK, "--ignore", name).stdout.splitlines()[-1]


def test_the_help_of_the_mcp_server_names_every_tool_of_the_page_for_agents(cli: Cli) -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    tools = re.findall(r"^\| `(\w+)\(", page, re.MULTILINE)
    assert f"Tools: {', '.join(tools)}." in " ".join(cli("mcp", "--help").stdout.split())


def test_rules_and_families_may_stand_after_one_flag_with_commas(cli: Cli) -> None:
    ignored = cli("check", SICK, "--ignore", "length,kl-high-per-token,reward-signal", "-f", "json")
    assert {one["rule"] for one in json.loads(ignored.stdout)["runs"][0]["ignored"]} == {
        "length-collapse",
        "kl-high-per-token",
        "reward-constant-after-fall",
        "group-spread-dropped",
    }
    chosen = json.loads(cli("check", SICK, "--select", "length, kl-high", "-f", "json").stdout)
    assert {one["family"] for one in chosen["runs"][0]["findings"]} == {"length", "kl-high"}


def test_json_on_stdout_is_whole_and_strict(cli: Cli) -> None:
    done = cli("check", SICK, "-f", "json")

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    report = json.loads(done.stdout, parse_constant=refuse)
    assert report["schema"] == "rlhealth.report/1"
    assert (report["verdict"], report["exit_code"], done.returncode) == ("critical", 1, 1)
    finding = report["runs"][0]["findings"][0]
    assert {
        "rule",
        "family",
        "severity",
        "metric",
        "tag",
        "first_step",
        "raised_step",
        "message",
        "why",
        "try",
        "source",
        "explained_by",
    } <= set(finding)


def test_several_formats_go_to_their_own_files(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", SICK, "-f", "json", "-o", tmp_path / "health.json", "-f", "terminal")
    assert json.loads((tmp_path / "health.json").read_text())["verdict"] == "critical"
    assert "learning-rate-jump" in done.stdout


def test_an_output_belongs_to_the_format_before_it(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", SICK, "--fail-on", "critical", "-f", "terminal", "-f", "json", "-o", tmp_path / "health.json")
    assert json.loads((tmp_path / "health.json").read_text())["verdict"] == "critical"
    assert "learning-rate-jump" in done.stdout


def test_in_github_actions_annotations_follow_and_the_summary_is_written(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", SICK, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    assert "::error" in done.stdout
    assert "learning-rate-jump" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "::error" not in cli("check", SICK, "-f", "json", GITHUB_ACTIONS="true").stdout


def test_a_file_that_cannot_be_written_is_said_and_exits_with_2(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", SICK, "-f", "json", "-o", tmp_path / "no such folder" / "x.json")
    assert done.returncode == 2
    assert "no such folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_such_path_says_so_with_a_hint(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", tmp_path / "nowhere", "-f", "json")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "hint: " in done.stderr
    assert json.loads(done.stdout)["errors"][0]["location"].endswith("nowhere")


def test_an_empty_folder_is_no_answer(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", tmp_path)
    assert done.returncode == 2
    assert "the folder is empty" in done.stdout


@pytest.mark.parametrize(
    "content", [b"", b"garbage that no tracker wrote" * 40, bytes(5000)], ids=["zero-byte", "garbage", "zeros"]
)
def test_an_event_file_with_nothing_in_it_is_no_answer(cli: Cli, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "events.out.tfevents.1.host.1.0").write_bytes(content)
    done = cli("check", tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_one_unreadable_run_hides_none_of_the_others_and_never_passes(cli: Cli, tmp_path: Path) -> None:
    source = next((SICK / "runs").glob("*/events*"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / source.name).write_bytes(source.read_bytes())
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "run-x.wandb").write_bytes(b"not a wandb file at all" * 10)
    done = cli("check", tmp_path, "-f", "json", "--fail-on", "never")
    report = json.loads(done.stdout)
    assert done.returncode == 2
    assert [run["verdict"] for run in report["runs"] if run["verdict"] == "critical"] == ["critical", "critical"]


def test_three_points_are_not_called_healthy_without_looking(cli: Cli, tmp_path: Path) -> None:
    rows = [
        {"step": step, "loss": 0.1, "reward": 0.5, "reward_std": 0.1, "completions/mean_length": 10.0}
        for step in (1, 2, 3)
    ]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": rows, "max_steps": 3, "global_step": 3}))
    report = json.loads(cli("check", tmp_path, "-f", "json").stdout)["runs"][0]
    assert any("3 of the" in one["reason"] for one in report["skipped"])


def test_a_run_with_no_known_metric_is_unknown(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(
        "".join(json.dumps({"step": step, "foo/bar": step * 0.5}) + "\n" for step in range(50))
    )
    done = cli("check", tmp_path, "-f", "json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["runs"][0]["verdict"] == "unknown"


def test_piped_output_has_no_escapes_and_one_finding_a_line(cli: Cli) -> None:
    lines = cli("check", SICK).stdout.splitlines()
    assert not any("\x1b" in line for line in lines)
    assert sum("critical[" in line for line in lines) >= 2


def test_ascii_output_where_the_terminal_knows_no_utf8(cli: Cli) -> None:
    done = cli("check", SICK, "--width", "80", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert done.stdout.isascii()


def test_color_can_be_asked_for_and_refused(cli: Cli) -> None:
    assert "\x1b[" in cli("check", SICK, "--color", "always").stdout
    assert "\x1b[" not in cli("check", SICK, "--color", "never", "--width", "80", FORCE_COLOR="1").stdout


def test_force_color_asks_for_the_report_of_a_terminal(cli: Cli) -> None:
    asked = cli("check", SICK, FORCE_COLOR="1").stdout
    assert asked == cli("check", SICK, "--color", "always").stdout
    assert "\x1b[" not in cli("check", SICK, FORCE_COLOR="0").stdout
    assert "\x1b[" not in cli("check", SICK, FORCE_COLOR="1", NO_COLOR="1").stdout


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("check", SICK, "--fail-on", "crit"), "'crit' is not one of"),
        (("check", "--nope"), "--nope"),
        (("chek",), "'chek'"),
    ],
)
def test_every_error_is_one_line_and_what_to_try(cli: Cli, wrong: tuple[str, ...], said: str) -> None:
    done = cli(*wrong)
    error, hint = done.stderr.strip().splitlines()
    assert done.returncode == 2 and done.stdout == ""
    assert error.startswith("error: ") and said in error and "Value error" not in error
    assert hint.startswith("hint: ")


def test_a_place_that_is_not_there_is_part_of_the_answer(cli: Cli) -> None:
    done = cli("check", "/there/is/none")
    assert done.returncode == 2
    assert done.stdout.startswith("error: /there/is/none: no such file or folder")


@pytest.mark.parametrize("section", ["limits", "limit", "rule"])
def test_a_hint_never_names_the_key_that_was_refused(cli: Cli, tmp_path: Path, section: str) -> None:
    settings = tmp_path / "rlhealth.toml"
    settings.write_text(f"[{section}]\nx = 1\n")
    error = cli("check", SICK, "--config", str(settings)).stderr.splitlines()[0]
    assert f"{section}: unknown key" in error
    assert f"`{section}`" not in error and "`limit`" not in error


@pytest.mark.parametrize(
    "wrong",
    [
        ["--fail-on", "terrible"],
        ["--select", "kl-hihg"],
        ["--ignore", "kl-hihg"],
        ["--alias", "nonsense"],
        ["-f", "pdf"],
        ["--no-such-flag"],
    ],
)
def test_a_wrong_flag_exits_with_2_and_names_itself(cli: Cli, wrong: list[str]) -> None:
    done = cli("check", SICK, *wrong)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_misspelt_rule_is_met_with_what_was_meant(cli: Cli) -> None:
    assert "did you mean `kl-high`" in cli("check", SICK, "--select", "kl-hihg").stderr


def test_no_place_at_all_is_reported_with_the_next_thing_to_try(cli: Cli) -> None:
    done = cli("check")
    assert done.returncode == 2
    assert "--wandb entity/project/run" in done.stderr


def test_the_slow_reader_gives_the_same_answer(cli: Cli) -> None:
    fast, slow = (
        json.loads(cli("check", SICK, "--reader", reader, "-f", "json").stdout) for reader in ("fast", "tbparse")
    )
    assert fast["runs"][0]["findings"] == slow["runs"][0]["findings"]


def test_names_of_ones_own_may_come_from_a_file(cli: Cli, tmp_path: Path) -> None:
    rows = [
        {"step": step, "my/reward": 0.5 + 0.001 * step, "my/kl": 0.1 if step < 60 else 9.0} for step in range(1, 121)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "names.yaml").write_text("my/kl: kl\nmy/reward: reward\n")
    done = cli("check", tmp_path / "log.jsonl", "--alias", tmp_path / "names.yaml", "-f", "json")
    assert "kl-high" in {one["family"] for one in json.loads(done.stdout)["runs"][0]["findings"]}


def test_ignored_findings_are_counted(cli: Cli) -> None:
    done = cli("check", SICK, "--ignore", "kl-high", "-f", "json")
    run = json.loads(done.stdout)["runs"][0]
    assert "kl-high" not in {one["family"] for one in run["findings"]}
    assert {one["reason"] for one in run["ignored"]} == {"--ignore"}
    assert "ignored" in cli("check", SICK, "--ignore", "kl-high").stdout.splitlines()[-1]


def test_help_and_version_import_nothing_heavy() -> None:
    for flag in ("--help", "--version"):
        code = (
            f"import sys; sys.argv = ['rlhealth', '{flag}']\n"
            "from rlhealth.cli.app import main\n"
            "try: main()\nexcept SystemExit: pass\n"
            "heavy = {'pandas', 'numpy', 'wandb', 'tbparse', 'tensorboard', 'google.protobuf', "
            "'yaml', 'pydantic', 'rich', 'tomllib'} & set(sys.modules)\n"
            "heavy |= {'rlhealth.check', 'rlhealth.rules.loading', 'rlhealth.metrics', 'rlhealth.sources', "
            "'rlhealth.verdict.findings', 'rlhealth.verdict.verdicts'} & set(sys.modules)\n"
            "assert not heavy, heavy"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.returncode == 0, done.stderr


def test_a_check_of_event_files_imports_neither_pandas_nor_wandb_nor_tbparse() -> None:
    code = (
        "import sys\nfrom rlhealth.check import check\n"
        f"assert check({str(SICK)!r}).verdict == 'critical'\n"
        "heavy = {'pandas', 'wandb', 'tbparse', 'tensorflow', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def test_a_check_of_event_files_imports_nothing_for_what_is_not_there(tmp_path: Path) -> None:
    """No settings file, no table, no trainer's state, one run, a plain report: none of what reads or writes those is
    imported.
    """
    code = (
        f"import sys; sys.argv = ['rlhealth', 'check', {str(SICK)!r}]\n"
        "from rlhealth.cli.app import main\n"
        "try: main()\nexcept SystemExit as left: assert left.code == 1, left.code\n"
        "heavy = {'mcp', 'pandas', 'wandb', 'tbparse', 'tensorboard', 'tensorflow', 'google.protobuf', 'rich', "
        "'ray', 'fsspec', 'sqlite3', 'tomllib'} & set(sys.modules)\n"
        "heavy |= {'multiprocessing', 'concurrent.futures', 'asyncio', "
        "'importlib.resources.readers'} & set(sys.modules)\n"
        "own = ('parsing.toml_places', 'parallel.workers', 'parallel.cluster', 'comparison', 'watch', 'authoring',"
        " 'sources.rows.table', 'sources.rows.trainer_state', 'sources.trackio', 'reports.html')\n"
        "heavy |= {f'rlhealth.{one}' for one in own} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr


def test_an_internal_error_does_not_leave_with_the_code_of_a_sick_run() -> None:
    code = (
        "import sys; sys.argv = ['rlhealth', 'check', 'x']\nimport importlib\nmodule "
        "= importlib.import_module('rlhealth.check')\n"
        "def broken(*args, **kwargs): raise ZeroDivisionError('a bug')\n"
        "module.check = broken\nfrom rlhealth.cli.app import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert "internal error" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_flag_that_is_wrong_is_the_only_thing_that_is_said(cli: Cli) -> None:
    for flag, value, said in (
        ("--alias", "foo=bar", "there is no metric 'bar'"),
        ("--source", "foo", "no such source"),
    ):
        done = cli("check", str(HEALTHY), flag, value)
        assert done.returncode == 2 and not done.stdout and said in done.stderr, flag


def test_a_flag_that_changes_nothing_is_noted(cli: Cli) -> None:
    done = cli("check", str(HEALTHY), "--alias", "my/rewardd=reward", "--state", "finished", "--last", "4")
    assert done.returncode == 0
    for flag in ("--alias my/rewardd", "--state finished", "--last 4"):
        assert f"note: {flag}: " in done.stderr


def test_a_place_without_a_run_is_not_counted_as_one(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", str(tmp_path))
    assert done.stdout.splitlines()[-1] == "no run could be read; fail-on critical; exit 2"
