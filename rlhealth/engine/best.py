"""Measures relative to the best so far: the largest value, how far a level fell from the best one, and what share of
the gain that is; and relative to the lowest, and to all points before a fall."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from rlhealth.engine.estimate import NOTHING, Estimate
from rlhealth.engine.noise import SharedNoise, per_noise
from rlhealth.engine.parts import PartCursor, Parts
from rlhealth.engine.variogram import APART
from rlhealth.engine.windows import ROLLING, Held, KnownSoFar, Rolling, highest, highest_of_each, median, numbered
from rlhealth.run import Floats, Ints

START = 3  # points that give the start of a series
SHORT = 50  # a fall that lasts less than this part of the run does not count
HELD = 16  # the most points that a level must be held: more than a few lucky points lift a median of ten for
LONGEST = 512  # the most points that a fall must last
SURE = 3.0  # errors that a lasting fall needs, about


class SmoothedLevels:
    """The medians of the last `window` points, and the best of them so far; the first `START` points also give a level.

    A series that is a moving average over many points is not yet one at first: until its window is full, a level says
    little, and the best is taken only after that. A part of measures.
    """

    def __init__(self, window: int, least: int, smoothed: int = 1, parts: Parts | None = None) -> None:
        self.level = Rolling(median, window, least, parts)
        self.began = Rolling(median, START, START, parts)
        self.smoothed, self.count = smoothed, 0
        self.best = -np.inf
        self.first = np.nan

    def extend(self, values: Floats) -> Floats:
        """At each of the next points: the level, the best so far, and the first level; shape (3, n)."""
        level, began = self.level.extend(values), self.began.extend(values)
        if self.count < self.smoothed:
            count = self.count + numbered(~np.isnan(values))
            self.count = int(count[-1])
            level[count < self.smoothed] = began[count < self.smoothed] = np.nan
        first = np.full(len(values), self.first)
        start = np.full(len(values), -np.inf)
        if np.isnan(self.first):
            known = np.flatnonzero(~np.isnan(began))
            if len(known):
                self.first = float(began[known[0]])
                first[known[0] :] = self.first
                start[known[0]] = self.first
        best = highest(np.fmax(np.where(np.isnan(level), -np.inf, level), start), self.best)
        self.best = float(best[-1])
        return np.stack([level, best, first])


def levels_of(window: int, least: int, smoothed: int, parts: Parts) -> PartCursor:
    """The levels of a series, shared by its measures."""
    return parts.take(("levels", window, least), lambda: SmoothedLevels(window, least, smoothed, parts))


class DropFromBest:
    """How far the median of the last `window` points lies below the best such median so far, in units of noise.

    Three effects of chance are allowed for. First, the best of many levels is a lucky one: for the best of m
    independent levels, sqrt(q^2 + 2 ln m) errors are needed in place of q (Bonferroni, by the tail of the normal), so
    the error grows with the run. Second, a level that dips by chance comes back once its points are no longer
    correlated. So the fall is measured from the highest level in as many points as a fluctuation lasts, or in a
    hundredth to a fiftieth of the run: a short dip of a mean over 100 episodes, logged every episode, does not count.
    Third, where a game is won only now and then, a few wins in a row lift a median. So in a long run the best is the
    highest level that was held for some points.

    The noise is that of the points up to the best, so that the fall does not widen the noise that it is compared with.
    Once the run has twice that length, the noise is estimated from all points.
    """

    def __init__(self, window: int, least: int, smoothed: int = 1, parts: Parts | None = None) -> None:
        parts = parts or Parts()
        self.window = window
        self.levels = levels_of(window, least, smoothed, parts)
        self.noise = SharedNoise((window, START), smoothed, parts)
        self.known = parts.take("known so far", KnownSoFar)
        self.recent: Floats = np.full(LONGEST, np.nan)
        self.held = HeldLevels()
        self.best = -np.inf
        self.then = np.full(5, np.nan)  # the number of points, the spread and the errors at the best

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        if not len(values):
            return NOTHING
        finite = np.where(np.isfinite(values), values, np.nan)
        level, best, first = self.levels.extend(finite)
        (count,) = self.known.extend(finite)
        spread, lasts, error, began = self._noise(finite, count, best)
        with np.errstate(all="ignore"):
            error = _unchanged(np.hypot, error, np.where(best == first, began, error))
            levels = np.fmax(count / np.fmax(lasts, self.window), 1.0)
            error *= np.sqrt(1 + 2 * np.log(levels) / SURE**2)
            joined = np.concatenate([self.recent, level])
            self.recent = joined[len(level) :].copy()
            long = np.exp2(np.floor(np.log2(count / SHORT)))  # in powers of two, as it grows with every point
            back = np.fmax(np.fmin(lasts, count / APART), long) - self.window
            held = self.held.extend(level, long)
            fall = np.fmin(best, held) - lasting(joined, np.fmax(back, 0.0))
            return per_noise(np.maximum(fall, 0.0), error, spread)

    def _noise(self, finite: Floats, count: Floats, best: Floats) -> list[Floats]:
        """The noise against which a fall is measured: the spread, how many points a fluctuation lasts, and the errors
        of a level and of the first level; shape (n,) each.
        """
        spread, _, lasts, _, error, began = self.noise.extend(finite)
        now = [count, spread, lasts, error, began]
        bests = np.flatnonzero(best > np.append(self.best, best[:-1]))
        self.best = float(best[-1])
        since = np.repeat(np.append(-1, bests), np.diff(bests, prepend=0, append=len(best)))  # -1 if it came before

        def then(row: int, places: Ints | slice) -> Floats:
            """The values at the newest best, at each of those places."""
            return np.asarray(np.where(since[places] < 0, self.then[row], now[row][since[places]]), np.float64)

        early = np.flatnonzero(count <= 2 * then(0, slice(None)))
        early = early[~np.isnan(then(1, early))]
        found = [row.copy() for row in now[1:]] if len(early) else now[1:]
        for row, one in enumerate(found if len(early) else (), 1):
            one[early] = then(row, early)
        if len(bests):
            self.then = np.array([row[bests[-1]] for row in now])
        return found


def _unchanged(function: Callable[..., Floats], *series: Floats) -> Floats:
    """A pointwise function of series of shape (n,): computed where one of them changes, and repeated in between,
    because estimates seldom change.
    """
    changes = np.zeros(len(series[0]), np.bool_)
    changes[0] = True
    for one in series:
        changes[1:] |= one[1:] != one[:-1]
    starts = np.flatnonzero(changes)
    return np.repeat(function(*(one[starts] for one in series)), np.diff(np.append(starts, len(changes))))


class HeldLevels:
    """The highest level so far that was held for some points in a row: for 2, 4, … up to `HELD` points."""

    def __init__(self) -> None:
        self.recent: Floats = np.full(HELD, -np.inf)
        self.highest = [-np.inf] * int(np.log2(HELD))

    def extend(self, levels: Floats, long: Floats) -> Floats:
        """At each of the next levels: the highest level that was held for `long` points, a power of two; infinite where
        `long` is less than two. Both have shape (n,)."""
        lowest = np.concatenate([self.recent, np.where(np.isnan(levels), -np.inf, levels)])
        self.recent = lowest[-HELD:].copy()
        found, wide = np.full(len(levels), np.inf), 1
        for place, before in enumerate(self.highest):
            lowest, wide = np.fmin(lowest[:-wide], lowest[wide:]), 2 * wide
            held = highest(lowest[-len(levels) :], before)
            self.highest[place] = float(held[-1])
            wanted = (long >= wide) if wide == HELD else (long == wide)
            found[wanted] = held[wanted]
        return found


def lasting(levels: Floats, back: Floats) -> Floats:
    """At each point, the highest of its level and the levels of the `back` points before it; shape (n,).

    `levels` has `LONGEST` additional points at its start. A point without a level stays without one.
    """
    length = len(back)
    reach = np.where(np.isnan(back), 0, np.minimum(back, LONGEST)).astype(np.int64)
    found = levels[LONGEST:].copy()
    for start, end in pairwise([0, *(np.flatnonzero(np.diff(reach)) + 1).tolist(), length]):
        if reach[start]:
            found[start:end] = highest_of_each(
                levels[LONGEST + start - reach[start] : LONGEST + end], int(reach[start]) + 1
            )
    found[np.isnan(levels[LONGEST:])] = np.nan
    return found


class ShareOfGainLost:
    """How much of its gain a series has lost: its fall from the best level so far, over that level's height above the
    first.

    A level is the median of the last `window` points. If there was no gain, any fall counts as infinite.
    """

    def __init__(self, window: int, least: int, smoothed: int = 1, parts: Parts | None = None) -> None:
        self.levels = levels_of(window, least, smoothed, parts or Parts())

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        if not len(values):
            return np.empty(0)
        level, best, first = self.levels.extend(np.where(np.isfinite(values), values, np.nan))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(level < best, (best - level) / (best - first), np.where(np.isnan(level), np.nan, 0.0))


class MaxSoFar:
    """The largest finite value so far."""

    def __init__(self) -> None:
        self.largest = -np.inf

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        if not len(values):
            return np.empty(0)
        peak = highest(np.where(np.isfinite(values), values, -np.inf), self.largest)
        self.largest = float(peak[-1])
        return np.where(np.isfinite(peak), peak, np.nan)


class AboveLowest:
    """How far the largest of the last `window` points lies above the lowest so far: 0 only where the series is at its
    lowest."""

    def __init__(self, window: int, least: int, parts: Parts | None = None) -> None:
        self.top = Rolling(ROLLING["max"], window, least, parts)
        self.lowest = np.inf

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        if not len(values):
            return np.empty(0)
        known = np.isfinite(values)
        lowest = -highest(np.where(known, -values, -np.inf), -self.lowest)
        self.lowest = float(lowest[-1])
        return np.asarray(self.top.extend(np.where(known, values, np.nan)) - lowest)


class BelowAllBefore:
    """How many of the newest points lie below every point before them, of which there are `before` or more; 0 where the
    newest one does not, and NaN where there are fewer before it. As many as possible are counted.

    The first points of a moving average are means of fewer samples than the others: one of them may be low by chance,
    and would hide each later fall. So of a series that is averaged over `smoothed` points, those from the first full
    average on are looked at by themselves, too.
    """

    def __init__(self, before: int, smoothed: int = 1) -> None:
        self.held = Held()
        self.falls = [Falls(before, left_out) for left_out in sorted({0, smoothed - 1})]

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        return self.held.each(values, self._measured)

    def _measured(self, points: Floats) -> Floats:
        return np.asarray(np.fmax.reduce([one.extend(points) for one in self.falls]))


class Falls:
    """The same of points without a gap, of which the first `left_out` do not count."""

    def __init__(self, before: int, left_out: int) -> None:
        self.before, self.left_out = before, left_out
        self.count = 0
        self.lowest = np.inf
        self.begun = 0  # the number of points before those that fell
        self.floor = -np.inf  # the lowest of these; nothing has fallen below all before it if this is -inf

    def extend(self, points: Floats) -> Floats:
        """Measures the next points, shape (n,), all finite."""
        left_out = min(self.left_out, len(points))
        self.left_out -= left_out
        points = points[left_out:]
        lowest = np.minimum.accumulate(np.append(self.lowest, points))  # before each point, and after the last
        number = self.count + np.arange(len(points))  # of points before each
        found = np.where(number < self.before, np.nan, 0.0)
        falls = np.flatnonzero((points < lowest[:-1]) & (number >= self.before))
        at = 0
        while at < len(points):
            if self.floor == -np.inf:
                later = falls[np.searchsorted(falls, at) :]
                if not len(later):
                    break
                at = int(later[0])
                self.begun, self.floor = int(number[at]), float(lowest[at])
            end = _first_not_below(points, at, self.floor)
            found[at:end] = number[at:end] + 1 - self.begun
            if end < len(points):
                self.floor = -np.inf
            at = end
        self.count, self.lowest = self.count + len(points), float(lowest[-1])
        return np.concatenate([np.full(left_out, np.nan), found])


def _first_not_below(points: Floats, at: int, floor: float) -> int:
    """The index of the first point from `at` on that is not below `floor`; the number of points if there is none. It
    looks at stretches of twice the length each, so that many short falls cost no more than a long one."""
    width = 64
    while at < len(points):
        back = points[at : at + width] >= floor
        if back.any():
            return at + int(np.argmax(back))
        at, width = at + width, 2 * width
    return len(points)
