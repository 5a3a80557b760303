"""Turns parsed JSON rows into columns, one array per key: consecutive rows with the same keys, as a trainer usually
writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from rlhealth.sources.base.spelling import AXES, CLOCKS, number
from rlhealth.sources.rows.row_shapes import Cells
from rlhealth.sources.rows.split_rows import WRITERS, is_evaluation

FEWEST = 16  # rows; fewer rows are taken one by one
MOST = 1024  # rows per batch: one unusual cell sends at most these through the slow path
_NUMBERS = frozenset({float, int, bool})
Row = Mapping[str, Any]


class RowBlock(NamedTuple):
    """Consecutive rows with the same keys: how many, and their numbers by tag (masked arrays of shape (rows,))."""

    rows: int
    table: dict[str, Cells]


def stretches(rows: Iterable[Row]) -> Iterator[RowBlock | Sequence[Row]]:
    """The same rows in the same order: as columns if consecutive rows have the same keys and plain cells, otherwise as
    rows.
    """
    for _, group in groupby(rows, tuple):
        same = list(group)
        for start in range(0, len(same), MOST):
            some = same[start : start + MOST]
            table = _columns(some) if len(some) >= FEWEST else None
            yield some if table is None else RowBlock(len(some), table)


def _columns(rows: Sequence[Row]) -> dict[str, Cells] | None:
    """The numbers of rows with the same keys, with irrelevant texts masked; None if a cell is neither, or if no cell is
    a number."""
    table: dict[str, Cells] = {}
    for tag, cells in zip(rows[0], zip(*(row.values() for row in rows), strict=True), strict=True):
        kinds = set(map(type, cells))
        if bool in kinds and any(is_evaluation(tag, cell) for cell in cells):
            return None
        if kinds <= _NUMBERS:
            try:
                table[tag] = np.ma.masked_array(np.array(cells, np.float64))
            except OverflowError:  # an int of hundreds of digits
                return None
        elif kinds == {str} and _say_nothing(tag, set(cells)):
            table[tag] = np.ma.masked_array(np.full(len(cells), np.nan), True)
        else:
            return None
    return table if any(map(np.ma.count, table.values())) else None


def _say_nothing(tag: str, texts: set[str]) -> bool:
    """Whether texts under a tag are irrelevant: no time, no step, no split, no name of a run and no number in any
    spelling."""
    if tag in CLOCKS or tag in AXES or any(is_evaluation(tag, one) for one in texts):
        return False
    if tag in WRITERS and len(texts) > 1:
        return False
    return all("/" not in one and number(one) is None for one in texts)
