"""Curves for the page: thinned so that every spike survives, and written as short SVG paths whose x is the step
itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlhealth.run import Floats, Ints

_DECADES = 1e4  # how far below its median a series is still distinguished on a log scale


@dataclass(frozen=True)
class Scale:
    """How values become heights: `low` at the bottom (y = `tall`), `high` at the top (y = 0), perhaps by their
    logarithm.

    Attributes:
        least: where `log`, what anything smaller is drawn as: a single zero, or 1e-12, shall not press all else to the
            top. No value below zero has a logarithm, so there `log` is off.
    """

    low: float
    high: float
    tall: int
    log: bool = False
    least: float = 0.0

    def heights(self, values: Floats) -> Floats:
        """y of each value, shape (n,), rounded; NaN if the value is not finite."""
        finite = np.isfinite(values)
        shown = np.where(finite, values, self.low)
        if self.log:
            shown = np.log10(np.maximum(shown, self.least))
        low, high = self._ends
        with np.errstate(over="ignore"):
            share = (shown / 2 - low / 2) / (
                high / 2 - low / 2
            )  # halves: the distance of two finite numbers need not be finite
        return np.where(finite, np.round(self.tall * (1 - np.clip(share, -0.5, 1.5))), np.nan)

    def height(self, value: float) -> float:
        """y of one value."""
        return float(self.heights(np.array([value]))[0])

    @property
    def _ends(self) -> tuple[float, float]:
        return (float(np.log10(self.low)), float(np.log10(self.high))) if self.log else (self.low, self.high)


def scale_of(values: Floats, tall: int, *, log: bool = False, also: float | None = None) -> Scale:
    """A scale that holds every finite value, and `also` (a limit) where that does not squeeze the curve to less than
    a third.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Scale(0.0, 1.0, tall)
    low, high = float(finite.min()), float(finite.max())
    positive = finite[finite > 0]
    log = log and low >= 0 and len(positive) > 0 and high > low
    least = max(float(positive.min()), float(np.median(positive)) / _DECADES) if log else 0.0
    low = max(low, least) if log else low
    if also is not None and np.isfinite(also) and not (log and also <= 0):
        reach = (np.log10(high / low) + 0.5) if log else (high / 2 - low / 2) * 2
        gap = abs(np.log10(also / (high if also > high else low))) if log else max(also - high, low - also)
        if gap <= 2 * reach:
            low, high = min(low, also), max(high, also)
    if high / 2 == low / 2:  # no more than the least number there is lies between them
        low, high = (low, low + 1) if abs(low) < 1e-9 else (low - 0.5 * abs(low), high + 0.5 * abs(low))
    if not log:
        pad = 0.04 * (high / 2 - low / 2) * 2
        low, high = max(low - pad, -1.7e308), min(high + pad, 1.7e308)
    else:
        low, high = low / 1.1, min(high * 1.1, 1.7e308)
    return Scale(low, high, tall, log, min(least, low) if log else 0.0)


def thinned(steps: Ints, values: Floats, buckets: int) -> NDArray[np.int64]:
    """Indices of the points to draw, ascending: the least and the greatest of each bucket of steps, the ends, and
    where the series turns to or from NaN.
    """
    count = len(steps)
    if count <= 2 * buckets:
        return np.arange(count)
    finite = np.isfinite(values)
    width = max(1, int(steps[-1] - steps[0]) + 1)
    bucket = ((steps - steps[0]) * (buckets / width)).astype(np.int64)
    starts = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    least = _first_equal(np.where(finite, values, np.inf), np.minimum, starts)
    most = _first_equal(np.where(finite, values, -np.inf), np.maximum, starts)
    broken = np.append(np.flatnonzero(~finite), count)
    first_broken = broken[np.searchsorted(broken, starts)]
    turns = first_broken[first_broken < np.append(starts[1:], count)]
    return np.unique(np.concatenate([least, most, turns, np.array([0, count - 1])]))


def _first_equal(values: Floats, extreme: np.ufunc, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each stretch that begins at one of `starts`, the index of its first least (or greatest) value."""
    found = extreme.reduceat(values, starts)
    hits = np.flatnonzero(values == np.repeat(found, np.diff(np.append(starts, len(values)))))
    return np.asarray(hits[np.searchsorted(hits, starts)], np.int64)


def path(steps: Ints, values: Floats, scale: Scale, first: int) -> str:
    """The `d` of a line through the points, relative and whole numbers; it breaks at values that are not finite."""
    heights = scale.heights(values)
    parts: list[str] = []
    x = y = 0
    drawing = False
    for step, height in zip((steps - first).tolist(), heights.tolist(), strict=True):
        if height != height:
            drawing = False
            continue
        here = int(height)
        if not drawing:
            parts.append(f"M{step} {here}l0 0")
        else:
            parts.append(f"{step - x}{here - y:+d}" if here < y else f"{step - x} {here - y}")
        x, y, drawing = step, here, True
    joined = "".join(part if part[0] == "M" else f" {part}" for part in parts)
    return joined


def breaks(steps: Ints, values: Floats, first: int, most: int = 200) -> list[int]:
    """x of points that are not finite, at most `most` of them, spread evenly; none if the series is mostly
    absent.
    """
    bad = ~np.isfinite(values)
    if not bad.any() or bad.mean() > 0.9:
        return []
    found = steps[bad] - first
    return [int(one) for one in found[:: max(1, len(found) // most)]]
