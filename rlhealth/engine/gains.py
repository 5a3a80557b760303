"""Measures of what a series gained: since its first window, and from its first third to its newest."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.equal_parts import PARTS, Looks, means_of_parts
from rlhealth.engine.estimate import NOTHING, Estimate
from rlhealth.engine.noise import ROOT_2, SharedNoise, per_noise
from rlhealth.engine.parts import Parts
from rlhealth.engine.windows import Rolling, SumsSoFar, median
from rlhealth.run import Floats, Ints

LEAST_THIRD = 3  # points that a third of a run must have
LEAST_IN_PARTS = 20 * PARTS  # points of a run whose parts show its noise
UNLIKE = 1.5  # times the variance of the parts: the least mean square of their differences
WIDER = 1.3  # eleven differences of parts know it to a quarter


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
        spread, _, _, _, error = self.noise.extend(finite)
        return per_noise(level - self.start, ROOT_2 * error, spread)


class GainByThirds:
    """How far the mean of the newest third of the run so far lies above that of its first third, in units of noise.

    The thirds grow with the run, and their error shrinks: so a run of any length either shows that its reward has not
    risen, or leaves it open. In a long run the means of equal parts show that error, too, whatever its points are like:
    those of a game that is won for a while, and lost for a while, look like fluctuations that last for long. The unit
    is the widest spread: an arm that misses one time in nine, and loses tenfold then, gains little by missing one less.
    """

    def __init__(self, smoothed: int = 1, parts: Parts | None = None) -> None:
        self.noise = SharedNoise((), smoothed, parts)
        self.sums = SumsSoFar(2)
        self.of_parts = ErrorOfParts()
        self.last = Estimate(np.full(1, np.nan), np.full(1, np.nan))

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        if not len(values):
            return NOTHING
        known = np.isfinite(values)
        spread, error, _, widest = self.noise.extend(np.where(known, values, np.nan))
        points = values
        if not known.all():
            points, spread, error, widest = values[known], spread[known], error[known], widest[known]
        sums, squares = self.sums.add(points, points * points)
        end = np.arange(self.sums.count - len(points) + 1, self.sums.count + 1)
        third = end // 3
        with np.errstate(all="ignore"):
            first = sums[third] / third
            newest, square = ((row[end] - row[end - third]) / third for row in (sums, squares))
            tails = np.sqrt(np.fmax(square - newest**2, 0.0)) / spread  # outliers move a mean; medians do not show them
            least = ROOT_2 * spread / np.sqrt(third)  # as if its points were independent
            error = np.fmin(ROOT_2 * error * np.fmax(tails, 1.0) / np.sqrt(third), self.of_parts.extend(sums, end))
            made = per_noise(newest - first, np.fmax(error, least), widest)
        short = third < LEAST_THIRD
        made.value[short] = np.nan
        joined = self.last.then(made)
        self.last = joined.part(slice(-1, None))
        return made if known.all() else joined.at(np.cumsum(known))


class ErrorOfParts:
    """The standard error of the difference between the means of the newest and the first third of a series, from the
    means of twelve equal parts of all points so far: half of the mean square of their successive differences is their
    variance (von Neumann 1941). Infinite before `LEAST_IN_PARTS` points, and where neighbouring parts are alike: of
    independent parts that mean square is twice their variance, of a trend or a slow drift far less.
    """

    def __init__(self) -> None:
        self.looks = Looks(LEAST_IN_PARTS, np.inf)

    def extend(self, sums: Floats, number: Ints) -> Floats:
        """The errors at the next points, which have those numbers, shape (n,), from all sums so far."""
        looked = self.looks.among(number)
        means, _ = means_of_parts(sums, number[looked])
        steps = np.mean(np.diff(means) ** 2, axis=1)
        # half of `steps` is the variance of a part, and each of the two thirds is the mean of PARTS / 3 of them
        error = np.where(steps >= UNLIKE * np.var(means, axis=1), WIDER * np.sqrt(steps / (PARTS / 3)), np.inf)
        return self.looks.held(error, looked, len(number))
