"""How much noise a series has, and for how many points its points stay correlated: the base of every noise estimate.

First differences see only what changes from one point to the next. Where neighbouring points are alike (a mean over
the last 100 episodes, a policy that drifts), that is a small part of how far a level moves by chance. So the spread is
taken from second differences at growing distances h, y[t] - 2 y[t+h] + y[t+2h], which no straight trend changes. For
independent points all distances show the same spread. For correlated points the spread grows with h, and its growth
shows how long the correlation lasts (a variogram). From that follows the standard error of a level of w points (an
effective sample size). Medians are used in place of variances, so that outliers and single jumps count for little.
"""

from __future__ import annotations

from functools import cache
from math import isfinite, sqrt
from typing import NamedTuple, TypeVar

import numpy as np

from rlhealth.run import Floats

Values = TypeVar("Values", float, Floats)
LOOKED = 512  # how many differences are used, evenly spread over the points
APART = (
    8  # distances up to an eighth of the points, so that a bend in the trend touches a third of the differences at most
)
CAUTION, ENOUGH = 0.9, 100  # few points always look independent: the fewer there are, the more correlation is assumed
DOUBTFUL = 20  # with that many points an error counts as twice its estimate
STICKIEST = 0.99  # the correlation of neighbours is not distinguished from a random walk beyond this
HELD, TIMES, UNIQUE = 8, 2.0, 0.9  # distinct values, points per value, and the share of values that never recur
SINGLE = 0.05  # the largest share of values that last one point, where each is repeated until the next one comes
#: The least share of the variance between rows 4 or more apart that neighbours show if they are no averages over many
#: rows, and over how many they may be nevertheless. (Of averages over 25 rows neighbours show a quarter of it at most.)
UNLIKE, FEW = 0.6, 2
FURTHEST = 2.0  # an estimate is at most so many times the observed spread, however correlated the points look
SPREAD = 0.6745 * sqrt(6.0)  # the median size of a second difference of independent points of spread 1
#: Of the sizes of second differences, and the size that so many of independent points of spread 1 stay below. If one
#: point in fourteen lies far off, a fifth of the differences show it; fewer are outliers.
MOST, MOST_SPREAD = 0.8, 1.2816 * sqrt(6.0)
WIDE = 1.5  # times the spread of most points: less is within the error of either estimate
MEDIAN = sqrt(np.pi / 2)  # the error of a median, where that of a mean is 1, of normal points


class NoiseEstimate(NamedTuple):
    """The estimated noise of a series.

    Attributes:
        spread: the standard deviation of one point around its trend, as most points show it.
        widest: as the points that lie far off show it too, if there are more of them than outliers.
        correlation: of neighbouring points, 0 to 0.99, as of a first-order autoregression.
        doubt: the factor by which errors are widened, because they are estimates from few points themselves (as in
                Student's t).
    """

    spread: float
    widest: float
    correlation: float
    doubt: float = 1.0

    @property
    def mean(self) -> float:
        """The standard error of the mean of n points, times the square root of n, for large n."""
        return self.doubt * self.spread * sqrt(self.lasts)

    @property
    def lasts(self) -> float:
        """How many points a fluctuation lasts: so many points tell as much about a level as one independent point."""
        return (1 + self.correlation) / (1 - self.correlation)

    def level(self, window: int) -> float:
        """The standard error of the median of `window` points in a row."""
        return self.doubt * self.spread * min(1.0, MEDIAN / sqrt(effective(self.correlation, window)))


def effective(correlation: float, window: int) -> float:
    """How many independent points are worth as much for the mean as `window` consecutive points of that correlation.

    (The variance of the mean of a first-order autoregression, exactly; Priestley, Spectral Analysis and Time Series,
    5.3.)
    """
    if correlation <= 0 or window == 1:
        return float(window)
    rest = 1 - correlation
    variance = (1 + correlation) / rest - 2 * correlation * (1 - correlation**window) / (window * rest * rest)
    return window / variance


def remembered(points: Floats, smoothed: int = 1) -> NoiseEstimate | None:
    """The noise of those points (shape (n,), finite); None if there are too few, or all are the same.

    `smoothed`: the largest number of points over which the framework is known to average each point.
    """
    return Beginnings(points).remembered(len(points), smoothed)


