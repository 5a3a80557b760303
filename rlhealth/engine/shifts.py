"""Shifts of a level: newest points that all lie below the points before them, by more than these differ."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.noise import FLOOR
from rlhealth.engine.windows import Held, highest_of_each
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
    most = max(before, FEWEST)
    found, widths = np.full(len(points), np.nan), np.zeros(len(points), np.int64)
    first = before + FEWEST - 1  # the first point with enough before it
    if len(points) <= first:
        return found, widths
    found[first:] = np.where(np.isnan(points[: len(points) - first]), np.nan, 0.0)
    # Most points are no candidates: the newest few must lie below those that every stretch before them includes.
    shared = before + FEWEST - most
    newest = highest_of_each(points, FEWEST)[before:]
    oldest = -highest_of_each(-points, shared)[: len(newest)]
    ends = np.flatnonzero(newest < oldest) + first
    if not len(ends):
        return found, widths
    rows = ends[:, None] + np.arange(1 - before - most, 1)
    stretches = np.where(rows < 0, np.nan, points[np.maximum(rows, 0)])
    for width in range(FEWEST, most + 1):
        value = _below(stretches[:, most - width :], width)
        is_larger = value > found[ends]
        found[ends] = np.where(is_larger, value, found[ends])
        widths[ends] = np.where(is_larger, width, widths[ends])
    return found, widths


def _below(stretches: Floats, width: int) -> Floats:
    """How far the last `width` points of each stretch lie below all others of it, in spans of these: stretches of shape
    (k, w), NaN for missing points -> shape (k,)."""
    earlier, newest = stretches[:, :-width], stretches[:, -width:]
    low, high = earlier.min(axis=1), earlier.max(axis=1)
    is_level = np.count_nonzero(stretches[:, 1:] != stretches[:, :-1], axis=1) >= FEWEST
    with np.errstate(all="ignore"):
        # halved, so that the difference of two giants does not overflow
        span = np.maximum(high / 2 - low / 2, FLOOR * np.maximum(np.abs(low), np.abs(high)) / 2)
        below = low / 2 - newest.max(axis=1) / 2
        return np.where((below > 0) & is_level, below / span, 0.0)
