"""Metric: one canonical metric of one run, a live view of a raw series (or distribution) in the canonical unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rlhealth.metrics.transforms import Change, Reduce
from rlhealth.run import Floats, Histogram, Ints, Series


class Points(Protocol):
    """The points behind a metric: a logged series, or a series derived from one."""

    @property
    def revision(self) -> int:
        """Counts the changes that were not a growth at the end."""

    @property
    def steps(self) -> Ints:
        """Steps, shape (n,)."""

    @property
    def values(self) -> Floats:
        """Values, shape (n,)."""

    @property
    def times(self) -> Floats:
        """Wall times, shape (n,)."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Metric:
    """One canonical metric. It stores no logged points: it grows with the run, and each point is transformed once.

    Attributes:
        name: canonical, such as `objective/kl`.
        tag: the name under which it was logged.
        unit: of `values`.
        estimator: "k1" (signed), "k2", "k3" (never negative), or "" if there is nothing to distinguish.
        transform: the change of the logged value, such as "negate"; "" for none.
        note: what a careful reader must know about it; "" for nothing.
        source: the points.
        smoothed: the largest number of points over which the framework averages each point; such points are no
            independent samples.
    """

    name: str
    tag: str
    unit: str
    estimator: str
    transform: str
    note: str
    source: Points = field(repr=False, compare=False)
    smoothed: int = 1

    def __len__(self) -> int:
        return len(self.source)

    @property
    def revision(self) -> int:
        """Counts the changes other than growth at the end; while it is constant, the points up to the old length are
        the same."""
        return self.source.revision

    @property
    def steps(self) -> Ints:
        """Steps, shape (n,), strictly increasing."""
        return self.source.steps

    @property
    def times(self) -> Floats:
        """Wall times, shape (n,), seconds since 1970; NaN if the tracker kept none."""
        return self.source.times

    @property
    def values(self) -> Floats:
        """Values, shape (n,), in `unit`; NaN and infinities are kept."""
        return self.source.values

    def values_from(self, start: int) -> Floats:
        """The values from index `start` on, shape (n - start,)."""
        return self.source.values[start:]


