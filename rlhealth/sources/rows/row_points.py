"""Buffers points of rows before they are added to a run: rows of the same names are put into columns together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlhealth.run import Run
from rlhealth.sources.base.points import Column, Points
from rlhealth.sources.base.spelling import BOOKKEEPING, CLOCKS

FLUSHED = 20_000  # rows; Python lists need four times the memory of the final arrays
_FLOATS = {float}
_NO_METRICS = BOOKKEEPING | frozenset(CLOCKS) | {"_step", "global_step/max_steps"}


class RowPoints:
    """Collects the points of one run's rows, whose steps are known.

    Attributes:
        points: the points that are in columns already.
    """

    def __init__(self, run: Run) -> None:
        self.points = Points(run)
        self._filled: tuple[tuple[str, ...], list[Column]] = ((), [])  # the names of the latest row, and their columns
        self._alike: list[tuple[Any, ...]] = []  # rows of these names not yet in columns: step, time, values
        self._passed: dict[str, set[int]] = {}  # by tag, the steps of points that were not moved yet
        self._unflushed = 0

    def put(self, row: Mapping[str, Any], step: int, time: float, axis: str | None) -> None:
        """Takes the metrics of a row at that step; `axis` is the step column, if there is one."""
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
        """Adds the metrics of a row, and remembers their columns for the next row, if all its names are metrics."""
        self._spill()
        columns = self.points.columns
        for tag, value in row.items():
            if is_metric(tag, axis):
                self.points.put(tag, value, step, time)
        places = [columns[tag] for tag in row if tag in columns and is_metric(tag, axis)]
        self._filled = (tuple(row), places) if len(places) == len(row) else ((), [])

    def _spill(self) -> None:
        """Moves the waiting rows into columns: all at once, because one by one would be slow."""
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
        """Whether a tag was logged at that step, in the moved or the waiting points. The steps of the waiting points
        are kept as a set from the first call on.
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
        """Moves the collected points into the run; True if there were any."""
        self._unflushed = 0
        self._passed.clear()
        self._spill()
        self._filled = (), []
        return self.points.move()


def is_metric(tag: str, axis: str | None) -> bool:
    """Whether a column is a metric: it is no step count, no time and no bookkeeping column."""
    return tag != axis and tag not in _NO_METRICS


def all_floats(row: Mapping[str, Any]) -> bool:
    """Whether a row has only floats, as nearly every row does."""
    return set(map(type, row.values())) == _FLOATS
