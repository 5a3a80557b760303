"""Shapes of rows: flattens nested rows, turns columns into rows, and distinguishes log rows from other
rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rlhealth.run import Floats
from rlhealth.sources.base.spelling import AXES, EARLIEST, FURTHEST, LATEST, number
from rlhealth.sources.rows.row_names import is_log_name

DEEPEST = 8  # levels of nested rows that are read
MOST_SAMPLES = 4096  # the most numbers in one cell that count as the samples of a step
Cells = Any  # np.ma.MaskedArray of float64, which numpy's types cannot express yet


def flatten(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row without nesting: the "data" level of verl's {"step": 1, "data": {…}} is removed, and other groups are
    joined with a slash. A histogram is kept whole. A list of rewards, as in `{"step": 1, "rewards": [0.0, 1.0]}`,
    becomes its mean and spread.
    """
    kinds = set(map(type, row.values()))
    if dict not in kinds and list not in kinds:
        return row
    return dict(_flattened(row, "", 0))


def _flattened(row: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if type(value) is dict and "_type" not in value:
            if depth < DEEPEST:
                yield from _flattened(
                    value, prefix if key in ("data", "metrics") and not depth else f"{prefix}{key}/", depth + 1
                )
        elif type(value) is list and is_log_name(str(key)) and _are_numbers(value):
            yield f"{prefix}{key}/mean", float(np.mean(value))
            yield f"{prefix}{key}/std", float(np.std(value))
        else:
            yield f"{prefix}{key}", value


def _are_numbers(value: list[Any]) -> bool:
    """Whether a list has the rewards of one step's samples, and is no curve."""
    return 1 < len(value) <= MOST_SAMPLES and set(map(type, value)) <= {int, float, bool}


def dicts(table: Mapping[str, Cells], stop: int, start: int = 0) -> list[dict[str, float]]:
    """The rows from `start` up to `stop` of a table of columns, each without missing values."""
    found: list[dict[str, float]] = [
        {} for _ in range(start, min(stop, max((len(cells) for cells in table.values()), default=0)))
    ]
    for tag, cells in table.items():
        for row, value, absent in zip(
            found,
            np.ma.getdata(cells)[start:stop].tolist(),
            np.ma.getmaskarray(cells)[start:stop].tolist(),
            strict=True,
        ):
            if not absent:
                row[tag] = value
    return found


def looks_like_rows(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether these are log rows and not, for example, a data set: most of them have numbers.

    A row with a long text is a log row only if it counts steps and no other row has the same step: several texts per
    step are samples.
    """
    fits = 0
    steps: list[object] = []
    for row in rows:
        flat = flatten(row)
        numbers = sum(number(value) is not None for value in flat.values())
        texts = sum(isinstance(value, str) and number(value) is None for value in flat.values())
        counted = next((flat[name] for name in AXES if name in flat), None)
        if any(isinstance(value, str) and len(value) > 200 for value in flat.values()):
            fits += numbers >= 3 and counted is not None and counted not in steps
        else:
            fits += numbers >= 2 and (numbers >= 3 or not texts or counted is not None)
        steps.append(counted)
    return bool(rows) and 2 * fits > len(rows)


def clocks(cells: Cells) -> Floats:
    """`spelling.clock` of each number in a column, shape (rows,)."""
    found = np.ma.filled(cells, np.nan)
    found = np.where(found > LATEST, found / 1000, found)
    return np.where((found > EARLIEST) & (found < LATEST), found, np.nan)


def never_falls(cells: Cells) -> bool:
    """Whether a count is in every row and never falls; it need not be an integer."""
    there = np.ma.getdata(cells)
    return not np.ma.getmaskarray(cells).any() and bool(np.all(there[1:] >= there[:-1]))


def rises(cells: Cells) -> bool:
    """Whether a column is a count of steps: a finite number in every row that never falls."""
    there = np.ma.getdata(cells)
    return never_falls(cells) and bool(np.isfinite(there).all()) and bool(np.all(np.abs(there) < FURTHEST))
