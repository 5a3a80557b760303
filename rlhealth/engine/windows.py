"""Reductions over the last points of a series: causal, and equal and cheap in whatever pieces the points come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rlhealth.engine.medians import medians
from rlhealth.engine.parts import Parts
from rlhealth.run import Floats, Ints
from rlhealth.series import middle, plain_median

BLOCK = 16384  # windows per batch: they stay in the processor's cache, however long the run is
FEW = 64  # times the width: for fewer windows, sorting is faster than comparing
WIDEST = 64  # for wider windows, sorting is faster than comparing

#: Windows of shape (w, n), NaN for missing, and how many points each of them has, shape (n,) -> shape (n,).
Reduce = Callable[[Floats, Ints], Floats]


class Trailing:
    """The windows that end at each of the next points: the last `window` points, including those of earlier calls."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.tail: Floats = np.full(window - 1, np.nan)

    def take(self, finite: Floats) -> tuple[Floats, Ints]:
        """Windows of shape (w, n), a view, and how many points each has, shape (n,); missing ones are NaN."""
        joined = np.concatenate([self.tail, finite])
        self.tail = joined[len(finite) :].copy()
        windows: Floats = np.ndarray((self.window, len(finite)), joined.dtype, joined, strides=2 * joined.strides)
        return windows, counted(~np.isnan(joined), self.window)


def counted(flags: np.ndarray[tuple[int], np.dtype[np.bool_]], window: int) -> Ints:
    """How many flags of shape (n + w - 1,) are set in each window of w; shape (n,)."""
    length = len(flags) - window + 1
    first = int(flags.argmax()) if length > 1 else 0
    if length > 1 and flags[first:].all():  # nothing is missing after the first point: no sum is needed
        found = np.full(length, window)
        found[: max(first, 0)] = np.clip(window - first + np.arange(min(first, length)), 0, window)
        return found
    sums = np.zeros(len(flags) + 1, np.int64)
    flags.cumsum(dtype=np.int64, out=sums[1:])
    return np.asarray(sums[window:] - sums[:-window])


def summed(points: Floats, window: int) -> Floats:
    """The sum of each window of points of shape (n + w - 1,), none of them NaN; shape (n,).

    It adds sums of 1, 2, 4, 8 … points, which neighbouring windows share. Every window adds its points in the same
    order, so that a sum does not depend on how many windows there are.
    """
    total = np.empty(len(points) - window + 1)
    for start in range(0, len(total), BLOCK):
        part = total[start : start + BLOCK]
        _sum_into(part, points[start : start + len(part) + window - 1], window)
    return total


def _sum_into(total: Floats, runs: Floats, window: int) -> None:
    size, place = 1, 0
    while size <= window:
        if window & size:
            part = runs[place : place + len(total)]
            if place:
                total += part
            else:
                total[:] = part
            place += size
        if 2 * size <= window:
            runs = runs[:-size] + runs[size:]
        size *= 2


def count_until(steps: Ints, until: int) -> int:
    """How many of the steps (shape (n,), rising) lie up to and including `until`. Usually all do, which the last step
    alone shows."""
    if not len(steps) or steps[-1] <= until:
        return len(steps)
    return int(steps.searchsorted(until, side="right"))


def numbered(known: np.ndarray[Any, np.dtype[np.bool_]]) -> Ints:
    """How many of the points up to each one are known, shape (n,). (Counting is ten times as fast as adding up.)"""
    return np.arange(1, len(known) + 1) if known.all() else np.cumsum(known)


def highest(values: Floats, before: float) -> Floats:
    """The largest of the values so far (none is NaN) and of what came before them."""
    return np.maximum(np.maximum.accumulate(values), before)


def highest_of_each(levels: Floats, width: int) -> Floats:
    """The highest of each `width` consecutive levels, shape (n - width + 1,), in as many passes as `width` has bits;
    missing ones (NaN) do not count."""
    wide = 1
    while 2 * wide <= width:
        levels, wide = np.fmax(levels[:-wide], levels[wide:]), 2 * wide
    return np.asarray(np.fmax(levels[: len(levels) - (width - wide)], levels[width - wide :]))


class Held:
    """The last value of a measure, which it repeats where a point is missing."""

    def __init__(self) -> None:
        self.last: Floats = np.full(1, np.nan)

    def each(self, values: Floats, measured: Callable[[Floats], Floats]) -> Floats:
        """What is measured at each finite one of the next points, shape (n,), repeated over the missing ones."""
        known = np.isfinite(values)
        points = values[known]
        return self.over(known, measured(points) if len(points) else points)

    def over(self, known: np.ndarray[Any, np.dtype[np.bool_]], found: Floats) -> Floats:
        """The value at each known point, repeated over the missing ones: shape (n,), as `known`."""
        joined = np.concatenate([self.last, found])
        self.last = joined[-1:].copy()
        return found if known.all() else np.asarray(joined[np.cumsum(known)], np.float64)


class KnownSoFar:
    """The number of points up to each of the next ones; a part of measures."""

    def __init__(self) -> None:
        self.count = 0

    def extend(self, values: Floats) -> Floats:
        """Counts the next points, shape (1, n)."""
        count = self.count + numbered(~np.isnan(values))
        self.count = int(count[-1])
        return count[None, :].astype(np.float64)


