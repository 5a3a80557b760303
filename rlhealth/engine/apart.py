"""How far the newest points lie apart from those of the best level so far, whatever the distribution of the points."""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np

from rlhealth.engine.best import START, levels_of
from rlhealth.engine.parts import Parts
from rlhealth.engine.windows import Rolling, ranked
from rlhealth.run import Floats, Ints

OUTSIDE = 0.05  # the probability that the median of the distribution lies outside of its interval
NORMAL = 1.96  # standard deviations of a normal distribution outside of which that lies
EXACT = 64  # points up to which the binomial distribution itself is used


class GapFromBest:
    """How far the median of the last `window` points surely lies below the best such median so far: the lower end of
    the interval of the best median, less the upper end of that of the newest. Negative where the intervals overlap.

    The interval of a median is that between two of the points, the k-th smallest and the k-th largest, in which the
    median of any distribution lies with a probability of 95 % (the sign test; Conover 1999, 3.2). So it also holds for
    the returns of single episodes, of which a few are ten times the others, and where the noise grows with the reward:
    there the noise of all points so far says too little of that at the best.
    """

    def __init__(self, window: int, least: int, smoothed: int = 1, parts: Parts | None = None) -> None:
        self.levels = levels_of(window, least, smoothed, parts or Parts())
        self.lower = Rolling(lower_end, window, START, parts)
        self.upper = Rolling(upper_end, window, least, parts)
        self.best = -np.inf
        self.floor = -np.inf  # the lower end at the best; the highest, where several levels are equally good

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        if not len(values):
            return np.empty(0)
        finite = np.where(np.isfinite(values), values, np.nan)
        level, best, first = self.levels.extend(finite)
        lower, upper = self.lower.extend(finite), self.upper.extend(finite)
        at_best = (level >= best) | ((best == first) & (best > np.append(self.best, best[:-1])))
        ends = np.where(at_best & ~np.isnan(lower), lower, -np.inf)
        ends[0] = max(ends[0], self.floor if best[0] == self.best else -np.inf)
        for start, end in _stretches(best):
            np.maximum.accumulate(ends[start:end], out=ends[start:end])
        self.best, self.floor = float(best[-1]), float(ends[-1])
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(np.isnan(level) | np.isneginf(ends), np.nan, ends - upper), np.float64)


def _stretches(best: Floats) -> list[tuple[int, int]]:
    """Where the best stays the same: the first place and the one after the last, each."""
    starts = np.flatnonzero(best[1:] != best[:-1]) + 1
    return list(zip([0, *starts.tolist()], [*starts.tolist(), len(best)], strict=True))


@cache
def left_out(width: int) -> Ints:
    """For each number of points up to `width`: how many of them lie outside of the interval of the median, on each
    side; shape (width + 1,). Above `EXACT` points by the normal approximation of the binomial."""
    count = np.arange(width + 1)
    found: Ints = np.maximum((count - NORMAL * np.sqrt(count)) / 2, 0).astype(np.int64)
    few = min(width, EXACT)
    found[: few + 1] = [_left_out(one) for one in range(few + 1)]
    return found


def _left_out(count: int) -> int:
    outside, place = 0.0, 0
    while place < count // 2:
        outside += 2 * comb(count, place) / 2**count
        if outside > OUTSIDE:
            break
        place += 1
    return max(place - 1, 0)


def lower_end(windows: Floats, counts: Ints) -> Floats:
    """The lower end of the interval of the median of each window: windows of shape (w, n), NaN for missing, and how
    many points each has, shape (n,) -> shape (n,)."""
    return ranked(windows, left_out(len(windows))[counts])[0]


def upper_end(windows: Floats, counts: Ints) -> Floats:
    """The upper end of the interval of the median of each window; see `lower_end`."""
    return ranked(windows, np.maximum(counts - 1 - left_out(len(windows))[counts], 0))[0]
