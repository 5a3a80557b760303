"""`rlhealth preflight`: a line a finding, the exit code of the gate, and silence on what is healthy."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import FIXTURES, Cli

BAD = "learning_rate: 5e-2\nnum_generations: 1\nbeta: 0.0\n"
GOOD = "learning_rate: 1e-6\nnum_generations: 8\nbeta: 0.04\n"
HEALTHY = [
    *(FIXTURES / "compare" / name for name in ("good-polite", "good-strong-kl", "good-tight-kl")),
    FIXTURES / "reports" / "sort",
    FIXTURES / "everywhere" / "grpo-short" / "trainer_state.json",
]


def test_each_finding_is_a_line_with_the_option_its_value_why_and_what_instead(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(BAD)
    done = cli("preflight", "grpo.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert [line.split(": ")[:3] for line in lines[:-1]] == [
        ["grpo.yaml:2", "critical[group-of-one] num_generations=1", lines[0].split(": ")[2]],
        ["grpo.yaml:1", "critical[learning-rate-far-too-high] learning_rate=0.05", lines[1].split(": ")[2]],
        ["grpo.yaml:3", "info[kl-not-logged] beta=0", lines[2].split(": ")[2]],
    ]
    assert all("; try " in line for line in lines[:-1])
    assert lines[-1].startswith("TRL GRPOTrainer, 3 settings; 2 critical, 1 info; ") and lines[-1].endswith("exit 1")


def test_what_is_healthy_is_silent(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(GOOD)
    for where in ("grpo.yaml", *HEALTHY):
        done = cli("preflight", where, "--fail-on", "info", cwd=tmp_path)
        assert (done.returncode, done.stdout.count("\n")) == (0, 1), (where, done.stdout, done.stderr)


def test_the_gate_counts_what_it_is_configured_to(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("num_generations: 8\nbeta: 5\n")
    codes = {
        gate: cli("preflight", "a.yaml", "--fail-on", gate, cwd=tmp_path).returncode
        for gate in ("critical", "warning", "never")
    }
    assert codes == {"critical": 0, "warning": 1, "never": 0}


def test_json_holds_the_same_with_the_sources(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(BAD)
    done = cli("preflight", "grpo.yaml", "-f", "json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert (document["schema"], document["exit_code"], done.returncode) == ("rlhealth.preflight/1", 1, 1)
    [training] = document["trainings"]
    first = training["findings"][0]
    assert (first["check"], first["option"], first["value"], first["place"]) == (
        "group-of-one",
        "num_generations",
        1,
        "grpo.yaml:2",
    )
    assert first["source"] and first["try"] and training["skipped"] and training["quiet"]


def test_what_cannot_be_checked_exits_with_2(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("colour: red\n")
    (tmp_path / "b.yaml").write_text(GOOD)
    for where in (["a.yaml"], ["a.yaml", "b.yaml"], ["missing.yaml"]):
        done = cli("preflight", *where, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.startswith("error: "), where
    assert cli("preflight", "b.yaml", "--framework", "nobody", cwd=tmp_path).returncode == 2


def test_a_hostile_value_cannot_steer_the_terminal(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(GOOD.replace("1e-6", '"\\e[31m"') + 'top_k: 1\n"\\e]0;x\\a": 3\n')
    done = cli("preflight", "grpo.yaml", "--all", cwd=tmp_path)
    assert "\x1b" not in done.stdout + done.stderr and "one-token-to-choose-from" in done.stdout


def test_a_sick_run_shows_the_rate_that_its_rows_reached(cli: Cli) -> None:
    done = cli("preflight", FIXTURES / "reports" / "lr-jump")  # a trainer_state.json tells hardly any settings
    assert "critical[learning-rate-far-too-high] learning_rate=0.02" in done.stdout and done.returncode == 1
