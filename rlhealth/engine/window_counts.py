"""How many points a condition's window held at a step, as messages say it: fewer than the rule allows where the run had
no more.
"""

from __future__ import annotations

import numpy as np

from rlhealth.engine.operands import ForwardFill, Operand
from rlhealth.engine.windows import count_until
from rlhealth.metrics import Metric
from rlhealth.rules.conditions import Condition


def points_in_window(operand: Operand, condition: Condition, step: int) -> int:
    """How many points the window that ends at that step holds; of a share of the values that are no numbers, those
    too.
    """
    end = count_until(operand.metric.steps, step)
    if condition.measure == "share_nonfinite":
        return min(end, condition.last)
    return _known(operand, end - condition.last, end)


def points_before_window(operand: Operand, condition: Condition, step: int) -> int:
    """How many points before that window it is compared with; 0 if it is not compared with any."""
    past = condition.versus.past if condition.versus is not None else 0
    end = count_until(operand.metric.steps, step) - condition.last
    return _known(operand, end - past, end)


def _known(operand: Operand, begin: int, end: int) -> int:
    """How many of those points have a value, and one of what they are divided by."""
    rows = slice(max(begin, 0), max(end, 0))
    known = np.isfinite(operand.metric.values[rows])
    per = None if operand.per is None else operand.per.source
    if isinstance(per, Metric):
        known &= np.isfinite(ForwardFill(per).at(operand.metric.steps[rows]).value)
    return int(np.count_nonzero(known))
