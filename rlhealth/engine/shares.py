"""Shares: of points that are not finite or lie beyond a level, and the mean of a logged share, with the error of
counting few items."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.estimate import Estimate, Flags
from rlhealth.engine.parts import Parts
from rlhealth.engine.windows import Rolling, mean
from rlhealth.run import Floats, Ints

FINEST = 128  # a share that is no multiple of 1/1 to 1/128 was counted over so many items that its error is negligible
AT_ONCE = 1024  # values per batch: where the grain is fine, the first few show it
SAME = 5e-4  # printed shares are rounded: 0.333 is a third, 0.0625 may be written 0.062
PRIOR = 2.0  # Agresti and Coull, The American Statistician 52 (1998): two more hits and two more misses


class Grain:
    """Over how many items a share was counted: the smallest m for which every value so far is a multiple of 1/m.

    Zeros and ones alone say nothing about it and count as one item per point, so that the error of a share is never
    underestimated. It can only grow as more values come.
    """

    def __init__(self) -> None:
        self.items = 1
        self.seen: Floats = np.empty(0)  # the distinct multiples of 1/items so far

    def extend(self, values: Floats) -> Ints:
        """The grain at each of the next values (shape (n,), finite, 0 to 1), as far as known there."""
        parts = [self._next(values[start : start + AT_ONCE]) for start in range(0, len(values), AT_ONCE)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def _next(self, values: Floats) -> Ints:
        found = np.full(len(values), self.items, np.int64)
        start = 0
        while self.items < FINEST and start < len(values):
            unfit = ~_multiple(values[start:], self.items)
            first = int(unfit.argmax()) if unfit.any() else len(unfit)
            present = np.zeros(self.items + 1, bool)
            present[np.round(np.append(self.seen, values[start : start + first]) * self.items).astype(np.int64)] = True
            self.seen = np.flatnonzero(present) / self.items
            start += first
            if start < len(values):
                finer = np.arange(self.items + 1, FINEST)
                fits = _multiple(np.append(self.seen, values[start])[:, None], finer).all(axis=0)
                self.items = int(finer[fits.argmax()]) if fits.any() else FINEST
                found[start:] = self.items
        return found


def _multiple(values: Floats, items: int | Ints) -> Flags:
    scaled = values * items
    return np.asarray(np.abs(scaled - np.rint(scaled)) <= SAME * items)


class ShareSoFar:
    """Over how many items a share was counted, and the running sum of its points, at each of the next points; a part
    of measures.
    """

    def __init__(self) -> None:
        self.grain = Grain()
        self.sum = 0.0

    def extend(self, values: Floats) -> Floats:
        """Processes the next values, shape (n,), each from 0 to 1; returns shape (2, n)."""
        sums = np.cumsum(np.append(self.sum, values))
        self.sum = float(sums[-1])
        return np.stack([self.grain.extend(values), sums[1:]])


class MeanFraction:
    """The mean of a share over the last `window` points, or over as many points as it takes to cover `items` items.

    Its error is binomial (Agresti and Coull), over the items in the window: it stays above 0 if every item agrees,
    because ten of ten do not prove that all do. It is unknown before `items` items were counted. Values outside 0 to
    1 count as missing.
    """

    def __init__(self, window: int, least: int, items: int, parts: Parts | None = None) -> None:
        parts = parts or Parts()
        self.window, self.least, self.items = window, least, items
        self.longest = max(window, items)
        self.so_far = parts.take("share so far", ShareSoFar)
        self.grain = 1
        self.seen = 0
        self.sums: Floats = np.zeros(1)  # of the points so far, the last `longest` + 1 of them
        self.last = Estimate(np.full(1, np.nan), np.full(1, np.nan))

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        with np.errstate(invalid="ignore"):
            known = (values >= 0) & (values <= 1)
        whole = bool(known.all())
        points = values if whole else values[known]
        if not len(points):
            return self.last.at(np.zeros(len(values), np.int64))
        items, added = self.so_far.extend(points)
        self.grain = int(items[-1])
        sums = np.concatenate([self.sums, added])
        number = self.seen + 1 + np.arange(len(points))
        self.seen += len(points)
        made = self._estimates(sums, items.astype(np.int64), number)
        self.sums = sums[-self.longest - 1 :].copy()
        joined = self.last.then(made)
        self.last = joined.part(slice(-1, None))
        return made if whole else joined.at(np.cumsum(known))

    def _estimates(self, sums: Floats, grain: Ints, number: Ints) -> Estimate:
        """The estimates at the last n points, of which these are the grain and the number, shape (n,)."""
        wanted = max(self.window, -(-self.items // self.grain))
        settled = max(int(np.searchsorted(grain, self.grain)), int(np.searchsorted(number, wanted)))
        begin = len(sums) - len(number)
        place = begin + np.arange(settled)  # usually few points, each with a different width
        width = np.minimum(np.maximum(self.window, -(-self.items // grain[:settled])), number[:settled])
        early = self._estimate(sums[place] - sums[place - width], width, grain[:settled], number[:settled])
        if settled == len(number):
            return early
        total = sums[begin + settled :] - sums[begin + settled - wanted : len(sums) - wanted]
        later = self._estimate(total, wanted, self.grain, number[settled:])
        return early.then(later)

    def _estimate(self, total: Floats, width: Ints | int, grain: Ints | int, number: Ints) -> Estimate:
        """The mean of `width` points with that sum, and its error."""
        count = width * grain
        mean = np.round(total / width, 9)
        likely = (mean * count + PRIOR) / (count + 2 * PRIOR)
        error = np.sqrt(likely * (1 - likely) / (count + 2 * PRIOR))
        enough = (count >= self.items) & (number >= self.least)
        return Estimate(np.where(enough, mean, np.nan), np.where(enough, error, np.nan))

    @property
    def lacking(self) -> str:
        """How many items are still missing, in words; empty if there are enough."""
        seen = self.seen * self.grain
        return "" if seen >= self.items else f"{seen} of the {self.items} items (groups, completions) that it takes"


class ShareNonFinite:
    """The share of the last `window` logged points that are NaN or infinite."""

    def __init__(self, window: int) -> None:
        self.rolling = Rolling(mean, window, 1)

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        return self.rolling.extend((~np.isfinite(values)).astype(np.float64))


class ShareOfPoints:
    """The share of the last `window` finite points that lie above a level, below one, or between two."""

    def __init__(self, window: int, least: int, above: float | None, below: float | None) -> None:
        self.rolling = Rolling(mean, window, least)
        self.above, self.below = above, below

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        hit = np.ones(len(values), bool)
        with np.errstate(invalid="ignore"):
            if self.above is not None:
                hit &= values > self.above
            if self.below is not None:
                hit &= values < self.below
        return self.rolling.extend(np.where(np.isfinite(values), hit.astype(np.float64), np.nan))
