"""Points of rows on their way into a run: rows of the same names are put into their columns all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlhealth.run import Run
from rlhealth.sources.base.points import Column, Points
from rlhealth.sources.base.spelling import BOOKKEEPING, CLOCKS

FLUSHED = 20_000  # rows; Python lists take four times the room of the arrays they end in
_FLOATS = {float}
_NO_METRICS = BOOKKEEPING | frozenset(CLOCKS) | {"_step", "global_step/max_steps"}


class RowPoints:
    """Collects the points of one run's rows, each of which has its step by now.

    Attributes:
        points: what is in its column already.
    """

    def __init__(self, run: Run) -> None:
        self.points = Points(run)
        self._filled: tuple[tuple[str, ...], list[Column]] = ((), [])  # the names of the latest row, and their columns
        self._alike: list[tuple[Any, ...]] = []  # rows of these names that are in no column yet: step, time, values
        self._passed: dict[str, set[int]] = {}  # by tag, the steps of what was not moved yet
        self._unflushed = 0

    def put(self, row: Mapping[str, Any], step: int, time: float, axis: str | None) -> None:
        """Takes what is a metric of a row at that step; `axis` is the column that counts the steps, if one does."""
        if all_floats(row) and tuple(row) == self._filled[0]:
            self._alike.append((step, time, *row.values()))  # nearly always
        else:
            self._put_each(row, step, time, axis)
        for tag, said in self._passed.items():
            if tag in row:
                said.add(step)
        self._unflushed += 1
        if self._unflushed >= FLUSHED:
            self.move()

    def _put_each(self, row: Mapping[str, Any], step: int, time: float, axis: str | None) -> None:
        """Puts what is a metric, and remembers where the next row of the same names goes, if all of it is one."""
        self._spill()
        columns = self.points.columns
        for tag, value in row.items():
            if is_metric(tag, axis):
                self.points.put(tag, value, step, time)
        places = [columns[tag] for tag in row if tag in columns and is_metric(tag, axis)]
        self._filled = (tuple(row), places) if len(places) == len(row) else ((), [])

    def _spill(self) -> None:
        """Puts the rows that wait in their columns: all of them at once, for one by one is where the time would go."""
        if self._alike:
            steps, times, *columns = zip(*self._alike, strict=True)
            for held, values in zip(self._filled[1], columns, strict=True):
                held[0].extend(steps)
                held[1].extend(values)
                held[2].extend(times)
            self._alike.clear()

    def last_step(self, tag: str) -> float:
        """The newest step of a tag, moved or not; minus infinity where it has none."""
        self._spill()
        return self.points.last_step(tag)

    def has_said(self, tag: str, step: int) -> bool:
        """Whether a tag was logged at that step: among what was moved, or among what waits, which is kept as a set from
        the first time that it is asked for.
        """
        series = self.points.run.series.get(tag)
        if series is not None and len(series):
            at = int(np.searchsorted(series.steps, step))
            if at < len(series) and series.steps[at] == step:
                return True
        waiting = self._passed.get(tag)
        if waiting is None:
            self._spill()
            column = self.points.columns.get(tag)
            waiting = self._passed[tag] = set(column[0] if column else ())
        return step in waiting

    def move(self) -> bool:
        """Moves what was taken into the run; True if there was anything."""
        self._unflushed = 0
        self._passed.clear()
        self._spill()
        self._filled = (), []
        return self.points.move()


def is_metric(tag: str, axis: str | None) -> bool:
    """Whether a column is a metric: it neither counts the steps nor tells the time nor keeps the books."""
    return tag != axis and tag not in _NO_METRICS


def all_floats(row: Mapping[str, Any]) -> bool:
    """Whether a row holds floats and nothing else, as nearly every row does."""
    return set(map(type, row.values())) == _FLOATS
