"""Measures of what a series gained: since its first window, and from its first third to its newest."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.estimate import NOTHING, Estimate
from rlhealth.engine.noise import ROOT_2, SharedNoise, per_noise
from rlhealth.engine.parts import Parts
from rlhealth.engine.windows import Rolling, SumsSoFar, median
from rlhealth.run import Floats

LEAST_THIRD = 3  # points that a third of a run must have


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

    The thirds grow with the run, and their error shrinks: so a run of any length either shows that its reward has not
    risen, or leaves it open.
    """

    def __init__(self, smoothed: int = 1, parts: Parts | None = None) -> None:
        self.noise = SharedNoise((), smoothed, parts)
        self.sums = SumsSoFar(2)
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
        sums, squares = self.sums.add(points, points * points)
        end = np.arange(self.sums.count - len(points) + 1, self.sums.count + 1)
        third = end // 3
        with np.errstate(all="ignore"):
            first = sums[third] / third
            newest, square = ((row[end] - row[end - third]) / third for row in (sums, squares))
            tails = np.sqrt(np.fmax(square - newest**2, 0.0)) / spread  # outliers move a mean; medians do not show them
            made = per_noise(newest - first, ROOT_2 * error * np.fmax(tails, 1.0) / np.sqrt(third), spread)
        short = third < LEAST_THIRD
        made.value[short] = np.nan
        joined = self.last.then(made)
        self.last = joined.part(slice(-1, None))
        return made if known.all() else joined.at(np.cumsum(known))
