"""The noise of a series with correlated points, at each of its points: the spread of one point, and the error of the
level of several.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from rlhealth.engine.estimate import Estimate
from rlhealth.engine.parts import Parts
from rlhealth.engine.variogram import MEDIAN, Beginnings
from rlhealth.engine.windows import numbered
from rlhealth.run import Floats

KEPT = 2048  # the newest points, from which noise is estimated
FIRST = 8  # with fewer points there is no estimate
GROWTH = 1.2  # noise is estimated again after so many times more points: the work stays proportional to the points
FLOOR = 1e-3  # of the largest value: less noise than that counts as none
ROOT_2 = sqrt(2.0)  # a difference of two levels has the errors of both


def per_noise(difference: Floats, error: Floats, spread: Floats) -> Estimate:
    """A difference of levels and its error in units of noise; no difference is 0, and without an error if there was no
    noise so far."""
    with np.errstate(divide="ignore", invalid="ignore"):
        still = (difference == 0) & ~(error > 0)
        return Estimate(np.where(difference == 0, 0.0, difference / spread), np.where(still, 0.0, error / spread))


class Noise:
    """The noise of a series so far, causally: estimated again after each fifth more points, constant in between.

    `windows`: the numbers of points for whose levels an error is needed. `smoothed`: see `remembered`.
    """

    def __init__(self, windows: tuple[int, ...], smoothed: int = 1) -> None:
        self.windows: tuple[int, ...] = ()
        self.smoothed = smoothed
        self.points: Floats = np.empty(0)
        self.count = 0
        self.next = FIRST
        self.largest = 0.0
        self.want(windows)

    def want(self, windows: tuple[int, ...]) -> list[int]:
        """Adds these windows, before the first point; returns the rows of `extend` with their errors."""
        assert not self.count
        self.windows = tuple(dict.fromkeys((*self.windows, *windows)))
        self.known = np.full((4 + len(self.windows), 1), np.nan)
        self.least = FLOOR * np.array([1.0, 1.0, 0.0, 1.0, *(min(1.0, MEDIAN / sqrt(one)) for one in self.windows)])
        return [4 + self.windows.index(one) for one in windows]

    def extend(self, values: Floats) -> Floats:
        """At each of the next points: the spread of one point, the error of a mean, how many points a fluctuation
        lasts, the widest spread (see `NoiseEstimate`), and the error of a level of each window.

        Shape (4 + windows, n); missing points are NaN.
        """
        if not len(values):
            return np.empty((len(self.known), 0))
        is_known = np.isfinite(values)
        number = self.count + numbered(is_known)
        points = np.concatenate([self.points, values if is_known.all() else values[is_known]])
        skipped = self.count - len(self.points)
        found = np.empty((len(self.known), len(values)))
        start, beginnings = 0, None
        while self.next <= number[-1]:
            place = int(np.searchsorted(number, self.next))
            found[:, start:place], start = self.known, place
            end = self.next - skipped
            if end > KEPT:
                memory = Beginnings(points[end - KEPT : end]).remembered(KEPT, self.smoothed)
            else:
                beginnings = beginnings or Beginnings(points[:KEPT])
                memory = beginnings.remembered(end, self.smoothed)
            if memory is not None:
                levels = map(memory.level, self.windows)
                self.known = np.array([[memory.spread, memory.mean, memory.lasts, memory.widest, *levels]]).T
            self.next = max(self.next + 1, int(self.next * GROWTH))
        found[:, start:] = self.known
        self.count = int(number[-1])
        self.points = points[-KEPT:].copy()
        largest = np.maximum(np.maximum.accumulate(np.where(is_known, np.abs(values), 0.0)), self.largest)
        self.largest = float(largest[-1])
        floor = np.where(largest > 0, largest, np.nan)
        for row, least in zip(found, self.least, strict=True):
            np.fmax(row, least * floor, out=row)
        found[:, : np.searchsorted(number, FIRST)] = np.nan
        return found


class SharedNoise:
    """The noise of a series that several measures use, each for levels of its own windows."""

    def __init__(self, windows: tuple[int, ...], smoothed: int, parts: Parts | None) -> None:
        self.cursor = (parts or Parts()).take(("noise", smoothed), lambda: Noise((), smoothed))
        noise = self.cursor.shared.part
        assert isinstance(noise, Noise)
        self.rows = [0, 1, 2, 3, *noise.want(windows)]

    def extend(self, values: Floats) -> list[Floats]:
        """The rows of `Noise` for the next points, with its own windows only: 4 + windows rows of shape (n,)."""
        found = self.cursor.extend(values)
        return [found[row] for row in self.rows]
