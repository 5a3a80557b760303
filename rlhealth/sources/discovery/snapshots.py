"""Curves that a trainer saves again and again under another number, `rewards_50.npy`, `rewards_100.npy`: the longest is
the run, those that it begins with are not."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from rlhealth.run import Run, UnreadFile
from rlhealth.sources.base.reader import Reader

_KINDS = frozenset({"json", "numpy"})


def without_older(readers: list[Reader], left: list[UnreadFile]) -> list[Reader]:
    """The readers without those of files that another one, whose name differs in its number alone, begins with; those
    go to `left`."""
    saved = [one for one in readers if one.run.place.kind in _KINDS]
    if not saved:
        return readers
    from rlhealth.sources.rows.headerless import stem_of  # late: few runs are such files

    groups: dict[tuple[Path, str], list[Reader]] = {}
    for one in saved:
        path = Path(one.run.place.location)
        if stem_of(path.name) != path.name.partition(".")[0]:
            groups.setdefault((path.parent, stem_of(path.name)), []).append(one)
    older: set[int] = set()
    for group in groups.values():
        for early, late in pairwise(sorted(group, key=lambda one: _size(one.run))):
            if _begins_with(late.run, early.run):
                older.add(id(early))
                said = f"{Path(late.run.place.location).name} begins with the same numbers"
                left.append(UnreadFile(early.run.place.location, said))
    return [one for one in readers if id(one) not in older]


def _size(run: Run) -> int:
    return sum(map(len, run.series.values()))


def _begins_with(late: Run, early: Run) -> bool:
    """Whether every metric of one run is what that of the other begins with, and fewer."""
    return late.series.keys() == early.series.keys() and all(
        0 < len(short) < len(long := late.series[tag])
        and np.array_equal(short.steps, long.steps[: len(short)])
        and np.array_equal(short.values, long.values[: len(short)], equal_nan=True)
        for tag, short in early.series.items()
    )
