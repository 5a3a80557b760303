"""The words that a rule may use: causal measures over one series, in pure numpy.

Each measure is fed the points of a series in order, in as many pieces as one likes, and answers with one number a
point that depends on that point and the ones before it only. So a watcher that feeds a run point by point sees what
a check sees that feeds it whole. Non-finite points count as missing, except to the measures that look for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rlhealth.run import Floats

BLOCK = 16_384  # windows looked at in one go: bounds memory to a few megabytes however long the run is


class Measure(Protocol):
    """A causal measure: fed values of shape (n,), it answers with shape (n,); NaN where it cannot say yet."""

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        ...


Reduce = Callable[[Floats], Floats]  # windows of shape (n, w), NaN for missing -> (n,)


class Rolling:
    """A reduction over the last `window` points, given once at least `least` of them are finite."""

    def __init__(self, reduce: Reduce, window: int, least: int) -> None:
        self.reduce = reduce
        self.window = window
        self.least = least
        self.tail: Floats = np.full(window - 1, np.nan)

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        finite = np.where(np.isfinite(values), values, np.nan)
        if self.window == 1:
            return finite
        joined = np.concatenate([self.tail, finite])
        self.tail = joined[len(joined) - self.window + 1 :].copy()
        found = np.full(len(values), np.nan)
        for start in range(0, len(values), BLOCK):
            windows = sliding_window_view(joined[start : start + BLOCK + self.window - 1], self.window)
            enough = np.count_nonzero(~np.isnan(windows), axis=1) >= self.least
            if enough.all():
                found[start : start + len(windows)] = self.reduce(windows)
            elif enough.any():
                found[start : start + len(windows)][enough] = self.reduce(windows[enough])
        return found


def _median(windows: Floats) -> Floats:
    ordered = np.sort(windows, axis=1)  # NaN sorts last
    count = np.count_nonzero(~np.isnan(windows), axis=1)
    rows = np.arange(len(windows))
    return np.asarray((ordered[rows, (count - 1) // 2] + ordered[rows, count // 2]) / 2, np.float64)


def _mean(windows: Floats) -> Floats:
    return np.asarray(np.nansum(windows, axis=1) / np.count_nonzero(~np.isnan(windows), axis=1), np.float64)


def _std(windows: Floats) -> Floats:
    return np.asarray(np.nanstd(windows, axis=1), np.float64)


def _minimum(windows: Floats) -> Floats:
    return np.asarray(np.fmin.reduce(windows, axis=1), np.float64)


def _maximum(windows: Floats) -> Floats:
    return np.asarray(np.fmax.reduce(windows, axis=1), np.float64)


def _spread(windows: Floats) -> Floats:
    return _maximum(windows) - _minimum(windows)


def _rise(windows: Floats) -> Floats:
    """How much the mean of the newer half of the window stands above that of the older half."""
    half = windows.shape[1] // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return _mean(windows[:, half:]) - _mean(windows[:, :half])


ROLLING: dict[str, Reduce] = {
    "value": _mean, "mean": _mean, "median": _median, "std": _std, "min": _minimum, "max": _maximum, "range": _spread, "rise": _rise,
}  # fmt: skip


class NonFinite:
    """The share of the last `window` logged points that are NaN or infinite."""

    def __init__(self, window: int) -> None:
        self.rolling = Rolling(_mean, window, 1)

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        return self.rolling.extend((~np.isfinite(values)).astype(np.float64))


class Share:
    """The share of the last `window` finite points that lie above, below or exactly at a level."""

    def __init__(self, window: int, least: int, above: float | None, below: float | None, equals: float | None) -> None:
        self.rolling = Rolling(_mean, window, least)
        self.above, self.below, self.equals = above, below, equals

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        hit = np.ones(len(values), bool)
        with np.errstate(invalid="ignore"):
            if self.above is not None:
                hit &= values > self.above
            if self.below is not None:
                hit &= values < self.below
            if self.equals is not None:
                hit &= values == self.equals
        return self.rolling.extend(np.where(np.isfinite(values), hit.astype(np.float64), np.nan))


class SinceStart:
    """Another measure set against the median of the run's first `count` finite points: a ratio, or a difference.

    Says nothing while the start is still being written. As a ratio, it says nothing where the start is not above 0.
    """

    def __init__(self, inner: Measure, count: int, difference: bool) -> None:
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
        start = float(np.median(self.first))
        compared = measured - start if self.difference else measured / (start if start > 0 else np.nan)
        compared[:quiet] = np.nan
        return compared


class AgainstPast:
    """Another measure set against the median of the `count` points before its own window: a ratio, or a difference.

    A spike is a value far above the points just before it; the window itself is left out, so that it cannot hide there.
    """

    def __init__(self, inner: Measure, window: int, count: int, difference: bool) -> None:
        self.inner = inner
        self.before = Rolling(_median, count, max(3, count // 2))
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


def _noise(windows: Floats) -> Floats:
    """Point-to-point noise: the median absolute first difference, scaled to a standard deviation of one point."""
    return np.asarray(_median(np.abs(windows)) / (0.6745 * np.sqrt(2.0)), np.float64)


class Noise:
    """The noise of one point so far, the unit of `from_best` and `gain`.

    It comes from first differences, which do not see a trend, and is the largest level seen so far, so that a run that
    dies and goes flat is not measured by its own silence. Where every point is the same, it is a thousandth of the
    largest value.
    """

    def __init__(self) -> None:
        self.rolling = Rolling(_noise, 50, 5)
        self.last = np.nan
        self.loudest = 0.0
        self.largest = 0.0

    def extend(self, values: Floats) -> Floats:
        """The unit at each of the next points; NaN while it is not known."""
        if not len(values):
            return np.empty(0)
        known = np.isfinite(values)
        change = np.full(len(values), np.nan)
        change[known] = np.diff(values[known], prepend=self.last)  # across a gap too, wherever the points were cut
        noise = self.rolling.extend(change)
        if known.any():
            self.last = float(values[known][-1])
        loudest = np.fmax(np.fmax.accumulate(np.nan_to_num(noise)), self.loudest)
        largest = np.fmax(np.fmax.accumulate(np.where(known, np.abs(values), 0.0)), self.largest)
        self.loudest, self.largest = float(loudest[-1]), float(largest[-1])
        unit = np.fmax(loudest, largest * 1e-3)
        return np.where(unit > 0, unit, np.nan)


def in_noise(difference: Floats, unit: Floats) -> Floats:
    """A difference in units of noise; no difference is 0, also where no noise was ever seen."""
    return np.where(difference == 0, 0.0, difference / unit)


class FromBest:
    """How far the median of the last `window` points lies below the best such median so far, in units of noise."""

    def __init__(self, window: int, least: int) -> None:
        self.level = Rolling(_median, window, least)
        self.noise = Noise()
        self.best = -np.inf

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        if not len(values):
            return np.empty(0)
        finite = np.where(np.isfinite(values), values, np.nan)
        level = self.level.extend(finite)
        best = np.fmax(np.fmax.accumulate(np.where(np.isnan(level), -np.inf, level)), self.best)
        self.best = float(best[-1])
        with np.errstate(invalid="ignore"):
            return in_noise(best - level, self.noise.extend(finite))


class GivenBack:
    """How much of its gain a series has lost: its fall from the best level so far, over that level's height above the first.

    A level is the median of the last `window` points. Where nothing had been gained, any fall counts as infinite.
    """

    def __init__(self, window: int, least: int) -> None:
        self.level = Rolling(_median, window, least)
        self.first = np.nan
        self.best = -np.inf

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        if not len(values):
            return np.empty(0)
        level = self.level.extend(values)
        known = level[~np.isnan(level)]
        if np.isnan(self.first) and len(known):
            self.first = float(known[0])
        best = np.fmax(np.fmax.accumulate(np.where(np.isnan(level), -np.inf, level)), self.best)
        self.best = float(best[-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(level < best, (best - level) / (best - self.first), np.where(np.isnan(level), np.nan, 0.0))


class Gain:
    """How far the median of the last `window` points lies above that of the run's first `window` points, in units of noise."""

    def __init__(self, window: int) -> None:
        self.level = Rolling(_median, window, window)
        self.noise = Noise()
        self.start = np.nan

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        if not len(values):
            return np.empty(0)
        finite = np.where(np.isfinite(values), values, np.nan)
        level = self.level.extend(finite)
        known = level[~np.isnan(level)]
        if np.isnan(self.start) and len(known):
            self.start = float(known[0])
        return in_noise(level - self.start, self.noise.extend(finite))


class Peak:
    """The largest finite value so far."""

    def __init__(self) -> None:
        self.largest = -np.inf

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        if not len(values):
            return np.empty(0)
        peak = np.fmax(np.fmax.accumulate(np.where(np.isfinite(values), values, -np.inf)), self.largest)
        self.largest = float(peak[-1])
        return np.where(np.isfinite(peak), peak, np.nan)


MEASURES = (*ROLLING, "nonfinite", "share", "from_best", "given_back", "gain", "peak")
