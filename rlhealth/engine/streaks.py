"""Streaks: points in a row at a level, compared with how many in a row chance gives."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.estimate import Bound, Flags, ValueMeasure
from rlhealth.engine.windows import Held
from rlhealth.run import Floats

LUCK = 0.05  # the share of runs in which it may happen by chance
PRIOR = 3.0  # four points are assumed before the first: so many of them were at the level
FIRST = 0.45  # the assumed share of points at the level, until one was not


class Streak:
    """How unlikely it is that so many points in a row are at a level by chance; 0 before `window` points.

    The chance that the next point is at the level is the share of earlier points that were (Laplace's rule of
    succession, with four assumed points). The chance of a streak is the product over its points. The measure is the
    logarithm of that chance, divided by the logarithm of 1/20 shared among the streaks so far: above 1 is no chance. A
    series that was never elsewhere says nothing about chance, and counts after five points.
    """

    def __init__(self, inner: ValueMeasure, window: int, above: float | None, below: float | None) -> None:
        self.inner = inner
        self.bounds = [Bound(sign, level) for sign, level in (("above", above), ("below", below)) if level is not None]
        self.window = window
        self.count = 0
        self.elsewhere = 0, 0  # the number of the last point that was not at the level, and how many were not
        self.chances = 0.0, 0.0  # log chance of all points at the level, and its value at that last point
        self.held = Held()

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        found = self.inner.extend(values)
        known = np.isfinite(found)
        there = np.logical_and.reduce([bound.holds(found[known]) for bound in self.bounds])
        return self.held.over(known, self._measured(there) if len(there) else np.empty(0))

    def _measured(self, there: Flags) -> Floats:
        number = self.count + 1 + np.arange(len(there))
        before, misses = self.elsewhere
        missed = misses + np.cumsum(~there)
        often = (number - 1 - missed + PRIOR) / (number + PRIOR)  # by the points before each point at the level
        chance = np.where(there, np.where(missed > 0, often, FIRST), 1.0)
        sums = np.cumsum(np.append(self.chances[0], np.log(chance)))[1:]
        last = np.maximum.accumulate(np.append(before, np.where(there, 0, number)))[1:]
        begun = np.append(self.chances[1], sums)[np.maximum(last - self.count, 0)]
        self.count, self.elsewhere = int(number[-1]), (int(last[-1]), int(missed[-1]))
        self.chances = float(sums[-1]), float(begun[-1])
        unlikely = (sums - begun) / np.log(LUCK / ((1.0 + missed) * (2.0 + missed)))  # which adds up to LUCK
        return np.where(number - last >= self.window, unlikely, 0.0)