class DerivedSeries:
    """A series derived from another, point by point, as that one grows."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._seen = 0
        self._raw_revision = -1
        self._revision = 0
        self._made = Series(tag)

    def __len__(self) -> int:
        return len(self._synced())

    @property
    def revision(self) -> int:
        """Counts the changes that were not a growth at the end."""
        self._synced()
        return self._revision

    @property
    def steps(self) -> Ints:
        """Steps, shape (n,)."""
        return self._synced().steps

    @property
    def values(self) -> Floats:
        """Values, shape (n,)."""
        return self._synced().values

    @property
    def times(self) -> Floats:
        """Wall times, shape (n,)."""
        return self._synced().times

    def _synced(self) -> Series:
        revision, length = self._raw()
        if revision != self._raw_revision:
            if self._raw_revision != -1:
                self._revision += 1
            self._raw_revision, self._seen, self._made = revision, 0, Series(self._tag)
        if self._seen < length:
            self._make(self._seen)
            self._seen = length
        return self._made

    def _raw(self) -> tuple[int, int]:
        raise NotImplementedError

    def _make(self, start: int) -> None:
        raise NotImplementedError


class ConvertedSeries(DerivedSeries):
    """A series in another unit, without points that mean "not measured"."""

    def __init__(self, series: Series, change: Change) -> None:
        super().__init__(series.tag)
        self._series, self._change = series, change

    def _raw(self) -> tuple[int, int]:
        return self._series.revision, len(self._series)

    def _make(self, start: int) -> None:
        keep, values = self._change(self._series.values[start:])
        self._made.extend(self._series.steps[start:][keep], values[keep], self._series.times[start:][keep])


class _OfPoints(DerivedSeries):
    """A series with a value for each of other points."""

    def __init__(self, tag: str, points: Points) -> None:
        super().__init__(tag)
        self._points = points

    def _raw(self) -> tuple[int, int]:
        return self._points.revision, len(self._points)


class Clock(_OfPoints):
    """The steps of other points, as values."""

    def _make(self, start: int) -> None:
        steps = self._points.steps[start:]
        self._made.extend(steps, steps.astype(np.float64), self._points.times[start:])


class RunningSum(_OfPoints):
    """The sum of other points so far; one without a value adds nothing."""

    def _make(self, start: int) -> None:
        before = float(self._made.values[-1]) if start else 0.0
        added = np.nan_to_num(self._points.values[start:], nan=0.0, posinf=0.0, neginf=0.0)
        self._made.extend(self._points.steps[start:], before + np.cumsum(added), self._points.times[start:])


class EndedEpisodes(DerivedSeries):
    """A reward without the points at which no episode had ended yet: 0, beside a mean length of 0, which no episode
    has. A loop that logs more often than episodes end begins with such points."""

    def __init__(self, tag: str, reward: Points, length: Points) -> None:
        super().__init__(tag)
        self._reward, self._length = reward, length
        self._lengths = 0
        self._made_to = -1
        self._late = 0

    def _raw(self) -> tuple[int, int]:
        """A length of 0 that comes after its reward takes that away: that is a revision."""
        new = slice(self._lengths, len(self._length))
        if np.any((self._length.values[new] == 0) & (self._length.steps[new] <= self._made_to)):
            self._late += 1
        self._lengths = new.stop
        return self._reward.revision + self._length.revision + self._late, len(self._reward)

    def _make(self, start: int) -> None:
        steps, values = self._reward.steps[start:], self._reward.values[start:]
        self._made_to = int(steps[-1]) if len(steps) else self._made_to
        lengths = self._length.steps
        where = np.searchsorted(lengths, steps)
        none = where < len(lengths)
        none[none] = (lengths[where[none]] == steps[none]) & (self._length.values[where[none]] == 0)
        keep = ~(none & (values == 0))
        self._made.extend(steps[keep], values[keep], self._reward.times[start:][keep])


class HistogramSeries(DerivedSeries):
    """One number per step from a distribution."""

    def __init__(self, histogram: Histogram, reduce: Reduce, clip_range: float) -> None:
        super().__init__(histogram.tag)
        self._histogram, self._reduce, self._clip_range = histogram, reduce, clip_range

    def _raw(self) -> tuple[int, int]:
        return self._histogram.revision, len(self._histogram)

    def _make(self, start: int) -> None:
        one = self._histogram
        values = [
            self._reduce(edges, counts, self._clip_range)
            for edges, counts in zip(one.edges[start:], one.counts[start:], strict=True)
        ]
        self._made.extend(one.steps[start:], values, one.times[start:])


class SummedSeries(DerivedSeries):
    """The sum of several series at the steps of another; a series without a point there counts as 0."""

    def __init__(self, tag: str, parts: Sequence[Series], axis: Series, change: Change | None) -> None:
        super().__init__(tag)
        self._parts, self._axis, self._change = parts, axis, change
        self._added = [0] * len(parts)
        self._summed_to = -1
        self._late = 0

    def _raw(self) -> tuple[int, int]:
        """A part that arrives after its axis changes a sum that was computed without it: that is a revision."""
        lengths = [len(one) for one in self._parts]
        if any(
            length > added and part.steps[added] <= self._summed_to
            for part, length, added in zip(self._parts, lengths, self._added, strict=True)
        ):
            self._late += 1
        self._added = lengths
        return self._axis.revision + sum(one.revision for one in self._parts) + self._late, len(self._axis)

    def _make(self, start: int) -> None:
        steps = self._axis.steps[start:]
        self._summed_to = int(steps[-1]) if len(steps) else self._summed_to
        total = np.zeros(len(steps))
        for part in self._parts:
            where = np.searchsorted(part.steps, steps)
            held = where < len(part)
            held[held] = part.steps[where[held]] == steps[held]
            total[held] += part.values[where[held]]
        self._made.extend(steps, self._change(total)[1] if self._change else total, self._axis.times[start:])
