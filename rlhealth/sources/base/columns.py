"""Many logged rows, column by column: the form of a batch of history rows before it is added to a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlhealth.run import Floats
from rlhealth.sources.base.decimals import Flags
from rlhealth.sources.base.values import number

ABSENT, NUMBER, NULL = 0, 1, 2
MOST_CELLS = 1 << 22  # columns x rows of one batch; where there would be more, rows are decoded one by one


@dataclass
class Columns:
    """Some rows, column by column.

    Attributes:
        tags: K names.
        values: shape (K, R).
        state: shape (K, R), ABSENT, NUMBER or NULL.
        odd: values that are no numbers, by row: {"ppo/policy/ratio": {"_type": "histogram", …}}.
    """

    tags: list[str]
    values: Floats
    state: NDArray[np.uint8]
    odd: dict[int, dict[str, Any]]

    def __len__(self) -> int:
        return int(self.values.shape[1])

    def row(self, index: int) -> dict[str, Any]:
        """One row as it was passed to the SDK."""
        found: dict[str, Any] = {}
        for column in np.flatnonzero(self.state[:, index]).tolist():
            found[self.tags[column]] = (
                float(self.values[column, index]) if self.state[column, index] == NUMBER else None
            )
        found.update(self.odd.get(index, {}))
        return found

    def column(self, tag: str) -> tuple[Floats, Flags]:
        """The values of a tag, shape (R,), and where it is a number."""
        if tag not in self.tags:
            return np.full(len(self), np.nan), np.zeros(len(self), np.bool_)
        index = self.tags.index(tag)
        return np.where(self.state[index] == NUMBER, self.values[index], np.nan), self.state[index] == NUMBER

    def after(self, index: int) -> Columns:
        """The rows from `index` on."""
        odd = {row - index: values for row, values in self.odd.items() if row >= index}
        return Columns(self.tags, self.values[:, index:], self.state[:, index:], odd)


def columns_of(rows: Sequence[Mapping[str, Any]], keeps: Callable[[str], bool]) -> Columns | None:
    """The kept tags of rows without null; None if there were more than `MOST_CELLS` cells."""
    tags = [tag for tag in dict.fromkeys(chain.from_iterable(rows)) if keeps(tag)]
    shape = len(tags), len(rows)
    if shape[0] * shape[1] > MOST_CELLS:
        return None
    found = Columns(tags, np.zeros(shape), np.zeros(shape, np.uint8), {})
    try:  # rows of one shape, as nearly all are; of one tag `itemgetter` makes no tuples
        cells = list(map(itemgetter(*tags, *tags[:1]), rows))
        if {float, int}.issuperset(map(type, chain.from_iterable(cells))):
            return Columns(tags, np.array(cells, np.float64).T[:-1], np.full(shape, NUMBER, np.uint8), {})
    except (KeyError, TypeError, ValueError, OverflowError):  # some row lacks a tag, or a number is too large
        pass
    for index, tag in enumerate(tags):
        cells = [row.get(tag) for row in rows]
        if {float, type(None)}.issuperset(map(type, cells)):
            found.state[index] = [NUMBER if cell is not None else ABSENT for cell in cells]
            found.values[index] = [0.0 if cell is None else cell for cell in cells]
            continue
        for place, cell in enumerate(cells):
            known = number(cell)
            if known is not None:
                found.values[index, place], found.state[index, place] = known, NUMBER
            elif cell is not None:
                found.odd.setdefault(place, {})[tag] = cell
    return found
