"""Rows that are dicts already, turned over into columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlhealth.sources.base.columns import MOST_CELLS, NULL, NUMBER, Columns
from rlhealth.sources.base.values import number

_NUMBERS = frozenset({float, int, bool})


def columns_of(rows: Sequence[Mapping[str, Any]]) -> Columns | None:
    """Rows as columns, or None if that would be a table of holes; rows with the same keys, which nearly all of a
    trainer's rows are, are turned over together.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(tuple(row), []).append(index)
    tags = list(dict.fromkeys(tag for group in groups for tag in group))
    if len(tags) * len(rows) > MOST_CELLS:
        return None
    place = {tag: index for index, tag in enumerate(tags)}
    columns = Columns(tags, np.full((len(tags), len(rows)), np.nan), np.zeros((len(tags), len(rows)), np.uint8), {})
    for group, indices in groups.items():
        for tag, values in zip(group, zip(*(rows[index].values() for index in indices), strict=True), strict=True):
            _fill(columns, place[tag], indices, values)
    return columns


def _fill(columns: Columns, place: int, indices: list[int], values: tuple[Any, ...]) -> None:
    if set(map(type, values)) <= _NUMBERS:
        try:
            columns.values[place, indices] = np.array(values, np.float64)
            columns.state[place, indices] = NUMBER
            return
        except OverflowError:  # an int of hundreds of digits
            pass
    for index, value in zip(indices, values, strict=True):
        found = number(value)
        if found is not None:
            columns.values[place, index], columns.state[place, index] = found, NUMBER
        elif value is None:
            columns.state[place, index] = NULL
        else:
            columns.odd.setdefault(index, {})[columns.tags[place]] = value
