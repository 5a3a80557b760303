"""How many points a condition's window held at a step, for messages: fewer than the rule's window if the run had no
more.
"""

from __future__ import annotations

import numpy as np

from rlhealth.engine.operands import ForwardFill, Operand
from rlhealth.engine.windows import count_until
from rlhealth.metrics import Metric
from rlhealth.rules.conditions import Condition


def points_in_window(operand: Operand, condition: Condition, step: int) -> int:
    """How many points the window that ends at that step holds; a share of non-finite values also counts non-finite
    points.
    """
    end = count_until(operand.metric.steps, step)
    if condition.measure == "share_nonfinite":
        return min(end, condition.last)
    return _known(operand, end - condition.last, end)


def points_before_window(operand: Operand, condition: Condition, step: int) -> int:
    """With how many points before that window it is compared; 0 if it is not compared with any."""
    past = condition.versus.past if condition.versus is not None else 0
    end = count_until(operand.metric.steps, step) - condition.last
    return _known(operand, end - past, end)


def _known(operand: Operand, begin: int, end: int) -> int:
    """How many of those points have a value, and a value of the metric that they are divided by."""
    rows = slice(max(begin, 0), max(end, 0))
    known = np.isfinite(operand.metric.values[rows])
    per = None if operand.per is None else operand.per.source
    if isinstance(per, Metric):
        known &= np.isfinite(ForwardFill(per).at(operand.metric.steps[rows]).value)
    return int(np.count_nonzero(known))
