"""Evidence: what one condition of a rule saw in a run, and the limit that it was compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """This metric, measured so, said this at this step, against this limit.

    Attributes:
        metric, tag: the canonical metric, and the name under which it was logged.
        step: of the run.
        value, limit: in the unit of the measure; that is the metric's own `unit` where `measured` is "value". No limit
            where the rule has none in numbers.
        side: on which side of the limit it is sick: above, below or equals.
        measured: "value" where the measure is in the metric's own unit, "ratio" where it was set against something,
            "noise" where it is in units of the metric's noise, "share" where it is a share of points, "count" or
            "correlation".
        error: the standard error of the value, in its unit; None where it has none, or where it is not known.
        sure: by how many standard errors the value has to be beyond the limit. Of a negative one, it may be beyond it:
            it is not surely on the other side by so many errors.
        level: the limit as a level of the metric's own values, for charts; None if the measure is something else.
        measure: what was measured, in words; empty where it is no measure of a metric's points.
    """

    metric: str
    tag: str
    step: int
    value: float
    limit: float | None = None
    side: str = "above"
    measured: str = "value"
    unit: str = ""
    error: float | None = None
    sure: float = 0.0
    level: float | None = None
    measure: str = ""

    @property
    def is_beyond(self) -> bool:
        """Whether the value itself is on the sick side of the limit, whatever its error."""
        if self.limit is None:
            return False
        if self.side == "equals":
            return self.value == self.limit
        return self.value > self.limit if self.side == "above" else self.value < self.limit

    @property
    def errors_beyond(self) -> float:
        """By how many standard errors the value lies beyond the limit; below 0 on the healthy side, NaN without an
        error."""
        if self.limit is None or not self.error:
            return math.nan
        return (self.value - self.limit) / (self.error if self.side == "above" else -self.error)
