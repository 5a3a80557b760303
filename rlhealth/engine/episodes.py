"""Episodes: from a condition that holds or not at each step to episodes with an onset, a raising step and an end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rlhealth.engine.estimate import Estimate
from rlhealth.run import Ints
from rlhealth.verdict.findings import Episode, State

Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Worst(NamedTuple):
    """The worst point of an episode.

    Attributes:
        each: what each condition measured there, in order: the value, and its standard error (NaN without one).
    """

    step: int
    each: tuple[tuple[float, float], ...]

    @property
    def value(self) -> float:
        """What the first condition measured."""
        return self.each[0][0]


NOTHING = Worst(0, ((float("nan"), float("nan")),))  # of no episode


class Episodes:
    """Follows one condition. It is reported once it has held for `hold` points in a row, and ends after `clear` points
    without it.

    `hold` and `clear` keep a metric at its limit from raising many short episodes. All stretches of a call are
    processed together, because an unstable run has thousands of them.

    Attributes:
        count: how many episodes were raised so far.
        open: whether the last of them has not ended.
        streak: for how many points in a row it has held, if these are too few to raise an episode.
        worst: the point furthest on the unhealthy side by the first condition, over all raised episodes.
    """

    def __init__(self, hold: int, clear: int | None, sign: str) -> None:
        self.hold = hold
        self.clear = clear or hold
        self.sign = sign
        self.count = 0
        self.open = False
        self.worst = NOTHING
        self._ended: Ints = np.empty((4, 0), np.int64)
        self._current: Ints = np.zeros(4, np.int64)  # of the open episode, or of the streak that may become one
        self.streak = 0
        self._rest = 0  # points in a row without it, while an episode is open
        self._candidate: Worst | None = None  # the worst of the streak

    @property
    def spans(self) -> Ints:
        """Of each episode raised so far, in order: its first step, the step that raised it, its last step, and the mark
        at the first; shape (4, n).
        """
        return np.column_stack([self._ended, self._current]) if self.open else self._ended

    @property
    def raised_episodes(self) -> tuple[Episode, ...]:
        """The episodes raised so far, in order; the last may still be open."""
        states = [State.OVER] * (self.count - self.open) + [State.STANDING] * self.open
        rows = zip(*self.spans[:3].tolist(), states, strict=True)
        return tuple(Episode(first, raised, last, state) for first, raised, last, state in rows)

    def extend(self, steps: Ints, found: Sequence[Estimate], holds: Flags, marks: Ints | None = None) -> None:
        """Follows the next points, each of shape (n,); the mark at the point where an episode begins is kept with
        it.

        `found`: what each condition measured there. The first condition decides which point is worst.
        """
        if not len(holds) or not (self.open or self.streak or holds.any()):
            return
        starts, ends = self._stretches(holds)
        part = np.cumsum(np.append(False, starts[1:] - ends[:-1] >= self.clear))  # close stretches are one part
        enough = np.flatnonzero(ends - starts >= self.hold)
        opening = enough[np.diff(part[enough], prepend=-1) > 0]
        begin, end = starts[opening], ends[np.searchsorted(part, part[opening], side="right") - 1]
        marks = np.zeros(len(holds), np.int64) if marks is None else marks
        rows = ((begin, steps), (begin + self.hold - 1, steps), (end - 1, steps), (begin, marks))
        spans = np.array([self._looked_up(row, place, of) for row, (place, of) in enumerate(rows)])
        self._see_raised(steps, found, holds, begin, end)
        self.count += len(opening) - self.open
        rest = len(holds) - int(ends[-1]) if len(ends) else 0
        self.open = bool(len(opening)) and bool(end[-1] == ends[-1]) and rest < self.clear
        if len(opening) > self.open:
            self._ended = np.concatenate([self._ended, spans[:, : len(opening) - self.open]], axis=1)
        if self.open:
            self._current, self._rest, self.streak = spans[:, -1], rest, 0
        else:
            self._begin_streak(steps, found, marks, int(starts[-1]) if holds[-1] else len(holds))

    def _stretches(self, holds: Flags) -> tuple[Ints, Ints]:
        """Where the stretches in which the condition holds begin and end; shape (k,) each.

        The first may have begun before these points: an open episode counts as one stretch that was long enough, a
        streak as points before the first.
        """
        padded = np.zeros(len(holds) + 2, np.bool_)
        padded[1:-1] = holds
        edges = np.flatnonzero(padded[1:] != padded[:-1])
        starts, ends = edges[::2], edges[1::2]
        if self.open:
            return np.append(-self._rest - self.hold, starts), np.append(-self._rest, ends)
        if holds[0]:
            starts[0] = -self.streak
        return starts, ends

    def _looked_up(self, row: int, places: Ints, of: Ints) -> Ints:
        """The values at those places; for places before these points, the values of the current episode."""
        return np.where(places < 0, self._current[row], of[np.maximum(places, 0)])

    def _see_raised(self, steps: Ints, found: Sequence[Estimate], holds: Flags, begin: Ints, end: Ints) -> None:
        """Keeps the worst of the episodes that lie between those places."""
        if not len(begin):
            return
        if not self.open and begin[0] < 0:
            self._keep(self._candidate)
        inside = np.zeros(len(holds) + 1, np.int8)
        inside[np.maximum(begin, 0)] += 1
        inside[np.maximum(end, 0)] -= 1
        raised = np.flatnonzero(np.cumsum(inside[:-1], dtype=np.int8).view(np.bool_) & holds)
        self._keep(self._worst_of(steps, found, raised))

    def _begin_streak(self, steps: Ints, found: Sequence[Estimate], marks: Ints, start: int) -> None:
        """Remembers the points from place `start` on, at which it holds: too few to raise an episode."""
        self.streak = len(steps) - start
        worst = self._worst_of(steps, found, np.arange(max(start, 0), len(steps)))
        if start >= 0:
            self._candidate = worst
            if worst is not None:
                self._current = np.array([steps[start], 0, 0, marks[start]])
        elif worst and self._candidate and self._beats(worst.value, self._candidate.value):
            self._candidate = worst

    def _worst_of(self, steps: Ints, found: Sequence[Estimate], places: Ints) -> Worst | None:
        """The worst of those points, or the first point if none has a value; None if there are no points."""
        if not len(places):
            return None
        values = found[0].value[places]
        known = np.flatnonzero(~np.isnan(values))
        best = np.argmin if self.sign == "below" else np.argmax
        place = int(places[int(known[best(values[known])]) if len(known) else 0])
        return Worst(int(steps[place]), tuple(_measured_at(one, place) for one in found))

    def _keep(self, found: Worst | None) -> None:
        if found is not None and (self.worst is NOTHING or self._beats(found.value, self.worst.value)):
            self.worst = found

    def _beats(self, one: float, other: float) -> bool:
        if np.isnan(one) or np.isnan(other):
            return bool(np.isnan(other) and not np.isnan(one))
        return one < other if self.sign == "below" else one > other


def _measured_at(found: Estimate, place: int) -> tuple[float, float]:
    """The value at one point, and its error."""
    return float(found.value[place]), float("nan") if found.error is None else float(found.error[place])


def united(parts: Sequence[tuple[Episode, ...]], state: State) -> tuple[Episode, ...]:
    """The episodes of several findings as one list: episodes that overlap become one, and the last has that state."""
    found = [one for part in parts for one in part]
    first, raised, last = np.array([(one.first_step, one.raised_step, one.last_step) for one in found]).T
    order = np.lexsort((first, raised))
    ordered = [found[place] for place in order.tolist()]
    ends = np.maximum.accumulate(last[order])
    begins = np.flatnonzero(np.append(True, first[order][1:] > ends[:-1])).tolist()
    lasts = ends[[*(begin - 1 for begin in begins[1:]), -1]].tolist()
    joined = [
        one if one.last_step == last and one.state is State.OVER else replace(one, last_step=last, state=State.OVER)
        for one, last in zip([ordered[begin] for begin in begins], lasts, strict=True)
    ]
    return (*joined[:-1], replace(joined[-1], state=state))


class NewestRow:
    """A condition that is judged at the newest row alone, because it covers all rows before it.

    Attributes:
        count: 1 where it holds there, else 0.
        worst: what it measured there.
    """

    def __init__(self) -> None:
        self.count = 0
        self.worst = NOTHING
        self._first: int | None = None

    @property
    def raised_episodes(self) -> tuple[Episode, ...]:
        """One episode that began with the run, if the condition holds."""
        if not self.count or self._first is None:
            return ()
        step = self.worst.step
        return (Episode(self._first, step, step, State.STANDING, from_start=True),)

    def extend(self, steps: Ints, found: Sequence[Estimate], holds: Flags, marks: Ints | None = None) -> None:
        """Follows the next points, each of shape (n,), as `Episodes` does."""
        if not len(holds):
            return
        self._first = int(steps[0]) if self._first is None else self._first
        self.count = int(holds[-1])
        self.worst = Worst(int(steps[-1]), tuple(_measured_at(one, -1) for one in found))
