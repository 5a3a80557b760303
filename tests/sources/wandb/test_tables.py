"""Completions of a run online: its tables are fetched from its server where completions are asked for, and only there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rlhealth
from rlhealth.completions import online
from rlhealth.completions.texts import CompletionReader, texts_of
from rlhealth.run import Run
from rlhealth.sources.wandb import session, tables
from tests.conftest import FIXTURES, ROOT, Cli
from tests.sources.wandb.test_one_server import Listener, stranger
from tests.sources.wandb_online import IMPATIENT, PATIENCE, RUN, offline, reader, rows_of, wait_for
from tests.wandb_server import KEY, HostedRun, WandbServer
from tests.wandb_server.faults import status

__all__ = ["stranger"]
WORD = FIXTURES / "completions" / "one-word"
PREFIX = "media/table/"
#: Logs a run again with the SDK as TRL logs it: its numbers, and each step's completions as a table.
WRITER = """
import sys
import pandas, wandb
from rlhealth.sources.discovery.opening import open_runs
fixture, folder = sys.argv[1:]
[run] = open_runs(fixture + "/runs")
with wandb.init(mode="offline", dir=folder, project="grpo", config=run.config) as logged:
    for step in range(1, 41):
        rows = pandas.read_parquet(f"{fixture}/completions/completions_{step:05d}.parquet")
        values = {tag: one.values[one.steps == step] for tag, one in run.series.items() if len(one) > 1}
        logged.log({tag: float(one[0]) for tag, one in values.items() if len(one)}
                   | {"train/global_step": step, "completions": wandb.Table(dataframe=rows)})
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that the SDK wrote on this machine, in which one word is rewarded."""
    folder = tmp_path_factory.mktemp("written")
    given = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT), "WANDB_SILENT": "true"}
    written = [sys.executable, "-c", WRITER, str(WORD), str(folder)]
    subprocess.run(written, cwd=folder, env=given, check=True, timeout=120, capture_output=True)
    return next(folder.rglob("*.wandb"))


@pytest.fixture
def online_run(server: WandbServer, log: Path) -> HostedRun:
    """The same run as its server would keep it."""
    files = {PREFIX + path.name: path.read_bytes() for path in log.parent.glob(f"files/{PREFIX}*.table.json")}
    assert len(files) == 40
    rows = rows_of(log)
    return server.host(
        HostedRun(rows=rows, summary=rows[-1], config=offline(log).config, state="finished", files=files)
    )


def texts() -> CompletionReader:
    """The texts of the run online, asked for and read once."""
    one = reader()
    one.poll()
    found = texts_of(one, "")
    found.poll()
    return found


def measured(run: Run) -> dict[str, list[tuple[int, float]]]:
    return {
        tag: list(zip(one.steps.tolist(), one.values.tolist(), strict=True))
        for tag, one in run.series.items()
        if tag.startswith("text/")
    }


def fetched(server: WandbServer) -> int:
    return server.operations().count("GET files")


def problems(run: Run) -> list[str]:
    return [one for one in run.problems if one.startswith("completions: ")]


def same(one: Run, other: Run) -> None:
    mine, theirs = measured(one), measured(other)
    assert mine.keys() == theirs.keys() and len(mine) > 15 and len(mine["text/length"]) == 40
    for tag, points in mine.items():
        np.testing.assert_array_equal(points, theirs[tag], tag)


def test_measures_and_findings_of_texts_are_the_same_online_as_offline(
    server: WandbServer, online_run: HostedRun, log: Path
) -> None:
    there, here = rlhealth.check(RUN, completions="").runs[0], rlhealth.check(log).runs[0]
    same(there.run, here.run)
    found = [[(one.rule, one.raised_step) for one in run.findings] for run in (there, here)]
    assert found[0] == found[1] and "text-repeats-itself" in dict(found[0])
    assert fetched(server) == 40 and server.operations().count("RunFiles") <= 2  # one of them for the requirements


def test_a_check_shows_the_same_texts_online_as_offline(
    server: WandbServer, online_run: HostedRun, log: Path, cli: Cli
) -> None:
    known = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY}
    there = cli("check", "--wandb", "ada/grpo/abc12345", "--completions", **known)
    here = cli("check", log, "--completions")
    shown = [
        [line.partition(": text[")[2] for line in one.stdout.splitlines() if ": text[" in line] for one in (there, here)
    ]
    assert shown[0] == shown[1] and any("good ⟦good" in line for line in shown[0])
    assert there.returncode == here.returncode == 1
    assert fetched(server) == 40, "what was measured is not fetched again to be shown"
    page = cli("read", RUN, "--step", "32", **known)
    assert page.stdout == cli("read", log, "--step", "32").stdout and "good good" in page.stdout.replace("⟦", "")


def test_a_check_that_asks_for_no_completions_lists_once_and_fetches_none(
    server: WandbServer, online_run: HostedRun
) -> None:
    online_run.requirements = "trl==1.0.0\n"
    run = rlhealth.check(RUN).runs[0].run
    listings = [given for name, given, _ in server.asked if name == "RunFiles" and given.get("pattern")]
    assert len(listings) == 1 and fetched(server) == 0 and not measured(run)
    assert "completions: 40 tables on the server were not read; --completions reads them" in run.notes


def test_a_run_without_tables_is_read_as_before(server: WandbServer, hosted: HostedRun) -> None:
    for asked in (None, ""):
        run = rlhealth.check(RUN, completions=asked).runs[0].run
        assert not problems(run) and not [one for one in run.notes if "completions" in one]
    assert fetched(server) == 0


def test_tables_that_come_while_the_run_is_watched_are_measured_as_they_come(
    server: WandbServer, online_run: HostedRun, log: Path
) -> None:
    rows, files = online_run.rows, online_run.files
    order = sorted(files, key=lambda name: int(name.split("_")[1]))
    online_run.rows, online_run.state, online_run.files = (
        rows[:20],
        "running",
        {name: files[name] for name in order[:20]},
    )
    one = reader()
    one.poll()
    found = texts_of(one, "")
    assert found.poll() and len(one.run.series["text/length"]) == 20
    assert not found.poll() and fetched(server) == 20
    online_run.rows, online_run.state, online_run.files = rows, "finished", files
    one.poll()
    assert found.poll() and fetched(server) == 40
    same(one.run, rlhealth.check(log).runs[0].run)


def test_a_server_that_does_not_list_its_files_is_one_problem_and_the_run_is_judged(
    server: WandbServer, online_run: HostedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = reader()
    one.poll()
    wait_for(one, IMPATIENT)
    server.fail(status(500), operation="RunFiles")
    found = texts_of(one, "")
    found.poll()
    assert len(problems(one.run)) == 1 and RUN in problems(one.run)[0] and not measured(one.run)
    assert len(one.run.series["train/reward"]) == 40
    wait_for(one, PATIENCE)
    server.recover()
    found.poll()
    assert not problems(one.run) and len(one.run.series["text/length"]) == 40


def test_a_table_that_cannot_be_read_hides_no_other(server: WandbServer, online_run: HostedRun) -> None:
    order = sorted(online_run.files, key=lambda name: int(name.split("_")[1]))
    online_run.files[order[3]] = b'{"columns": ["prompt", "comp'
    online_run.files[order[5]] = b" " * 1000
    run = texts().run
    assert len(run.series["text/length"]) == 38 and len(problems(run)) == 2
    assert all(RUN in one and "/tmp" not in one and "damaged" in one for one in problems(run))


def test_a_table_that_is_too_large_is_said_and_not_fetched(
    server: WandbServer, online_run: HostedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = sorted(map(len, online_run.files.values()))
    monkeypatch.setattr(tables, "LARGEST_TABLE", sizes[-1] - 1)
    run = texts().run
    large = sizes.count(sizes[-1])
    assert len(problems(run)) == large == 40 - fetched(server) and "larger than" in problems(run)[0]
    assert len(run.series["text/length"]) == 40 - large


def test_tables_beyond_what_is_fetched_are_one_problem(
    server: WandbServer, online_run: HostedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = sorted(online_run.files, key=lambda name: int(name.split("_")[1]))
    monkeypatch.setattr(online, "MOST_BYTES", sum(len(online_run.files[name]) for name in order[:10]))
    run = texts().run
    assert len(run.series["text/length"]) == fetched(server) == 10
    assert len(problems(run)) == 1 and order[10].removeprefix(PREFIX) in problems(run)[0]


def test_of_very_many_tables_only_some_are_looked_at(
    server: WandbServer, online_run: HostedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_TABLES", 10)
    run = texts().run
    assert fetched(server) == 11 and len(problems(run)) == 1 and "more than 10 tables" in problems(run)[0]


def test_a_poll_fetches_for_no_longer_than_the_session_is_patient(
    server: WandbServer, online_run: HostedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = reader()
    one.poll()
    found = texts_of(one, "")
    for kept in session._sessions.values():
        monkeypatch.setattr(kept, "patience", 0.0)
    found.poll()
    assert len(problems(one.run)) == 1 and "40 tables were not read" in problems(one.run)[0]


def test_tables_on_another_host_get_no_request(server: WandbServer, online_run: HostedRun, stranger: Listener) -> None:
    server.files_at = stranger.url
    run = texts().run
    assert stranger.asked == [] and not measured(run)
    assert len(problems(run)) == 1 and "another host" in problems(run)[0]
