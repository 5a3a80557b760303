"""Measures of where a series is going: how far it climbed, when it reaches zero, how often it jumps, how long it is
constant, and what it correlates with."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.estimate import NOTHING, Bound, Estimate, Flags, ValueMeasure
from rlhealth.engine.noise import ROOT_2, SharedNoise, per_noise
from rlhealth.engine.parts import Parts
from rlhealth.engine.variogram import HELD, SINGLE, UNIQUE
from rlhealth.engine.windows import BLOCK, Held, Rolling, counted, median, summed
from rlhealth.run import Floats, Ints
from rlhealth.series import plain_median

START = 5  # points that give the start of a series
GONE = 0.05  # of the start: a series that is this small counts as gone
OFTEN = 8  # after each so many points, windows that can no longer qualify are left out
FASTER = 1.3  # times the earlier rate: a decay that slows down never arrives
SURE = 3.0  # errors by which the rate must be greater
ALIKE = 1.5  # neighbouring differences share a point: n of them are worth n / 1.5 (two MA(1) series, Bartlett)
UPPER = 2.0  # standard errors by which a common value may be more common than it was seen to be
STILL = 1e-9  # a smaller difference of two points counts as none
REGULAR = 3  # values, each of which was written a multiple of three or more times: by chance one in 27 is, or fewer
LEAST_PAIRS = 3  # degrees of freedom that Fisher's transform uses up (Biometrika 10, 1915)


class Climb:
    """How far the median of the last `window` points lies above that of the `window` points before, in units of
    noise."""

    def __init__(self, window: int, smoothed: int = 1, parts: Parts | None = None) -> None:
        parts = parts or Parts()
        self.level = Rolling(median, window, window, parts)
        self.noise = SharedNoise((window,), smoothed, parts)
        self.before: Floats = np.full(window, np.nan)

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        if not len(values):
            return NOTHING
        finite = np.where(np.isfinite(values), values, np.nan)
        level = self.level.extend(finite)
        joined = np.concatenate([self.before, level])
        self.before = joined[len(level) :].copy()
        spread, _, _, _, error = self.noise.extend(finite)
        return per_noise(level - joined[: len(level)], ROOT_2 * error, spread)


class Plunge:
    """How far each point lies below the median of the `window` points before it, in units of noise.

    The noise is that of single points. It is estimated with medians, so that a few plunges do not widen it.
    """

    def __init__(self, window: int, smoothed: int = 1, parts: Parts | None = None) -> None:
        parts = parts or Parts()
        self.level = Rolling(median, window, max(1, window // 2), parts)
        self.noise = SharedNoise((window,), smoothed, parts)
        self.before = np.full(1, np.nan)

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        if not len(values):
            return NOTHING
        finite = np.where(np.isfinite(values), values, np.nan)
        joined = np.concatenate([self.before, self.level.extend(finite)])
        self.before = joined[-1:].copy()
        spread, _, _, _, error = self.noise.extend(finite)
        return per_noise(joined[:-1] - finite, error, spread)


class Arrival:
    """In how many points a falling series reaches a twentieth of its start, at the rate of the last `window` points.

    Known only if that rate is a third greater than the rate before the window, by more than three errors of the fitted
    line: most series fall fast at first and then ever slower, and never reach what the line predicts. Otherwise NaN,
    also if the series did not begin above 0.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self.place = np.arange(window) - (window - 1) / 2
        self.width = float(np.sum(self.place**2))
        self.first: Floats = np.empty(0)
        self.count = 0
        self.tail: Floats = np.empty(0)
        self.held = Held()

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        return self.held.each(values, self._measured)

    def _measured(self, points: Floats) -> Floats:
        joined = np.concatenate([self.tail, points])
        number = self.count + 1 + np.arange(len(points))
        self.count += len(points)
        self.first = np.concatenate([self.first, points[: START - len(self.first)]])[:START]
        found = np.full(len(points), np.nan)
        ready = np.flatnonzero(number >= self.window + 2 * START)
        if len(ready):
            found[ready] = self._arrivals(joined[-(len(ready) + self.window + START - 1) :], number[ready])
        self.tail = joined[-(self.window + START - 1) :].copy()
        return found

    def _arrivals(self, points: Floats, number: Ints) -> Floats:
        """At each window at the end of the points: the remaining distance divided by the rate; NaN if the fall does not
        speed up."""
        start = plain_median(self.first)
        if start <= 0:
            return np.full(len(number), np.nan)
        level, slope = self._lines(points[START:])
        before = Rolling(median, START, START).extend(points[: START - 1 + len(number)])[START - 1 :]
        earlier = np.fmax((start - before) / (number - self.window), 0.0)
        found = np.full(len(number), np.nan)
        places = self._quickening(points[START:], level, slope, FASTER * earlier)
        left = level[places] + slope[places] * self.place[-1] - GONE * start
        found[places] = np.fmax(left, 0.0) / -slope[places]
        return found

    def _lines(self, points: Floats) -> tuple[Floats, Floats]:
        """The straight line fitted to each window of points of shape (n + w - 1,): its height in the middle and its
        slope; shape (n,) each.

        Added point after point, so that no sum depends on how many windows there are.
        """
        level, slope = np.zeros((2, len(points) - self.window + 1))
        shares = points / self.window
        for begin in range(0, len(slope), BLOCK):
            part = slice(begin, min(begin + BLOCK, len(slope)))
            for number, one in enumerate(self.place):
                here = slice(begin + number, part.stop + number)
                level[part] += shares[here]
                slope[part] += points[here] * (one / self.width)
        return level, slope

    def _quickening(self, points: Floats, level: Floats, slope: Floats, usual: Floats) -> Ints:
        """The windows whose lines fall faster than usual (shape (n,)), by `SURE` errors of the line.

        The residuals of some points already exclude most windows.
        """
        places = np.flatnonzero(-slope > usual)
        level, slope, usual = level[places], slope[places], usual[places]
        square = np.zeros(len(places))
        for number, one in enumerate(self.place):
            rest = points[places + number] - level
            rest -= slope * one
            rest *= rest
            square += rest
            if number % OFTEN == OFTEN - 1 or number == self.window - 1:
                error = np.sqrt(square / (self.window - 2) / self.width)
                kept = -slope > usual + SURE * error
                places, square = places[kept], square[kept]
                level, slope, usual = level[kept], slope[kept], usual[kept]
        return places


