"""Several at once: two readers of one run, a writer that rewrites, a database that is locked, a folder that goes
away while it is read.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from rlhealth.check import check
from rlhealth.errors import RlhealthError
from rlhealth.reports import write
from rlhealth.run import Run
from rlhealth.sources import find_readers
from tests.conftest import FIXTURES, ROOT
from tests.fuzz.seeds import small_database
from tests.growing import GrowingFile, sizes

EVENTS = next((FIXTURES / "runs").rglob("*tfevents*"))
WANDB = FIXTURES / "wandb" / "run-grpo-old-nan.wandb"
STATE = FIXTURES / "trainer_state" / "ppo-nan" / "trainer_state.json"


def points(run: Run) -> dict[str, list[tuple[int, str]]]:
    return {
        tag: [(int(step), repr(float(value))) for step, value in zip(one.steps, one.values, strict=True)]
        for tag, one in run.series.items()
        if len(one)
    }


def polled(path: Path) -> Run:
    (reader,) = find_readers(str(path))
    reader.poll()
    return reader.run


@pytest.mark.parametrize("source", [EVENTS, WANDB], ids=["events", "wandb"])
def test_two_readers_of_a_growing_run_end_with_the_same(source: Path, tmp_path: Path) -> None:
    random = Random(2)
    growing = GrowingFile(source, tmp_path / source.name)
    growing.grow(200)
    readers = [find_readers(str(tmp_path / source.name))[0] for _ in range(2)]
    for size in sizes(random, len(growing.source) - 200, 40):
        growing.grow(size)
        for reader in readers:
            if random.random() < 0.6:
                reader.poll()
    for reader in readers:
        reader.poll()
        assert points(reader.run) == points(polled(source))


@pytest.mark.parametrize("how", ["in place", "replaced"])
@pytest.mark.parametrize("source", [EVENTS, WANDB], ids=["events", "wandb"])
def test_a_run_that_is_written_anew_in_the_same_file_replaces_the_old_one(
    source: Path, how: str, tmp_path: Path
) -> None:
    path = tmp_path / source.name
    raw = source.read_bytes()
    path.write_bytes(raw)
    (reader,) = find_readers(str(path))
    reader.poll()
    short = raw[: len(raw) // 3]
    if how == "in place":
        path.write_bytes(short)
    else:
        (tmp_path / "new").write_bytes(short)
        (tmp_path / "new").replace(path)
    reader.poll()
    again = tmp_path / "again" / source.name
    again.parent.mkdir()
    again.write_bytes(short)
    assert points(reader.run) == points(polled(again))


def test_a_state_that_is_rewritten_at_each_save_is_read_whole_each_time_or_as_before(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    state = json.loads(STATE.read_text())
    rows = state["log_history"]
    path.write_text(json.dumps({**state, "log_history": rows[:5]}))
    (reader,) = find_readers(str(path))
    for count in range(5, len(rows) + 1, 3):
        text = json.dumps({**state, "log_history": rows[:count]})
        path.write_text(text[: len(text) // 2])  # the writer is half-way
        reader.poll()
        path.write_text(text)
        reader.poll()
        last = max(row["step"] for row in rows[:count])
        assert reader.run.last_step == last
    path.write_text(json.dumps(state))
    reader.poll()
    assert points(reader.run) == points(polled(STATE))


WRITER = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode = " + sys.argv[2])
database.execute("BEGIN EXCLUSIVE")
database.execute("INSERT INTO metrics (run_id, run_name, step, timestamp, metrics) SELECT run_id, run_name, 77, timestamp, '{\\"train/loss\\": 7.5, \\"train/global_step\\": 9999}' FROM metrics LIMIT 1")
print("locked", flush=True)
sys.stdin.readline()
database.execute("COMMIT")
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(params=["WAL", "DELETE"])
def locked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A Trackio database that another process holds locked, in the middle of a transaction."""
    path = tmp_path / "project.db"
    small_database(path, 6)
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), request.param],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "locked\n"
    yield path, process
    process.kill()
    process.wait()


