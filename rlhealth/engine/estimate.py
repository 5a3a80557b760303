"""Estimate: the value of a measure at each point, and how far chance alone may have moved it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from rlhealth.run import Floats

Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Measured values with their standard errors.

    Attributes:
        value: shape (n,); NaN if it is not known yet.
        error: standard error of each value, shape (n,), in the unit of the value; None if the measure is exact
                (the largest of five points). NaN if it is not known yet.
    """

    value: Floats
    error: Floats | None = None

    def __len__(self) -> int:
        return len(self.value)

    def part(self, which: slice) -> Estimate:
        """Some of the points."""
        return Estimate(self.value[which], None if self.error is None else self.error[which])

    def at(self, places: Any) -> Estimate:
        """The points at those indices; NaN where an index is negative."""
        if not len(places) or places.min() >= 0:
            return Estimate(self.value[places], None if self.error is None else self.error[places])
        before = places < 0
        kept = np.maximum(places, 0)
        return Estimate(
            np.where(before, np.nan, self.value[kept]),
            None if self.error is None else np.where(before, np.nan, self.error[kept]),
        )

    def unknown_until(self, place: int) -> Estimate:
        """The same, but for the points before that index, which are not known yet."""
        if place <= 0 or np.isnan(self.value[:place]).all():
            return self
        places = np.arange(len(self))
        return self.at(np.where(places < place, -1, places))

    def then(self, later: Estimate) -> Estimate:
        """These points and later ones of the same measure."""
        if not len(self):
            return later
        error = None if self.error is None or later.error is None else np.concatenate([self.error, later.error])
        return Estimate(np.concatenate([self.value, later.value]), error)


NOTHING = Estimate(np.empty(0), np.empty(0))


class Bound(NamedTuple):
    """A limit as a number, which side of it is unhealthy, and how sure a rule must be.

    A value counts as beyond the limit if it is beyond by more than `sure` of its standard errors: effect and
    significance. With a negative `sure`, a value also counts if it lies within so many errors of the limit.
    """

    sign: str
    limit: float
    sure: float = 0.0

    def holds(self, found: Floats | Estimate) -> Flags:
        """Where the values are on the unhealthy side; NaN never is."""
        one = found if isinstance(found, Estimate) else Estimate(found)
        value = one.value
        if self.sure and one.error is not None and self.sign != "equals":
            with np.errstate(invalid="ignore"):
                value = value + (-self.sure if self.sign == "above" else self.sure) * one.error
        if self.sign == "above":
            return np.asarray(value > self.limit)
        return np.asarray(value < self.limit if self.sign == "below" else value == self.limit)


class ValueMeasure(Protocol):
    """A measure without an error: takes values of shape (n,), returns shape (n,); NaN if it is not known yet."""

    def extend(self, values: Floats) -> Floats:
        """Measures the next points."""
        ...


class Measure(Protocol):
    """A causal measure: takes values of shape (n,), returns n estimates; NaN if it is not known yet."""

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        ...


class WithoutError:
    """A plain measure as an estimate: its value is exact, no sample, and has no error."""

    def __init__(self, inner: ValueMeasure) -> None:
        self.inner = inner

    def extend(self, values: Floats) -> Estimate:
        """Measures the next points."""
        return Estimate(self.inner.extend(values))
