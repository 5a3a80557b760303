"""Where a finding's limit lies on the chart of its metric: only where what the rule measures is a level of that
metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Finding

if TYPE_CHECKING:
    from rlhealth.metrics import Metric

_USUAL = 5  # points before the onset that it takes to call a range usual


@dataclass(frozen=True)
class Level:
    """A limit as a level of the metric.

    Attributes:
        side: "above" or "below": where it is not healthy; "equals".
    """

    value: float
    side: str


def level_of(one: Evidence) -> Level | None:
    """The limit as a level of the metric's own values, or None if the rule measures something else (noise, a
    rise, a share of points).
    """
    return None if one.level is None else Level(one.level, one.side)


def usual(one: Finding, metric: Metric) -> tuple[float, float] | None:
    """What was usual in this run before the finding began: the 5th to 95th percentile of the points before its
    onset; None for too few.
    """
    before = metric.values[: int(np.searchsorted(metric.steps, one.first_step))]
    before = before[np.isfinite(before)]
    if len(before) < _USUAL:
        return None
    low, high = np.percentile(before, [5, 95])
    return float(low), float(high)
