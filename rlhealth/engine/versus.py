"""Measures compared with the start of the run, or with the points just before their window."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rlhealth.engine.estimate import Estimate, Measure, ValueMeasure
from rlhealth.engine.windows import ROLLING, Reduce, Rolling, level_of_start, median
from rlhealth.run import Floats

AT_ONCE = 256  # points per batch in the search for the start


class VersusStart:
    """Another measure compared with the median, or the largest, of the run's first `count` finite points: as a ratio,
    or as a difference.

    Unknown until the start is complete. A ratio is also unknown if the start is not above 0.
    """

    def __init__(self, inner: ValueMeasure, count: int, difference: bool, by: str = "median") -> None:
        self.inner = inner
        self.count = count
        self.difference = difference
        self.by = by
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
        start = level_of_start(self.first, self.by)
        compared = measured - start if self.difference else measured / (start if start > 0 else np.nan)
        compared[:quiet] = np.nan
        return compared


class VersusPast:
    """Another measure compared with the median of the `count` points before its own window: a ratio, or a difference.

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
    """A measure compared with the run's start or with its own past, as a rule defines it."""
    if versus.start is not None:
        return VersusStart(inner, versus.start, not versus.is_ratio, versus.by)
    reduce = median if versus.before is not None else ROLLING["max" if versus.largest is not None else "min"]
    return VersusPast(inner, window, versus.past, not versus.is_ratio, reduce, versus.needed)


class EstimateVersusStart:
    """How far an estimate lies above the first known one, with the errors of both."""

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
        """The index of the first point at which the start is known; searches in small batches, as few suffice."""
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
        """What the estimate still lacks."""
        return str(getattr(self.inner, "lacking", ""))


class Past(Protocol):
    """What a measure is compared with: the points of the `start`, or the median, the largest or the smallest before."""

    @property
    def start(self) -> int | None:
        """How many points of the start; None if the measure is compared with the past."""

    @property
    def by(self) -> str:
        """The statistic of these points: their `median`, or the `largest`."""

    @property
    def before(self) -> int | None:
        """The median of how many points; None if an extreme is used."""

    @property
    def largest(self) -> int | None:
        """The largest of how many points."""

    @property
    def past(self) -> int:
        """How many points before the window are used."""

    @property
    def needed(self) -> int:
        """How many of them must be known."""

    @property
    def is_ratio(self) -> bool:
        """Whether the measure is divided by it; otherwise it is subtracted."""
