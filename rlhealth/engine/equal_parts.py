"""Equal parts of all points so far: their means, and what is measured from them at some points and held in between."""

from __future__ import annotations

import numpy as np

from rlhealth.run import Floats, Ints

PARTS = 12
LOOKS = 64  # evaluations while the length of a series doubles, or one per point


def means_of_parts(sums: Floats, number: Ints) -> tuple[Floats, Ints]:
    """The means of the parts of the first so many points, and how many points each part has; shape (n, PARTS) each.

    Args:
        sums: of all points so far, from the empty sum on.
        number: of points, shape (n,).
    """
    ends = number[:, None] * np.arange(PARTS + 1) // PARTS
    length = np.diff(ends)
    return np.diff(sums[ends]) / length, length


class Looks:
    """The points at which such a measure is evaluated, so that its work grows with the doublings of a series only.

    Args:
        least: points before the first evaluation.
        newest: the value until then.
    """

    def __init__(self, least: int, newest: float) -> None:
        self.least = least
        self.newest = newest

    def among(self, number: Ints) -> Ints:
        """The indices of those points among the next ones, which have these numbers, shape (n,)."""
        apart = 1 << np.maximum(np.log2(number / LOOKS).astype(np.int64), 0)
        return np.flatnonzero((number >= self.least) & (number % apart == 0))

    def held(self, found: Floats, looked: Ints, count: int) -> Floats:
        """The values that were found at those points, held over each of the next `count` points."""
        every = np.append(self.newest, found)
        self.newest = float(every[-1])
        return np.asarray(every[np.searchsorted(looked, np.arange(count), side="right")])
