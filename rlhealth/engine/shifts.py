"""Shifts of a level: newest points that all lie below the points before them, by more than these differ."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.noise import FLOOR
from rlhealth.engine.windows import Held
from rlhealth.run import Floats, Ints

FEWEST = 5  # newest points: fewer may be a bad batch


class ShiftDown:
    """How far all of the newest points, five to `before`, lie below all of the `before` points before them, as a
    multiple of the span of these; 0 where they do not, and unknown with fewer points.

    It needs no estimate of noise: however points are distributed, and however much neighbours are alike, they seldom
    leave the span of so many points by more than that span, and stay there. Where rows repeat a value until the next
    one comes, a few values are no level: of all those points five or more must differ from the one before them.
    """

    def __init__(self, before: int) -> None:
        self.before = before
        self.held = Held()
        self.recent: Floats = np.full(before + max(before, FEWEST), np.nan)

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        return self.held.each(values, self._measured)

    def _measured(self, points: Floats) -> Floats:
        known = len(self.recent)
        joined = np.concatenate([self.recent, points])
        self.recent = joined[-known:].copy()
        return shifted_down(joined, self.before)[0][known:]


def shifted_down(points: Floats, before: int) -> tuple[Floats, Ints]:
    """At each of the points, shape (n,): what `ShiftDown` measures, and how many of the newest points that is of."""
    count = len(points)
    found, widths = np.full(count, np.nan), np.zeros(count, np.int64)
    if count < before + FEWEST:
        return found, widths
    stretches = np.lib.stride_tricks.sliding_window_view(points, before)
    low, high = stretches.min(axis=1), stretches.max(axis=1)
    newest = points.copy()  # at each point the largest of so many up to it
    changes = np.append(0, np.cumsum(points[1:] != points[:-1]))  # up to each point
    with np.errstate(all="ignore"):
        # halved, so that the difference of two giants does not overflow
        span = np.maximum(high / 2 - low / 2, FLOOR * np.maximum(np.abs(low), np.abs(high)) / 2)
        for width in range(1, max(before, FEWEST) + 1):
            newest[width - 1 :] = np.maximum(newest[width - 1 :], points[: count - width + 1])
            if width < FEWEST or width + before > count:
                continue
            earlier, after = slice(0, count - before - width + 1), slice(before + width - 1, None)
            below = low[earlier] / 2 - newest[after] / 2
            is_level = changes[after] - changes[earlier] >= FEWEST
            value = np.where((below > 0) & is_level, below / span[earlier], below * 0.0)
            is_larger = ~(value <= found[after]) & ~np.isnan(value)
            found[after] = np.where(is_larger, value, found[after])
            widths[after] = np.where(is_larger, width, widths[after])
    return found, widths
