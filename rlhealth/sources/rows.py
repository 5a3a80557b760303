"""Rows of a log (one mapping each) become runs: which step a row belongs to, where one run ends and the next begins, what is a metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any

import numpy as np

from rlhealth.run import Ints, Run
from rlhealth.sources.spelling import AXES, BOOKKEEPING, CLOCKS, FURTHEST, axis, clock, number, planned, whole

#: More metrics than this in one run are dropped, with a problem that counts them.
MOST_TAGS = 100_000
#: A longer name is no name.
LONGEST_TAG = 4096
NUMBERED = "no column counts the steps, so the rows are numbered from 1: steps in the report are row numbers"
DEEPEST = 8  # levels of nested rows that are looked into
FIRST_LOOK = 1000  # rows by which the column of the steps is chosen
FLUSHED = 20_000  # rows; Python lists take four times the room of the arrays they end in
#: These go on by themselves and are in every kind of row: they tell neither a repeated row nor a resumed run.
AMBIENT = frozenset({"epoch", "train/epoch", "episode", "num_tokens", "total_flos", "num_input_tokens_seen"})
Cells = Any  # np.ma.MaskedArray of float64, which numpy's types cannot yet say
Column = tuple[list[int], list[float], list[float]]


class Rows:
    """Takes rows in the order in which they were logged and fills runs with them; a run that starts again makes a new one.

    The step is read from the first column of `spelling.AXES` that serves; a row without it belongs to the row before it. Where there is no
    such column, the rows are numbered: a row that says again what the one before said is the next step, one that adds to it (an evaluation)
    is not. Steps that fall back to where the run began are a new run; steps that fall back less, and say again what was said, are a resume,
    and what was logged from there on is dropped.

    Args:
        make: makes an empty run, given its number (0, 1, …).
    """

    def __init__(self, make: Callable[[int], Run], *, steps: str | None = None) -> None:
        self._make = make
        self.runs: list[Run] = [make(0)]
        self.axis = steps
        self.chosen = steps is not None
        self.repeated = 0
        self.dropped: set[str] = set()
        self._waiting: list[Mapping[str, Any]] = []
        self._begin()

    @property
    def run(self) -> Run:
        """The run that the next row goes to."""
        return self.runs[-1]

    def _begin(self) -> None:
        self._step: int | None = None
        self._first: int | None = None
        self._row = 0
        self._said: Set[str] = set()
        self._epoch = -math.inf
        self._columns: dict[str, Column] = {}
        self._nulls: dict[str, Column] = {}
        self._unflushed = 0

    def take(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Takes rows; call `flush` when those of a poll are in."""
        coming = iter(rows)
        if not self.chosen:
            self._waiting += islice(coming, max(0, FIRST_LOOK - len(self._waiting)))
            if len(self._waiting) < FIRST_LOOK:
                return
            self._choose()
        for row in coming:
            self._take(row)

    def take_columns(self, table: Mapping[str, Cells]) -> None:
        """Takes rows that come as columns: masked arrays, each of shape (rows,), what was not logged masked."""
        count = max((len(cells) for cells in table.values()), default=0)
        if not self.chosen:
            self._waiting += dicts(table, min(count, FIRST_LOOK))
            self._choose(take=False)
        steps = self._steps_of(table, count)
        if steps is None:
            for start in range(0, count, FIRST_LOOK):
                self.take(dicts(table, start + FIRST_LOOK, start))
            return
        self._move()
        times = next((np.ma.filled(table[name], np.nan) for name in CLOCKS if name in table), np.full(count, np.nan))
        for tag, cells in table.items():
            there = ~np.ma.getmaskarray(cells)
            if self._is_metric(tag) and there.any() and (tag in self.run.series or self._is_room_for(tag)):
                self.run.add(tag, steps[there], np.ma.getdata(cells)[there], times[there])

    def _steps_of(self, table: Mapping[str, Cells], count: int) -> Ints | None:
        """The steps of a table whose steps only rise, shape (rows,); None where every row must be looked at."""
        cells = table.get("epoch") if self.axis is None else table.get(self.axis)
        if not count or (cells is None and self.axis is not None):
            return None
        if cells is not None:
            there = np.ma.getdata(cells)
            if np.ma.getmaskarray(cells).any() or not np.isfinite(there).all() or np.any(there[1:] < there[:-1]) or np.any(np.abs(there) >= FURTHEST):
                return None
        if self.axis is None:
            if self._waiting or self._said:
                return None
            steps = np.arange(self._row + 1, self._row + count + 1)
            self._row += count
            if cells is not None:
                if float(cells[0]) < self._epoch:
                    self._row -= count
                    return None
                self._epoch = float(cells[-1])
            return steps
        assert cells is not None
        steps = np.ma.getdata(cells).astype(np.int64)
        if np.any(steps[1:] == steps[:-1]) or (self._step is not None and steps[0] <= self._step):
            return None
        self._first = int(steps[0]) if self._first is None else self._first
        self._step = int(steps[-1])
        return steps

    def flush(self) -> bool:
        """Moves what was taken into the runs; True where there was anything."""
        if not self.chosen and self._waiting:
            self._choose()
        moved = bool(self._columns)
        self._move()
        return moved

    def _choose(self, take: bool = True) -> None:
        waiting, self._waiting = [flatten(row) for row in self._waiting], []
        telling = [row for row in waiting if self._tags(row)]
        if not telling:
            return
        self.chosen = True
        self.axis = axis(telling)
        self._name_axis()
        for row in waiting if take else ():
            self._take(row)

    def _name_axis(self) -> None:
        self.run.step_axis = {"global_step/max_steps": "global_step", None: "row"}.get(self.axis, self.axis or "row")
        if self.axis is None and NUMBERED not in self.run.notes:
            self.run.notes.append(NUMBERED)

    def _take(self, nested: Mapping[str, Any]) -> None:
        row = flatten(nested)
        step = self._step_of(row)
        if step is None:
            return
        time = next((clock(row[name]) for name in CLOCKS if name in row), math.nan)
        total = planned(row)
        if total and total > 0:
            self.run.planned_steps = total
        columns = self._columns
        for tag, value in row.items():
            column = columns.get(tag)
            if column is None or value.__class__ is not float:
                self._put(tag, value, step, time)
            else:  # nearly always; this loop is where the time goes
                column[0].append(step)
                column[1].append(value)
                column[2].append(time)
        self._unflushed += 1
        if self._unflushed >= FLUSHED:
            self._move()

    def _step_of(self, row: Mapping[str, Any]) -> int | None:
        if self.axis is None:
            return self._row_number(row)
        step = whole(row.get(self.axis))
        last = self._step
        if step is None:
            step = last or 0
        if last is None or step > last:
            self._said = row.keys()
            self._first = step if self._first is None else self._first
            self._step = step
        elif step == last:
            self.repeated += bool(self._said & self._tags(row))
            self._said = self._said | row.keys()
        else:
            self._fell_back(step, self._tags(row))
        return step

    def _row_number(self, row: Mapping[str, Any]) -> int | None:
        tags = self._tags(row)
        if not tags:
            return None
        again = bool(self._said & tags)
        epoch = number(row.get("epoch", row.get("train/epoch")))
        if epoch is not None:
            if epoch < self._epoch and again:
                self._next_run()
            self._epoch = max(epoch, self._epoch)
        if again or not self._row:
            self._row += 1
            self._said = set()
        self._said = self._said | tags
        return self._row

    def _tags(self, row: Mapping[str, Any]) -> set[str]:
        """The metrics of a row that would be repeated if the row were."""
        return {tag for tag, value in row.items() if tag not in AMBIENT and self._is_metric(tag) and number(value) is not None}

    def _is_metric(self, tag: str) -> bool:
        return tag != self.axis and tag not in _NO_METRICS

    def _fell_back(self, step: int, tags: set[str]) -> None:
        """The steps go back: a new run, a resume, or a row that comes late (from another process) and changes nothing."""
        if not any(self._last(tag) >= step for tag in tags):
            return
        self._move()
        passed = [self.run.series[tag].steps for tag in tags if tag in self.run.series]
        if self._first is not None and step <= self._first and any(steps[0] >= step for steps in passed):
            self._next_run()
            self._step = self._first = step
        elif any(step in steps for steps in passed):
            self.run.rewind(step)
            self._step = step
        else:
            return
        self._said = tags

    def _last(self, tag: str) -> float:
        column = self._columns.get(tag)
        if column:
            return column[0][-1]
        series = self.run.series.get(tag)
        return float(series.steps[-1]) if series is not None and len(series) else -math.inf

    def _next_run(self) -> None:
        self._move()
        self.runs.append(self._make(len(self.runs)))
        self._begin()
        self._name_axis()

    def _put(self, tag: str, value: Any, step: int, time: float) -> None:
        if not self._is_metric(tag):
            return
        found = number(value)
        if found is None:
            if value is None:  # null is NaN where the metric is a number elsewhere
                self._put_null(tag, step, time)
            elif isinstance(value, dict):
                self._put_histogram(tag, value, step, time)
            return
        column = self._columns.get(tag)
        if column is None:
            if tag not in self.run.series and not self._is_room_for(tag):
                return
            column = self._columns[tag] = self._nulls.pop(tag, ([], [], []))
        column[0].append(step)
        column[1].append(found)
        column[2].append(time)

    def _put_null(self, tag: str, step: int, time: float) -> None:
        if tag in self.run.series or tag in self._columns:
            column = self._columns.setdefault(tag, ([], [], []))
        elif len(self._nulls) < MOST_TAGS and len(tag) <= LONGEST_TAG:
            column = self._nulls.setdefault(tag, ([], [], []))
        else:
            return
        column[0].append(step)
        column[1].append(math.nan)
        column[2].append(time)

    def _put_histogram(self, tag: str, value: Mapping[str, Any], step: int, time: float) -> None:
        from rlhealth.sources.wandb_values import distribution  # late: rows exported from wandb are rare

        found = distribution(value)
        if found is not None and (tag in self.run.histograms or len(self.run.histograms) < MOST_TAGS):
            self.run.histogram(tag).add(step, *found, time)

    def _is_room_for(self, tag: str) -> bool:
        if len(tag) > LONGEST_TAG:
            self._drop(f"a name of {len(tag):,} characters")
            return False
        if len(self.run.series) + len(self._columns) >= MOST_TAGS:
            self._drop(f"more than {MOST_TAGS:,} metrics")
            return False
        return True

    def _drop(self, why: str) -> None:
        if why not in self.dropped and len(self.dropped) < 10:
            self.dropped.add(why)
            self.run.problems.append(f"{why}: not read")

    def _move(self) -> None:
        for tag, (steps, values, times) in self._columns.items():
            self.run.add(tag, steps, values, times)
        self._columns.clear()
        self._unflushed = 0


