"""Episodes: from a condition that holds or not at each step to stretches with an onset, a telling and an end."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlhealth.findings import Episode
from rlhealth.run import Floats, Ints

Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Episodes:
    """Follows one condition. It is told once it has held for `hold` points in a row, and ends after `clear` points without it.

    The damping on both sides keeps a metric that sits at its limit from chattering.
    """

    def __init__(self, hold: int, clear: int | None, sign: str) -> None:
        self.hold = hold
        self.clear = clear or hold
        self.sign = sign
        self.closed: list[Episode] = []
        self.worst: tuple[int, float] = (0, float("nan"))
        self.streak = 0
        self.gap = 0
        self.first = self.raised = self.last = 0
        self.open = False
        self._candidate: tuple[int, float] | None = None

    @property
    def told(self) -> tuple[Episode, ...]:
        """The episodes told so far, in order; the last may still be open."""
        if not self.open:
            return tuple(self.closed)
        return (*self.closed, Episode(self.first, self.raised, self.last, self.gap == 0))

    def extend(self, steps: Ints, values: Floats, holds: Flags) -> None:
        """Follows the next points, each of shape (n,)."""
        if not self.open and not self.streak and not holds.any():
            return
        edges = np.flatnonzero(np.diff(holds)) + 1
        for start, end in zip([0, *edges.tolist()], [*edges.tolist(), len(holds)], strict=True):
            if holds[start]:
                self._held(steps[start:end], values[start:end])
            else:
                self._rested(end - start)

    def _held(self, steps: Ints, values: Floats) -> None:
        if not self.streak and not self.open:
            self.first = int(steps[0])
            self._candidate = None
        missing = self.hold - self.streak
        self.streak += len(steps)
        self.gap = 0
        self.last = int(steps[-1])
        self._see_worst(steps, values)
        if not self.open and missing <= len(steps):
            self.open = True
            self.raised = int(steps[missing - 1])
        if self.open and self._candidate is not None and (np.isnan(self.worst[1]) or self._beats(self._candidate[1], self.worst[1])):
            self.worst = self._candidate

    def _rested(self, points: int) -> None:
        if not self.open:
            self.streak = 0
            return
        self.gap += points
        if self.gap >= self.clear:
            self.closed.append(Episode(self.first, self.raised, self.last, False, True))
            self.open = False
            self.streak = 0

    def _see_worst(self, steps: Ints, values: Floats) -> None:
        finite = np.where(np.isnan(values), np.inf if self.sign == "below" else -np.inf, values)
        place = int(np.argmin(finite) if self.sign == "below" else np.argmax(finite))
        found = (int(steps[place]), float(values[place]))
        if self._candidate is None or self._beats(found[1], self._candidate[1]):
            self._candidate = found

    def _beats(self, one: float, other: float) -> bool:
        if np.isnan(one) or np.isnan(other):
            return bool(np.isnan(other) and not np.isnan(one))
        return one < other if self.sign == "below" else one > other
