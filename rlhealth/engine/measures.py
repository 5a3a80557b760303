"""The words that a rule may use: causal measures over one series, in pure numpy.

Each measure is fed the points of a series in order, in as many pieces as one likes, and answers with one number a
point that depends on that point and the ones before it only. So a watcher that feeds a run point by point sees what
a check sees that feeds it whole. Non-finite points count as missing, except to the measures that look for them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Protocol

import numpy as np

from rlhealth.engine.estimate import NOTHING, Estimate, ValueMeasure
from rlhealth.engine.noise import APART, ROOT_2, SharedNoise, per_noise
from rlhealth.engine.order import RankTrend
from rlhealth.engine.parts import PartCursor, Parts
from rlhealth.engine.shares import MeanFraction
from rlhealth.engine.streaks import Streak
from rlhealth.engine.trends import Arrival, Climb, Count, Plunge, Standstill
from rlhealth.engine.windows import ROLLING, KnownSoFar, Reduce, Rolling, mean, median, numbered, plain_median
from rlhealth.run import Floats, Ints

LEAST_THIRD = 3  # points that a third of a run must have
START = 3  # points that say where a series began
SHORT = 50  # what lasts a smaller part of the run is no fall
LONGEST = 512  # points that a fall is ever asked to last
AT_ONCE = 256  # points that are searched for the start in one go
SURE = 3.0  # errors that a lasting fall is asked for, about


class Measure(Protocol):
    """A causal measure: fed values of shape (n,), it answers with n estimates; NaN if it cannot say yet."""

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        ...


class WithoutError:
    """A plain measure as an estimate: what it says is no sample of anything, and has no error."""

    def __init__(self, inner: ValueMeasure) -> None:
        self.inner = inner

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        return Estimate(self.inner.extend(values))


class ShareNonFinite:
    """The share of the last `window` logged points that are NaN or infinite."""

    def __init__(self, window: int) -> None:
        self.rolling = Rolling(mean, window, 1)

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        return self.rolling.extend((~np.isfinite(values)).astype(np.float64))


class ShareOfPoints:
    """The share of the last `window` finite points that lie above a level, below one, or between two."""

    def __init__(self, window: int, least: int, above: float | None, below: float | None) -> None:
        self.rolling = Rolling(mean, window, least)
        self.above, self.below = above, below

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        hit = np.ones(len(values), bool)
        with np.errstate(invalid="ignore"):
            if self.above is not None:
                hit &= values > self.above
            if self.below is not None:
                hit &= values < self.below
        return self.rolling.extend(np.where(np.isfinite(values), hit.astype(np.float64), np.nan))


class VersusStart:
    """Another measure set against the median of the run's first `count` finite points: a ratio, or a difference.

    Says nothing while the start is still being written. As a ratio, it says nothing if the start is not above 0.
    """

    def __init__(self, inner: ValueMeasure, count: int, difference: bool) -> None:
        self.inner = inner
        self.count = count
        self.difference = difference
        self.first: Floats = np.empty(0)

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        measured = self.inner.extend(values)
        finite = np.isfinite(values)
        missing = self.count - len(self.first)
        quiet = 0
        if missing > 0:
            self.first = np.concatenate([self.first, values[finite][:missing]])
            if len(self.first) < self.count:
                return np.full(len(values), np.nan)
            quiet = int(np.searchsorted(np.cumsum(finite), missing)) + 1
        start = plain_median(self.first)
        compared = measured - start if self.difference else measured / (start if start > 0 else np.nan)
        compared[:quiet] = np.nan
        return compared


class VersusPast:
    """Another measure set against the `count` points before its own window, by their median: a ratio, or a difference.

    A spike is a value far above the points just before it; the window itself is left out, so that it cannot hide there.
    """

    def __init__(
        self,
        inner: ValueMeasure,
        window: int,
        count: int,
        difference: bool,
        reduce: Reduce = median,
        least: int | None = None,
    ) -> None:
        self.inner = inner
        self.before = Rolling(reduce, count, least or max(3, count // 2))
        self.difference = difference
        self.delay: Floats = np.full(window, np.nan)

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        measured = self.inner.extend(values)
        joined = np.concatenate([self.delay, values])
        self.delay = joined[len(values) :].copy()
        past = self.before.extend(joined[: len(values)])
        if self.difference:
            return np.asarray(measured - past, np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(past > 0, measured / past, np.nan), np.float64)


def against(inner: ValueMeasure, window: int, versus: Past) -> ValueMeasure:
    """A measure compared with the run's start or with its own past, as a rule says it."""
    if versus.start is not None:
        return VersusStart(inner, versus.start, not versus.is_ratio)
    reduce = median if versus.before is not None else ROLLING["max" if versus.largest is not None else "min"]
    return VersusPast(inner, window, versus.past, not versus.is_ratio, reduce, versus.needed)


