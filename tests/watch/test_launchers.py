"""The process to stop is found by the files that it writes, with the launcher above it; jobs of Slurm by their id."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.sources import find_readers
from rlhealth.watch.launchers import launcher_note, target_of
from rlhealth.watch.slurm import SlurmJob
from rlhealth.watch.stopping import Process
from tests.conftest import FIXTURES, Cli

SICK = next((FIXTURES / "tensorboard" / "grpo-sentences").rglob("*tfevents*"))
WORKER = "import sys, time; f = open(sys.argv[-1], 'ab'); print('ready', flush=True); time.sleep(120)"
Start = Callable[..., "subprocess.Popen[str]"]


def lives(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return Path(shutil.copy(SICK, tmp_path / "run" / SICK.name))


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process in a group of its own, and ends all of them at the end."""
    started: list[subprocess.Popen[str]] = []

    def begin(*command: str, **more: str) -> subprocess.Popen[str]:
        environment = {**os.environ, **more}
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        assert process.stdout is not None
        while (line := process.stdout.readline()) and "ready" not in line:
            pass
        assert line
        return process

    yield begin
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)
        one.wait()


def test_the_process_that_writes_the_run_is_found(log: Path, start: Start) -> None:
    process = start(sys.executable, "-c", WORKER, str(log))
    assert (target_of(find_readers(log.parent)).pid, launcher_note(process.pid)) == (process.pid, "")


def test_a_process_that_only_reads_the_log_is_not(log: Path, start: Start) -> None:
    start(sys.executable, "-c", WORKER.replace("'ab'", "'rb'"), str(log))
    with pytest.raises(RlhealthError, match="no process here holds the run's files open for writing"):
        target_of(find_readers(log.parent))


def test_of_two_that_write_it_neither_is_chosen(log: Path, start: Start) -> None:
    for _ in range(2):
        start(sys.executable, "-c", WORKER, str(log))
    with pytest.raises(RlhealthError, match="several processes write the run"):
        target_of(find_readers(log.parent))


def test_torchrun_is_stopped_rather_than_its_worker(log: Path, start: Start, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(WORKER)
    agent = start(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=1", str(script), str(log))
    target = target_of(find_readers(log.parent))
    assert target.pid == agent.pid and "was started by" in target.why


def test_a_launcher_is_known_by_its_name(log: Path, start: Start, tmp_path: Path) -> None:
    launcher = tmp_path / "torchrun"  # a program of that name that starts a worker and waits, as the real one does
    launcher.write_text(
        f"#!{sys.executable}\nimport subprocess, sys\nsubprocess.run([sys.executable, '-c', {WORKER!r}, sys.argv[1]])\n"
    )
    launcher.chmod(0o755)
    agent = start(str(launcher), str(log))
    target = target_of(find_readers(log.parent))
    assert (target.pid, "torchrun" in target.why) == (agent.pid, True)


def test_a_launcher_that_does_not_end_is_killed_with_its_worker(log: Path, start: Start, tmp_path: Path) -> None:
    launcher = tmp_path / "torchrun"
    launcher.write_text(
        f"#!{sys.executable}\nimport signal, subprocess, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"subprocess.run([sys.executable, '-c', {WORKER!r}, sys.argv[1]])\n"
    )
    launcher.chmod(0o755)
    agent = start(str(launcher), str(log))
    [worker] = [int(one) for one in subprocess.check_output(["pgrep", "-P", str(agent.pid)], text=True).split()]
    target = target_of(find_readers(log.parent))
    stop = Process(target.pid, 1.0, why=target.why, whole=True)
    assert f"process {agent.pid} (" in str(stop) and "which may start it again" in str(stop)
    assert "was killed" in stop({})
    assert agent.wait(10) == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while lives(worker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not lives(worker)


def test_a_watch_shows_what_it_would_stop_before_it_begins(log: Path, start: Start, cli: Cli) -> None:
    process = start(sys.executable, "-c", WORKER, str(log))
    done = cli("watch", log.parent, "--stop-on", "critical", "--stop-writer", "--interval", "0.2", "--timeout", "1")
    said = f"at the first critical finding: send SIGTERM to process {process.pid} ("
    assert done.stderr.startswith(said) and done.stderr.splitlines()[0].endswith("it writes the run")
    assert process.poll() is None  # a run that ended long ago is none to stop


@pytest.mark.slow
def test_the_driver_of_a_ray_job_is_stopped_rather_than_its_worker(log: Path, start: Start, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    script = tmp_path / "driver.py"
    script.write_text(
        "import sys, time, ray\nray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)\n"
        "@ray.remote\nclass Trainer:\n    def begin(self, path):\n        self.file = open(path, 'ab')\n"
        "trainer = Trainer.remote()\nray.get(trainer.begin.remote(sys.argv[1]))\nprint('ready', flush=True)\ntime.sleep(120)\n"
    )
    driver = start(sys.executable, str(script), str(log), RAY_DISABLE_MEMORY_MONITOR="1")
    target = target_of(find_readers(log.parent))
    assert target.pid == driver.pid and "works for the Ray driver" in target.why
    driver.terminate()
    driver.wait(30)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs named scancel and squeue on PATH, which record how they are called: there is no Slurm on a test machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "scancel").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/cancelled\n')
    (folder / "squeue").write_text(
        '#!/bin/sh\ncase "$3" in 77*) echo grpo-math;; *) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1;; esac\n'
    )
    for one in folder.iterdir():
        one.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path / "cancelled"


def test_a_job_of_slurm_is_named_and_cancelled_by_its_id(slurm: Path) -> None:
    job = SlurmJob("77_3")
    assert str(job) == "scancel 77_3 (grpo-math)" and not slurm.exists()
    assert job({}) == "Slurm was asked to cancel job 77_3 (grpo-math)"
    assert slurm.read_text() == "77_3\n"


@pytest.mark.parametrize(("job", "why"), [("1; rm", "no job id"), ("--all", "no job id"), ("88", "Invalid job id")])
def test_what_is_no_job_is_refused_before_anything_is_watched(slurm: Path, job: str, why: str) -> None:
    with pytest.raises(RlhealthError, match=why):
        SlurmJob(job)
    assert not slurm.exists()


def test_without_slurm_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RlhealthError, match="there is no scancel here"):
        SlurmJob("77")


def test_one_way_to_stop_and_a_severity_are_asked_for(cli: Cli) -> None:
    several = cli("watch", "x", "--stop-on", "critical", "--stop-slurm", "5", "--stop-writer")
    never = cli("watch", "x", "--stop-slurm", "5")
    assert several.returncode == never.returncode == 2
    assert "--stop-writer and --stop-slurm: one of them" in several.stderr and "add --stop-on critical" in never.stderr