class Beginnings:
    """The noise of the first points of a series (shape (n,), finite), for any number of them: the differences are
    computed once.
    """

    def __init__(self, points: Floats) -> None:
        self.points = points
        self.is_new = np.append(True, points[1:] != points[:-1])
        self.changes = self.is_new.cumsum()
        self._differences: dict[int, Floats] = {}

    def remembered(self, count: int, smoothed: int = 1) -> NoiseEstimate | None:
        """The noise of the first `count` points, see `remembered`.

        If every value is repeated over several rows, the noise is that of the values, not of the rows.
        """
        held, values = self._held(count)
        if values is not None:
            once = remembered(values, max(1, round(smoothed / held)))
            if once is None:
                return None
            lasts = held * once.lasts
            return NoiseEstimate(once.spread, once.widest, (lasts - 1) / (lasts + 1), once.doubt)
        sizes = self._typical(count, 1)
        if sizes is None:
            return None
        near = _median(sizes) / SPREAD
        distance = 2
        while 2 * distance * APART <= count:
            distance *= 2
        apart = self._typical(count, distance)
        far = near if apart is None else max(_median(apart) / SPREAD, near)
        correlation = 0.0  # of distances too close to show it
        if distance > 2:
            alike = (near / far) ** 2
            correlation = _correlation(alike, distance)
            smoothed = min(smoothed, FEW) if alike > UNLIKE else smoothed
        unseen = 1 / sqrt(_seen(correlation, distance))
        correlation = max(correlation, CAUTION * (1 - count / ENOUGH), 1 - 2 / (smoothed + 1))
        averaged = sqrt(1.5 * smoothed / distance) if smoothed > distance else 1.0  # 6 of 4 h / K: see above
        spread = far * max(min(unseen, FURTHEST), averaged)
        wide = float(sizes[int(MOST * (len(sizes) - 1))]) / MOST_SPREAD
        widest = wide if wide > WIDE * spread else spread
        return NoiseEstimate(spread, widest, correlation, 1 + DOUBTFUL / count)

    def _held(self, count: int) -> tuple[float, Floats | None]:
        """For how many points each value is repeated on average, and the values; 1 and None if values are not repeated.

        A reward with few levels also repeats by chance, but then values recur later, and some last a single point.
        Repeated rows seldom recur, or hardly ever stand alone.
        """
        changes = int(self.changes[count - 1]) if count else 1
        if changes < HELD or count < TIMES * changes:
            return 1.0, None
        is_new = self.is_new[:count]
        values = self.points[:count][is_new]
        singles = int(np.count_nonzero(is_new[:-1] & is_new[1:]))
        is_held = singles <= SINGLE * changes or len(np.unique(values)) >= UNIQUE * changes
        return (count / changes, values) if is_held else (1.0, None)

    def _typical(self, count: int, distance: int) -> Floats | None:
        """The sizes of second differences at that distance, sorted, without those of 0; None if they show nothing."""
        pairs = count - 2 * distance
        if pairs < 2:
            return None
        sizes = self._sizes(distance)[:pairs]
        sizes = sizes[:: -(-pairs // LOOKED)].copy()
        sizes.sort()
        if not sizes[0] > 0:  # a constant series says nothing about its noise
            sizes = sizes[sizes.searchsorted(0.0, side="right") :]
        if not len(sizes) or not isfinite(sizes[-1]):
            return None
        return sizes

    def _sizes(self, distance: int) -> Floats:
        """The sizes of second differences at that distance, shape (n - 2 distance,)."""
        found = self._differences.get(distance)
        if found is None:
            points, end = self.points, len(self.points) - distance
            sizes = points[: end - distance] + points[2 * distance :] - 2 * points[distance:end]
            found = self._differences[distance] = np.abs(sizes, out=sizes)
        return found


def _median(ordered: Floats) -> float:
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _seen(correlation: Values, distance: int) -> Values:
    """The part of the variance that second differences at a distance see, by the correlation of neighbours."""
    one = correlation**distance
    return (6 - 8 * one + 2 * one * one) / 6


_GRID = np.linspace(0.0, STICKIEST, 100)


def _correlation(part: float, distance: int) -> float:
    """The correlation of neighbours at which second differences of neighbours see that part of what those at `distance`
    see."""
    return float(np.interp(-part, -_parts_seen(distance), _GRID))


@cache
def _parts_seen(distance: int) -> Floats:
    """Of what second differences at a distance see, the part that neighbours see, by the correlation: falls from 1."""
    return _seen(_GRID, 1) / _seen(_GRID, distance)