_NO_METRICS = BOOKKEEPING | frozenset(CLOCKS) | {"_step", "global_step/max_steps"}


def flatten(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row without nesting: verl's {"step": 1, "data": {…}} is one level, other groups are joined with a slash; a histogram stays whole."""
    if not any(type(value) is dict for value in row.values()):
        return row
    return dict(_flattened(row, "", 0))


def _flattened(row: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if type(value) is dict and "_type" not in value:
            if depth < DEEPEST:
                yield from _flattened(value, prefix if key in ("data", "metrics") and not depth else f"{prefix}{key}/", depth + 1)
        else:
            yield f"{prefix}{key}", value


def dicts(table: Mapping[str, Cells], stop: int, start: int = 0) -> list[dict[str, float]]:
    """The rows from `start` up to `stop` of a table of columns, each without what was not logged."""
    found: list[dict[str, float]] = [{} for _ in range(start, min(stop, max((len(cells) for cells in table.values()), default=0)))]
    for tag, cells in table.items():
        for row, value, absent in zip(found, np.ma.getdata(cells)[start:stop].tolist(), np.ma.getmaskarray(cells)[start:stop].tolist(), strict=True):
            if not absent:
                row[tag] = value
    return found


def looks_like_rows(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether these are log rows and not, say, a data set: most of them hold numbers, some of them or nothing else, and no long text."""
    fits = 0
    for row in rows:
        flat = flatten(row)
        numbers = sum(number(value) is not None for value in flat.values())
        texts = sum(isinstance(value, str) and number(value) is None for value in flat.values())
        long = any(isinstance(value, str) and len(value) > 200 for value in flat.values())
        fits += not long and numbers >= 2 and (numbers >= 3 or not texts or any(name in flat for name in AXES))
    return bool(rows) and 2 * fits > len(rows)
