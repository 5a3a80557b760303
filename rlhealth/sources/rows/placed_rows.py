"""Places rows in runs once their step column is known: the step of each row, and where a run ends and the next
begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np

from rlhealth.run import Ints, Run
from rlhealth.sources.base.spelling import CLOCKS, clock, number, planned, whole
from rlhealth.sources.rows.counted_on import CountedOn
from rlhealth.sources.rows.row_points import RowPoints, all_floats, is_metric
from rlhealth.sources.rows.row_shapes import Cells, clocks, dicts, never_falls, rises

NUMBERED = "no column counts the steps, so the rows are numbered from 1: steps in the report are row numbers"
MOST_RUNS = 200  # in one file; the rows of further runs are counted but not read
#: These are in every kind of row and always rise: they show neither a repeated row nor a resumed run.
AMBIENT = frozenset({"epoch", "train/epoch", "episode", "num_tokens", "total_flos", "num_input_tokens_seen"})
#: Counts that only rise within a run: if they fall and the metrics repeat, another run has begun.
COUNTERS = ("epoch", "train/epoch", "num_tokens", "train/num_tokens", "num_input_tokens_seen", "total_timesteps")


class PlacedRows:
    """Places rows, in the order in which they were logged, at their steps in runs; a restart begins a new run.

    A row without the step column belongs to the previous row, and is left out if it repeats that row's metrics. Where
    there is no such column, rows are numbered: a row that repeats the previous row's metrics is the next step, and a
    row that adds to them (an evaluation) is not.

    Rows whose steps fall back wait for the next row. If the run continues from there, it is a new run (the steps fell
    back to its start, or count from zero again) or a resume, which replaces the rows logged from there on. A single
    row, or rows that fall further and further, came late and change nothing else.

    Args:
        make: creates an empty run, given its number (0, 1, …).
        axis: the step column, or None.

    Attributes:
        run: the one that the next row goes to.
        axis: the step column; None if rows are numbered.
        counts: what the steps count, where they are none of a training; "" where they are.
        repeated: rows that repeat the previous step.
        stepless: rows without a step that repeat the metrics of the row before; they are left out.
        late: rows that were out of order.
        beyond: rows of runs beyond `MOST_RUNS`.
    """

    def __init__(self, make: Callable[[int], Run], axis: str | None) -> None:
        self._make = make
        self.axis = axis
        self.counts = ""
        self.runs: list[Run] = [make(0)]
        self.run = self.runs[0]
        self.repeated = 0
        self.stepless = 0
        self.late = 0
        self.beyond = 0
        self._fallen: list[tuple[int, Mapping[str, Any]]] = []
        self._tagged: tuple[tuple[str | None, ...], Set[str]] = ((), frozenset())
        self._begin()

    def _begin(self) -> None:
        self._step: int | None = None
        self._lowest: int | None = None  # of rows in descending order
        self._first: int | None = None
        self._epochs = CountedOn()
        self._row = 0
        self._said: Set[str] = set()
        self._counted: dict[str, float] = {}
        self._points = RowPoints(self.run)

    def name_axis(self) -> None:
        """Notes in the run what its steps are."""
        axis = "global_step" if self.axis == "global_step/max_steps" else self.axis
        self.run.step_axis = self.counts or axis or "row"
        if self.axis is None and NUMBERED not in self.run.notes:
            self.run.notes.append(NUMBERED)

    def take(self, row: Mapping[str, Any]) -> None:
        """Takes one row, a flat mapping; call `move` after the rows of a poll."""
        if self._fallen and self._decide(row):
            return
        step = self._step_of(row)
        if step is not None:
            self._put(row, step)

    def move(self) -> bool:
        """Moves the rows taken so far into the run; True if there were any."""
        return self._points.move()

    def take_columns(self, table: Mapping[str, Cells], count: int) -> bool:
        """Takes `count` rows as columns; False, and takes none, if they must be taken one by one."""
        steps = self._row_numbers(table, count) if self.axis is None else self._steps_of(table, count)
        if steps is None:
            return False
        if len(self.runs) > MOST_RUNS:
            self.beyond += count
            return True
        self._points.move()
        times = next((clocks(table[name]) for name in CLOCKS if name in table), np.full(count, np.nan))
        for tag, cells in table.items():
            there = ~np.ma.getmaskarray(cells)
            if is_metric(tag, self.axis) and there.any() and self._points.points.is_room_for(tag):
                self.run.add(tag, steps[there], np.ma.getdata(cells)[there], times[there])
        return True

    def _steps_of(self, table: Mapping[str, Cells], count: int) -> Ints | None:
        """The steps of a table whose steps only rise, shape (rows,); None if rows must be read one by one."""
        assert self.axis is not None
        cells = table.get(self.axis)
        if cells is None or not count or not rises(cells) or self._epochs.passed:
            return None
        steps = np.ma.getdata(cells).astype(np.int64)
        if self._fallen or np.any(steps[1:] == steps[:-1]) or (self._step is not None and steps[0] <= self._step):
            return None
        self._first = int(steps[0]) if self._first is None else self._first
        self._step = int(steps[-1])
        (last,) = dicts(table, count, count - 1)
        self._said = last.keys()
        self._epochs.follow(last)
        self._plan(last)
        return steps

    def _row_numbers(self, table: Mapping[str, Cells], count: int) -> Ints | None:
        """The numbers of rows that all have the same names, shape (rows,); None if rows must be read one by one."""
        tags = {tag for tag in table if tag not in AMBIENT and is_metric(tag, self.axis)}
        if not count or not tags or (self._said and not self._said & tags):
            return None
        counted = {name: table[name] for name in COUNTERS if name in table}
        if not all(
            never_falls(cells) and float(cells[0]) >= self._counted.get(name, -math.inf)
            for name, cells in counted.items()
        ):
            return None
        self._counted |= {name: float(cells[-1]) for name, cells in counted.items()}
        self._row += count
        self._said = tags
        return np.arange(self._row - count + 1, self._row + 1)

    def _put(self, row: Mapping[str, Any], step: int) -> None:
        if len(self.runs) > MOST_RUNS:
            self.beyond += 1
            return
        time = next((clock(row[name]) for name in CLOCKS if name in row), math.nan)
        self._plan(row)
        self._points.put(row, step, time, self.axis)

    def _plan(self, row: Mapping[str, Any]) -> None:
        total = planned(row, self.axis)
        if total and total > 0 and not self._epochs.passed:
            self.run.planned_steps = total

    def _step_of(self, row: Mapping[str, Any]) -> int | None:
        if self.axis is None:
            return self._row_number(row)
        step = whole(row.get(self.axis))
        last = self._step
        if step is None:
            if self._said & self.tags(row):
                self.stepless += 1
                return None
            step = last or 0
        else:
            step, begins_again = self._epochs.step(row, step, self._first, self._step)
            if begins_again:
                self._is_counted_on(begins_again)
        if last is None or step > last:
            self._said = row.keys()
            self._first = step if self._first is None else self._first
            self._step, self._lowest = step, None
        elif step == last:
            self.repeated += bool(self._said & self.tags(row))
            self._said = self._said | row.keys()
        elif self._lowest is not None and step < self._lowest:
            self._lowest = step
            self.late += 1
        elif self._falls_back(step, self.tags(row)):
            self._fallen = [(step, row)]
            return None
        return step

    def _is_counted_on(self, note: str) -> None:
        """The steps began again, so the planned steps that were read are those of one epoch."""
        self.run.planned_steps = None
        if note not in self.run.notes:
            self.run.notes.append(note)

    def _decide(self, row: Mapping[str, Any]) -> bool:
        """Decides what the rows that fell back are, now that the next row has arrived; True if it was taken with
        them."""
        assert self.axis is not None and self._step is not None
        first, last = self._fallen[0][0], self._fallen[-1][0]
        said = whole(row.get(self.axis))
        step = last if said is None else said + self._epochs.passed
        if step == last:
            self._fallen.append((step, row))
            return True
        fallen, self._fallen = self._fallen, []
        if step < last or (step > self._step and first == last):
            self._take_late(fallen)
            self._lowest = last if step < last else None
            return False
        from_zero = step == 2 * first
        if not from_zero and not self._says_again(first, self._tags_of(fallen)):
            for place, one in fallen:
                self._put(one, place)
            return False
        self._go_back(first, from_zero=from_zero)
        for _, one in fallen:
            known = self._step_of(one)
            if known is not None:
                self._put(one, known)
        return False

    def _take_late(self, fallen: list[tuple[int, Mapping[str, Any]]]) -> None:
        self.late += len(fallen)
        for step, row in fallen:
            self._put(row, step)

    def _row_number(self, row: Mapping[str, Any]) -> int | None:
        tags = self.tags(row)
        if not tags:
            return None
        again = bool(self._said & tags)
        counts = {name: count for name in COUNTERS if name in row and (count := number(row[name])) is not None}
        if again and any(count < self._counted.get(name, -math.inf) for name, count in counts.items()):
            self.next_run()  # a count that only rises within a run is lower than before
        for name, count in counts.items():
            self._counted[name] = max(count, self._counted.get(name, -math.inf))
        if again or not self._row:
            self._row += 1
            self._said = set()
        self._said = self._said | tags
        return self._row

    def tags(self, row: Mapping[str, Any]) -> Set[str]:
        """The metrics of a row by which a repeated row is recognised."""
        if all_floats(row):  # as nearly every row is, with the names of the row before
            shape = self.axis, *row
            if self._tagged[0] != shape:
                self._tagged = shape, {tag for tag in row if tag not in AMBIENT and is_metric(tag, self.axis)}
            return self._tagged[1]
        return {
            tag
            for tag, value in row.items()
            if tag not in AMBIENT and is_metric(tag, self.axis) and number(value) is not None
        }

    def _falls_back(self, step: int, tags: Set[str]) -> bool:
        """Whether a row goes back and may begin a new run or a resume: it repeats metrics at its step, lies before all
        logged steps, or falls by half of the steps or more, as when a new run logs less often.
        """
        if not any(self._points.last_step(tag) >= step for tag in tags):
            return False
        return (self._step is not None and 0 < 2 * step <= self._step) or self._says_again(step, tags)

    def _says_again(self, step: int, tags: Set[str]) -> bool:
        """Whether a metric of a row was already logged at its step, or the step lies before all logged steps."""
        if self._first is not None and step <= self._first:
            return True
        return any(self._points.has_said(tag, step) for tag in tags)

    def _tags_of(self, rows: list[tuple[int, Mapping[str, Any]]]) -> Set[str]:
        return {tag for _, row in rows for tag in self.tags(row)}

    def _go_back(self, step: int, *, from_zero: bool) -> None:
        """Begins a new run, or continues this one from before `step`. A run whose steps count from zero by that step is
        new, although it logs less often than the previous run.
        """
        self._points.move()
        if from_zero or (self._first is not None and step <= self._first):
            self.next_run()
            self._step = self._first = None
        else:
            self.run.rewind(step)
            self._step = step - 1
        self._said = set()

    def next_run(self, *, same_axis: bool = True) -> None:
        """Ends this run: the next rows are of another, by the same step column or by one that is named later."""
        self._points.move()
        self.run.begun_anew = True
        if len(self.runs) <= MOST_RUNS:
            self.runs.append(self._make(len(self.runs)))
        self.run = self.runs[-1]
        self._begin()
        if same_axis:
            self.name_axis()
