"""No line that any command prints is a command to a CI system, whatever a log, a folder or a file is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.reports import REPORTS
from rlhealth.reports.unsteered import CommandFreeStream, in_format, without_commands
from tests.conftest import Cli
from tests.examples import examples
from tests.reports.ci_parsers import commands, github

EVIL = [
    "##[error]pwned",
    "##[add-path]evil",
    "::set-output name=a::b",
    "  ::error::pwned",
    "\u200d::stop-commands::x",
    ":\u200d:warning::x",
    "#\u200d#[error]x",
    "##vso[task.setvariable variable=a]b",
    "##teamcity[buildStatus status='SUCCESS']",
]


def test_the_parsers_know_a_command_when_they_see_one() -> None:
    assert all(commands(one) for one in EVIL)
    assert github("all is well ##[error]x") == ("error", "x")
    assert commands("a::b ##[nothing] # # ::error") == []


@pytest.mark.parametrize("evil", EVIL)
def test_text_is_broken_up_wherever_it_stands(evil: str) -> None:
    for text in (evil, f" {evil}", f"\t{evil}\n{evil}", f"run\n\u00a0{evil}"):
        assert commands(without_commands(text)) == []


PIECES = st.lists(
    st.sampled_from([*"#:[] \n\u200d", "##", "::", "vso[", "error", "]", "teamcity[", "::error::", "##[error]"]),
    max_size=12,
)


@given(PIECES)
@settings(max_examples=examples(500), deadline=None)
def test_no_pieces_written_one_after_the_other_make_a_command(pieces: list[str]) -> None:
    out = StringIO()
    stream = CommandFreeStream(out)
    for one in pieces:
        stream.write(one)
    assert commands(out.getvalue()) == []


@given(PIECES)
@settings(max_examples=examples(300), deadline=None)
def test_json_says_the_same_when_its_commands_are_escaped(pieces: list[str]) -> None:
    text = json.dumps({"said": "".join(pieces)}, indent=1)
    written = in_format(text, "json")
    assert json.loads(written) == json.loads(text) and commands(written) == []


@pytest.fixture(scope="module")
def hostile_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sick runs with hostile names, tags and values, a damaged one, and an archive that is left out."""
    root = tmp_path_factory.mktemp("ci") / "##[error]all"
    rows = [
        {
            "step": step,
            "loss": 0.5,
            "reward": 0.1,
            "kl": 1e6 * step,
            "##[error]tag": 1.0,
            "\n::error::tag": 2.0,
            "##vso[x.y]": 3.0,
        }
        for step in range(1, 60)
    ]
    for name in ("::error::one", "  ::warning::two", "##teamcity[three]"):
        (root / name).mkdir(parents=True)
        (root / name / "##[add-path]train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "::error::one" / "::error::broken.jsonl").write_text(
        "".join(json.dumps(row) + "\n{##[error]\n" for row in rows)
    )
    (root / "##[error]train.jsonl.zst").write_bytes(b"x")
    return root


ASKED = [
    *(["check", "{}", "-f", name] for name in REPORTS if name != "github"),
    ["check", "{}", "--color", "always"],
    ["check", "{}", "--all"],
    ["check", "{}/no such ##[error]file"],
    ["check", "{}", "--select", "##[error]x"],
    ["metrics", "{}"],
    ["compare", "{}", "{}"],
    ["report", "{}", "-o", "-"],
    ["watch", "{}", "--timeout", "0.1"],
    ["explain", "##[error]rule"],
    ["##[error]command"],
    ["check", "--##[error]flag"],
]


@pytest.mark.parametrize("asked", ASKED, ids=lambda one: " ".join(one)[:40])
def test_no_command_prints_a_command(hostile_runs: Path, asked: list[str], cli: Cli) -> None:
    done = cli(*(one.replace("{}", str(hostile_runs)) for one in asked))
    assert done.stdout or done.stderr
    assert commands(done.stdout) == [] and commands(done.stderr) == []


def test_annotations_for_github_are_the_only_commands_and_ours(hostile_runs: Path) -> None:
    env = {**os.environ, "GITHUB_ACTIONS": "true"}
    done = subprocess.run(
        [sys.executable, "-m", "rlhealth", "check", str(hostile_runs)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        env=env,
    )
    annotations = [found for line in done.stdout.splitlines() if (found := github(line))]
    assert annotations and {name for name, _ in annotations} <= {"error", "warning", "notice"}
    assert not [data for _, data in annotations if "##" in data and commands(data)]
