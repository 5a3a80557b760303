"""Turns rows as wandb and Trackio store them into a run: the step of each row, and what happens if steps go
back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlhealth.run import Floats, Ints, Run
from rlhealth.sources.base.columns import NUMBER, Columns
from rlhealth.sources.base.counted import counted, out_of_order
from rlhealth.sources.base.values import (
    distribution,
    end_of_training,
    is_metric,
    metrics_of,
    number,
    whole,
)

#: Columns that count training steps; the first that exists is used, otherwise `_step`, which counts calls of wandb.log.
AXES = ("train/global_step", "global_step", "training/global_step", "trainer/global_step")
#: A step column that first appears after so many rows of metrics is a metric, not the axis.
LATE_AXIS = 100
#: Python lists of numbers need four times the memory of the final arrays.
FLUSHED_ROWS = 2000
EVALUATION = ("eval/", "val/", "test/", "eval_", "val-core/", "val-aux/", "validation/")
_TRAINER = re.compile(r"profiling/Time taken: (\w+)\.")


class Rows:
    """Takes history rows in the order in which they were logged and fills a run with them.

    The step of a row is its value of the first of `AXES` that the run has, or the last such value before it; otherwise
    its `_step`, otherwise its number. A row that goes back to a step that its tags have passed waits for the next row.
    If that row continues from there, the run was resumed, and the later rows are replaced; otherwise the row came late
    and keeps its step. `null` is NaN for a tag that is a number elsewhere. Call `flush` after the rows of a poll.

    Attributes:
        late: rows that were out of order.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.axis: str | None = None
        self.rows = 0
        self.late = 0
        self._fallen: list[tuple[Mapping[str, Any], int, float]] = []  # one step's rows that went back
        self._lowest: int | None = None  # of rows in descending order
        self._reported: list[str] = []
        self._part_begins = False
        self._step = 0
        self._highest = -1
        self._last: dict[str, int] = {}
        self._pending: dict[str, tuple[list[int], list[float], list[float]]] = {}
        self._nulls: dict[str, tuple[list[int], list[float], list[float]]] = {}
        run.step_axis = "_step"

    def take(self, row: Mapping[str, Any], *, late: bool = False) -> None:
        """Takes one row, `{"train/reward": 0.5, "_step": 12, …}`; nested values are dicts (a histogram, a table, a
        group of metrics).

        A `late` row was logged earlier than the one before it, so its lower step is no sign of a resume.
        """
        found = {tag: value for tag, value in metrics_of(row) if tag not in AXES}
        step = self._step_of(row, bool(found))
        if not found:
            self._name_trainer(row)
            return
        self.rows += 1
        time = number(row.get("_timestamp", math.nan))
        self._place(found, step, math.nan if time is None else time, late=late)
        if self.rows % FLUSHED_ROWS == 0:
            self.flush()

    def _place(self, found: Mapping[str, Any], step: int, time: float, *, late: bool) -> None:
        """Adds the metrics of a row at its step, unless it goes back and must wait for the next row."""
        if self._part_begins:
            self._resume(step)
        if self._fallen and not late and not _is_evaluation(found) and self._decide(found, step):
            self._fallen.append((found, step, time))
            return
        if step > self._highest:
            self._lowest = None
        elif step < self._highest and not late and self._falls_back(found, step):
            if self._lowest is None or step > self._lowest:
                self._fallen = [(found, step, time)]
                return
            self._lowest = step
            self.late += 1
        self._put_all(found, step, time)

    def _put_all(self, found: Mapping[str, Any], step: int, time: float) -> None:
        self._highest = max(self._highest, step)
        for tag, value in found.items():
            self._put(tag, value, step, time)

    def _decide(self, found: Mapping[str, Any], step: int) -> bool:
        """Places the rows that went back, now that the next row has arrived; True if it waits with them."""
        there = self._fallen[0][1]
        if step == there:
            return True
        again = any(self._last.get(tag) == step for tag in found)
        if there < step < self._highest or (step == self._highest and again):
            fallen, self._fallen = self._fallen, []
            self._resume(there)
            for one in fallen:
                self._put_all(*one)
        else:
            self._take_late()
            self._lowest = there if step < there else None
        return False

    def _take_late(self) -> None:
        self.late += len(self._fallen)
        for one in self._fallen:
            self._put_all(*one)
        self._fallen = []

    def take_columns(self, columns: Columns) -> None:
        """Takes many rows at once, with the same result as `take` one by one."""
        first = 0
        while first < len(columns) and (
            (self.axis is None and self.rows < LATE_AXIS) or self._part_begins or self._fallen
        ):
            self.take(columns.row(first))
            first += 1
        if first < len(columns):
            columns = columns.after(first)
            steps = self._steps_of(columns)
            if steps is None:
                for index in range(len(columns)):
                    self.take(columns.row(index))
            else:
                self._take_columns(columns, steps)

    def _steps_of(self, columns: Columns) -> Ints | None:
        """The step of each row; None if steps go back, or a row has none."""
        axis = self.axis or "_step"
        raw, there = columns.column(axis)
        there = there & np.isfinite(raw) & (np.abs(raw) < 2.0**53)
        if self.axis is None and not there.all():
            return None
        last = np.maximum.accumulate(np.where(there, np.arange(len(columns)), -1))
        steps = np.where(last >= 0, np.where(there, raw, 0).astype(np.int64)[last], self._step)
        return steps if steps[0] >= self._highest and bool(np.all(steps[1:] >= steps[:-1])) else None

    def _take_columns(self, columns: Columns, steps: Ints) -> None:
        self.flush()
        clock, known = columns.column("_timestamp")
        times = np.where(known, clock, np.nan)
        rows = np.zeros(len(columns), np.bool_)
        for index, tag in enumerate(columns.tags):
            state = columns.state[index]
            if is_metric(tag) and tag not in AXES and state.any():
                rows |= state > 0
                self._put_column(tag, columns.values[index], state, steps, times)
            elif tag.startswith("profiling/"):
                self._name_trainer({tag: None})
        for index, values in sorted(columns.odd.items()):
            for tag, value in metrics_of(values):
                rows[index] = True
                self._put(tag, value, int(steps[index]), float(times[index]))
        self.rows += int(rows.sum())
        self._step = int(steps[-1])
        if rows.any():
            self._highest = int(steps[rows][-1])

    def _put_column(self, tag: str, values: Floats, state: NDArray[np.uint8], steps: Ints, times: Floats) -> None:
        there = np.flatnonzero(state)
        steps, times = steps[there], times[there]
        if tag not in self._last and not (state == NUMBER).any():
            for step, time in zip(steps.tolist(), times.tolist(), strict=True):
                self._put(tag, None, step, time)
            return
        if tag in self._nulls:
            self.run.add(tag, *self._nulls.pop(tag))
        self.run.add(tag, steps, values[there], times)
        self._last[tag] = int(steps[-1])

    def begin_part(self) -> None:
        """The next row is the first of a continuation in another file."""
        self._take_late()
        self._part_begins = True

    def flush(self) -> bool:
        """Moves the rows taken so far into the run; True if there were any."""
        moved = bool(self._pending)
        for tag, (steps, values, times) in self._pending.items():
            self.run.add(tag, steps, values, times)
        self._pending.clear()
        self._report()
        return moved

    def _report(self) -> None:
        """Adds a note on rows that were out of order."""
        notes = [out_of_order(self.late)] * bool(self.late)
        if self._fallen:
            notes.append(
                f"the last row goes back to step {self._fallen[0][1]}: "
                "it counts when the next row shows whether the run was resumed there"
            )
        if notes != self._reported:
            self.run.notes[:] = [note for note in self.run.notes if note not in self._reported] + notes
            self._reported = notes

    def end(self, summary: Mapping[str, Any]) -> bool:
        """Adds values of the end of training that only the summary has, at the last step; True if there were any."""
        found = end_of_training(summary)
        if not found:
            return False
        self.flush()
        step = self.run.last_step or 0
        for tag, value in found.items():
            self.run.series.pop(tag, None)
            self.run.add(tag, [step], [value], [self.run.last_time])
        return True

    def _step_of(self, row: Mapping[str, Any], has_metrics: bool) -> int:
        if self.axis is None and self.rows < LATE_AXIS:
            self.axis = next((name for name in AXES if whole(row.get(name)) is not None), None)
            if self.axis:
                self._change_axis(row)
        if self.axis:
            step = whole(row.get(self.axis))
            self._step = self._step if step is None else step
        else:
            step = whole(row.get("_step"))
            self._step = self._step + (self.rows > 0 and has_metrics) if step is None else step
        return self._step

    def _change_axis(self, row: Mapping[str, Any]) -> None:
        """Moves rows from before the axis appeared to the first step of the axis, because their own numbers count
        something else.
        """
        assert self.axis is not None
        self.run.step_axis = self.axis
        if not self.rows:
            return
        self._take_late()
        self.flush()
        first = whole(row[self.axis]) or 0
        for tag, series in self.run.series.items():
            if not len(series):
                continue
            last, time = float(series.values[-1]), float(series.times[-1])
            series.rewind(int(series.steps[0]))
            series.extend([first], [last], [time])
            self._last[tag] = first
        for histogram in self.run.histograms.values():
            if not len(histogram):
                continue
            edges, counts, seconds = histogram.edges[-1], histogram.counts[-1], histogram.times[-1]
            histogram.rewind(histogram.steps[0])
            histogram.add(first, edges, counts, seconds)
        self._highest = first
        self.run.notes.append(
            f"{counted(self.rows, 'row was', 'rows were')} logged before {self.axis} first appeared: "
            f"the last value of each metric stands at step {first}"
        )

    def _falls_back(self, found: Mapping[str, Any], step: int) -> bool:
        """Whether a row repeats metrics that were logged at a later step; an evaluation may come late."""
        return any(self._last.get(tag, -1) > step and not tag.startswith(EVALUATION) for tag in found)

    def _resume(self, step: int) -> None:
        self._part_begins = False
        if self._highest < 0:
            return
        self.flush()
        self.run.rewind(step)
        self._last = {tag: min(last, step - 1) for tag, last in self._last.items()}
        self._highest = step

    def _put(self, tag: str, value: object, step: int, time: float) -> None:
        found = number(value)
        if found is None and value is not None:
            self._put_distribution(tag, value, step, time)
            return
        known = tag in self._last
        if not known and not self.run.keeps(tag, max(len(self._last), len(self._nulls))):
            return
        if found is None and not known:  # null: NaN if the tag turns out to be a number
            steps, values, times = self._nulls.setdefault(tag, ([], [], []))
        else:
            if not known and tag in self._nulls:
                self._pending[tag] = self._nulls.pop(tag)
            steps, values, times = self._pending.setdefault(tag, ([], [], []))
            self._last[tag] = max(step, self._last.get(tag, step))
        steps.append(step)
        values.append(math.nan if found is None else found)
        times.append(time)

    def _put_distribution(self, tag: str, value: object, step: int, time: float) -> None:
        found = distribution(value)
        if found is not None:
            self.run.histogram(tag).add(step, *found, time)
        if isinstance(value, list) and any(
            (one := number(each)) is not None and not math.isfinite(one) for each in value
        ):
            note = f"{tag}: numbers that are not finite were left out of its distribution"
            if note not in self.run.notes:
                self.run.notes.append(note)

    def _name_trainer(self, row: Mapping[str, Any]) -> None:
        """Reads the trainer's class from TRL's profiling rows, because its metrics do not show it (GRPO and RLOO log
        the same names).
        """
        if "trainer_class" in self.run.config:
            return
        for key in row:
            named = _TRAINER.match(key)
            if named:
                self.run.config["trainer_class"] = named[1]
                return


def _is_evaluation(found: Mapping[str, Any]) -> bool:
    return all(tag.startswith(EVALUATION) for tag in found)
