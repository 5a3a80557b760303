"""Series and Histogram: one scalar, or one distribution, over the steps of a run; and the median of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Points = tuple[Ints, Floats, Floats]  # steps, values, times


class Series:
    """One scalar over steps. It grows at its end; steps are strictly increasing, NaN and infinities are kept.

    Attributes:
        tag: the name as the tracker wrote it.
        revision: counts the changes that were not a growth at the end (a rewind, a late point).
        overwritten: points whose values a later point at the same step replaced with others, in the order in which that
            happened.
    """

    __slots__ = ("_size", "_steps", "_times", "_values", "overwritten", "revision", "tag")

    def __init__(
        self,
        tag: str,
        steps: Sequence[int] | Ints = (),
        values: Sequence[float] | Floats = (),
        times: Sequence[float] | Floats | None = None,
    ) -> None:
        self.tag = tag
        self.revision = 0
        self.overwritten: list[Points] = []
        self._size = 0
        self._steps: Ints = np.empty(0, np.int64)
        self._values: Floats = np.empty(0, np.float64)
        self._times: Floats = np.empty(0, np.float64)
        if len(steps):
            self.extend(steps, values, times)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Series({self.tag!r}, {self._size} points)"

    @property
    def steps(self) -> Ints:
        """Steps, shape (n,), strictly increasing."""
        return self._steps[: self._size]

    @property
    def values(self) -> Floats:
        """Values, shape (n,), in the unit in which they were logged."""
        return self._values[: self._size]

    @property
    def times(self) -> Floats:
        """Wall times, shape (n,), seconds since 1970; NaN if the tracker kept none."""
        return self._times[: self._size]

    def extend(
        self,
        steps: Sequence[int] | Ints,
        values: Sequence[float] | Floats,
        times: Sequence[float] | Floats | None = None,
    ) -> None:
        """Adds points, each of shape (k,). Points may come unordered or twice: the later one wins at its step."""
        new_steps = np.asarray(steps, np.int64)
        new_values = np.asarray(values, np.float64)
        new_times = np.full(len(new_steps), np.nan) if times is None else np.asarray(times, np.float64)
        if not len(new_steps):
            return
        grows = (not self._size or new_steps[0] > self._steps[self._size - 1]) and bool(
            np.all(new_steps[1:] > new_steps[:-1])
        )
        if not grows:
            new_steps = np.concatenate([self.steps, new_steps])
            new_values = np.concatenate([self.values, new_values])
            new_times = np.concatenate([self.times, new_times])
            order = np.argsort(new_steps, kind="stable")
            ordered = new_steps[order]
            last = np.append(ordered[1:] != ordered[:-1], True)
            keep = order[last]
            if not last.all():
                self._note_overwritten(order, last, new_steps, new_values, new_times)
            if self._size:
                self.revision += 1
            self._size = 0
            new_steps, new_values, new_times = new_steps[keep], new_values[keep], new_times[keep]
        self._reserve(self._size + len(new_steps))
        end = self._size + len(new_steps)
        self._steps[self._size : end] = new_steps
        self._values[self._size : end] = new_values
        self._times[self._size : end] = new_times
        self._size = end

    def _note_overwritten(
        self, order: Ints, last: NDArray[np.bool_], steps: Ints, values: Floats, times: Floats
    ) -> None:
        """Keeps the points that give way to the next one with another value at their step: the next, not the last, so
        that it is the same in whatever pieces they come."""
        before = values[order]
        after = np.append(before[1:], np.nan)
        other = ~last & (before != after) & ~(np.isnan(before) & np.isnan(after))
        if other.any():
            lost = order[other]
            self.overwritten.append((steps[lost], values[lost], times[lost]))

    def rewind(self, step: int) -> None:
        """Drops every point at `step` or later: the run was resumed from before it."""
        keep = int(np.searchsorted(self.steps, step, side="left"))
        if keep < self._size:
            self._size = keep
            self.revision += 1

    def until(self, step: int) -> Series:
        """The points up to and including `step`, as a view."""
        end = int(np.searchsorted(self.steps, step, side="right"))
        cut = Series(self.tag)
        cut._steps, cut._values, cut._times, cut._size = self._steps[:end], self._values[:end], self._times[:end], end
        for steps, values, times in self.overwritten:
            there = steps <= step
            cut.overwritten.append((steps[there], values[there], times[there]))
        return cut

    def since(self, step: int) -> Points:
        """Copies of the points at `step` or later."""
        start = int(np.searchsorted(self.steps, step, side="left"))
        return self.steps[start:].copy(), self.values[start:].copy(), self.times[start:].copy()

    def _reserve(self, size: int) -> None:
        if size <= len(self._steps):
            return
        room = max(size, 2 * len(self._steps)) if self._size else size
        for name in ("_steps", "_values", "_times"):
            old = getattr(self, name)
            grown = np.empty(room, old.dtype)
            grown[: self._size] = old[: self._size]
            setattr(self, name, grown)


class Histogram:
    """One distribution over steps: at each step, bin edges of shape (b+1,) and counts of shape (b,)."""

    __slots__ = ("counts", "edges", "revision", "steps", "tag", "times")

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.revision = 0
        self.steps: list[int] = []
        self.times: list[float] = []
        self.edges: list[Floats] = []
        self.counts: list[Floats] = []

    def __len__(self) -> int:
        return len(self.steps)

    def add(
        self, step: int, edges: Sequence[float] | Floats, counts: Sequence[float] | Floats, time: float = float("nan")
    ) -> None:
        """Adds the distribution at `step`; one already there, or later, is dropped (the later writer wins).

        Raises:
            ValueError: if there is not one edge more than counts.
        """
        if len(edges) != len(counts) + 1:
            raise ValueError(f"{self.tag}: {len(edges)} edges for {len(counts)} counts")
        if self.steps and step <= self.steps[-1]:
            self.rewind(step)
        self.steps.append(int(step))
        self.times.append(float(time))
        self.edges.append(np.asarray(edges, np.float64))
        self.counts.append(np.asarray(counts, np.float64))

    def rewind(self, step: int) -> None:
        """Drops every distribution at `step` or later."""
        keep = int(np.searchsorted(self.steps, step, side="left"))
        if keep < len(self.steps):
            for kept in (self.steps, self.times, self.edges, self.counts):
                del kept[keep:]
            self.revision += 1

    def since(self, step: int) -> Histogram:
        """The distributions at `step` or later."""
        start = int(np.searchsorted(self.steps, step, side="left"))
        return self._part(slice(start, None))

    def until(self, step: int) -> Histogram:
        """The distributions up to and including `step`."""
        end = int(np.searchsorted(self.steps, step, side="right"))
        return self._part(slice(0, end))

    def _part(self, part: slice) -> Histogram:
        cut = Histogram(self.tag)
        cut.steps, cut.times, cut.edges, cut.counts = (
            self.steps[part],
            self.times[part],
            self.edges[part],
            self.counts[part],
        )
        return cut


def first_points(values: Floats, count: int) -> Floats:
    """The first `count` finite values, searched in 100 rows more than that; shape (n,), n <= count."""
    first = values[: count + 100]
    return first[np.isfinite(first)][:count]


def plain_median(values: Floats) -> float:
    """The median of shape (n,), n > 0, none of them NaN. (The one of numpy imports masked arrays first: a tenth of the
    time of a small check.)"""
    ordered = np.sort(values)
    return float(middle(ordered[[(len(values) - 1) // 2]], ordered[[len(values) // 2]])[0])


def worth_of(around: Floats, hidden: float, most: float) -> float:
    """How many independent points as many say as lie around their level or trend, shape (n,), n > 1: n (1 - r) /
    (1 + r), r the correlation of neighbours, 0 at least (Bayley and Hammersley 1946).

    Args:
        hidden: n-ths by which a short series shows r too small.
        most: the largest r that is taken.
    """
    noise = float(around @ around)
    alike = float(around[1:] @ around[:-1]) / noise + hidden / len(around) if noise else 0.0
    alike = min(max(alike, 0.0), most)
    return len(around) * (1.0 - alike) / (1.0 + alike)


def middle(low: Floats, high: Floats) -> Floats:
    """Half-way from the lower middle point to the upper; halved first, so that two giants do not overflow."""
    return np.where(low == high, low, low / 2 + high / 2)
