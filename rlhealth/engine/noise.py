"""The noise of a series whose points depend on each other: how far one point strays, and how far the level of several.

First differences see only what changes from one point to the next. Where points resemble their neighbours (a mean over
the last 100 episodes, a policy that drifts), that is a small part of how far a level strays by chance. So the spread is
taken from second differences at growing distances h, y[t] - 2 y[t+h] + y[t+2h], which no straight trend changes: of
independent points all distances show the same spread; of correlated ones it grows with h, and how fast says how long a
point is remembered (a variogram). From that follows the standard error of a level of w points (an effective sample
size). Medians stand for variances, so that outliers and single jumps count for little.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from rlhealth.run import Floats

KEPT = 512  # points that an estimate rests on: the newest ones
FIRST = 5  # with fewer points nothing is said
GROWTH = 1.2  # estimated anew whenever there are so many times more points: the work stays in proportion to the points
APART = (
    8  # distances up to an eighth of the points, so that a bend in the trend touches a third of the differences at most
)
STICKIEST = 0.97  # the correlation of neighbours is not told apart from a random walk beyond this
FLOOR = 1e-3  # of the largest value: less noise than that is none
FURTHEST = 2.0  # times what was seen: no estimate goes beyond that, however sticky the points look
SPREAD = 0.6745 * sqrt(6.0)  # the median size of a second difference of independent points of spread 1
MEDIAN = sqrt(np.pi / 2)  # the error of a median, where that of a mean is 1, of normal points


@dataclass(frozen=True)
class Memory:
    """What is known of the noise of a series.

    Attributes:
        spread: the standard deviation of one point around its trend.
        correlation: of neighbouring points, 0 to 0.97, as of a first-order autoregression.
    """

    spread: float
    correlation: float

    def level(self, window: int) -> float:
        """The standard error of the median of `window` points in a row."""
        return self.spread * min(1.0, MEDIAN / sqrt(effective(self.correlation, window)))


def effective(correlation: float, window: int) -> float:
    """How many independent points say as much about the mean as `window` points in a row of that correlation.

    (The variance of the mean of a first-order autoregression, exactly; Priestley, Spectral Analysis and Time Series, 5.3.)
    """
    if correlation <= 0 or window == 1:
        return float(window)
    rest = 1 - correlation
    variance = (1 + correlation) / rest - 2 * correlation * (1 - correlation**window) / (window * rest * rest)
    return window / variance


def remembered(points: Floats) -> Memory | None:
    """The noise of those points (shape (n,), finite); None where there are too few, or all are the same."""
    near = _typical(points, 1)
    if near is None:
        return None
    distance = 2
    while 2 * distance * APART <= len(points):
        distance *= 2
    far = _typical(points, distance) if len(points) > 3 * distance else None
    far = near if far is None else max(far, near)
    correlation = _correlation((near / far) ** 2, distance)
    unseen = 1 / sqrt(float(_seen(np.asarray(correlation), distance)))
    return Memory(far * min(unseen, FURTHEST), correlation)


def _typical(points: Floats, distance: int) -> float | None:
    """The spread that second differences at that distance would have come from, were the points independent."""
    if len(points) < 2 * distance + 2:
        return None
    ends, middle = points[: -2 * distance] + points[2 * distance :], points[distance:-distance]
    sizes = np.sort(np.abs(ends - 2 * middle))
    sizes = sizes[
        np.searchsorted(sizes, 0.0, side="right") :
    ]  # a series that stands still says nothing about its noise
    if not len(sizes) or not np.isfinite(sizes[-1]):
        return None
    return float(sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2 / SPREAD


def _seen(correlation: Floats, distance: int) -> Floats:
    """The part of the variance that second differences at a distance see, by the correlation of neighbours."""
    one = correlation**distance
    return np.asarray((6 - 8 * one + 2 * one * one) / 6)


_GRID = np.linspace(0.0, STICKIEST, 98)


def _correlation(part: float, distance: int) -> float:
    """The correlation of neighbours at which second differences of neighbours see that part of what those at `distance` see."""
    parts = _seen(_GRID, 1) / _seen(_GRID, distance)  # falls from 1 as the correlation grows
    return float(np.interp(-part, -parts, _GRID))


class Noise:
    """The noise of a series so far, causally: estimated anew whenever there are a fifth more points, held in between."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.points: Floats = np.empty(0)
        self.count = 0
        self.next = FIRST
        self.largest = 0.0
        self.spread, self.level = np.nan, np.nan

    def extend(self, values: Floats) -> tuple[Floats, Floats]:
        """At each of the next points (missing ones NaN): the spread of one point, and the error of a level of the window."""
        known = np.isfinite(values)
        number = self.count + np.cumsum(known)
        points = np.concatenate([self.points, values[known]])
        skipped = self.count - len(self.points)
        spread, level = np.full(len(values), self.spread), np.full(len(values), self.level)
        while len(number) and self.next <= number[-1]:
            first = int(np.searchsorted(number, self.next))
            end = self.next - skipped
            found = remembered(points[max(0, end - KEPT) : end])
            if found is not None:
                self.spread, self.level = found.spread, found.level(self.window)
            spread[first:], level[first:] = self.spread, self.level
            self.next = max(self.next + 1, int(self.next * GROWTH))
        if len(number):
            self.count = int(number[-1])
        self.points = points[-KEPT:].copy()
        largest = np.maximum(np.maximum.accumulate(np.where(known, np.abs(values), 0.0)), self.largest)
        self.largest = float(largest[-1]) if len(largest) else self.largest
        floor = np.where(largest > 0, FLOOR * largest, np.nan)
        return np.fmax(spread, floor), np.fmax(level, floor * min(1.0, MEDIAN / sqrt(self.window)))
