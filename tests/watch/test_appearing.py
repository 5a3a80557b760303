"""A run that begins in a file or a database that is watched already is taken up at the next look, as one that begins
in a file of its own is.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlhealth.rules.loading import load_rules
from rlhealth.watch.loop import Watch
from tests.conftest import FIXTURES
from tests.sources.conftest import nobody, server  # noqa: F401 (fixtures)
from tests.wandb_server import HostedRun, WandbServer
from tests.watch.test_loop import assert_equal_to_check
from tests.watching import HandClock, Recorder

RULES = load_rules()
TRACKIO = FIXTURES / "everywhere" / "grpo-short" / "trackio" / "tiny-rl.db"
ROWS = [{"step": step, "reward": step / 10, "kl": step / 100, "loss": 0.5} for step in range(1, 41)]


def as_jsonl(row: dict[str, float]) -> str:
    return json.dumps(row) + "\n"


def as_console(row: dict[str, float]) -> str:
    return f"{row}\n"


def write(path: Path, rows: list[dict[str, float]], line: Callable[[dict[str, float]], str] = as_jsonl) -> None:
    """Appends rows to a log."""
    with path.open("a") as file:
        file.write("".join(map(line, rows)))


def looked(watch: Watch, recorded: Recorder) -> list[str]:
    """The runs that one look found."""
    return [event.run for event in recorded.look(watch) if event.kind == "found"]


@pytest.mark.parametrize(("name", "line"), [("history.jsonl", as_jsonl), ("train.log", as_console)])
@pytest.mark.parametrize("in_folder", [False, True])
def test_a_run_appended_to_a_text_log_is_followed_from_the_next_look_on(
    name: str, line: Callable[[dict[str, float]], str], in_folder: bool, tmp_path: Path
) -> None:
    log, recorded = tmp_path / "exp" / name, Recorder()
    log.parent.mkdir()
    write(log, ROWS, line)
    watch = Watch([str(log.parent if in_folder else log)], RULES, clock=HandClock())
    assert looked(watch, recorded) == ["exp"]
    write(log, ROWS[:5], line)
    assert looked(watch, recorded) == ["exp#2"]
    write(log, [*ROWS[5:20], *ROWS[:3]], line)
    assert looked(watch, recorded) == ["exp#3"]
    write(log, ROWS[3:9], line)
    assert looked(watch, recorded) == []
    assert [len(one.reader.run.series["kl"]) for one in watch.followers] == [40, 20, 9]
    assert len(recorded.of("found")) == 3
    assert_equal_to_check(watch, recorded, log)


def test_what_is_wrong_with_the_second_run_of_a_log_is_reported_of_that_run(tmp_path: Path) -> None:
    log, recorded = tmp_path / "history.jsonl", Recorder()
    write(log, ROWS)
    watch = Watch([str(log)], RULES, clock=HandClock())
    looked(watch, recorded)
    write(log, [{**row, "loss": float("nan")} for row in ROWS[:20]])
    looked(watch, recorded)
    assert {event.run for event in recorded.of("raised")} == {watch.followers[1].name}
    assert [one.verdict for one in watch.verdict().runs] == ["healthy", "critical"]


class Project:
    """A database of Trackio's in which runs begin, with the rows that the real one wrote."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TRACKIO, path)
        self.connection = sqlite3.connect(path)
        self.connection.execute("PRAGMA journal_mode=WAL")

    def log(self, run: str, first: int, last: int) -> None:
        """Another run logs what the first one logged in those rows."""
        with self.connection:
            self.connection.execute(
                "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) SELECT ?, timestamp, "
                "?, step, metrics FROM metrics WHERE id BETWEEN ? AND ?",
                (f"id of {run}", run, first, last),
            )

    def last_steps(self, *runs: str) -> list[int]:
        """The newest step that each of the runs has logged."""
        rows = [
            self.connection.execute("SELECT metrics FROM metrics WHERE run_name = ?", (run,)).fetchall() for run in runs
        ]
        return [max(json.loads(metrics).get("train/global_step", 0) for (metrics,) in found) for found in rows]


