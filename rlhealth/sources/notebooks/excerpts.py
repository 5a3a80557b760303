"""Excerpts of one table, displayed one after another: `log.head()` and `log.tail()` are read as one table, by the
numbers that pandas gives to its rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from rlhealth.sources.base.spelling import AXES, whole
from rlhealth.sources.notebooks.html_table import Grid


def with_excerpts_joined(grids: Iterable[Grid]) -> list[Grid]:
    """The tables of one cell, in order; a table that is another part of the previous one is added to it."""
    found: list[Grid] = []
    for grid in grids:
        one = _united(found[-1], grid) if found else None
        if one is None:
            found.append(grid)
        else:
            found[-1] = one
    return found


def axis_of_names(names: Iterable[str]) -> str:
    """The column that counts the steps; "" if there is none."""
    known = set(names)
    return next((name for name in (*AXES, "Epoch", "epoch") if name in known), "")


def _united(one: Grid, other: Grid) -> Grid | None:
    """The table of which both are parts; None if they may be of different tables.

    Both have the same columns, a row in both has the same values in both, and steps rise with row numbers from the
    first row on.
    """
    axis = axis_of_names(one.heading)
    if not (one.is_frame and other.is_frame and one.heading == other.heading and axis):
        return None
    mine, theirs = _by_number(one), _by_number(other)
    if not mine or not theirs or any(mine[number] != theirs[number] for number in mine.keys() & theirs.keys()):
        return None
    rows = dict(sorted((mine | theirs).items()))
    place = one.heading.index(axis)
    steps = [whole(cells[place]) if place < len(cells) else None for cells in rows.values()]
    counted = [step for step in steps if step is not None]
    if 0 not in rows or len(counted) < len(steps) or any(after < before for before, after in pairwise(counted)):
        return None
    return Grid(
        heading=one.heading,
        rows=list(rows.values()),
        labels=[str(number) for number in rows],
        is_cut=one.is_cut or other.is_cut or max(rows) >= len(rows),
        is_frame=True,
    )


def _by_number(grid: Grid) -> dict[int, list[str]]:
    """The rows by the numbers that label them; empty where one has none, or has that of another row."""
    numbers = [whole(label) for label in grid.labels]
    rows = {number: cells for number, cells in zip(numbers, grid.rows, strict=True) if number is not None}
    return rows if len(rows) == len(grid.rows) else {}
