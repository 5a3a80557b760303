"""Parts: intermediate results that several measures of one series share (a rolling median, the noise)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol
from weakref import ReferenceType, ref

import numpy as np

from rlhealth.run import Floats


class Part(Protocol):
    """Takes the points of a series in order and returns one column per point; causal, as measures are."""

    def extend(self, values: Floats) -> Floats:
        """Processes the next points, shape (n,); returns shape (k, n)."""
        ...


class SharedPart:
    """A part that several measures read at their own pace: its results are kept until all have read them."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.takers: list[ReferenceType[PartCursor]] = []  # weak: a measure that was replaced is not waited for
        self.fed = 0
        self.dropped = 0
        self.kept: Floats | None = None

    def between(self, start: int, values: Floats) -> Floats:
        """Its results for `values`, the points from number `start` on."""
        end = start + len(values)
        if end > self.fed:
            new = self.part.extend(values[self.fed - start :])
            self.kept = new if self.kept is None else np.concatenate([self.kept, new], axis=1)
            self.fed = end
        assert self.kept is not None
        return self.kept[:, start - self.dropped : end - self.dropped]

    @property
    def is_wanted(self) -> bool:
        """Whether any measure still reads it."""
        return any(one() is not None for one in self.takers)

    def forget(self) -> None:
        """Drops what all have read."""
        done = min((taker.seen for one in self.takers if (taker := one()) is not None), default=self.fed)
        if done == self.fed:
            self.kept, self.dropped = None, done
        elif done > self.dropped and self.kept is not None:
            self.kept, self.dropped = self.kept[:, done - self.dropped :].copy(), done


class PartCursor:
    """One measure's position in a part that it may share: it is used as if the part were private.

    All readers share the arrays that it returns: do not write to them.
    """

    def __init__(self, shared: SharedPart) -> None:
        self.shared = shared
        self.seen = 0
        shared.takers.append(ref(self))

    def extend(self, values: Floats) -> Floats:
        """The part's results for the next points, shape (k, n)."""
        found = self.shared.between(self.seen, values)
        self.seen += len(values)
        self.shared.forget()
        return found


class Parts:
    """The parts of all measures of one series; each is created on first use, and all before the first point."""

    def __init__(self) -> None:
        self._made: dict[Hashable, SharedPart] = {}

    def take(self, key: Hashable, make: Callable[[], Part]) -> PartCursor:
        """A new position in the part with that key."""
        if key not in self._made:
            self._made[key] = SharedPart(make())
        return PartCursor(self._made[key])

    def sweep(self) -> None:
        """Drops what was kept for measures that no longer exist."""
        while gone := [key for key, one in self._made.items() if not one.is_wanted]:
            for key in gone:
                del self._made[key]  # which may have been the last reader of another part
        for one in self._made.values():
            one.forget()
