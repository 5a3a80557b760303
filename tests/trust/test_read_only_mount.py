"""Where no file system can be written, not by root either: what lies there is judged as anywhere; what needs a copy
first says so, and hides nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlhealth.sources.rows.table import IN_MEMORY
from tests.conftest import FIXTURES, ROOT, Cli

DATABASE = FIXTURES / "everywhere" / "grpo-short" / "trackio" / "tiny-rl.db"
NO_KEY = "0" * 40
#: In a namespace of its own: every mount becomes read-only; $1 is a folder, $2 what is mounted there afresh, or
#: nothing. 77 where it could be written all the same.
SCRIPT = """
for place in $(cut -d" " -f2 /proc/self/mounts); do mount -o remount,bind,ro "$place" 2>/dev/null; done
( : > "$1/written" ) 2>/dev/null && exit 77
[ -z "$2" ] || mount -t "$2" "$2" "$1" || exit 77
shift 2; exec "$@"
"""
CLOSED = [
    "unshare",
    *(["--map-root-user"] if os.geteuid() else []),
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    SCRIPT,
    "sh",
]


def closed(
    home: Path, *words: str | Path, room: str = "", stdin: Any = subprocess.DEVNULL, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command where nothing can be written; its home and its temporary folder are `home`, which with `room` is a
    file system of that type that can.
    """
    known = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [*CLOSED, str(home), room, sys.executable, "-m", "rlhealth", *map(str, words)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=known | environment,
        stdin=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "internal error" not in done.stderr and "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that cannot be written where `closed` looks."""
    folder = tmp_path_factory.mktemp("home")
    if (
        not shutil.which("unshare")
        or closed(folder, "--version").returncode
        or closed(folder, "--version", room="tmpfs").returncode
    ):
        pytest.skip("this process may not mount a file system read-only")
    return folder


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A Trackio database whose writer was killed: its newest row, of step 900, stands in the log beside it only."""
    there, written = tmp_path / "killed" / "tiny-rl.db", tmp_path / "tiny-rl.db"
    there.parent.mkdir()
    shutil.copy(DATABASE, written)
    writer = sqlite3.connect(written, isolation_level=None)
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    row = json.dumps({"train/reward": 0.5, "train/global_step": 900})
    writer.execute(
        "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) SELECT run_id, "
        "timestamp, run_name, 900, ? FROM metrics LIMIT 1",
        (row,),
    )
    for suffix in ("", "-wal"):
        shutil.copy(f"{written}{suffix}", f"{there}{suffix}")
    writer.close()
    return there


def without_times(report: str) -> str:
    return re.sub(r'"seconds": [-\d.e]+', "", report)


@pytest.mark.parametrize(
    "place", ["runs", "tensorboard", "wandb", "trainer_state", "tables", "everywhere", "everywhere/grpo-short/trackio"]
)
def test_what_lies_on_a_read_only_mount_is_judged_as_anywhere(place: str, home: Path, cli: Cli) -> None:
    """The last of them is a Trackio database in WAL mode, which SQLite alone would refuse to open there."""
    words = ["check", FIXTURES / place, "-f", "json", "--all"]
    there = closed(home, *words)
    here = cli(*words, cwd=ROOT)
    assert json.loads(there.stdout)["runs"]
    assert (there.returncode, there.stderr, without_times(there.stdout)) == (
        here.returncode,
        here.stderr,
        without_times(here.stdout),
    )


def test_many_runs_are_judged_where_no_worker_process_can_begin(home: Path) -> None:
    """Shared memory is read-only there too, and workers need semaphores in it."""
    words = ["check", FIXTURES, "-f", "json", "--jobs", "2"]
    there = closed(home, *words)
    assert there.returncode in (1, 2), there.stderr
    assert len(json.loads(there.stdout)["runs"]) > 20


def test_a_database_that_must_be_copied_first_says_so_and_hides_no_other_run(home: Path, killed: Path) -> None:
    shutil.copytree(FIXTURES / "runs" / "lr-jump", killed.parent / "lr-jump")
    done = closed(home, "check", killed.parent, "-f", "json")
    report = json.loads(done.stdout)
    assert [Path(one["run"]).name for one in report["runs"]] == ["lr-jump"]
    (error,) = report["errors"]
    assert error["error"] == f"{killed}: no temporary folder can be written"
    assert "TMPDIR" in error["hint"]
    assert done.returncode == 1, "the critical run beside it fails the gate"
    assert closed(home, "check", killed).returncode == 2, "asked for by name, it has no answer"


def test_with_a_temporary_folder_it_is_read_to_its_newest_row(home: Path, killed: Path) -> None:
    done = closed(home, "check", killed, "-f", "json", room="tmpfs")
    (run,) = json.loads(done.stdout)["runs"]
    assert run["steps"]["last"] == 900
    assert run["problems"] == []


def test_more_on_stdin_than_memory_is_meant_for_is_refused(home: Path, tmp_path: Path) -> None:
    line = b'{"step": 1, "loss": 0.5}\n'
    (tmp_path / "log").write_bytes(line * (IN_MEMORY // len(line) + 2))
    with (tmp_path / "log").open("rb") as stdin:
        done = closed(home, "check", "-", stdin=stdin)
    assert done.returncode == 2
    assert "-: no temporary folder can be written" in done.stdout and "TMPDIR" in done.stdout


def test_wandb_online_says_that_its_library_needs_a_temporary_folder(home: Path) -> None:
    done = closed(
        home, "check", "--wandb", "someone/project/run", WANDB_API_KEY=NO_KEY, WANDB_BASE_URL="http://127.0.0.1:9"
    )
    assert done.returncode == 2
    assert "wandb: no temporary folder can be written" in done.stdout and "TMPDIR" in done.stdout


@pytest.mark.parametrize(
    "words", [("watch", "--timeout", "1", "--interval", "0.3"), ("metrics",), ("report", "-o", "-")], ids=" ".join
)
def test_other_commands_need_no_room_either(words: tuple[str, ...], home: Path) -> None:
    done = closed(home, words[0], FIXTURES / "everywhere", *words[1:])
    assert "reward" in done.stdout
    assert done.returncode in (0, 1), done.stderr


def test_a_page_that_cannot_be_written_says_where(home: Path) -> None:
    done = closed(home, "report", FIXTURES / "runs" / "lr-jump", "-o", home / "page.html")
    assert done.returncode == 2
    assert "page.html" in done.stderr and "read-only file system" in done.stderr.lower()
