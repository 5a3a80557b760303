"""Metric: one canonical metric of one run, a live view of a raw series (or distribution) in the canonical unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rlhealth.run import Floats, Histogram, Ints, Series

Step = Callable[[Floats], Floats]
Reduce = Callable[[Floats, Floats, float], float]


class Points(Protocol):
    """What a metric is seen through: a series, or one made from another."""

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
    """One canonical metric. It holds no points of its own: it grows with the run, and each point is transformed once.

    Attributes:
        name: canonical, such as `objective/kl`.
        tag: the name under which it was logged.
        unit: of `values`.
        estimator: "k1" (signed), "k2", "k3" (never negative), or "" where there is nothing to tell apart.
        transform: what was done to the logged value, such as "negate"; "" for nothing.
        note: what a careful reader has to know about it; "" for nothing.
        source: the points.
    """

    name: str
    tag: str
    unit: str
    estimator: str
    transform: str
    note: str
    source: Points = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def revision(self) -> int:
        """Counts the changes that were not a growth at the end; where it stays, the points up to the old length are the same."""
        return self.source.revision

    @property
    def steps(self) -> Ints:
        """Steps, shape (n,), strictly increasing."""
        return self.source.steps

    @property
    def times(self) -> Floats:
        """Wall times, shape (n,), seconds since 1970; NaN where the tracker kept none."""
        return self.source.times

    @property
    def values(self) -> Floats:
        """Values, shape (n,), in `unit`; NaN and infinities are kept."""
        return self.source.values

    def values_from(self, start: int) -> Floats:
        """The values from index `start` on, shape (n - start,)."""
        return self.source.values[start:]


class _Derived:
    """A series made from another, point by point, as that one grows."""

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
        self._synced()
        return self._revision

    @property
    def steps(self) -> Ints:
        return self._synced().steps

    @property
    def values(self) -> Floats:
        return self._synced().values

    @property
    def times(self) -> Floats:
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


class _Changed(_Derived):
    def __init__(self, series: Series, change: Callable[[Floats], tuple[NDArray[np.bool_], Floats]]) -> None:
        super().__init__(series.tag)
        self._series, self._change = series, change

    def _raw(self) -> tuple[int, int]:
        return self._series.revision, len(self._series)

    def _make(self, start: int) -> None:
        keep, values = self._change(self._series.values[start:])
        self._made.extend(self._series.steps[start:][keep], values[keep], self._series.times[start:][keep])


class _Reduced(_Derived):
    def __init__(self, histogram: Histogram, reduce: Reduce, clip_range: float) -> None:
        super().__init__(histogram.tag)
        self._histogram, self._reduce, self._clip_range = histogram, reduce, clip_range

    def _raw(self) -> tuple[int, int]:
        return self._histogram.revision, len(self._histogram)

    def _make(self, start: int) -> None:
        one = self._histogram
        values = [self._reduce(edges, counts, self._clip_range) for edges, counts in zip(one.edges[start:], one.counts[start:], strict=True)]
        self._made.extend(one.steps[start:], values, one.times[start:])


def changed(series: Series, transform: str, settings: Mapping[str, Any], keep_unscaled: bool = False) -> Points | str:
    """The series in the canonical unit; where a setting that this takes is not known, the sentence that says so.

    Args:
        transform: words joined by commas: negate, one-minus, percent-to-fraction, scale:C, clamp:A:B, missing:X (a value that means
            "not measured": its points are left out), over:SETTING (divided by that setting).
        settings: canonical settings of the run.
        keep_unscaled: whether the values are still of use where that setting is unknown.
    """
    steps: list[Step] = []
    missing: list[float] = []
    for word in filter(None, transform.split(",")):
        kind, _, rest = word.partition(":")
        if kind == "missing":
            missing.append(float(rest))
        elif kind == "over":
            divisor = settings.get(rest)
            if isinstance(divisor, int | float) and divisor > 0:
                steps.append(_over(float(divisor)))
            elif not keep_unscaled:
                return f"its unit needs {rest.replace('_', ' ')}, which the configuration does not tell"
        else:
            steps.append(_word(kind, rest))
    if not steps and not missing:
        return series

    def change(values: Floats) -> tuple[NDArray[np.bool_], Floats]:
        keep = ~np.isin(values, missing) if missing else np.ones(len(values), np.bool_)
        for step in steps:
            values = step(values)
        return keep, values

    return _Changed(series, change)


def reduced(histogram: Histogram, transform: str, clip_range: float) -> Points:
    """One number a step from a distribution of probability ratios; `clip_range` is half the width of the range around 1."""
    return _Reduced(histogram, _REDUCTIONS[transform], clip_range)


def _word(kind: str, rest: str) -> Step:
    if kind == "negate":
        return lambda values: -values
    if kind == "one-minus":
        return lambda values: 1.0 - values
    if kind == "percent-to-fraction":
        return lambda values: values / 100.0
    if kind == "scale":
        factor = float(rest)
        return lambda values: values * factor
    if kind == "clamp":
        low, _, high = rest.partition(":")
        floor, ceiling = float(low), float(high)
        return lambda values: np.clip(values, floor, ceiling)
    raise ValueError(f"unknown transform {kind!r}")


def _over(divisor: float) -> Step:
    return lambda values: values / divisor


def _bins(edges: Floats, counts: Floats, clip_range: float) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Low edges, high edges and counts of the bins that hold ratios, and which of them are to be read as ratio 1.

    Ratios are positive: a bin at or below 0 holds the filler -1 that TRL pads with. Prompt and padding positions are exactly 1, so a bin
    around 1 that is wider than the clip range (a far outlier makes all of them wide) is read as 1: its centre would invent a drift.
    """
    holds = (counts > 0) & (edges[1:] > 0)
    low, high = edges[:-1][holds], edges[1:][holds]
    at_one = (low <= 1) & (high >= 1) & (high - low > 2 * clip_range) | (low < 0)
    return low, high, counts[holds], at_one


def _mean(edges: Floats, counts: Floats, clip_range: float) -> float:
    low, high, held, at_one = _bins(edges, counts, clip_range)
    if not len(held):
        return float("nan")
    return float(np.average(np.where(at_one, 1.0, (low + high) / 2), weights=held))


def _max(edges: Floats, counts: Floats, clip_range: float) -> float:
    _, high, held, _ = _bins(edges, counts, clip_range)
    return float(high[-1]) if len(held) else float("nan")


def _min(edges: Floats, counts: Floats, clip_range: float) -> float:
    low, _, held, _ = _bins(edges, counts, clip_range)
    if not len(held):
        return float("nan")
    return float(low[0]) if low[0] >= 0 else 1.0


def _outside(edges: Floats, counts: Floats, clip_range: float) -> float:
    low, high, held, at_one = _bins(edges, counts, clip_range)
    if not len(held):
        return float("nan")
    inside = np.clip(np.minimum(high, 1 + clip_range) - np.maximum(low, 1 - clip_range), 0, None)
    share = np.where(at_one, 1.0, np.divide(inside, high - low, out=((low >= 1 - clip_range) & (high <= 1 + clip_range)).astype(np.float64), where=high > low))
    return float(1 - np.sum(held * share) / np.sum(held))


_REDUCTIONS: dict[str, Reduce] = {"histogram-mean": _mean, "histogram-max": _max, "histogram-min": _min, "histogram-outside": _outside}