def highest(values: Floats, before: float) -> Floats:
    """The largest of the values so far (none is NaN) and of what came before them."""
    return np.maximum(np.maximum.accumulate(values), before)


class SmoothedLevels:
    """The medians of the last `window` points, and the best of them so far; the first `START` points are a level too.

    A series that is averaged over many points is none at first: as long as the average fills, a level says little, and
    the best begins after it. A part of measures.
    """

    def __init__(self, window: int, least: int, smoothed: int = 1, parts: Parts | None = None) -> None:
        self.level = Rolling(median, window, least, parts)
        self.began = Rolling(median, START, START, parts)
        self.smoothed, self.count = smoothed, 0
        self.best = -np.inf
        self.first = np.nan

    def extend(self, values: Floats) -> Floats:
        """At each of the next points: the level, the best so far, and the first there was; shape (3, n)."""
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
    """The levels of a series, which its measures share."""
    return parts.take(("levels", window, least), lambda: SmoothedLevels(window, least, smoothed, parts))


class DropFromBest:
    """How far the median of the last `window` points lies below the best such median so far, in units of noise.

    Two things that chance does are allowed for. The best of many levels is a lucky one: where the best of m independent
    levels is looked at, q errors say as much as sqrt(q^2 + 2 ln m) would (Bonferroni, by the tail of the normal), so
    the error grows with the run. And a level that dips comes back as fast as its points forget each other: the fall is
    that of the highest level in as many points as a fluctuation lasts, or in a hundredth to a fiftieth of the run, so
    that a short dip of a mean over 100 episodes, logged every episode, is none.

    The noise is that of the points up to the best, so that a fall is not measured by the unrest that it makes itself;
    once the run has grown to twice that length, it is estimated from all of them.
    """

    def __init__(self, window: int, least: int, smoothed: int = 1, parts: Parts | None = None) -> None:
        parts = parts or Parts()
        self.window = window
        self.levels = levels_of(window, least, smoothed, parts)
        self.noise = SharedNoise((window, START), smoothed, parts)
        self.known = parts.take("known so far", KnownSoFar)
        self.recent: Floats = np.full(LONGEST, np.nan)
        self.best = -np.inf
        self.then = np.full(5, np.nan)  # how many points, the spread and the errors there were at the best

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
            fall = best - lasting(joined, np.fmax(back, 0.0))
            return per_noise(np.maximum(fall, 0.0), error, spread)

    def _noise(self, finite: Floats, count: Floats, best: Floats) -> list[Floats]:
        """By which noise a fall is measured: the spread, for how many points a fluctuation lasts, and the errors of a
        level and of the first; shape (n,) each.
        """
        spread, _, lasts, error, began = self.noise.extend(finite)
        now = [count, spread, lasts, error, began]
        bests = np.flatnonzero(best > np.append(self.best, best[:-1]))
        self.best = float(best[-1])
        since = np.repeat(np.append(-1, bests), np.diff(bests, prepend=0, append=len(best)))  # -1 if it came before

        def then(row: int, places: Ints | slice) -> Floats:
            """What was known at the newest best, at each of those places."""
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
    """A function of series of shape (n,), point by point: computed where one of them changes, and held in between, for
    what is estimated once in a while seldom does.
    """
    changes = np.zeros(len(series[0]), np.bool_)
    changes[0] = True
    for one in series:
        changes[1:] |= one[1:] != one[:-1]
    starts = np.flatnonzero(changes)
    return np.repeat(function(*(one[starts] for one in series)), np.diff(np.append(starts, len(changes))))


def lasting(levels: Floats, back: Floats) -> Floats:
    """The highest of each level and those of the points before it, as far back as `back` says there; shape (n,).

    `levels` has `LONGEST` points more, at its beginning. A point without a level has none.
    """
    length = len(back)
    reach = np.where(np.isnan(back), 0, np.minimum(back, LONGEST)).astype(np.int64)
    found = levels[LONGEST:].copy()
    for start, end in pairwise([0, *(np.flatnonzero(np.diff(reach)) + 1).tolist(), length]):
        if reach[start]:
            found[start:end] = _highest_of(
                levels[LONGEST + start - reach[start] : LONGEST + end], int(reach[start]) + 1
            )
    found[np.isnan(levels[LONGEST:])] = np.nan
    return found


