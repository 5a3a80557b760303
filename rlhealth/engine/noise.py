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
from functools import cache
from math import isfinite, sqrt

import numpy as np

from rlhealth.engine.estimate import Estimate
from rlhealth.engine.parts import Parts
from rlhealth.engine.windows import numbered
from rlhealth.run import Floats

KEPT = 2048  # points that an estimate rests on: the newest ones
LOOKED = 512  # differences that are looked at, evenly spread over those points
FIRST = 8  # with fewer points nothing is said
GROWTH = 1.2  # estimated anew whenever there are so many times more points: the work stays in proportion to the points
APART = (
    8  # distances up to an eighth of the points, so that a bend in the trend touches a third of the differences at most
)
CAUTION, ENOUGH = 0.9, 100  # few points always look independent: the fewer, the more correlation is taken for granted
DOUBTFUL = 20  # with that many points an error is taken for twice what it seems
STICKIEST = 0.99  # the correlation of neighbours is not distinguished from a random walk beyond this
HELD, TIMES, UNIQUE = 8, 2.0, 0.9  # values, points to each of them, and the part of them that never comes back
FLOOR = 1e-3  # of the largest value: less noise than that is none
FURTHEST = 2.0  # times what was seen: no estimate goes beyond that, however sticky the points look
SPREAD = 0.6745 * sqrt(6.0)  # the median size of a second difference of independent points of spread 1
ROOT_2 = sqrt(2.0)  # a difference of two levels has the errors of both
MEDIAN = sqrt(np.pi / 2)  # the error of a median, where that of a mean is 1, of normal points


@dataclass(frozen=True)
class NoiseEstimate:
    """What is known of the noise of a series.

    Attributes:
        spread: the standard deviation of one point around its trend.
        correlation: of neighbouring points, 0 to 0.99, as of a first-order autoregression.
        doubt: by how much errors are widened, because they too were estimated, and from few points (as Student's t
            does).
    """

    spread: float
    correlation: float
    doubt: float = 1.0

    @property
    def mean(self) -> float:
        """The standard error of the mean of that many points, times the square root of their number: of many points."""
        return self.doubt * self.spread * sqrt(self.lasts)

    @property
    def lasts(self) -> float:
        """How many points a fluctuation lasts: so many say as much about a level as one independent point."""
        return (1 + self.correlation) / (1 - self.correlation)

    def level(self, window: int) -> float:
        """The standard error of the median of `window` points in a row."""
        return self.doubt * self.spread * min(1.0, MEDIAN / sqrt(effective(self.correlation, window)))


def effective(correlation: float, window: int) -> float:
    """How many independent points say as much about the mean as `window` points in a row of that correlation.

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

    `smoothed`: over how many points a framework is known to have averaged each of them, at most.

    Where every value is repeated over several rows, the values are looked at, not the rows: each lasts for so many.
    """
    held, values = _held(points)
    if held > 1:
        once = remembered(values, max(1, round(smoothed / held)))
        if once is None:
            return None
        lasts = held * once.lasts
        return NoiseEstimate(once.spread, (lasts - 1) / (lasts + 1), once.doubt)
    near = _typical(points, 1)
    if near is None:
        return None
    distance = 2
    while 2 * distance * APART <= len(points):
        distance *= 2
    far = _typical(points, distance)
    far = near if far is None else max(far, near)
    correlation = (
        _correlation((near / far) ** 2, distance) if distance > 2 else 0.0
    )  # two distances so close tell nothing
    unseen = 1 / sqrt(float(_seen(np.asarray(correlation), distance)))
    correlation = max(correlation, CAUTION * (1 - len(points) / ENOUGH), 1 - 2 / (smoothed + 1))
    averaged = sqrt(1.5 * smoothed / distance) if smoothed > distance else 1.0  # 6 of 4 h / K: see above
    return NoiseEstimate(far * max(min(unseen, FURTHEST), averaged), correlation, 1 + DOUBTFUL / len(points))


def _held(points: Floats) -> tuple[float, Floats]:
    """For how many points each value is repeated, on average, and the values; 1 and all points where none are.

    A reward of few levels repeats itself by chance: there a value comes back. Repeated rows seldom bring one back.
    """
    is_new = np.append(True, points[1:] != points[:-1])
    changes = int(np.count_nonzero(is_new))
    if changes < HELD or len(points) < TIMES * changes:
        return 1.0, points
    values = points[is_new]
    return (len(points) / changes, values) if len(np.unique(values)) >= UNIQUE * changes else (1.0, points)


