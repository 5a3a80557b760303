"""Whose process it is: the run that a process writes, by the files that it and its children hold open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.watch.discovery import covered, elsewhere
from rlhealth.watch.follower import Follower

MOST_PROCESSES = 4096


def owned_by(pid: int, runs: Sequence[Follower], named: str | None = None) -> Follower:
    """The run that process `pid` writes.

    Args:
        runs: every run that is watched, at least one.
        named: the run that the user named (`--stop-run`).

    Raises:
        RlhealthError: if several runs are watched, none is named, and the process's open files do not say which one
            it writes.
    """
    names = ", ".join(sorted(one.name for one in runs)[:8])
    if named is not None:
        found = [one for one in runs if one.name == named]
        if not found:
            raise RlhealthError(f"--stop-run {named}: there is no such run", hint=f"the runs are {names}")
        return found[0]
    if len(runs) == 1:
        return runs[0]
    held = open_files(pid)
    found = [one for one in runs if _holds(held, one)]
    if len(found) == 1:
        return found[0]
    why = "none of their files open" if not found else f"files of {len(found)} of them open"
    raise RlhealthError(
        f"--stop-pid {pid}: {len(runs)} runs are watched, and the process has {why}",
        hint=f"name the run that it trains: --stop-run NAME, one of {names}; or watch that run alone",
    )


def open_files(pid: int) -> frozenset[Path]:
    """The files that a process and its descendants hold open; empty if the system does not say."""
    found: set[Path] = set()
    for one in family(pid):
        try:
            links = list((Path("/proc") / str(one) / "fd").iterdir())
        except OSError:
            continue
        for link in links:
            try:
                found.add(link.readlink())
            except OSError:  # closed since it was listed
                continue
    return frozenset(found)


def family(pid: int) -> list[int]:
    """A process and all that it started, itself first."""
    family, children = [pid], dict[int, list[int]]()
    try:
        others = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdecimal()]
    except OSError:
        return family
    for one in others:
        try:
            parent = int(
                (Path("/proc") / str(one) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1]
            )
        except (OSError, ValueError, IndexError):
            continue
        children.setdefault(parent, []).append(one)
    for one in family:
        family += children.pop(one, [])
        if len(family) > MOST_PROCESSES:
            break
    return family


def _holds(held: frozenset[Path], run: Follower) -> bool:
    for file, _ in covered(run.reader) | elsewhere(run.reader):
        place = Path(file).resolve()
        if place in held or (place.is_dir() and any(one.parent == place for one in held)):
            return True
    return False
