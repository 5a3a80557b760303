"""Rows that name their split, `{"split": "eval", "step": 30, "reward": 0.5}`, and steps with several rows: an
evaluation does not overwrite training, and samples are read as the mean of their step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlhealth.sources.base.spelling import AXES, CLOCKS, number
from rlhealth.sources.rows.row_shapes import Cells

#: Columns that name the split of a row, and the names of an evaluation split.
SIDES = frozenset(
    {"split", "phase", "mode", "stage", "type", "log_type", "kind", "event", "set", "subset", "partition"}
)
EVALUATED = frozenset({"eval", "evaluation", "evaluate", "validation", "val", "valid", "test", "testing", "heldout"})
#: Columns that are true in evaluation rows: `{"eval": true, "step": 30, "reward": 0.5}`.
FLAGS = frozenset({"eval", "evaluation", "evaluated", "is_eval", "is_evaluation", "is_validation", "is_test"})
#: Names of columns by which several runs are compared.
VARIANTS = ("trial", "algorithm", "algo", "method", "variant", "condition")
#: Columns that name the run of a row, where each step has one row per run.
WRITERS = ("seed", "run_id", "run", *VARIANTS, "agent", "agent_id", "player")
MOST_WRITERS = 50
FEWEST_ROWS = 3  # rows of one step from which on they are its samples
FEWEST_STEPS = 3
_BESIDE = frozenset({"epoch", "train/epoch", "Epoch", *CLOCKS})
Row = Mapping[str, Any]


def with_eval_prefix(row: Row, axis: str | None) -> Row:
    """The row, with `eval/` before the names of its numbers if a column says that it is an evaluation row."""
    if not any(is_evaluation(name, row[name]) for name in (SIDES | FLAGS) & row.keys()):
        return row
    return {
        one
        if one == axis or one in _BESIDE or one.startswith("eval") or number(value) is None
        else f"eval/{one}": value
        for one, value in row.items()
    }


def is_evaluation(name: str, cell: object) -> bool:
    """Whether a row is of an evaluation, by its cell in a column of that name: a split, or a flag that is set."""
    said = str(cell).lower() if isinstance(cell, str | bool) else ""
    return (name in SIDES and said in EVALUATED) or (name in FLAGS and said == "true")


def writers(rows: Sequence[Row], axis: str | None) -> str:
    """The column that distinguishes interleaved rows of several runs, `episode,seed,reward`: nearly every step has one
    row per run; "" if there is none."""
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
    """The same columns, each of shape (rows,), with evaluation rows moved to columns named `eval/…`."""
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
    """Averages the rows of a step into one row, if a step has several of the same names: the samples of a batch, the
    games of an evaluation, the workers of a rollout.

    Attributes:
        taken: rows that were read as the mean of their step.
    """

    def __init__(self, rows: Iterable[Row], axis: str | None) -> None:
        self._axis = axis
        self.taken = 0
        self._sampled = _sampled(rows, axis) if axis else frozenset()
        self._step: float | None = None
        self._is_closed = False  # the step's mean was given out after a long silence: later rows of it are too late
        self._sums: dict[str, tuple[float, int]] = {}

    @property
    def is_needed(self) -> bool:
        """Whether any step has several rows."""
        return bool(self._sampled)

    def rows(self, row: Row) -> Iterator[Row]:
        """The rows that are complete once this row has arrived: means wait for the next step."""
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
        for name, said in row.items() if not self._is_closed else ():  # in their order, which a set has not
            value = number(said) if name in sampled or name in _BESIDE else None
            if value is not None:
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = total + value, count + 1
        rest = {name: value for name, value in row.items() if name not in sampled}
        if _names(rest, self._axis):
            yield rest

    def close(self) -> Iterator[Row]:
        """The row of the newest step, for which no more samples will come."""
        if self._sums:
            yield {self._axis or "": self._step, **{name: total / count for name, (total, count) in self._sums.items()}}
            self._sums, self._is_closed = {}, True


def _sampled(rows: Iterable[Row], axis: str) -> frozenset[str]:
    """The names that occur several times in a row in most of their steps. Runs that follow one another also repeat
    steps, but not in a row.
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
