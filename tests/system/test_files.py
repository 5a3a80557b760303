"""Writes are whole or not at all: a kill, a full disk, a link, a second writer and a log in the way."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlhealth.system.files import locked, write_whole
from tests.conftest import Cli
from tests.logged_rows import FIXTURES

SICK = FIXTURES / "reports" / "lr-jump"
HEALTHY = FIXTURES / "compare" / "good-tight-kl"

#: What a program begins with whose files may not grow: Python would leave modules that it compiled cut off at the limit.
LIMITED = (
    "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); sys.dont_write_bytecode = True\n"
)


def test_the_text_is_there_with_the_mode_and_the_link_that_were_there(tmp_path: Path) -> None:
    file, link = tmp_path / "report.json", tmp_path / "link.json"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    write_whole(link, "after")
    assert link.is_symlink() and file.read_text() == "after" and stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.json", "report.json"]


def test_a_write_that_fails_leaves_what_was_there_and_no_rubbish(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("before")
    code = LIMITED + (
        "from pathlib import Path; from rlhealth.system.files import write_whole;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        f"write_whole(Path({str(file)!r}), 'x' * 100_000)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "File too large" in done.stderr
    assert file.read_text() == "before" and [one.name for one in tmp_path.iterdir()] == ["report.json"]
    assert resource.RLIMIT_FSIZE is not None


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_an_export_that_fails_leaves_what_was_there_and_no_rubbish(tmp_path: Path, ending: str) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"run{ending}"
    file.write_text("before")
    code = LIMITED + (
        "from rlhealth.cli.app import main; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"sys.argv = ['rlhealth', 'metrics', {str(HEALTHY)!r}, '--export', {str(file)!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2 and "File too large" in done.stderr and "Traceback" not in done.stderr
    assert file.read_text() == "before" and [one.name for one in tmp_path.iterdir()] == [file.name]


def test_an_export_never_takes_the_place_of_a_log(tmp_path: Path, cli: Cli) -> None:
    log = tmp_path / "progress.csv"
    log.write_text("step,loss,reward\n" + "".join(f"{step},0.5,0.1\n" for step in range(40)))
    before = log.read_bytes()
    done = cli("metrics", tmp_path, "--export", log)
    assert done.returncode == 2 and "this is a log that is being read" in done.stderr
    assert log.read_bytes() == before


def test_a_rule_that_cannot_be_written_whole_is_not_begun(tmp_path: Path) -> None:
    code = LIMITED + (
        "from rlhealth.cli.app import main; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        f"sys.argv = ['rlhealth', 'rules', 'new', 'my-rule', '-o', {str(tmp_path)!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2 and "File too large" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_kill_in_the_middle_leaves_the_whole_old_file(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("before")
    code = (
        "from pathlib import Path; from rlhealth.system.files import write_whole; print('go', flush=True)\n"
        f"while True: write_whole(Path({str(file)!r}), 'x' * 3_000_000)"
    )
    for pause in (0.01, 0.03, 0.1):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "go\n"
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert file.read_text() in ("before", "x" * 3_000_000)


def test_a_device_is_written_as_it_is() -> None:
    write_whole(Path(os.devnull), "text")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    with pytest.raises(OSError, match="No space left"):
        write_whole(Path("/dev/full"), "text")


def test_baselines_written_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    for name in ("one", "two", "three", "four"):
        shutil.copytree(SICK, tmp_path / name)
    with locked(file):
        asking = [
            subprocess.Popen(
                [sys.executable, "-m", "rlhealth", "check", tmp_path / name, "--write-baseline", file, "-q"]
            )
            for name in ("one", "two", "three", "four")
        ]
        time.sleep(0.5)
        assert not file.exists()
    assert [one.wait(timeout=120) for one in asking] == [0, 0, 0, 0]
    assert {one["run"] for one in json.loads(file.read_text())["accepted"]} == {"one", "two", "three", "four"}


@pytest.mark.parametrize("folder", ["run", "run#1"])
def test_a_report_never_takes_the_place_of_a_log(folder: str, tmp_path: Path, cli: Cli) -> None:
    log = tmp_path / folder / "train.jsonl"
    log.parent.mkdir()
    rows = json.loads((HEALTHY / "trainer_state.json").read_text())["log_history"]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = log.read_bytes()
    (tmp_path / "link").symlink_to(log)
    for place in (log, tmp_path / "link", tmp_path / folder / ".." / folder / "train.jsonl"):
        done = cli("check", tmp_path / folder, "-f", "json", "-o", place)
        assert done.returncode == 2 and "this is a log that is being read" in done.stderr
        done = cli("report", log, "-o", place)
        assert done.returncode == 2 and log.read_bytes() == before
    assert cli("check", tmp_path / folder, "-f", "json", "-o", tmp_path / folder / "health.json").returncode == 0


def test_an_event_file_is_never_written_over(tmp_path: Path, cli: Cli) -> None:
    shutil.copytree(FIXTURES / "runs" / "lr-jump", tmp_path / "run")
    (event,) = (tmp_path / "run").rglob("*tfevents*")
    before = event.read_bytes()
    assert cli("check", tmp_path / "run", "-f", "json", "-o", event).returncode == 2
    assert event.read_bytes() == before


@pytest.mark.parametrize("format", ["terminal", "json", "html"])
def test_an_output_that_takes_nothing_is_one_plain_error(format: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "rlhealth", "check", str(HEALTHY), "-f", format]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "error: standard output cannot be written: no space left on device\nhint: write the report to a file: -o FILE\n"
    )
