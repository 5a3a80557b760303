"""The README keeps its word: what it tells people to run, runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, SICK, Cli

README = (ROOT / "README.md").read_text(encoding="utf-8")
SHELL = [
    line.split("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]
SETUP = [line for line in SHELL if line.startswith("python3 -m venv")]
PLAIN = [line for line in SHELL if line.startswith("rlhealth ")]


def test_two_commands_set_up_and_the_gate_runs_the_same_tests() -> None:
    see, test = SETUP
    assert "rlhealth check fixtures/runs/lr-jump" in see
    assert test in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_first_command_checks_the_sample(cli: Cli) -> None:
    arguments = shlex.split(SETUP[0].rpartition("rlhealth ")[2])
    done = cli(*arguments, cwd=ROOT)
    assert done.returncode == 0
    assert "learning-rate-jump" in done.stdout


@pytest.mark.parametrize("line", PLAIN)
def test_every_command_is_one_that_exists(cli: Cli, line: str) -> None:
    command, *_ = shlex.split(line)[1:]
    done = cli(command, "--help")
    assert done.returncode == 0
    for flag in re.findall(r"(?<= )--?[a-z][a-z-]*", line):
        assert flag in done.stdout, f"{flag} is no flag of {command}"


def test_the_commands_to_use_it_run_as_they_stand(cli: Cli, tmp_path: Path) -> None:
    block = README[README.index("## Use it") :].split("```")[1]
    lines = [line.split("  #")[0].strip() for line in block.splitlines() if line.startswith("rlhealth ")]
    assert len(lines) >= 6
    for folder in ("fixtures", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    codes = {}
    for line in lines:
        done = cli(*shlex.split(line)[1:], cwd=tmp_path)
        codes[line.split()[1]] = done.returncode
        assert done.stdout.strip() and not done.stderr, (line, done.stderr)
    assert codes == {
        "check": 1,
        "watch": 1,
        "metrics": 0,
        "advise": 0,
        "preflight": 0,
        "explain": 0,
        "report": 0,
        "compare": 1,
    }


def test_the_gate_command_runs_as_written(cli: Cli, tmp_path: Path) -> None:
    line = next(line for line in PLAIN if "health.xml" in line)
    arguments = [str(SICK) if one == "./runs" else one for one in shlex.split(line)[1:]]
    done = cli(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert (tmp_path / "health.xml").read_text(encoding="utf-8").startswith("<?xml")


def test_the_python_example_runs(tmp_path: Path) -> None:
    example = next(
        block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "rlhealth.check" in block
    )
    done = subprocess.run(
        [sys.executable, "-c", example.replace("./runs/exp1", str(SICK))],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "critical" in done.stdout


def test_every_document_it_points_to_is_there() -> None:
    missing = [link for link in re.findall(r"\]\(([^)#:]+)\)", README) if not (ROOT / link).exists()]
    assert not missing
