"""The noise of a series whose points depend on each other: how far one point strays, and how far the level of several,
at each point of the series.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from rlhealth.engine.estimate import Estimate
from rlhealth.engine.parts import Parts
from rlhealth.engine.variogram import MEDIAN, Beginnings
from rlhealth.engine.windows import numbered
from rlhealth.run import Floats

KEPT = 2048  # points that an estimate rests on: the newest ones
FIRST = 8  # with fewer points nothing is said
GROWTH = 1.2  # estimated anew whenever there are so many times more points: the work stays in proportion to the points
FLOOR = 1e-3  # of the largest value: less noise than that is none
ROOT_2 = sqrt(2.0)  # a difference of two levels has the errors of both


def per_noise(difference: Floats, error: Floats, spread: Floats) -> Estimate:
    """A difference of levels and its error in units of noise; no difference is 0, and surely so if no noise was ever
    seen."""
    with np.errstate(divide="ignore", invalid="ignore"):
        still = (difference == 0) & ~(error > 0)
        return Estimate(np.where(difference == 0, 0.0, difference / spread), np.where(still, 0.0, error / spread))


class Noise:
    """The noise of a series so far, causally: estimated anew whenever there are a fifth more points, held in between.

    `windows`: for levels of how many points an error is wanted. `smoothed`: see `remembered`.
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
        """Takes these windows too, before the first point; the rows in which `extend` answers for them."""
        assert not self.count
        self.windows = tuple(dict.fromkeys((*self.windows, *windows)))
        self.known = np.full((3 + len(self.windows), 1), np.nan)
        self.least = FLOOR * np.array([1.0, 1.0, 0.0, *(min(1.0, MEDIAN / sqrt(one)) for one in self.windows)])
        return [3 + self.windows.index(one) for one in windows]

    def extend(self, values: Floats) -> Floats:
        """At each of the next points: the spread of one point, the error of a mean, for how many points a fluctuation
        lasts (see `NoiseEstimate`), and the error of a level of each window.

        Shape (3 + windows, n); missing points are NaN.
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
                self.known = np.array([[memory.spread, memory.mean, memory.lasts, *map(memory.level, self.windows)]]).T
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
    """The noise of a series that several measures look at, each at levels of its own windows."""

    def __init__(self, windows: tuple[int, ...], smoothed: int, parts: Parts | None) -> None:
        self.cursor = (parts or Parts()).take(("noise", smoothed), lambda: Noise((), smoothed))
        noise = self.cursor.shared.part
        assert isinstance(noise, Noise)
        self.rows = [0, 1, 2, *noise.want(windows)]

    def extend(self, values: Floats) -> list[Floats]:
        """What `Noise` says of the next points, for its own windows: 3 + windows rows of shape (n,)."""
        found = self.cursor.extend(values)
        return [found[row] for row in self.rows]