def _typical(points: Floats, distance: int) -> float | None:
    """The spread that second differences at that distance would have come from, were the points independent."""
    count = len(points) - 2 * distance
    if count < 2:
        return None
    first, middle, last = points[:count], points[distance : distance + count], points[2 * distance :]
    if count > LOOKED:
        every = slice(None, None, -(-count // LOOKED))
        first, middle, last = first[every], middle[every], last[every]
    sizes = np.abs(first + last - 2 * middle)
    sizes.sort()
    if not sizes[0] > 0:  # a series that stands still says nothing about its noise
        sizes = sizes[sizes.searchsorted(0.0, side="right") :]
    if not len(sizes) or not isfinite(sizes[-1]):
        return None
    return float(sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2 / SPREAD


def _seen(correlation: Floats, distance: int) -> Floats:
    """The part of the variance that second differences at a distance see, by the correlation of neighbours."""
    one = correlation**distance
    return np.asarray((6 - 8 * one + 2 * one * one) / 6)


_GRID = np.linspace(0.0, STICKIEST, 100)


def _correlation(part: float, distance: int) -> float:
    """The correlation of neighbours at which second differences of neighbours see that part of what those at `distance`
    see."""
    return float(np.interp(-part, -_parts_seen(distance), _GRID))


@cache
def _parts_seen(distance: int) -> Floats:
    """Of what second differences at a distance see, the part that neighbours see, by the correlation: falls from 1."""
    return np.asarray(_seen(_GRID, 1) / _seen(_GRID, distance))


def per_noise(difference: Floats, error: Floats, spread: Floats) -> Estimate:
    """A difference of levels and its error in units of noise; no difference is 0, and surely so if no noise was ever
    seen."""
    with np.errstate(divide="ignore", invalid="ignore"):
        still = (difference == 0) & ~(error > 0)
        return Estimate(np.where(difference == 0, 0.0, difference / spread), np.where(still, 0.0, error / spread))


class Noise:
    """The noise of a series so far, causally: estimated anew whenever there are a fifth more points, held in between.

    `windows`: for levels of how many points an error is wanted. `smoothed`: see `remembered`.
    """

    def __init__(self, windows: tuple[int, ...], smoothed: int = 1) -> None:
        self.windows: tuple[int, ...] = ()
        self.smoothed = smoothed
        self.points: Floats = np.empty(0)
        self.count = 0
        self.next = FIRST
        self.largest = 0.0
        self.want(windows)

    def want(self, windows: tuple[int, ...]) -> list[int]:
        """Takes these windows too, before the first point; the rows in which `extend` answers for them."""
        assert not self.count
        self.windows = tuple(dict.fromkeys((*self.windows, *windows)))
        self.known = np.full((3 + len(self.windows), 1), np.nan)
        self.least = FLOOR * np.array([1.0, 1.0, 0.0, *(min(1.0, MEDIAN / sqrt(one)) for one in self.windows)])
        return [3 + self.windows.index(one) for one in windows]

    def extend(self, values: Floats) -> Floats:
        """At each of the next points: the spread of one point, the error of a mean, for how many points a fluctuation
        lasts (see `NoiseEstimate`), and the error of a level of each window.

        Shape (3 + windows, n); missing points are NaN.
        """
        if not len(values):
            return np.empty((len(self.known), 0))
        is_known = np.isfinite(values)
        number = self.count + numbered(is_known)
        points = np.concatenate([self.points, values if is_known.all() else values[is_known]])
        skipped = self.count - len(self.points)
        found = np.empty((len(self.known), len(values)))
        start = 0
        while self.next <= number[-1]:
            place = int(np.searchsorted(number, self.next))
            found[:, start:place], start = self.known, place
            end = self.next - skipped
            memory = remembered(points[max(0, end - KEPT) : end], self.smoothed)
            if memory is not None:
                self.known = np.array([[memory.spread, memory.mean, memory.lasts, *map(memory.level, self.windows)]]).T
            self.next = max(self.next + 1, int(self.next * GROWTH))
        found[:, start:] = self.known
        self.count = int(number[-1])
        self.points = points[-KEPT:].copy()
        largest = np.maximum(np.maximum.accumulate(np.where(is_known, np.abs(values), 0.0)), self.largest)
        self.largest = float(largest[-1])
        floor = np.where(largest > 0, largest, np.nan)
        for row, least in zip(found, self.least, strict=True):
            np.fmax(row, least * floor, out=row)
        found[:, : np.searchsorted(number, FIRST)] = np.nan
        return found


class SharedNoise:
    """The noise of a series that several measures look at, each at levels of its own windows."""

    def __init__(self, windows: tuple[int, ...], smoothed: int, parts: Parts | None) -> None:
        self.cursor = (parts or Parts()).take(("noise", smoothed), lambda: Noise((), smoothed))
        noise = self.cursor.shared.part
        assert isinstance(noise, Noise)
        self.rows = [0, 1, 2, *noise.want(windows)]

    def extend(self, values: Floats) -> list[Floats]:
        """What `Noise` says of the next points, for its own windows: 3 + windows rows of shape (n,)."""
        found = self.cursor.extend(values)
        return [found[row] for row in self.rows]
