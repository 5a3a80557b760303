"""Streaks: points in a row at a level, against how many in a row chance makes of it."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.estimate import Bound, Flags, ValueMeasure
from rlhealth.run import Floats

PRIOR, USUAL = 2.0, 0.5  # how many points are thought to come before the first, and how many of them were at the level
LUCK = 0.05  # what happens by chance in so many runs


class Streak:
    """For how many points in a row a series has been at a level, over how many in a row chance makes of it; 0 before
    `window` points.

    How often a point is there by chance is taken from the points before the streak, as if before them there had been
    two more of which one was there. So a series that never was is believed after `window` points, one that is there
    at most steps after many, and one that has never been elsewhere after five. Chance is what happens once in twenty
    runs, among all streaks so far.
    """

    def __init__(self, inner: ValueMeasure, window: int, above: float | None, below: float | None) -> None:
        self.inner = inner
        self.bounds = [Bound(sign, level) for sign, level in (("above", above), ("below", below)) if level is not None]
        self.window = window
        self.count = 0
        self.elsewhere = 0, 0  # the number of the last point that was not there, and how many were not
        self.last = np.full(1, np.nan)

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        found = self.inner.extend(values)
        known = np.isfinite(found)
        there = np.logical_and.reduce([bound.holds(found[known]) for bound in self.bounds])
        joined = np.concatenate([self.last, self._measured(there)])
        self.last = joined[-1:].copy()
        return np.asarray(joined[np.cumsum(known)], np.float64)

    def _measured(self, there: Flags) -> Floats:
        number = self.count + 1 + np.arange(len(there))
        before, misses = self.elsewhere
        last = np.maximum.accumulate(np.append(before, np.where(there, 0, number)))[1:]
        missed = misses + np.cumsum(~there)
        if len(there):
            self.count, self.elsewhere = int(number[-1]), (int(last[-1]), int(missed[-1]))
        often = (last - missed + PRIOR * USUAL) / (last + PRIOR)
        chance = np.log(LUCK / (1 + missed)) / np.log(often)
        streak = number - last
        return np.where(streak >= self.window, streak / chance, 0.0)
