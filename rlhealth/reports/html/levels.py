"""Where a finding's limit lies on the chart of its metric: only where what the rule measures is a level of that metric."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.findings import Finding

if TYPE_CHECKING:
    from rlhealth.metrics import Metric
    from rlhealth.rules import Condition

_LEVELS = ("value", "mean", "median", "min", "max", "peak")
_USUAL = 5  # points before the onset that it takes to call a range usual


@dataclass(frozen=True)
class Level:
    """A limit as a level of the metric.

    Attributes:
        side: "above" or "below": where it is not healthy; "equals".
    """

    value: float
    side: str


@cache
def _conditions() -> dict[str, Condition]:
    from rlhealth.rules import load_rules  # late: only charts look at rules, and only at what they measure

    try:
        return {rule.id: rule.when.conditions[0] for rule in load_rules() if rule.when is not None and rule.when.conditions}
    except RlhealthError:
        return {}


def level_of(one: Finding, metric: Metric) -> Level | None:
    """The limit as a level of the metric's own values, or None where the rule measures something else (noise, a rise, a share of points)."""
    condition = _conditions().get(one.rule)
    return None if condition is None or one.limit is None else level_under(condition, one.limit, metric)


def level_under(condition: Condition, limit: float, metric: Metric) -> Level | None:
    """The limit of a rule's condition as a level of the metric's own values, or None where it is none."""
    if not np.isfinite(limit) or condition.measure not in _LEVELS or condition.per is not None:
        return None
    side = next(side for side in ("above", "below", "equals") if getattr(condition, side) is not None)
    for against, combine in ((condition.ratio_to, np.multiply), (condition.minus, np.add)):
        if against is not None:
            if against.first is None:
                return None
            start = metric.values[np.isfinite(metric.values)][: against.first]
            return Level(float(combine(limit, np.median(start))), side) if len(start) else None
    return Level(limit, side)


def usual(one: Finding, metric: Metric) -> tuple[float, float] | None:
    """What was usual in this run before the finding began: the 5th to 95th percentile of the points before its onset; None for too few."""
    before = metric.values[: int(np.searchsorted(metric.steps, one.first_step))]
    before = before[np.isfinite(before)]
    if len(before) < _USUAL:
        return None
    low, high = np.percentile(before, [5, 95])
    return float(low), float(high)
