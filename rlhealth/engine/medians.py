"""Medians of trailing windows, by comparisons of whole series: points that neighbouring windows share are compared
once.

The window that ends at a point is cut into runs of 1, 2, 4, 8 … points, and each run is sorted by merging its halves
(Batcher's odd-even merge; Knuth, The Art of Computer Programming 3, 5.3.4). A half of one window is the other half of a
later one: sorted for all windows, it is one series, read at two offsets. Of the two runs that remain, the middle is
the smallest of a few maxima. Comparisons that the middle does not need are left out.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from rlhealth.run import Floats
from rlhealth.series import middle


class Place(NamedTuple):
    """A computed series (0 is the points themselves), at an offset of so many points."""

    made: int
    shift: int


class Comparison(NamedTuple):
    """One comparison of two series, point by point: which series it makes, whether it keeps the lower or the higher
    value, and which series are not used afterwards."""

    made: int
    higher: bool
    one: Place
    other: Place
    done: tuple[int, ...]


def medians(points: Floats, width: int) -> Floats:
    """The median of each window of `width` points of shape (n + w - 1,), none of them NaN; shape (n,)."""
    comparisons, low, high = _plan(width)
    length = len(points) - width + 1
    series = {0: points}
    for made, higher, (one, one_shift), (other, other_shift), done in comparisons:
        left, right = series[one], series[other]
        size = min(len(left) - one_shift, len(right) - other_shift)
        compare = np.maximum if higher else np.minimum
        series[made] = compare(left[one_shift : one_shift + size], right[other_shift : other_shift + size])
        for gone in done:
            del series[gone]
    lower = series[low.made][low.shift : low.shift + length]
    return lower.copy() if low == high else middle(lower, series[high.made][high.shift : high.shift + length])


class _Planned:
    """The comparisons so far; a comparison that exists already, at another offset, is not repeated."""

    def __init__(self) -> None:
        self.made: dict[tuple[bool, Place, Place], int] = {}

    def compared(self, higher: bool, one: Place, other: Place) -> Place:
        """The lower or the higher of two."""
        shift = min(one.shift, other.shift)
        first, second = sorted(Place(place.made, place.shift - shift) for place in (one, other))
        return Place(self.made.setdefault((higher, first, second), len(self.made) + 1), shift)

    def run(self, start: int, length: int) -> list[Place]:
        """`length` points from offset `start` on, sorted."""
        if length == 1:
            return [Place(0, start)]
        half = 1 << (length - 1).bit_length() - 1
        return self.merged(self.run(start, half), self.run(start + half, length - half))

    def merged(self, one: list[Place], other: list[Place]) -> list[Place]:
        """Two sorted runs as one."""
        if not one or not other:
            return one + other
        if len(one) == len(other) == 1:
            return [self.compared(False, one[0], other[0]), self.compared(True, one[0], other[0])]
        odd, even = self.merged(one[::2], other[::2]), self.merged(one[1::2], other[1::2])
        found = odd[:1]
        for left, right in zip(even, odd[1:], strict=False):
            found += [self.compared(False, left, right), self.compared(True, left, right)]
        return found + even[len(odd) - 1 :] + odd[len(even) + 1 :]

    def at(self, place: int, one: list[Place], other: list[Place]) -> Place:
        """The value at that place of the two sorted runs merged: over all ways to take the values up to it from both
        runs, the smallest of the highest values taken."""
        found: Place | None = None
        for taken in range(max(0, place + 1 - len(one)), min(len(other), place + 1) + 1):
            ends = [*one[place - taken : place - taken + 1], *other[taken - 1 : taken]] if taken else [one[place]]
            if taken == place + 1:
                ends = [other[place]]
            highest = ends[0] if len(ends) == 1 else self.compared(True, *ends)
            found = highest if found is None else self.compared(False, found, highest)
        assert found is not None
        return found


@cache
def _plan(width: int) -> tuple[tuple[Comparison, ...], Place, Place]:
    """The comparisons that give the middle of windows of that width, in order, and where the lower and the higher of
    the two middle values then are."""
    planned = _Planned()
    half = 1 << (width - 1).bit_length() - 1 if width > 1 else 1
    one, other = planned.run(0, half), planned.run(half, width - half) if width > half else []
    low, high = (planned.at(place, one, other) for place in ((width - 1) // 2, width // 2))
    kept: list[Comparison] = []
    needed, results = {low.made, high.made}, {0, low.made, high.made}
    for (higher, first, second), made in reversed(planned.made.items()):
        if made in needed:
            done = {first.made, second.made} - needed - results
            kept.append(Comparison(made, higher, first, second, tuple(done)))
            needed |= {first.made, second.made}
    return tuple(kept[::-1]), low, high