class Correlation:
    """The correlation of a series' changes from point to point with those of another, over the last `window` changes.

    It uses changes, because any two curves that both rise are correlated. Its error is that of Pearson's correlation.
    """

    def __init__(self, window: int, least: int) -> None:
        self.least = max(least, 2 * LEAST_PAIRS)
        self.window = window
        self.tail: Floats = np.full((2, window - 1), np.nan)
        self.before = np.nan, np.nan

    def extend_with(self, values: Floats, others: Floats) -> Estimate:
        """Measures the next points of both, shape (n,) each."""
        if not len(values):
            return NOTHING
        missing = ~(np.isfinite(values) & np.isfinite(others))
        changes = [np.diff(one, prepend=last) for one, last in zip((values, others), self.before, strict=True)]
        self.before = float(values[-1]), float(others[-1])
        gone = missing | ~np.isfinite(changes[0] + changes[1])
        joined = np.concatenate([self.tail, np.where(gone, np.nan, changes)], axis=1)
        self.tail = joined[:, len(values) :].copy()
        there = ~np.isnan(joined[0])
        count = counted(there, self.window)
        left, right = np.where(there, joined, 0.0)
        mean_one, mean_other, square_one, square_other, product = (
            summed(row, self.window) / count for row in (left, right, left * left, right * right, left * right)
        )
        spread = (square_one - mean_one**2) * (square_other - mean_other**2)
        found = np.clip((product - mean_one * mean_other) / np.sqrt(np.where(spread > 0, spread, np.nan)), -1.0, 1.0)
        found[(count < self.least) | ~np.isfinite(found)] = np.nan
        return Estimate(found, (1 - found**2) / np.sqrt(np.fmax(count / ALIKE - LEAST_PAIRS, 1.0)))


class Count:
    """How many of the last `window` logged points lie above or below a level; missing points do not count.

    `inner` gives the value that is compared: the point itself, or the point compared with its own past.
    """

    def __init__(self, inner: ValueMeasure, window: int, above: float | None, below: float | None) -> None:
        self.inner = inner
        self.bounds = [Bound(sign, level) for sign, level in (("above", above), ("below", below)) if level is not None]
        self.window = window
        self.hits: Flags = np.zeros(window - 1, np.bool_)

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        found = self.inner.extend(values)
        hits = np.logical_and.reduce([bound.holds(found) for bound in self.bounds])
        joined = np.concatenate([self.hits, hits])
        self.hits = joined[len(hits) :].copy()
        return counted(joined, self.window).astype(np.float64)


