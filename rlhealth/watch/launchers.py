"""Which process to stop: the one that logs a run, or its launcher (torchrun, accelerate, DeepSpeed, a Ray driver)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.reader import Reader
from rlhealth.watch.discovery import covered, elsewhere

_PROGRAMS = frozenset({"torchrun", "accelerate", "accelerate-launch", "deepspeed"})
_MODULES = frozenset(
    {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.launch"}
)
_RAYLET = "raylet"
_HINT = "name it: --stop-pid PID; `pgrep -f train.py` finds it. Of a Ray job: --stop-command 'ray job stop ID'"


@dataclass(frozen=True)
class Target:
    """The process to stop, and why it is that one.

    Attributes:
        why: its relation to the run, for people; empty if it logs the run itself.
    """

    pid: int
    why: str = ""


def target_of(readers: Sequence[Reader]) -> Target:
    """The process to stop for the one run that these readers read.

    Raises:
        RlhealthError: where no process of this user holds its files open, where several do that are not of one launch,
            or where Ray's driver is not on this machine.
    """
    files = {Path(file).resolve() for one in readers for file, _ in covered(one) | elsewhere(one)}
    writers = [pid for pid in _processes() if pid not in _own() and _writes(pid, files)]
    if not writers:
        raise RlhealthError("--stop-writer: no process here holds the run's files open for writing", hint=_HINT)
    targets = {_launcher(pid) for pid in writers}
    if len({one.pid for one in targets}) > 1:
        pids = ", ".join(str(pid) for pid in writers[:8])
        raise RlhealthError(f"--stop-writer: several processes write the run ({pids})", hint=_HINT)
    return max(targets, key=lambda one: len(one.why))


def launcher_note(pid: int) -> str:
    """What to know before stopping a named process: another process started it, and may start it again."""
    try:
        found = _launcher(pid)
    except RlhealthError:
        return f"process {pid} is a worker of a Ray cluster, which may start it again: `ray job stop ID` stops the job"
    return f"process {pid} {found.why}; --stop-pid {found.pid} stops both" if found.pid != pid else ""


def command_of(pid: int) -> list[str]:
    """The words of a process's command line; empty if the system does not report it."""
    try:
        raw = (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return []
    return [os.fsdecode(word) for word in raw.split(b"\0") if word]


def _launcher(pid: int) -> Target:
    """The process itself, or the launcher above it: of torchrun the agent, of Ray the driver."""
    if _is_ray(pid):
        return _driver(pid)
    found, above = pid, _parent(pid)
    for _ in range(64):
        if above <= 1:
            break
        if _is_launcher(above):
            found = above
        elif found != pid:  # the launcher's own parent is a shell
            break
        above = _parent(above)
    if found == pid:
        return Target(pid)
    return Target(found, f"was started by {_said(found)} (process {found}), which may start it again")


def _driver(pid: int) -> Target:
    """The process that called `ray.init`, where it started the cluster itself: it is the parent of the raylet."""
    above = pid
    for _ in range(64):
        above = _parent(above)
        if above <= 1:
            break
        if any(Path(word).name == _RAYLET for word in command_of(above)[:1]):
            driver = _parent(above)
            if driver > 1 and any("python" in Path(word).name for word in command_of(driver)[:1]):
                return Target(driver, f"works for the Ray driver {_said(driver)} (process {driver})")
            break
    raise RlhealthError(
        f"--stop-writer: process {pid} is a worker of a Ray cluster that its driver did not start",
        hint="--stop-command 'ray job stop ID' stops the job; Ray starts a worker that is stopped again",
    )


def _is_launcher(pid: int) -> bool:
    words = command_of(pid)
    programs = {Path(word).name for word in words[:2]}
    module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    return bool(programs & _PROGRAMS) or module in _MODULES


def _is_ray(pid: int) -> bool:
    return any(word.startswith("ray::") for word in command_of(pid)[:1])


def _said(pid: int) -> str:
    return " ".join(Path(word).name for word in command_of(pid)[:2])[:60]


def _own() -> set[int]:
    return {os.getpid(), os.getppid()}


def _processes() -> list[int]:
    try:
        return sorted(int(one.name) for one in Path("/proc").iterdir() if one.name.isdecimal())
    except OSError:
        return []


def _parent(pid: int) -> int:
    try:
        stat = (Path("/proc") / str(pid) / "stat").read_text("utf-8", "replace")
        return int(stat.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _writes(pid: int, files: set[Path]) -> bool:
    """Whether a process holds one of the files, or a file directly in one of the folders, open for writing."""
    folder = Path("/proc") / str(pid) / "fd"
    try:
        links = list(folder.iterdir())
    except OSError:  # another user's, or gone
        return False
    for link in links:
        try:
            held = link.readlink()
            if (held in files or held.parent in files) and _is_open_for_writing(pid, link.name):
                return True
        except OSError:  # closed since it was listed
            continue
    return False


def _is_open_for_writing(pid: int, number: str) -> bool:
    text = (Path("/proc") / str(pid) / "fdinfo" / number).read_text("utf-8", "replace")
    flags = next((line.split()[1] for line in text.splitlines() if line.startswith("flags:")), "0")
    return bool(int(flags, 8) & (os.O_WRONLY | os.O_RDWR))
