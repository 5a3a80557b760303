"""Rows that say of which side of training they are, `{"split": "eval", "step": 30, "reward": 0.5}`, and rows of which
several are of one step: an evaluation overwrites no training, and samples are read as the mean of their step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlhealth.sources.base.spelling import AXES, CLOCKS, number
from rlhealth.sources.rows.row_shapes import Cells

#: Columns in which a row says of which side it is, and what the side of an evaluation is called.
SIDES = frozenset(
    {"split", "phase", "mode", "stage", "type", "log_type", "kind", "event", "set", "subset", "partition"}
)
EVALUATED = frozenset({"eval", "evaluation", "evaluate", "validation", "val", "valid", "test", "testing", "heldout"})
#: Columns that are true in rows of an evaluation: `{"eval": true, "step": 30, "reward": 0.5}`.
FLAGS = frozenset({"eval", "evaluation", "evaluated", "is_eval", "is_evaluation", "is_validation", "is_test"})
#: Names of what several runs are compared by.
VARIANTS = ("trial", "algorithm", "algo", "method", "variant", "condition")
#: Columns in which a row says which of several runs it is of, where each step has a row of every one.
WRITERS = ("seed", "run_id", "run", *VARIANTS, "agent", "agent_id", "player")
MOST_WRITERS = 50
FEWEST_ROWS = 3  # of a step, from which on they are its samples
FEWEST_STEPS = 3
_BESIDE = frozenset({"epoch", "train/epoch", "Epoch", *CLOCKS})
Row = Mapping[str, Any]


def told_apart(row: Row, axis: str | None) -> Row:
    """The row with `eval/` before the names of its numbers, where a column says that it is of an evaluation."""
    if not any(is_evaluation(name, row[name]) for name in (SIDES | FLAGS) & row.keys()):
        return row
    return {
        one
        if one == axis or one in _BESIDE or one.startswith("eval") or number(value) is None
        else f"eval/{one}": value
        for one, value in row.items()
    }


def is_evaluation(name: str, cell: object) -> bool:
    """Whether a row is of an evaluation, by its cell in a column of that name: a side, or a flag that is set."""
    said = str(cell).lower() if isinstance(cell, str | bool) else ""
    return (name in SIDES and said in EVALUATED) or (name in FLAGS and said == "true")


def writers(rows: Sequence[Row], axis: str | None) -> str:
    """The column by which rows of several runs stand between each other, `episode,seed,reward`: nearly every step has
    one row of each; "" if there is none."""
    if axis is None:
        return ""
    for name in WRITERS:
        pairs = [(str(row[axis]), written(row[name])) for row in rows if name in row and axis in row]
        said = {one for _, one in pairs}
        if len(pairs) < len(rows) or not 1 < len(said) <= MOST_WRITERS or len(pairs) < FEWEST_STEPS * len(said):
            continue
        changes = sum(early[1] != late[1] for early, late in pairwise(pairs))
        steps = len({step for step, _ in pairs})
        if len(set(pairs)) == len(pairs) and len(pairs) > 0.9 * steps * len(said) and 2 * changes > len(pairs):
            return name
    return ""


def written(writer: object) -> str:
    """A seed or the name of an agent as text, the same for 1 and 1.0."""
    found = number(writer)
    return str(writer) if found is None else f"{found:g}"


def columns_apart(table: Mapping[str, Cells], evaluated: NDArray[np.bool_]) -> dict[str, Cells]:
    """The same columns, each of shape (rows,), with those rows that are of an evaluation under names with `eval/`."""
    found: dict[str, Cells] = {}
    for name, cells in table.items():
        if name in AXES or name in _BESIDE:
            found[name] = cells
            continue
        values, absent = np.ma.getdata(cells), np.ma.getmaskarray(cells)
        found[name] = np.ma.masked_array(values, absent | evaluated)
        other = name if name.startswith("eval") else f"eval/{name}"
        if not (absent | ~evaluated).all():
            found[other] = np.ma.masked_array(values, absent | ~evaluated) if other != name else cells
    return found


class StepMeans:
    """Makes one row of the rows of a step, where a step has several that say the same: the samples of a batch, the
    games of an evaluation, the workers of a rollout.

    Attributes:
        taken: rows that were read as the mean of their step.
    """

    def __init__(self, rows: Iterable[Row], axis: str | None) -> None:
        self._axis = axis
        self.taken = 0
        self._sampled = _sampled(rows, axis) if axis else frozenset()
        self._step: float | None = None
        self._is_closed = False  # the step was told, as nothing had come for long: what comes of it now is too late
        self._sums: dict[str, tuple[float, int]] = {}

    @property
    def is_needed(self) -> bool:
        """Whether there are such rows."""
        return bool(self._sampled)

    def rows(self, row: Row) -> Iterator[Row]:
        """The rows that are whole once this one has come: means wait for the next step."""
        assert self._axis is not None
        step = number(row.get(self._axis))
        if step is not None and step != self._step:
            yield from self.close()
            self._step, self._is_closed = step, False
        sampled = self._sampled & row.keys()
        if step is None or not sampled:
            yield row
            return
        self.taken += 1
        for name in frozenset() if self._is_closed else sampled | (_BESIDE & row.keys()):
            value = number(row[name])
            if value is not None:
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = total + value, count + 1
        rest = {name: value for name, value in row.items() if name not in sampled}
        if _names(rest, self._axis):
            yield rest

    def close(self) -> Iterator[Row]:
        """The row of the newest step, of which no more samples will come."""
        if self._sums:
            yield {self._axis or "": self._step, **{name: total / count for name, (total, count) in self._sums.items()}}
            self._sums, self._is_closed = {}, True


def _sampled(rows: Iterable[Row], axis: str) -> frozenset[str]:
    """The names of which most steps that have them have several, one after the other: runs that follow each other have
    the same steps too.
    """
    often: defaultdict[str, list[int]] = defaultdict(list)
    newest: dict[str, float] = {}
    for row in rows:
        step = number(row.get(axis))
        if step is not None:
            for name in _names(row, axis):
                if newest.get(name) == step:
                    often[name][-1] += 1
                else:
                    often[name].append(1)
                newest[name] = step
    return frozenset(
        name
        for name, counts in often.items()
        if len(counts) >= FEWEST_STEPS and 2 * sum(count >= FEWEST_ROWS for count in counts) > len(counts)
    )


def _names(row: Row, axis: str) -> frozenset[str]:
    return frozenset(name for name, value in row.items() if number(value) is not None) - _BESIDE - {axis}
