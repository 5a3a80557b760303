"""The right one is stopped: a process only for the run that it writes, and nothing where that cannot be known."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import load_rules
from rlhealth.verdict.findings import Severity
from rlhealth.watch.follower import Event
from rlhealth.watch.loop import Limits, Watch, watch
from rlhealth.watch.owner import open_files, owned_by
from rlhealth.watch.stopping import Process, Stopping
from tests.growing import GrowingFile
from tests.logged_rows import FIXTURES
from tests.watching import HandClock

RULES = load_rules()
SICK = next((FIXTURES / "tensorboard" / "grpo-sentences").rglob("*tfevents*"))


class Growth:
    """A teller that lets the sick log grow while time passes by hand."""

    def __init__(self, growing: GrowingFile, clock: HandClock) -> None:
        self.growing, self.clock = growing, clock

    def show(self, watch: Watch, event: Event) -> None:
        pass

    def wait(self, watch: Watch, seconds: float) -> bool:
        self.clock.wait(seconds)
        self.growing.grow(8000)
        return True


def holding(path: Path | None) -> subprocess.Popen[str]:
    """A trainer that holds its log open."""
    opened = f"file = open({str(path)!r}, 'ab')" if path else "pass"
    code = f"import time; {opened}; print('ready', flush=True); time.sleep(120)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, GrowingFile]:
    """A healthy run and a sick one that is being written, side by side."""
    healthy = tmp_path / "runs" / "healthy" / "trainer_state.json"
    healthy.parent.mkdir(parents=True)
    shutil.copy(FIXTURES / "compare" / "good-tight-kl" / "trainer_state.json", healthy)
    growing = GrowingFile(SICK, tmp_path / "runs" / "sick" / SICK.name)
    growing.grow(3000)
    return tmp_path / "runs", healthy, growing


def stopped(folder: Path, growing: GrowingFile, process: subprocess.Popen[str], named: str | None = None) -> bool:
    """Whether a watch of the folder stops the process."""
    clock = HandClock(SICK)
    stopping = Stopping(Severity.CRITICAL, Process(process.pid, 5.0), named)
    try:
        watch(Watch([str(folder)], RULES, clock=clock), Limits(timeout=3600), Growth(growing, clock), stopping=stopping)
        return process.poll() is not None
    finally:
        process.kill()
        process.wait()


def test_a_process_is_not_stopped_for_its_neighbour(folders: tuple[Path, Path, GrowingFile]) -> None:
    folder, healthy, growing = folders
    assert not stopped(folder, growing, holding(healthy))


def test_the_process_that_writes_the_sick_run_is_stopped(folders: tuple[Path, Path, GrowingFile]) -> None:
    folder, _, growing = folders
    assert stopped(folder, growing, holding(growing.target))


def test_a_process_of_which_nothing_tells_its_run_is_refused_before_anything_is_stopped(
    folders: tuple[Path, Path, GrowingFile],
) -> None:
    folder, _, growing = folders
    process = holding(None)
    with pytest.raises(
        RlhealthError, match="2 runs are watched, and the process has none of their files open"
    ) as refused:
        stopped(folder, growing, process)
    assert "--stop-run NAME, one of healthy, sick" in refused.value.hint


def test_the_run_may_be_named(folders: tuple[Path, Path, GrowingFile]) -> None:
    folder, _, growing = folders
    assert not stopped(folder, growing, holding(None), "healthy")
    with pytest.raises(RlhealthError, match="--stop-run other: there is no such run"):
        stopped(folder, growing, holding(None), "other")


def test_files_of_children_count(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    inner = f"import time; f = open({str(log)!r}, 'ab'); print('ready', flush=True); time.sleep(120)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    try:
        assert log in open_files(process.pid)
    finally:
        subprocess.run(["pkill", "-P", str(process.pid)], check=False)
        process.kill()
        process.wait()


def test_one_run_needs_no_proof(folders: tuple[Path, Path, GrowingFile]) -> None:
    subject = Watch([str(folders[1])], RULES, clock=HandClock())
    subject.look()
    assert owned_by(1, subject.followers) is subject.followers[0]
