"""The envelope of known-good runs: the range of a metric at each step, and how far outside of it another run
is.

The band at a step is from the lowest to the highest of the known-good runs (each a causal rolling median, linearly
between its points), widened on both sides by three parts:

- noise: three times the robust standard deviation of the points around their rolling median, pooled over the runs
  (1.4826 x the median absolute deviation; where most points are equal, the 95th percentile of |deviation| / 1.96):
  how far a run moves by chance;
- range: the usual width of the band / (n - 1): n runs see only (n - 1)/(n + 1) of the range that runs can take, and
  this makes the ends of the range unbiased (for a uniform spread: David and Nagaraja, Order Statistics, 2003);
- strangeness: the furthest that any of the known-good runs is outside the unwidened band of the others, for as many
  points in a row as it takes to be reported: by this width, none of them would be called unhealthy by the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rlhealth.engine.windows import ROLLING, Rolling
from rlhealth.metrics import Metric
from rlhealth.run import Floats, Ints

WINDOW = 5  # points of the rolling median: two outliers in five points do not move it
LEAST = 3
SIGMAS = 3.0


@dataclass(frozen=True)
class Curve:
    """One metric of one run, as it is compared: its finite points, each of shape (n,), and their causal rolling
    median.
    """

    steps: Ints
    values: Floats
    smooth: Floats

    def at(self, steps: Ints) -> Floats:
        """The rolling median at those steps, linearly between points; NaN before the first and after the last."""
        inside = (steps >= self.steps[0]) & (steps <= self.steps[-1])
        return np.where(inside, np.interp(steps, self.steps, self.smooth), np.nan)

    def points_at(self, place: int) -> int:
        """How many points the median at that place covers: the first places have fewer points than the window."""
        return min(WINDOW, LEAST + place)


class Scale:
    """The scale on which values are compared, so that chance moves them equally far at every level.

    The logarithm, for a metric that is read on a log scale and never negative. The arcsine of the square root, for a
    share of a batch: it gives binomial counts the same variance at 2 % as at 50 % (Anscombe, 1948). Otherwise the
    values themselves.
    """

    def __init__(self, known_good: Sequence[Metric], log: bool) -> None:
        values = np.concatenate([one.values[np.isfinite(one.values)] for one in known_good])
        positive = values[values > 0]
        sign = (values < 0).any()
        self.log = log and len(positive) > 0 and not sign
        self.floor = float(positive.min()) if self.log else 0.0
        self.share = not self.log and known_good[0].unit == "fraction" and not sign and not (values > 1).any()

    def into(self, values: Floats) -> Floats:
        """The values on this scale; for a logarithm, they are at least the smallest value of the known-good
        runs.
        """
        if self.share:
            return np.arcsin(np.sqrt(np.clip(values, 0, 1)))
        return np.log10(np.maximum(values, self.floor)) if self.log else values

    def back(self, value: float) -> float:
        """A compared value in the metric's own unit."""
        if self.share:
            return float(np.sin(np.clip(value, 0, np.pi / 2)) ** 2)
        return float(10**value) if self.log else value


def curve(metric: Metric, scale: Scale) -> Curve | None:
    """The curve of one run's metric; None if it has too few finite points."""
    finite = np.isfinite(metric.values)
    values = scale.into(metric.values[finite])
    smooth = Rolling(ROLLING["median"], WINDOW, LEAST).extend(values)
    known = ~np.isnan(smooth)
    return Curve(metric.steps[finite][known], values[known], smooth[known]) if known.any() else None


@dataclass(frozen=True)
class Envelope:
    """The band of several known-good runs, and by how much it is widened."""

    curves: tuple[Curve, ...]
    width: float

    def band(self, steps: Ints) -> tuple[Floats, Floats]:
        """The lower and upper end at those steps, each of shape (n,); NaN at steps that fewer than two runs reached."""
        low, high = _extremes(self.curves, steps, least=2)
        return low - self.width, high + self.width


def envelope(curves: Sequence[Curve], hold: int) -> Envelope:
    """The envelope of two or more runs; `hold` is the number of points in a row for which a run must be outside."""
    grid = np.unique(np.concatenate([one.steps for one in curves]))
    low, high = _extremes(curves, grid, least=2)
    spread = (high - low)[~np.isnan(low)]
    reach = float(np.median(spread)) / (len(curves) - 1) if len(spread) else 0.0
    strangest = max(_strangeness(one, [other for other in curves if other is not one], hold) for one in curves)
    return Envelope(tuple(curves), SIGMAS * noise(curves) + reach + strangest)


def noise(curves: Sequence[Curve]) -> float:
    """The robust standard deviation of the points around their rolling median, pooled over the runs."""
    strays = np.abs(np.concatenate([one.values - one.smooth for one in curves]))
    return max(1.4826 * float(np.median(strays)), float(np.quantile(strays, 0.95)) / 1.96)


def _extremes(curves: Sequence[Curve], steps: Ints, least: int) -> tuple[Floats, Floats]:
    held = np.array([one.at(steps) for one in curves])
    few = np.count_nonzero(~np.isnan(held), axis=0) < least
    low, high = np.fmin.reduce(held, axis=0), np.fmax.reduce(held, axis=0)
    return np.where(few, np.nan, low), np.where(few, np.nan, high)


def _strangeness(one: Curve, others: Sequence[Curve], hold: int) -> float:
    low, high = _extremes(others, one.steps, least=1)
    outside = np.fmax(low - one.smooth, one.smooth - high)
    outside = np.where(np.isnan(outside), 0.0, outside)
    if len(outside) < hold:
        return max(0.0, float(outside.min(initial=0.0)))
    return max(0.0, float(sliding_window_view(outside, hold).min(axis=1).max()))
