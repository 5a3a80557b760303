"""Evidence: what one condition of a rule measured in a run, and the limit that it was compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One measured value of a metric at one step, with the limit that it was compared with.

    Attributes:
        metric, tag: the canonical metric, and the name under which it was logged.
        step: of the run.
        value, limit: in the unit of the measure, which is the metric's own `unit` if `measured` is "value". The limit
                is None if the rule has no numeric limit.
            side: the unhealthy side of the limit: above, below or equals.
            measured: "value" in the metric's own unit, "ratio" relative to a reference, "noise" in units of the
                metric's noise, "share" of points, "count" or "correlation".
            error: the standard error of the value, in its unit; None if it has none, or if it is not known.
            sure: by how many standard errors the value must be beyond the limit. If negative, the value may be on the
                healthy side, but not by that many errors.
            level: the limit as a level of the metric's own values, for charts; None if the measure is no such level.
            measure: what was measured, in words; empty if it is no measure of a metric's points.
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
        """Whether the value itself is on the unhealthy side of the limit, whatever its error."""
        if self.limit is None:
            return False
        if self.side == "equals":
            return self.value == self.limit
        return self.value > self.limit if self.side == "above" else self.value < self.limit

    @property
    def errors_beyond(self) -> float:
        """By how many standard errors the value is beyond the limit; below 0 on the healthy side, NaN without an
        error."""
        if self.limit is None or not self.error:
            return math.nan
        return (self.value - self.limit) / (self.error if self.side == "above" else -self.error)
