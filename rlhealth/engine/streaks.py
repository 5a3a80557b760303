"""Streaks: points in a row at a level, against how many in a row chance makes of it."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.estimate import Bound, Flags, ValueMeasure
from rlhealth.engine.windows import Held
from rlhealth.run import Floats

LUCK = 0.05  # what happens by chance in so many runs
PRIOR = 3.0  # of four points that are thought to come before the first, so many were there
FIRST = 0.45  # how often points are thought to be there before one that was not has come


class Streak:
    """How unlikely it is by chance that so many points in a row are at a level; 0 before `window` points.

    The chance of each next point to be there is the share of the points before it that were (Laplace's rule of
    succession, with four points in advance), and that of a streak the product of its points'. Its logarithm is set over
    that of what happens in one of twenty runs, shared out among the streaks so far: above 1 is no chance. A series that
    has never been elsewhere says nothing about chance, and is believed after five points.
    """

    def __init__(self, inner: ValueMeasure, window: int, above: float | None, below: float | None) -> None:
        self.inner = inner
        self.bounds = [Bound(sign, level) for sign, level in (("above", above), ("below", below)) if level is not None]
        self.window = window
        self.count = 0
        self.elsewhere = 0, 0  # the number of the last point that was not there, and how many were not
        self.chances = 0.0, 0.0  # the logarithm of the chance of all points that were there, and what it was then
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
        often = (number - 1 - missed + PRIOR) / (number + PRIOR)  # by the points before each one that is there
        chance = np.where(there, np.where(missed > 0, often, FIRST), 1.0)
        sums = np.cumsum(np.append(self.chances[0], np.log(chance)))[1:]
        last = np.maximum.accumulate(np.append(before, np.where(there, 0, number)))[1:]
        begun = np.append(self.chances[1], sums)[np.maximum(last - self.count, 0)]
        self.count, self.elsewhere = int(number[-1]), (int(last[-1]), int(missed[-1]))
        self.chances = float(sums[-1]), float(begun[-1])
        unlikely = (sums - begun) / np.log(LUCK / ((1.0 + missed) * (2.0 + missed)))  # which adds up to LUCK
        return np.where(number - last >= self.window, unlikely, 0.0)
