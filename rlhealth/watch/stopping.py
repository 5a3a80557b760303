"""Stopping: ends a run that is lost, in the one way that was asked for, once."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.reports import words
from rlhealth.verdict.findings import Severity
from rlhealth.watch.actions import argv, run_command
from rlhealth.watch.follower import Follower
from rlhealth.watch.slurm import SlurmJob

GRACE = 30.0  # seconds between the request to end and the order


class Process:
    """The process to stop, known by its number and the moment it started, so that no other with the same number is ever
    hit.

    Raises:
        RlhealthError: for a number that is no process of the user's, or one that must not be stopped.
    """

    def __init__(self, pid: int, grace: float = GRACE, why: str = "", whole: bool = False) -> None:
        self.pid = pid
        self.grace = grace
        self.why = why
        self.whole = whole
        if pid <= 1 or pid in (os.getpid(), os.getppid()):
            whose = {
                os.getpid(): "that is rlhealth itself",
                os.getppid(): "that is the shell that started rlhealth",
            }.get(pid, "that is not a training process")
            raise RlhealthError(
                f"--stop-pid {pid}: {whose}",
                hint="name the number of the training process; `pgrep -f train.py` finds it",
            )
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            raise RlhealthError(
                f"--stop-pid {pid}: there is no such process", hint="`pgrep -f train.py` finds it"
            ) from None
        except (PermissionError, OverflowError):
            raise RlhealthError(
                f"--stop-pid {pid}: you may not stop this process",
                hint="run rlhealth as the user who runs the training",
            ) from None
        self.started = started_at(pid)

    def __str__(self) -> str:
        name = _name_of(self.pid)
        return (
            f"send SIGTERM to process {self.pid}{f' ({name})' if name else ''}, and "
            f"SIGKILL {self.grace:g} s later if it is still there" + (f": {self.why}" if self.why else "")
        )

    def __call__(self, document: Mapping[str, Any]) -> str:
        """Stops it; returns what was done."""
        if not self.lives():
            return f"process {self.pid} had ended already"
        started = self._started_by_it() if self.whole else []
        self._signal(signal.SIGTERM)
        if self._gone_within(self.grace):
            return f"process {self.pid} ended after SIGTERM"
        self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        for one in started:  # a launcher that is killed leaves its workers behind
            one._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        if self._gone_within(5.0):
            return f"process {self.pid} did not end within {self.grace:g} s of SIGTERM and was killed"
        raise RlhealthError(
            f"process {self.pid} is still there after SIGKILL: it waits for a device, or belongs to someone else"
        )

    def lives(self) -> bool:
        """Whether the process that was named is still there."""
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return started_at(self.pid) == self.started and _state_of(self.pid) != "Z"

    def _started_by_it(self) -> list[Process]:
        """The processes that it started, and theirs."""
        from rlhealth.watch.owner import family

        found = []
        for pid in family(self.pid)[1:]:
            with contextlib.suppress(RlhealthError):  # gone since, or another user's
                found.append(Process(pid, self.grace))
        return found

    def _signal(self, number: int) -> None:
        try:
            if self.lives():
                os.kill(self.pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            raise RlhealthError(f"process {self.pid} may not be stopped by this user") from None

    def _gone_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self.lives():
            if time.monotonic() >= end:
                return False
            time.sleep(0.1)
        return True


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may itself hold blanks and brackets; empty if there is
    no such file.
    """
    try:
        return (Path("/proc") / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def started_at(pid: int) -> str:
    """When a process started, in the system's own ticks; empty if the system does not say."""
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else ""


def _state_of(pid: int) -> str:
    return (_stat(pid) or [""])[0]


def _name_of(pid: int) -> str:
    try:
        parts = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return words.clean(
        b" ".join(Path(os.fsdecode(one)).name.encode("utf-8", "replace") for one in parts[:2] if one).decode(
            "utf-8", "replace"
        )
    )[:60]


class Command:
    """A command of the user's that stops the run."""

    def __init__(self, text: str, grace: float = GRACE) -> None:
        self.command: Sequence[str] = argv(text, "--stop-command")
        self.grace = grace

    def __str__(self) -> str:
        return f"run {self.command[0]}, which is given the finding on its standard input"

    def __call__(self, document: Mapping[str, Any]) -> str:
        """Runs it; returns what was done."""
        run_command(self.command, document, timeout=max(self.grace, 1.0))
        return f"{self.command[0]} was run"


class WandbStop:
    """A wandb run that its own server asks to stop, as the Stop button does."""

    def __init__(self, stop: Callable[[str], None]) -> None:
        self.stop = stop

    def __str__(self) -> str:
        return "ask wandb to stop that run"

    def __call__(self, document: Mapping[str, Any]) -> str:
        """Asks; returns what was done."""
        address = str(document["source"]["location"])
        self.stop(address)
        return f"wandb was asked to stop {address}"


class Stopping:
    """Stops at the first finding of that severity that has not ended, in a run that is alive. It happens once.

    Args:
        named: the run that is to be stopped, where several are watched.

    Attributes:
        done: whether it happened.
        only: the run that the process writes, once it is known; a process is never stopped for another run.
    """

    def __init__(
        self, severity: Severity, how: Process | Command | WandbStop | SlurmJob, named: str | None = None
    ) -> None:
        self.severity = severity
        self.how = how
        self.named = named
        self.done = False
        self.only: Follower | None = None

    def arm(self, runs: Sequence[Follower]) -> None:
        """Finds out which of the runs the process writes, before anything is stopped.

        Raises:
            RlhealthError: if that is unknown.
        """
        if not any(self.only is one for one in runs):
            self.only = None
        if self.only is None and runs and (isinstance(self.how, Process) or self.named is not None):
            from rlhealth.watch.owner import owned_by  # late: most watches stop nothing

            self.only = owned_by(getattr(self.how, "pid", 0), runs, self.named)

    def __str__(self) -> str:
        return (
            f"at the first {self.severity} finding{'' if self.severity is Severity.CRITICAL else ' or worse'}: "
            f"{self.how}"
        )

    def is_due(self, run: Follower) -> bool:
        """Whether this run is to be stopped now. A run that ended long ago is none to stop: what it found is
        history.
        """
        if self.done or run.verdict is None or run.over:
            return False
        if (isinstance(self.how, Process) or self.named is not None) and run is not self.only:
            return False
        lives = run.live or run.verdict.state == "running"
        return lives and any(
            one.severity >= self.severity and not one.ended and one.replaced_at is None for one in run.verdict.findings
        )

    def stop(self, document: Mapping[str, Any]) -> str:
        """Stops, and never again.

        Returns:
            what was done, in a sentence.

        Raises:
            RlhealthError: if it did not work.
        """
        self.done = True
        return self.how(document)