def _highest_of(levels: Floats, width: int) -> Floats:
    """The highest of each `width` levels in a row, shape (n - width + 1,), in as many passes as `width` has bits."""
    wide = 1
    while 2 * wide <= width:
        levels, wide = np.fmax(levels[:-wide], levels[wide:]), 2 * wide
    return np.asarray(np.fmax(levels[: len(levels) - (width - wide)], levels[width - wide :]))


class ShareOfGainLost:
    """How much of its gain a series has lost: its fall from the best level so far, over that level's height above the
    first.

    A level is the median of the last `window` points. Where nothing had been gained, any fall counts as infinite.
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


class GainSinceStart:
    """How far the median of the last `window` points lies above that of the run's first `window` points, in units of
    noise."""

    def __init__(self, window: int, smoothed: int = 1, parts: Parts | None = None) -> None:
        parts = parts or Parts()
        self.level = Rolling(median, window, window, parts)
        self.noise = SharedNoise((window,), smoothed, parts)
        self.start = np.nan

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        if not len(values):
            return NOTHING
        finite = np.where(np.isfinite(values), values, np.nan)
        level = self.level.extend(finite)
        if np.isnan(self.start):
            known = level[~np.isnan(level)]
            self.start = float(known[0]) if len(known) else np.nan
        spread, _, _, error = self.noise.extend(finite)
        return per_noise(level - self.start, ROOT_2 * error, spread)


class GainByThirds:
    """How far the mean of the newest third of the run so far lies above that of its first third, in units of noise.

    Thirds grow with the run, and with them shrinks the error: whether a reward has not risen can be said of a run of
    any length, or cannot be said of it.
    """

    def __init__(self, smoothed: int = 1, parts: Parts | None = None) -> None:
        self.noise = SharedNoise((), smoothed, parts)
        self.count = 0
        self.sums: Floats = np.zeros((2, 1))  # of all points so far, and of their squares; with room for more
        self.last = Estimate(np.full(1, np.nan), np.full(1, np.nan))

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        if not len(values):
            return NOTHING
        known = np.isfinite(values)
        spread, error, _ = self.noise.extend(np.where(known, values, np.nan))
        points = values
        if not known.all():
            points, spread, error = values[known], spread[known], error[known]
        sums, squares = self._add(points)
        end = np.arange(self.count - len(points) + 1, self.count + 1)
        third = end // 3
        with np.errstate(all="ignore"):
            first = sums[third] / third
            newest, square = ((row[end] - row[end - third]) / third for row in (sums, squares))
            tails = np.sqrt(np.fmax(square - newest**2, 0.0)) / spread  # outliers move a mean, and no median shows them
            made = per_noise(newest - first, ROOT_2 * error * np.fmax(tails, 1.0) / np.sqrt(third), spread)
        short = third < LEAST_THIRD
        made.value[short] = np.nan
        joined = self.last.then(made)
        self.last = joined.part(slice(-1, None))
        return made if known.all() else joined.at(np.cumsum(known))

    def _add(self, points: Floats) -> Floats:
        """The sums of all points so far and of their squares, up to each of them, beginning with none; shape (2, n)."""
        start, end = self.count, self.count + len(points)
        if end >= self.sums.shape[1]:
            self.sums = np.concatenate([self.sums, np.empty((2, max(end, self.sums.shape[1])))], axis=1)
        for row, new in zip(self.sums, (points, points * points), strict=True):
            row[start : end + 1] = np.cumsum(np.append(row[start], new))
        self.count = end
        return self.sums


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


class EstimateVersusStart:
    """How far an estimate lies above the first one that was known, with the errors of both."""

    def __init__(self, inner: Measure, start: Measure) -> None:
        self.inner, self.start = inner, start
        self.first: Estimate | None = None

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        found = self.inner.extend(values)
        quiet = 0
        if self.first is None:
            quiet = self._look_for_start(values)
            if self.first is None:
                return Estimate(np.full(len(values), np.nan), np.full(len(values), np.nan))
        value = found.value - self.first.value
        error = None
        if found.error is not None and self.first.error is not None:
            error = np.hypot(found.error, self.first.error)
            error[:quiet] = np.nan
        value[:quiet] = np.nan
        return Estimate(value, error)

    def _look_for_start(self, values: Floats) -> int:
        """The place of the first point at which the start is known; few points at a time, as it seldom takes many."""
        for begin in range(0, len(values), AT_ONCE):
            start = self.start.extend(values[begin : begin + AT_ONCE])
            known = np.flatnonzero(~np.isnan(start.value))
            if len(known):
                place = int(known[0])
                self.first = start.part(slice(place, place + 1))
                return begin + place
        return len(values)

    @property
    def lacking(self) -> str:
        """What the estimate still waits for."""
        return str(getattr(self.inner, "lacking", ""))


class Past(Protocol):
    """What a measure is compared with: the points of the `start`, or the median, the largest or the smallest before."""

    @property
    def start(self) -> int | None:
        """How many points of the start; None if it is the past."""

    @property
    def before(self) -> int | None:
        """Of how many points the median; None if it is an extreme."""

    @property
    def largest(self) -> int | None:
        """Of how many points the largest."""

    @property
    def past(self) -> int:
        """How many points before the window it looks at."""

    @property
    def needed(self) -> int:
        """How many of them must be there."""

    @property
    def is_ratio(self) -> bool:
        """Whether the measure is divided by it, rather than diminished."""


class Window(Protocol):
    """What a condition says of the points that it looks at."""

    @property
    def last(self) -> int:
        """How many points."""

    @property
    def at_least(self) -> int | None:
        """How many of them suffice; None for all."""

    @property
    def items(self) -> int:
        """How many items (groups, completions) a share is to be counted over."""

    @property
    def versus(self) -> Past | None:
        """What it is compared with."""

    @property
    def where(self) -> FilterBounds | None:
        """The level that points are counted at."""


class FilterBounds(Protocol):
    """What a point is compared with where points are counted."""

    @property
    def above(self) -> float | None:
        """What it must be above."""

    @property
    def below(self) -> float | None:
        """What it must be below."""


#: How a measure is made for a window, and for a series of which each point is known to be averaged over so many; of
#: parts that it may share.
Make = Callable[[Window, int, Parts], Measure]


def _rolling(name: str) -> Make:
    return lambda one, smoothed, parts: WithoutError(Rolling(ROLLING[name], one.last, one.at_least or one.last, parts))


def _share(one: Window, smoothed: int, parts: Parts) -> Measure:
    level = one.where
    assert level is not None
    return WithoutError(ShareOfPoints(one.last, one.at_least or one.last, level.above, level.below))


def _counted(of: type[Count] | type[Streak]) -> Make:
    """Each point is compared with its past before it is counted."""

    def made(one: Window, smoothed: int, parts: Parts) -> Measure:
        level = one.where
        assert level is not None
        point: ValueMeasure = Rolling(mean, 1, 1)
        inner = point if one.versus is None else against(point, 1, one.versus)
        return WithoutError(of(inner, one.last, level.above, level.below))

    return made


#: How each measure of `rules/measures.py` is made for a window.
MAKE: dict[str, Make] = {
    **{name: _rolling(name) for name in ROLLING},
    "share_nonfinite": lambda one, smoothed, parts: WithoutError(ShareNonFinite(one.last)),
    "share_of_points": _share,
    "mean_fraction": lambda one, smoothed, parts: MeanFraction(one.last, one.at_least or one.last, one.items, parts),
    "drop_from_best": lambda one, smoothed, parts: DropFromBest(one.last, one.at_least or one.last, smoothed, parts),
    "share_of_gain_lost": lambda one, smoothed, parts: WithoutError(
        ShareOfGainLost(one.last, one.at_least or one.last, smoothed, parts)
    ),
    "gain_since_start": lambda one, smoothed, parts: GainSinceStart(one.last, smoothed, parts),
    "count": _counted(Count),
    "streak": _counted(Streak),
    "climb": lambda one, smoothed, parts: Climb(one.last, smoothed, parts),
    "plunge": lambda one, smoothed, parts: Plunge(one.last, smoothed, parts),
    "arrival": lambda one, smoothed, parts: WithoutError(Arrival(one.last)),
    "gain_by_thirds": lambda one, smoothed, parts: GainByThirds(smoothed, parts),
    "rank_trend": lambda one, smoothed, parts: WithoutError(RankTrend(one.last)),
    "standstill": lambda one, smoothed, parts: WithoutError(Standstill(one.last)),
    "max_so_far": lambda one, smoothed, parts: WithoutError(MaxSoFar()),
}
