"""Sparklines: a series as one row of blocks in which no spike is lost, and where on that row a step lies."""

from __future__ import annotations

import numpy as np

from rlhealth.run import Floats, Ints
from rlhealth.series import plain_median

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "_.-=+*%#"
# a series with more non-finite points than this logs them as "no value"; below it, each is an event worth a mark
_FEW = 0.25
_DECADES = 1e4


def sparkline(
    steps: Ints,
    values: Floats,
    width: int,
    *,
    span: tuple[int, int] | None = None,
    ascii: bool = False,
    log: bool = False,
) -> str:
    """A series as `width` blocks over `span` (its own first and last step if None).

    A cell without finite points is `·`, one before or after the series a space. Each cell shows the value furthest
    from the series' median, so one stray point in a million stays visible. Between points a cell repeats the last one.
    """
    heights = cells(steps, values, width, span=span)
    return draw(heights, ascii=ascii, log=log)


def cells(steps: Ints, values: Floats, width: int, *, span: tuple[int, int] | None = None) -> Floats:
    """For each of `width` equal stretches of `span` the value furthest from the median, shape (width,).

    -inf where the series is absent, NaN if it is not finite.
    """
    absent = np.full(width, -np.inf)
    if not len(steps) or width < 1:
        return absent
    first, last = span or (int(steps[0]), int(steps[-1]))
    finite = np.isfinite(values)
    cell = np.clip(((steps - first) * (width / max(1, last - first + 1))).astype(np.int64), 0, width - 1)
    starts = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
    filled = cell[starts]
    middle = plain_median(values[finite]) if finite.any() else 0.0
    low = np.minimum.reduceat(np.where(finite, values, np.inf), starts)
    high = np.maximum.reduceat(np.where(finite, values, -np.inf), starts)
    with np.errstate(invalid="ignore", over="ignore"):  # what overflows is further than what does not
        extreme = np.where(high - middle >= middle - low, high, low)
    counted = np.add.reduceat(finite.astype(np.int64), starts)
    sizes = np.diff(np.append(starts, len(steps)))
    events = 1 - finite.mean() <= _FEW
    extreme[(counted == 0) | ((counted < sizes) & events)] = np.nan
    return _held(filled, extreme, absent)


def _held(filled: Ints, extreme: Floats, absent: Floats) -> Floats:
    """Spreads the values of the filled cells over the empty ones between them, shape (width,)."""
    width = len(absent)
    reach = np.diff(np.append(filled, filled[-1] + 1))
    held = np.repeat(extreme, reach)
    start = int(filled[0])
    result = absent.copy()
    result[start : min(width, start + len(held))] = held[: width - start]
    return result


def draw(heights: Floats, *, ascii: bool = False, log: bool = False) -> str:
    """One character a height: eight blocks from the lowest to the highest finite one."""
    blocks = ASCII_BLOCKS if ascii else BLOCKS
    finite = heights[np.isfinite(heights)]
    if log and len(finite) and 0 <= finite.min() < finite.max():
        positive = finite[finite > 0]
        least = max(
            float(positive.min()), plain_median(positive) / _DECADES
        )  # a zero, or 1e-12, shall not press all else to the top
        heights = np.where(np.isfinite(heights), np.log10(np.maximum(heights, least)), heights)
        finite = heights[np.isfinite(heights)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    flat = high - low <= 1e-9 * max(abs(low), abs(high))
    level = (0 if high == 0 else 3) if flat else -1
    return "".join(_block(one, low, high, level, blocks, "?" if ascii else "·") for one in heights)


def _block(height: float, low: float, high: float, level: int, blocks: str, missing: str) -> str:
    if height == -np.inf:
        return " "
    if not np.isfinite(height):
        return missing
    if level >= 0:
        return blocks[level]
    span = high / 2 - low / 2  # halves: the distance of two finite numbers need not be finite
    share = (height / 2 - low / 2) / span if span else 0.0  # the least number of all has no half
    return blocks[min(7, int(share * 8))]


def cell_of(step: int, span: tuple[int, int], width: int) -> int:
    """The cell of a sparkline over `span` in which `step` lies."""
    first, last = span
    return max(0, min(width - 1, int((step - first) * (width / max(1, last - first + 1)))))
