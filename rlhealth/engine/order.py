"""A measure of whether a series goes in one direction from start to end, whatever the size of its steps."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.windows import Held, SumsSoFar, highest
from rlhealth.run import Floats, Ints

PARTS = 12  # equal parts of all points so far, whose means are ranked
SURE = 2.0  # errors by which two means must differ; otherwise they are a tie
SAME = 1e-9  # of the largest value: a smaller difference counts as none, because sums are rounded
LOOKS = 64  # evaluations while the length of a series doubles, or one per point
_LATER, _EARLIER = np.tril_indices(PARTS, -1)


class RankTrend:
    """Kendall's rank correlation with time of the means of twelve equal parts of all points so far: 1 if each part
    lies surely above those before it, -1 if each lies surely below them, 0 if they are alike or go up and down.

    Two means differ surely if they differ by two errors. The errors come from second differences of neighbouring
    points, which no trend changes. A drift from part to part does not count as noise: the order of the parts
    distinguishes it from a trend. NaN before `least` points.

    Source: Mann, Nonparametric tests against trend (Econometrica 13, 1945); Kendall, Rank correlation methods (1948).
    """

    def __init__(self, least: int) -> None:
        self.least = max(least, 2 * PARTS)
        self.sums = SumsSoFar(1)
        self.tail: Floats = np.empty(0)
        self.unrest = 0.0  # the sum of the squares of all second differences
        self.largest = 0.0
        self.newest = np.nan
        self.held = Held()

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        known = np.isfinite(values)
        points = values[known]
        return self.held.over(known, self._measured(points) if len(points) else points)

    def _measured(self, points: Floats) -> Floats:
        (sums,) = self.sums.add(points)
        number = np.arange(self.sums.count - len(points) + 1, self.sums.count + 1)
        second = np.diff(np.concatenate([self.tail, points]), 2)
        self.tail = np.concatenate([self.tail, points])[-2:]
        squares = np.concatenate([np.zeros(len(points) - len(second)), second * second])
        unrest = np.cumsum(np.append(self.unrest, squares))[1:]
        largest = highest(np.abs(points), self.largest)
        self.unrest, self.largest = float(unrest[-1]), float(largest[-1])
        looked = np.flatnonzero((number >= self.least) & (number % _apart(number) == 0))
        found = np.append(self.newest, self._correlation(sums, number[looked], unrest[looked], largest[looked]))
        self.newest = float(found[-1])
        return found[np.searchsorted(looked, np.arange(len(points)), side="right")]

    @staticmethod
    def _correlation(sums: Floats, number: Ints, unrest: Floats, largest: Floats) -> Floats:
        """The correlation at the points with those numbers, shape (n,)."""
        ends = number[:, None] * np.arange(PARTS + 1) // PARTS
        length = np.diff(ends)
        mean = np.diff(sums[ends]) / length
        rise = mean[:, _LATER] - mean[:, _EARLIER]
        spread = np.sqrt(unrest / (number - 2) / 6.0)  # a second difference of independent points has six variances
        error = spread[:, None] * np.sqrt(1 / length[:, _LATER] + 1 / length[:, _EARLIER])
        tie = np.fmax(SURE * error, SAME * largest[:, None])
        return np.asarray(np.mean((rise > tie).astype(np.float64) - (rise < -tie), axis=1))


def _apart(number: Ints) -> Ints:
    """How many points lie between two evaluations of a series of that length: the work grows with its doublings."""
    return np.asarray(1 << np.maximum(np.log2(number / LOOKS).astype(np.int64), 0))