@pytest.mark.parametrize("where", ["file", "folder", "address"])
def test_a_run_that_begins_in_a_trackio_project_is_followed_from_the_next_look_on(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "projects"))
    project, recorded = Project(tmp_path / "projects" / "tiny.db"), Recorder()
    place = {
        "file": str(tmp_path / "projects" / "tiny.db"),
        "folder": str(tmp_path / "projects"),
        "address": "trackio://tiny",
    }[where]
    watch = Watch([place], RULES, clock=HandClock())
    [first] = looked(watch, recorded)
    second = "projects/second" if where == "folder" else "second"
    project.log("second", 1, 6)
    assert looked(watch, recorded) == [second]
    project.log("second", 7, 90)
    project.log("third", 1, 60)
    assert looked(watch, recorded) == [second.replace("second", "third")]
    for _ in range(20):
        assert looked(watch, recorded) == []
    assert [one.name for one in watch.followers] == [first, second, second.replace("second", "third")]
    assert [one.reader.run.last_step for one in watch.followers[1:]] == project.last_steps("second", "third")
    project.connection.close()


def test_a_trackio_run_that_was_asked_for_by_name_is_watched_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    project, recorded = Project(tmp_path / "tiny.db"), Recorder()
    watch = Watch(["trackio://tiny/grpo-h11-short"], RULES, clock=HandClock())
    looked(watch, recorded)
    project.log("second", 1, 6)
    for _ in range(20):
        assert looked(watch, recorded) == []
    project.connection.close()


WRITER = """
import sys, trackio
for name in ("first", "second"):
    run = trackio.init(project="live", name=name, embed=False)
    for step in range(1, 31):
        trackio.log({"train/reward": step / 3, "train/kl": 0.1 + step / 1000, "train/global_step": step})
    trackio.finish()
    print("logged", flush=True)
    sys.stdin.readline()
"""


def test_the_second_run_of_a_real_trackio_is_followed(tmp_path: Path) -> None:
    pytest.importorskip("trackio")
    environment = os.environ | {"TRACKIO_DIR": str(tmp_path), "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    recorded, watch = Recorder(), Watch([str(tmp_path / "live.db")], RULES, clock=HandClock())
    with subprocess.Popen(
        [sys.executable, "-c", WRITER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as writer:
        assert writer.stdout is not None and writer.stdin is not None
        for _ in range(2):
            while writer.stdout.readline().strip() != "logged":
                assert writer.poll() is None
            recorded.look(watch)
            writer.stdin.write("\n")
            writer.stdin.flush()
    assert [event.run for event in recorded.of("found")] == ["first", "second"]
    assert [one.reader.run.last_step for one in watch.followers] == [30, 30]


def test_a_file_that_was_empty_when_its_folder_was_first_looked_at_is_found_when_it_becomes_a_log(
    tmp_path: Path,
) -> None:
    recorded = Recorder()
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    write(tmp_path / "one" / "log.jsonl", ROWS)
    watch = Watch([str(tmp_path)], RULES, clock=HandClock())
    looked(watch, recorded)
    (tmp_path / "two" / "log.jsonl").touch()
    assert looked(watch, recorded) == []
    write(tmp_path / "two" / "log.jsonl", ROWS)
    assert [run for _ in range(10) for run in looked(watch, recorded)] == ["two"]


def test_a_second_run_of_a_project_on_a_wandb_server_is_followed(server: WandbServer) -> None:
    recorded, watch = Recorder(), Watch(["wandb://ada/grpo"], RULES, clock=HandClock())
    rows = [{"_step": row["step"], "_timestamp": 1.7e9, **row} for row in ROWS]
    server.host(HostedRun(id="first", name="first", rows=rows))
    assert looked(watch, recorded) == ["first"]
    server.host(HostedRun(id="second", name="second", rows=rows[:9], created="2026-01-03T00:00:00Z"))
    assert [run for _ in range(10) for run in looked(watch, recorded)] == ["second"]
    assert len(watch.followers[1].reader.run.series["kl"]) == 9
