"""Tables of one folder that count the same steps and hold different metrics are parts of one run: `losses.csv` beside
`rewards.csv`, `eval.csv` beside `train.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rlhealth.run import Run
from rlhealth.series import Series
from rlhealth.sources.base.reader import Reader, Unreadable

#: Kinds whose files may be parts; a console or a notebook prints what a run has in one place.
KINDS = frozenset({"csv", "json", "jsonl"})
MOST = 8  # tables in a folder; more are runs of a sweep
UNCOUNTED = frozenset({"", "row"})  # what no column counts may be in any order
FEWEST_ROWS = 10
_SELDOM = {"train", "eval"}  # files of one run, of which the second counts seldom
BEHIND = 0.02  # of the rows: what one table may lack at its end while a run is logged


class PartsReader:
    """A run in several tables: they grow together, and their metrics are those of one run.

    Args:
        parts: at least two, the first of which names the run.
    """

    def __init__(self, parts: Sequence[Reader]) -> None:
        self.parts = list(parts)
        self.run: Run = parts[0].run
        files = ", ".join(Path(one.run.place.file).name for one in parts)
        self._note = f"read from {len(parts)} tables of one run: {files}"
        self._told: list[str] = []  # the problems of the other parts, as they are in the run's
        self._gather()

    def poll(self) -> bool:
        """Reads what is new in each of them.

        Raises:
            RlhealthError: if one of them cannot be read.
        """
        changed = [one.poll() for one in self.parts]
        self._gather()
        return any(changed)

    def _gather(self) -> None:
        run, told = self.run, self._told
        self._told = [problem for one in self.parts[1:] for problem in one.run.problems]
        run.problems[:] = dict.fromkeys([*(one for one in run.problems if one not in told), *self._told])
        for one in self.parts[1:]:
            run.series.update(one.run.series)
        if self._note not in run.notes:
            run.notes.append(self._note)


def with_parts_joined(readers: list[Reader]) -> list[Reader]:
    """The readers of one folder, those of the parts of a run as one, in place of the first of them."""
    tables = [one for one in readers if not isinstance(one, Unreadable) and one.run.place.kind in KINDS]
    if not 1 < len(tables) <= MOST:
        return readers
    runs: list[list[Reader]] = []
    for reader in tables:
        of_one = next((run for run in runs if all(_are_parts(one.run, reader.run) for one in run)), None)
        runs.append([reader]) if of_one is None else of_one.append(reader)
    joined = {id(one): run for run in runs if len(run) > 1 for one in run}
    found: list[Reader] = []
    for reader in readers:
        run = joined.get(id(reader))
        if run is None:
            found.append(reader)
        elif reader is run[0]:
            found.append(PartsReader(sorted(run, key=lambda one: "reward" not in _metrics(one.run))))
    return found


def _are_parts(one: Run, other: Run) -> bool:
    """Whether two tables count the same steps under the same name, and have no metric in common, in whatever words."""
    if one.place.file == other.place.file or one.step_axis != other.step_axis or one.step_axis in UNCOUNTED:
        return False
    if not one.series or not other.series or not one.series.keys().isdisjoint(other.series.keys()):
        return False
    mine, theirs = _metrics(one), _metrics(other)
    if not mine.isdisjoint(theirs):
        return False
    named = {Path(run.place.file).stem.lower(): _fullest(run) for run in (one, other)}
    if named.keys() == _SELDOM:
        return _is_within(named["train"], named["eval"])
    return bool(mine and theirs) and _count_alike(_fullest(one), _fullest(other))


def _is_within(trained: Series, evaluated: Series) -> bool:
    """Whether an evaluation counts steps of that training: it is older than the training's newest row."""
    return bool(trained.steps[-1] >= evaluated.steps[-1]) and len(trained) >= len(evaluated)


def _fullest(run: Run) -> Series:
    return max(run.series.values(), key=len)


def _count_alike(one: Series, other: Series) -> bool:
    """Whether two series have the same steps, apart from the newest of one of them."""
    rows = min(len(one), len(other))
    is_long = rows >= FEWEST_ROWS and max(len(one), len(other)) - rows <= BEHIND * rows
    return is_long and np.array_equal(one.steps[:rows], other.steps[:rows])


def _metrics(run: Run) -> frozenset[str]:
    """The canonical metrics that its columns are, taken alone."""
    from rlhealth.metrics import translate  # late: the names are read from YAML

    return frozenset(translate(run).metrics)