def moved(points: Floats, before: float = np.nan) -> Flags:
    """Which points, shape (n,), differ from the one before; the first from `before`, and from none that is NaN."""
    return np.asarray(~(np.abs(np.diff(points, prepend=before)) <= STILL))


class Standstill:
    """For how many points a series has been constant, divided by how many points each of its values usually lasts; 0
    if these are fewer than `window`.

    A log that repeats the mean of the last finished episode in every row is constant between episodes, and one with a
    row for each update repeats the reward of its batch. A reward of few levels is constant by chance: its values recur,
    and some last a single row, which is rare where rows repeat a value until the next episode ends.

    Args:
        by_chance: a value that a part p of the n points before it had, as a lost game has, is expected to stand for
            log(n (1 - p)) / log(1 / p) points once in so many (the longest run of Bernoulli trials; Schilling, The
            College Mathematics Journal 21, 1990). Half of that is what it usually lasts, if that is more: three times
            as long is half as long again as chance explains.
    """

    def __init__(self, window: int, by_chance: bool = False) -> None:
        self.window = window
        self.by_chance = by_chance
        self.count = 0
        self.begun = 1  # the number of the point with which the newest value began
        self.value = np.nan  # and what it was then
        self.before = np.nan
        self.known = 0, 0, 0  # values before the newest one; those that occur repeatedly; and of these the new ones
        self.common = 0  # what divides the number of rows of each of them
        self.seen: dict[float, int] = {}  # values that lasted for more than one point, and how many points had them
        self.held = Held()

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        return self.held.each(values, self._measured)

    def _measured(self, points: Floats) -> Floats:
        is_new = moved(points, self.before)
        number = self.count + 1 + np.arange(len(points))
        starts = np.append(self.begun, number[is_new])  # of the value before, and of each new one
        values = np.append(self.value, points[is_new])
        usual = self._usual(starts, values)
        place = np.cumsum(is_new)
        length = number - starts[place] + 1
        self.count, self.before = int(number[-1]), float(points[-1])
        self.begun, self.value = int(starts[-1]), float(values[-1])
        return np.where(length >= self.window, length / usual[place], 0.0)

    def _usual(self, starts: Ints, values: Floats) -> Floats:
        """For how many points a value usually lasted when each of these values began; shape (n,), as both."""
        lengths = np.diff(starts)
        is_back = np.zeros(len(values), np.bool_)  # whether it had been written more than once before
        by_chance = np.ones(len(values))  # half of how long it lasts at most, if that is more
        if self.seen or bool((lengths > 1).any()):
            for place, (value, length) in enumerate(zip(values.tolist(), [*lengths.tolist(), 0], strict=True)):
                had = self.seen.get(value, 0)
                is_back[place] = had > 0
                if had and self.by_chance:
                    by_chance[place] = max(longest_by_chance(had, int(starts[place]) - 1) / 2, 1.0)
                if length > 1 or (had and length):
                    self.seen[value] = had + length
        ended, repeated, fresh = (
            before + np.append(0, np.cumsum(one))
            for before, one in zip(self.known, (lengths > 0, lengths > 1, (lengths > 1) & ~is_back[:-1]), strict=True)
        )
        self.known = int(ended[-1]), int(repeated[-1]), int(fresh[-1])
        never_back = (repeated > 0) & (fresh >= UNIQUE * repeated) & ~is_back
        common = np.gcd.accumulate(np.append(self.common, lengths))
        self.common = int(common[-1])
        is_regular = (common >= REGULAR) & (ended >= REGULAR)  # each update logs the reward of its batch
        is_held = never_back | is_regular | ((ended >= HELD) & (ended - repeated <= SINGLE * ended))
        return np.fmax(np.where(is_held, (starts - 1) / np.fmax(ended, 1), 1.0), by_chance)


def longest_by_chance(had: int, count: int) -> float:
    """How many points in a row have a value by chance, at most once in `count` points of which `had` have it. Its part
    of the points is taken at two standard errors above, for a few games say little of how often they are lost."""
    part = had / count
    part = min(part + UPPER * float(np.sqrt(part * (1 - part) / count)), 1 - 0.5 / count)
    return float(-np.log(max(count * (1 - part), 1.0)) / np.log(part))
