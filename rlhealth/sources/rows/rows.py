"""Turns rows of a log (one mapping each) into runs: it chooses the step column by the first rows, and parts the rows of
several writers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rlhealth.run import Run
from rlhealth.sources.base.spelling import EVALUATED, axis
from rlhealth.sources.rows.answers import ANSWERS, are_answers
from rlhealth.sources.rows.evaluated_episodes import are_evaluated
from rlhealth.sources.rows.placed_rows import MOST_RUNS, PlacedRows
from rlhealth.sources.rows.row_names import has_step, names_reward
from rlhealth.sources.rows.row_shapes import Cells, dicts, flatten
from rlhealth.sources.rows.split_rows import StepMeans, with_eval_prefix, writers, written
from rlhealth.sources.rows.transitions import TRANSITIONS, are_transitions

FIRST_LOOK = 1000  # rows by which the step column is chosen
FEWEST_AHEAD = 3  # rows without a step that are a run of their own before rows with one


class Rows:
    """Takes rows in the order in which they were logged and fills runs with them (`PlacedRows`, by their steps).

    The step is read from the first usable column of `spelling.AXES`. The first rows wait until it is chosen.

    Args:
        make: creates an empty run, given its number (0, 1, …).
        steps: the step column, if it is known.

    Attributes:
        placed: the rows that this writer logged, in their runs.
        chosen: whether the step column was chosen.
        averaged: rows that were read as the mean of their step.
    """

    def __init__(self, make: Callable[[int], Run], *, steps: str | None = None) -> None:
        self._make = make
        self.placed = PlacedRows(make, steps)
        self.chosen = steps is not None
        self.averaged = 0
        self._writers = ""
        self._own = ""
        self._others: dict[str, Rows] = {}
        self._means = StepMeans((), None)
        self._waiting: list[Mapping[str, Any]] = []
        self._ahead = Counter[str]()  # in how many rows each metric was, where no row had a step

    @property
    def runs(self) -> list[Run]:
        """All runs so far, with those of other writers."""
        return self.placed.runs

    @property
    def run(self) -> Run:
        """The run that the next row goes to."""
        return self.placed.run

    @property
    def axis(self) -> str | None:
        """The step column; None where rows are numbered, or not yet chosen."""
        return self.placed.axis

    def take(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Takes rows; call `flush` after the rows of a poll."""
        for row in rows:
            if self.chosen:
                self._take(row)
                continue
            self._waiting.append(row)
            if len(self._waiting) >= FIRST_LOOK:
                self._choose()

    def begin_run(self, name: str = "") -> None:
        """The next rows are of another run, of that name, and may use another step column."""
        self.flush(is_over=True)
        self.placed.next_run(same_axis=False)
        self.placed.axis, self.chosen, self._writers, self._others = None, False, "", {}
        self._ahead.clear()
        if name and len(self.runs) > 1:
            self.run.name = f"{self.runs[0].name}#{name}"

    def take_columns(self, table: Mapping[str, Cells]) -> None:
        """Takes rows as columns: masked arrays of shape (rows,); missing values are masked."""
        count = max((len(cells) for cells in table.values()), default=0)
        if self._waiting:
            first = min(count, FIRST_LOOK - len(self._waiting))
            self.take(dicts(table, first))
            table, count = {tag: cells[first:] for tag, cells in table.items()}, count - first
        elif not self.chosen:
            self._waiting += dicts(table, min(count, FIRST_LOOK))
            self._choose(take=False, texts=[name for name, cells in table.items() if not np.ma.count(cells)])
        if not count:
            return
        is_plain = not (self._means.is_needed or self._writers or self._waiting)
        if not (is_plain and self.placed.take_columns(table, count)):
            for start in range(0, count, FIRST_LOOK):
                self.take(dicts(table, start + FIRST_LOOK, start))

    def flush(self, is_over: bool = False) -> bool:
        """Moves the rows taken so far into the runs; True if there were any. `is_over`: no more rows of the newest step
        will come.
        """
        while not self.chosen and self._waiting:  # again where another run began among them
            self._choose()
        for row in self._means.close() if is_over else ():
            self.placed.take(row)
        moved = [one.flush(is_over) for one in self._others.values()]
        return self.placed.move() or any(moved)

    def _choose(self, take: bool = True, texts: Iterable[str] = ()) -> None:
        """Chooses the step column by the waiting rows, and takes them. Rows of a run ahead choose for themselves."""
        waiting, self._waiting = [flatten(row) for row in self._waiting], []
        others: list[Mapping[str, Any]] = []
        if take and (ahead := self._of_a_run_ahead(waiting)):
            waiting, others = waiting[:ahead], waiting[ahead:]
        with_metrics = [row for row in waiting if self.placed.tags(row)]
        if not with_metrics:
            return
        self.chosen = True
        self.placed.axis = axis(with_metrics)
        if self.axis is None and are_answers(with_metrics, texts):
            self.placed.counts = ANSWERS
        elif are_transitions(with_metrics, texts):
            self.placed.counts = TRANSITIONS
        else:
            is_evaluation = are_evaluated(with_metrics, self.axis, self.run.place.location)
            self.placed.counts = EVALUATED if is_evaluation else ""
        self.placed.name_axis()
        self._writers = writers(waiting, self.axis)
        if self._writers:
            self._own = written(waiting[0].get(self._writers))
        else:
            self._means = StepMeans((with_eval_prefix(row, self.axis) for row in waiting), self.axis)
        for row in waiting if take else ():
            self._take(row)
        self.take(others)

    def _of_a_run_ahead(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """How many of the first rows are those of a run that names no step, before the rows of another that does:
        Keras-RL prints a training so, and the episodes of a test after it. 0 if they are not.
        """
        ahead = Counter[str]()
        for at, row in enumerate(rows):
            if has_step(row):
                return at if self._is_of_another(row, ahead) else 0
            ahead.update(self.placed.tags(row))
        return 0

    def _is_of_another(self, row: Mapping[str, Any], ahead: Counter[str]) -> bool:
        """Whether a row with a step begins another run than that of the metrics in the rows ahead, which name none:
        these name a reward, one of them at several rows, and the row has a reward, no evaluation's, but none of them.
        """
        if max(ahead.values(), default=0) < FEWEST_AHEAD or not names_reward(ahead):
            return False
        tags = self.placed.tags(row)
        return ahead.keys().isdisjoint(tags) and names_reward(tag for tag in tags if not tag.startswith("eval"))

    def _take(self, nested: Mapping[str, Any]) -> None:
        flat = flatten(nested)
        if self._writers and self._writers in flat and (writer := written(flat[self._writers])) != self._own:
            if writer not in self._others:
                self._others[writer] = Rows(lambda _: self._run_of(writer), steps=self.axis)
            self._others[writer].take((flat,))
            return
        if self.axis is None and not has_step(flat):
            self._ahead.update(self.placed.tags(flat))
        elif self.axis is None and self._is_of_another(flat, self._ahead):
            self.begin_run()
            self.take((flat,))
            return
        row = with_eval_prefix(flat, self.axis)
        if not self._means.is_needed:
            self.placed.take(row)
            return
        before = self._means.taken
        for one in self._means.rows(row):
            self.placed.take(one)
        self.averaged += self._means.taken - before

    def _run_of(self, writer: str) -> Run:
        """A run for the rows of another seed, algorithm or agent that are interleaved with this run's."""
        if len(self.runs) > MOST_RUNS:
            return self.runs[-1]
        self.runs.append(self._make(len(self.runs)))
        self.runs[-1].name = f"{self.runs[0].name}#{self._writers} {writer}"
        self.runs[-1].step_axis = self.run.step_axis
        return self.runs[-1]
