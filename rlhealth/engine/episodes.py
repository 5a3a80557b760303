"""Episodes: from a condition that holds or not at each step to stretches with an onset, a telling and an end."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlhealth.run import Floats, Ints
from rlhealth.verdict.findings import Episode, State

NOTHING = (0, float("nan"))  # the worst of no episode
FEW = 16  # so few stretches are followed one after another
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Episodes:
    """Follows one condition. It is reported once it has held for `hold` points in a row, and ends after `clear` points
    without it.

    The damping on both sides keeps a metric that sits at its limit from chattering.

    Attributes:
        marks: of each episode told, what was marked at the point where it began.
    """

    def __init__(self, hold: int, clear: int | None, sign: str) -> None:
        self.hold = hold
        self.clear = clear or hold
        self.sign = sign
        self.closed: list[Episode] = []
        self.ended_marks: list[int] = []
        self.mark = 0
        self.worst: tuple[int, float] = NOTHING
        self.streak = 0
        self.gap = 0
        self.first = self.raised = self.last = 0
        self.open = False
        self._candidate: tuple[int, float] | None = None

    @property
    def raised_episodes(self) -> tuple[Episode, ...]:
        """The episodes told so far, in order; the last may still be open."""
        if not self.open:
            return tuple(self.closed)
        return (*self.closed, Episode(self.first, self.raised, self.last))

    @property
    def marks(self) -> tuple[int, ...]:
        """The mark of each episode told so far."""
        return (*self.ended_marks, self.mark) if self.open else tuple(self.ended_marks)

    def extend(self, steps: Ints, values: Floats, holds: Flags, marks: Ints | None = None) -> None:
        """Follows the next points, each of shape (n,); the mark at the point where an episode begins is kept with
        it.
        """
        if not len(holds) or not (self.open or self.streak or holds.any()):
            return
        marks = np.zeros(len(holds), np.int64) if marks is None else marks
        edges = np.flatnonzero(np.diff(holds)) + 1
        starts, ends = np.append(0, edges), np.append(edges, len(holds))
        settled = ends[~holds[starts] & (ends - starts >= self.clear)]  # here whatever had begun is over
        if len(settled) < FEW:
            self._one_by_one(steps, values, holds, marks, starts, ends)
            return
        first, last = int(settled[0]), int(settled[-1])
        before, after = int(np.searchsorted(ends, first, side="right")), int(np.searchsorted(starts, last))
        self._one_by_one(steps, values, holds, marks, starts[:before], ends[:before])
        self._at_once(steps[first:last], values[first:last], holds[first:last], marks[first:last])
        self._one_by_one(steps, values, holds, marks, starts[after:], ends[after:])

    def _one_by_one(self, steps: Ints, values: Floats, holds: Flags, marks: Ints, starts: Ints, ends: Ints) -> None:
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            if holds[start]:
                self._held(steps[start:end], values[start:end], int(marks[start]))
            else:
                self._rested(end - start)

    def _at_once(self, steps: Ints, values: Floats, holds: Flags, marks: Ints) -> None:
        """Follows points before which nothing is under way, and at whose end nothing is any more: a run that
        flutters has thousands of episodes.
        """
        edges = np.flatnonzero(np.diff(holds, prepend=False))
        starts, ends = edges[::2], edges[1::2]
        part = np.cumsum(
            np.append(False, starts[1:] - ends[:-1] >= self.clear)
        )  # stretches that lie close together are one part
        enough = np.flatnonzero(ends - starts >= self.hold)
        if not len(enough):
            return
        opening = enough[np.append(True, np.diff(part[enough]) > 0)]
        begin, end = starts[opening], ends[np.searchsorted(part, part[opening], side="right") - 1]
        rows = zip(steps[begin].tolist(), steps[begin + self.hold - 1].tolist(), steps[end - 1].tolist(), strict=True)
        self.closed += [Episode(first, raised, last, State.OVER) for first, raised, last in rows]
        self.ended_marks += marks[begin].tolist()
        inside = np.zeros(len(holds) + 1, np.int64)
        inside[begin], inside[end] = 1, -1
        told = np.flatnonzero((np.cumsum(inside[:-1]) > 0) & holds)
        self._candidate = None
        self._see_worst(steps[told], values[told])
        self._keep_worst()

    def _held(self, steps: Ints, values: Floats, mark: int) -> None:
        if not self.streak and not self.open:
            self.first = int(steps[0])
            self.mark = mark
            self._candidate = None
        missing = self.hold - self.streak
        self.streak += len(steps)
        self.gap = 0
        self.last = int(steps[-1])
        self._see_worst(steps, values)
        if not self.open and missing <= len(steps):
            self.open = True
            self.raised = int(steps[missing - 1])
        if self.open:
            self._keep_worst()

    def _rested(self, points: int) -> None:
        if not self.open:
            self.streak = 0
            return
        self.gap += points
        if self.gap >= self.clear:
            self.closed.append(Episode(self.first, self.raised, self.last, State.OVER))
            self.ended_marks.append(self.mark)
            self.open = False
            self.streak = 0

    def _keep_worst(self) -> None:
        if self._candidate is not None and (self.worst is NOTHING or self._beats(self._candidate[1], self.worst[1])):
            self.worst = self._candidate

    def _see_worst(self, steps: Ints, values: Floats) -> None:
        known = np.flatnonzero(~np.isnan(values))
        best = np.argmin if self.sign == "below" else np.argmax
        place = int(known[best(values[known])]) if len(known) else 0
        found = (int(steps[place]), float(values[place]))
        if self._candidate is None or self._beats(found[1], self._candidate[1]):
            self._candidate = found

    def _beats(self, one: float, other: float) -> bool:
        if np.isnan(one) or np.isnan(other):
            return bool(np.isnan(other) and not np.isnan(one))
        return one < other if self.sign == "below" else one > other
