"""Plot: one metric's curve over many lines of a terminal, with its limits as lines across."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rlhealth.reports import words
from rlhealth.reports.sparkline import ASCII_BLOCKS, BLOCKS, cells

if TYPE_CHECKING:
    from rlhealth.reports.page import Page
    from rlhealth.run import Floats, Ints

Part = str | tuple[str, str]
REACH = 1.0  # a limit further beyond the curve than so many times its height is reported, and not drawn
_AXIS = 9  # columns for numbers


def plot(
    page: Page,
    points: tuple[Ints, Floats],
    unit: str,
    limits: Sequence[tuple[float, str]],
    *,
    height: int,
) -> list[list[Part]]:
    """Lines of a bar for each column, which show the value furthest from the median there.

    Args:
        points: steps and values, each of shape (n,).
        limits: levels, and on which side of them the metric is sick.
        height: lines of the plot itself; one more names the steps.
    """
    steps, values = points
    width = page.width - _AXIS - 3
    heights = cells(steps, values, width)
    finite = heights[np.isfinite(heights)]
    if not len(finite):
        return [[" no finite value"]]
    low, high = float(finite.min()), float(finite.max())
    reach = max(high - low, abs(high) * 1e-3, 1e-12) * REACH
    near = [level for level, _ in limits if low - reach <= level <= high + reach]
    low, high = min([low, *near]), max([high, *near])
    if high - low <= 0 or not math.isfinite(high - low):
        low, high = low - abs(low or 1.0) / 2, high + abs(high or 1.0) / 2
    eighths = np.clip(np.nan_to_num((heights - low) / (high - low) * height * 8, nan=0.0, neginf=0.0), 0, height * 8)
    rows_of = {min(height - 1, int((level - low) / (high - low) * height)): level for level in near}
    lines: list[list[Part]] = []
    for row in reversed(range(height)):
        level = rows_of.get(row)
        named = level if level is not None else high if row == height - 1 else low if row == 0 else None
        label = page.fit(words.number(named, unit) if named is not None else "", _AXIS, right=True)
        parts: list[Part] = [
            (label, "red" if level is not None else "dim"),
            (" ┤" if not page.look.ascii else " |", "dim"),
        ]
        parts += [
            _cell(page, float(heights[column]), int(eighths[column]) - row * 8, level, limits)
            for column in range(width)
        ]
        lines.append(parts)
    first, last = words.grouped(int(steps[0])), words.grouped(int(steps[-1]))
    gap = max(1, width - len(first) - len(last))
    lines.append([(" " * (_AXIS + 2) + f"{first}{' ' * gap}{last}", "dim")])
    return lines


def _cell(page: Page, value: float, filled: int, level: float | None, limits: Sequence[tuple[float, str]]) -> Part:
    """One character: the bar, in red where its value is beyond a limit, or the limit's line where there is no bar."""
    if value == -np.inf or filled <= 0:
        if not np.isfinite(value) and value != -np.inf and level is None:
            return ("?" if page.look.ascii else "·", "magenta") if filled >= -7 else " "
        return (("-" if page.look.ascii else "┄"), "red") if level is not None else " "
    beyond = any(value > one if side == "above" else value < one for one, side in limits if side != "equals")
    blocks = ASCII_BLOCKS if page.look.ascii else BLOCKS
    return blocks[min(filled, 8) - 1], "red" if beyond else "blue"