class SumsSoFar:
    """The running sums of some series, from the empty sum on."""

    def __init__(self, series: int) -> None:
        self.count = 0
        self._sums: Floats = np.zeros((series, 1))  # with room for more

    def add(self, *points: Floats) -> Floats:
        """Adds the next points of each series, shape (n,) each: all sums so far, shape (series, count + 1) or wider."""
        start, end = self.count, self.count + len(points[0])
        if end >= self._sums.shape[1]:
            room = np.empty((len(self._sums), max(end, self._sums.shape[1])))
            self._sums = np.concatenate([self._sums, room], axis=1)
        for row, new in zip(self._sums, points, strict=True):
            row[start : end + 1] = np.cumsum(np.append(row[start], new))
        self.count = end
        return self._sums


class Reduction:
    """A reduction over the last `window` points, however many of them are missing; a part of measures."""

    def __init__(self, reduce: Reduce, window: int) -> None:
        self.reduce = reduce
        self.trailing = Trailing(window)

    def extend(self, values: Floats) -> Floats:
        """The reduction of the windows that end at the next points, and how many points each of them has; shape
        (2, n).
        """
        windows, counts = self.trailing.take(values)
        found = np.empty((2, len(values)))
        with np.errstate(all="ignore"):
            for start in range(0, len(values), BLOCK):
                part = slice(start, start + BLOCK)
                found[0, part] = self.reduce(windows[:, part], counts[part])
        found[1] = counts
        return found


class Rolling:
    """A reduction over the last `window` points, given once at least `least` of them are finite."""

    def __init__(self, reduce: Reduce, window: int, least: int, parts: Parts | None = None) -> None:
        self.least = least
        self.is_point = window == 1 and least <= 1 and reduce is mean
        if not self.is_point:
            self.reduced = (parts or Parts()).take((reduce, window), lambda: Reduction(reduce, window))

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        finite = np.where(np.isfinite(values), values, np.nan)
        if self.is_point or not len(values):
            return finite
        found, counts = self.reduced.extend(finite)
        return np.where(counts < self.least, np.nan, found)


def median(windows: Floats, counts: Ints) -> Floats:
    """The median of the known points of trailing windows: each begins one point after the one before."""
    width, length = windows.shape
    if length < FEW * width or width > WIDEST:
        return sorted_median(windows, counts)
    found = medians(np.concatenate([windows[:, 0], windows[-1, 1:]]), width)
    partial = np.flatnonzero(counts < width)
    if len(partial):
        found[partial] = sorted_median(windows[:, partial], counts[partial])
    return found


def level_of_start(first: Floats, by: str) -> float:
    """The level of the first points: their median, or their largest; shape (n,), n > 0, none of them NaN."""
    return float(first.max()) if by == "largest" else plain_median(first)


def ranked(windows: Floats, *ranks: Ints) -> list[Floats]:
    """The known points of those ranks in each window, the lowest of which is 0: ranks of shape (n,) -> shape (n,)
    each."""
    ordered = np.sort(windows.T, axis=1)  # NaN sorts last
    rows = np.arange(len(ordered))
    return [ordered[rows, rank] for rank in ranks]


def sorted_median(windows: Floats, counts: Ints) -> Floats:
    """The median of the known points of any windows."""
    return middle(*ranked(windows, (counts - 1) // 2, counts // 2))


def _sum(windows: Floats) -> Floats:
    """The sum of the known points of any windows, added one after the other."""
    total = np.zeros(windows.shape[1])
    for row in windows:
        total += np.where(np.isnan(row), 0.0, row)
    return total


def mean(windows: Floats, counts: Ints) -> Floats:
    """The mean of the known points of trailing windows."""
    if len(windows) == 1:
        return np.asarray(windows[0], np.float64)
    points = np.concatenate([windows[:, 0], windows[-1, 1:]])
    return np.asarray(summed(np.where(np.isnan(points), 0.0, points), len(windows)) / counts, np.float64)


def _std(windows: Floats, counts: Ints) -> Floats:
    return np.sqrt(_sum((windows - mean(windows, counts)) ** 2) / counts)


def _minimum(windows: Floats, counts: Ints) -> Floats:
    return _extreme(np.fmin, windows)


def _maximum(windows: Floats, counts: Ints) -> Floats:
    return _extreme(np.fmax, windows)


def _extreme(compare: np.ufunc, windows: Floats) -> Floats:
    """The lowest or the highest known point of trailing windows: of 2, 4, 8 … points each, and of two such that cover
    a window."""
    width, length = windows.shape
    found, covered = np.concatenate([windows[:, 0], windows[-1, 1:]]), 1
    while 2 * covered <= width:
        found, covered = compare(found[:-covered], found[covered:]), 2 * covered
    last = width - covered
    return np.asarray(compare(found[:length], found[last : last + length]), np.float64)


def _spread(windows: Floats, counts: Ints) -> Floats:
    return _maximum(windows, counts) - _minimum(windows, counts)


ROLLING: dict[str, Reduce] = {
    "value": mean,
    "mean": mean,
    "median": median,
    "std": _std,
    "min": _minimum,
    "max": _maximum,
    "range": _spread,
}
