"""Parts: what several measures of one series are made of (a rolling median, the noise), measured once and shared."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol
from weakref import ReferenceType, ref

import numpy as np

from rlhealth.run import Floats


class Part(Protocol):
    """Fed the points of a series in order, it answers with one column a point; causal, as measures are."""

    def extend(self, values: Floats) -> Floats:
        """Goes on over the next points, shape (n,); answers with shape (k, n)."""
        ...


class SharedPart:
    """A part that several measures take, each as far as it has come: kept until all have taken it."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.takers: list[ReferenceType[PartCursor]] = []  # weak: one that is measured anew is no longer waited for
        self.fed = 0
        self.dropped = 0
        self.kept: Floats | None = None

    def between(self, start: int, values: Floats) -> Floats:
        """What it says of the points from number `start` on, which are these."""
        end = start + len(values)
        if end > self.fed:
            new = self.part.extend(values[self.fed - start :])
            self.kept = new if self.kept is None else np.concatenate([self.kept, new], axis=1)
            self.fed = end
        assert self.kept is not None
        return self.kept[:, start - self.dropped : end - self.dropped]

    @property
    def is_wanted(self) -> bool:
        """Whether any measure still takes it."""
        return any(one() is not None for one in self.takers)

    def forget(self) -> None:
        """Drops what all have taken."""
        done = min((taker.seen for one in self.takers if (taker := one()) is not None), default=self.fed)
        if done == self.fed:
            self.kept, self.dropped = None, done
        elif done > self.dropped and self.kept is not None:
            self.kept, self.dropped = self.kept[:, done - self.dropped :].copy(), done


class PartCursor:
    """One measure's own place in a part that it may share: used as if the part were its own.

    What it answers belongs to all who take it, and is not to be written to.
    """

    def __init__(self, shared: SharedPart) -> None:
        self.shared = shared
        self.seen = 0
        shared.takers.append(ref(self))

    def extend(self, values: Floats) -> Floats:
        """What the part says of the next points, shape (k, n)."""
        found = self.shared.between(self.seen, values)
        self.seen += len(values)
        self.shared.forget()
        return found


class Parts:
    """The parts of all measures of one series, made when the first of them is; all before the first point."""

    def __init__(self) -> None:
        self._made: dict[Hashable, SharedPart] = {}

    def take(self, key: Hashable, make: Callable[[], Part]) -> PartCursor:
        """The part of that key: its own place in it."""
        if key not in self._made:
            self._made[key] = SharedPart(make())
        return PartCursor(self._made[key])

    def sweep(self) -> None:
        """Drops what was kept for measures that are gone."""
        while gone := [key for key, one in self._made.items() if not one.is_wanted]:
            for key in gone:
                del self._made[key]  # which may have been the last to take another
        for one in self._made.values():
            one.forget()
