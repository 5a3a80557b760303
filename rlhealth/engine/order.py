"""Measures of whether a series goes in one direction from start to end, whatever the size of its steps."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.equal_parts import PARTS, Looks, means_of_parts
from rlhealth.engine.windows import Held, SumsSoFar, highest
from rlhealth.run import Floats, Ints

SURE = 2.0  # errors by which two means must differ; otherwise they are a tie
SAME = 1e-9  # of the largest value: a smaller difference counts as none, because sums are rounded
MOST = 120  # points whose order is judged one by one; more are judged in parts
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
        self.sums = SumsSoFar(1)
        self.tail: Floats = np.empty(0)
        self.unrest = 0.0  # the sum of the squares of all second differences
        self.largest = 0.0
        self.looks = Looks(max(least, 2 * PARTS), np.nan)
        self.held = Held()

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        return self.held.each(values, self._measured)

    def _measured(self, points: Floats) -> Floats:
        (sums,) = self.sums.add(points)
        number = np.arange(self.sums.count - len(points) + 1, self.sums.count + 1)
        second = np.diff(np.concatenate([self.tail, points]), 2)
        self.tail = np.concatenate([self.tail, points])[-2:]
        squares = np.concatenate([np.zeros(len(points) - len(second)), second * second])
        unrest = np.cumsum(np.append(self.unrest, squares))[1:]
        largest = highest(np.abs(points), self.largest)
        self.unrest, self.largest = float(unrest[-1]), float(largest[-1])
        looked = self.looks.among(number)
        found = self._correlation(sums, number[looked], unrest[looked], largest[looked])
        return self.looks.held(found, looked, len(points))

    @staticmethod
    def _correlation(sums: Floats, number: Ints, unrest: Floats, largest: Floats) -> Floats:
        """The correlation at the points with those numbers, shape (n,)."""
        mean, length = means_of_parts(sums, number)
        rise = mean[:, _LATER] - mean[:, _EARLIER]
        spread = np.sqrt(unrest / (number - 2) / 6.0)  # a second difference of independent points has six variances
        error = spread[:, None] * np.sqrt(1 / length[:, _LATER] + 1 / length[:, _EARLIER])
        tie = np.fmax(SURE * error, SAME * largest[:, None])
        return np.asarray(np.mean((rise > tie).astype(np.float64) - (rise < -tie), axis=1))


class OrderScore:
    """Mann and Kendall's score of all points so far: how many pairs of points rise, less those that fall, in standard
    errors of that number for points without order. 2 is a rise that chance shows once in 40 times, -2 such a fall.

    A mean over several points resembles its neighbours: the error is larger by the root of `smoothed`. NaN before
    `least` points and after `MOST`.

    Source: Mann, Nonparametric tests against trend (Econometrica 13, 1945); Kendall, Rank correlation methods (1948),
    with his correction for ties and for continuity.
    """

    def __init__(self, least: int, smoothed: int = 1) -> None:
        self.least = least
        self.smoothed = smoothed
        self.points: Floats = np.empty(0)
        self.rises = 0.0  # pairs that rise, less those that fall
        self.tied = 0.0  # 18 times what ties take from the variance
        self.held = Held()

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        return self.held.each(values, self._measured)

    def _measured(self, points: Floats) -> Floats:
        found = np.full(len(points), np.nan)
        start = len(self.points)
        self.points = np.concatenate([self.points, points[: MOST - start]])
        number = np.arange(start + 1, len(self.points) + 1)
        if not len(number):
            return found
        change = self.points[None, start:] - self.points[:, None]
        is_earlier = np.arange(len(self.points))[:, None] < number - 1
        same = np.sum((change == 0) & is_earlier, axis=0)
        rises = self.rises + np.cumsum(np.sum(np.sign(change) * is_earlier, axis=0))
        tied = self.tied + np.cumsum(6.0 * same * (same + 2))
        self.rises, self.tied = float(rises[-1]), float(tied[-1])
        variance = (number * (number - 1.0) * (2 * number + 5) - tied) / 18 * self.smoothed
        score = np.zeros(len(number))
        np.divide(rises - np.sign(rises), np.sqrt(variance), out=score, where=variance > 0)
        found[: len(number)] = np.where(number < self.least, np.nan, score)
        return found