def test_a_database_that_its_writer_holds_locked_is_read_as_it_was_committed(
    locked: tuple[Path, subprocess.Popen[str]],
) -> None:
    path, process = locked
    reader = next(one for one in find_readers(str(path)) if one.run.name != "a")
    reader.poll()
    assert reader.run.series
    before = len(reader.run.series.get("train/loss", ()))
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"
    assert reader.poll()
    assert len(reader.run.series["train/loss"]) == before + 1


@pytest.mark.parametrize("source", [EVENTS, WANDB, STATE], ids=["events", "wandb", "state"])
def test_a_run_that_is_deleted_while_it_is_followed_keeps_what_was_read(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(source, folder / source.name)
    (reader,) = find_readers(str(folder))
    reader.poll()
    held = points(reader.run)
    shutil.rmtree(folder)
    try:
        reader.poll()
    except RlhealthError as error:
        assert error.hint
    assert points(reader.run) == held


def test_a_folder_that_is_deleted_and_made_again_all_the_time_never_gives_a_traceback(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import shutil, sys\nwhile True:\n shutil.copytree(sys.argv[1], sys.argv[2])\n shutil.rmtree(sys.argv[2])",
            str(FIXTURES / "runs"),
            str(folder),
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(60):
            try:
                for reader in find_readers(str(folder)):
                    reader.poll()
            except RlhealthError as error:
                assert error.hint
            time.sleep(0.002)
    finally:
        process.kill()
        process.wait()


def test_two_watches_of_one_run_tell_the_same_and_disturb_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(FIXTURES / "runs" / "lr-jump", folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    command = [
        sys.executable,
        "-m",
        "rlhealth",
        "watch",
        str(folder),
        "--interval",
        "0.2",
        "--timeout",
        "2",
        "-f",
        "json",
    ]
    both = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [process.communicate(timeout=60) for process in both]
    reports = [json.loads(out[out.index('{\n "schema": "rlhealth.report/1"') :]) for out, _ in said]
    assert (
        [one["rule"] for one in reports[0]["runs"][0]["findings"]]
        == [one["rule"] for one in reports[1]["runs"][0]["findings"]]
        != []
    )
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_command_that_is_run_at_a_change_gets_what_a_log_says_as_data_only(tmp_path: Path) -> None:
    folder = tmp_path / "$(touch owned)`touch owned`;touch owned"
    shutil.copytree(FIXTURES / "runs" / "lr-jump", folder)
    notifier = tmp_path / "tell.py"
    notifier.write_text(
        "import json, os, sys, pathlib\npathlib.Path('calls.jsonl').open('a').write(json.dumps([sys.argv[1:], "
        "json.load(sys.stdin)['run'], os.environ['RLHEALTH_RUN']]) + '\\n')\n"
    )
    command = [
        sys.executable,
        "-m",
        "rlhealth",
        "watch",
        str(folder),
        "--interval",
        "0.2",
        "--timeout",
        "2",
        "--on-change",
        f"{sys.executable} {notifier} $HOME '; touch owned'",
    ]
    subprocess.run(
        command,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert calls
    assert all(
        words == ["$HOME", "; touch owned"] and "touch owned" in run and environment == run
        for words, run, environment in calls
    )
    assert not (tmp_path / "owned").exists()


def test_a_folder_that_is_replaced_while_it_is_checked_never_passes(tmp_path: Path) -> None:
    """Folders go and come back under a check all the time; one sick run is there at every moment."""
    root, kept = tmp_path / "runs", tmp_path / "kept"
    for number in range(4):
        shutil.copytree(FIXTURES / "reports" / "lr-jump", root / f"sick{number}")
        shutil.copytree(FIXTURES / "compare" / "good-tight-kl", root / f"good{number}")
    kept.mkdir()
    over = threading.Event()

    def replace() -> None:
        while not over.is_set():
            for number in range(4):
                for name in (f"good{number}", f"sick{number}" if number else "good0"):
                    (root / name).rename(kept / name)
                    (kept / name).rename(root / name)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(3):
            verdict = check(root)
            assert verdict.exit_code == 1
            json.loads(write(verdict, "json"))
    finally:
        over.set()
        thread.join()
