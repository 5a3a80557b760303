"""Reach: the range that a measure can have, given the values of a series. A rule with a condition that no value so far
can meet is not measured. The result is the same, because the bounds hold for any order of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, isfinite

import numpy as np

from rlhealth.engine.estimate import Bound
from rlhealth.engine.plan import OperandPlan, RulePlan
from rlhealth.engine.trends import STILL
from rlhealth.engine.windows import count_until, level_of_start
from rlhealth.metrics import Metric
from rlhealth.rules.conditions import Condition, Versus
from rlhealth.rules.measures import COUNTS, KINDS, STANDSTILLS
from rlhealth.run import Floats

SLACK = 1e-8  # of the largest value: sums and means round, and a share is rounded to nine decimals
LARGEST = 1e100  # sums and squares of larger values may overflow: their range is unknown
Range = tuple[float, float]
ANY: Range = (-inf, inf)
NONE: Range = (inf, -inf)  # of a measure that never has a value


class Extremes:
    """The smallest and the largest finite value of a metric, as far as it was judged, and its start.

    Attributes:
        span: both; (inf, -inf) before the first finite value.
        finite: whether all values are.
        slack: the possible rounding error of their sums and means.
        version: counts the changes that can widen the range of a measure.
    """

    def __init__(self, metric: Metric, absolute: bool) -> None:
        self.metric = metric
        self.span: Range = NONE
        self.finite = True
        self.slack = 0.0
        self.version = 0
        self.seen = 0
        self._absolute = absolute
        self._starts: dict[tuple[int, str], float] = {}
        self._shares = self._shares_to = 0
        self._change, self._change_to = inf, 0
        self._asked_again = False

    def grow(self, until: int) -> None:
        """Takes the new points up to and including step `until`."""
        start, self.seen = self.seen, count_until(self.metric.steps, until)
        if self.seen <= start:
            return
        low, high = _span(self._values(start))
        further = self._asked_again
        if not (isfinite(low) and isfinite(high)):  # both are NaN where any is
            further, self.finite = True, False
            low, high = _span(self._points(start))
        if further or low < self.span[0] or high > self.span[1]:
            self.span = min(low, self.span[0]), max(high, self.span[1])
            self.slack = SLACK * max(-self.span[0], self.span[1], 0.0)
            self.version += 1

    @property
    def least_change(self) -> float:
        """The least difference of two neighbours; 0 of a single point."""
        self._asked_again = True  # it may fall with each point
        if self.seen > self._change_to:
            points = self._points(max(self._change_to - 1, 0)) if self.finite else self._points(0)
            least = np.abs(points[1:] - points[:-1]).min() if len(points) > 1 else inf
            self._change, self._change_to = min(self._change, float(least)), self.seen
        return self._change if isfinite(self._change) else 0.0

    @property
    def shares(self) -> int:
        """How many values lie from 0 to 1."""
        if self.seen > self._shares_to:
            points = self._points(self._shares_to)
            self._shares += int(np.count_nonzero((points >= 0) & (points <= 1)))
            self._shares_to = self.seen
        return self._shares

    def start(self, count: int, by: str = "median") -> float | None:
        """The median of the first `count` finite values, or the largest of them; None if there are fewer."""
        if (count, by) not in self._starts:
            points = self._points(0)
            if len(points) < count:
                self._asked_again = True
                return None
            self._starts[count, by] = level_of_start(points[:count], by)
        return self._starts[count, by]

    def _values(self, start: int) -> Floats:
        values = self.metric.values[start : self.seen]
        return np.abs(values) if self._absolute else values

    def _points(self, start: int) -> Floats:
        """The finite values from index `start` on."""
        values = self._values(start)
        return values if self.finite else values[np.isfinite(values)]


def _span(points: Floats) -> Range:
    return (float(points.min()), float(points.max())) if len(points) else NONE


class Reach:
    """Which clauses of a plan can raise a finding in one run, given the points judged so far.

    Args:
        find: returns the metric of that name.
    """

    def __init__(self, find: Callable[[str], Metric]) -> None:
        self._find = find
        self._until = -1
        self._known: dict[tuple[str, bool], Extremes] = {}
        self._ranges: dict[int, tuple[int, Range]] = {}

    def grow(self, until: int) -> None:
        """Takes the points up to and including step `until`."""
        self._until = until
        for one in self._known.values():
            one.grow(until)

    def can_raise(self, plan: RulePlan) -> bool:
        """Whether all conditions of a clause can hold, each at some point; or whether it must be measured to report how
        many items are missing.
        """
        if plan.counts_items and not all(map(partial(self._has_items, plan), plan.operands)):
            return True
        first, bounds = plan.operands[0], plan.bounds
        if first.metric != "step" and self._extremes(first).seen < plan.least_points:
            return False
        if not (self._can_hold(first, bounds[0]) or (plan.worse is not None and self._can_hold(first, plan.worse))):
            return False
        return all(map(self._can_hold, plan.operands[1 : plan.base], bounds[1 : plan.base]))

    def _can_hold(self, operand: OperandPlan, bound: Bound) -> bool:
        if operand.metric == "step":
            return True
        if self._extremes(operand).seen < operand.condition.known_from:
            return False
        if bound.sure < 0:
            return True
        low, high = self.range_of(operand)
        if bound.sign == "above":
            return high > bound.limit
        return low < bound.limit if bound.sign == "below" else low <= bound.limit <= high

    def range_of(self, operand: OperandPlan) -> Range:
        """The widest range of values that an operand can measure."""
        if operand.condition.divided_by is not None:
            return ANY
        one = self._extremes(operand)
        known = self._ranges.get(operand.key)
        if known is None or known[0] != one.version:
            known = self._ranges[operand.key] = one.version, _made(operand.condition, one)
        return known[1]

    def _extremes(self, operand: OperandPlan) -> Extremes:
        key = operand.metric, operand.condition.absolute
        if key not in self._known:
            self._known[key] = Extremes(self._find(operand.metric), operand.condition.absolute)
            self._known[key].grow(self._until)
        return self._known[key]

    def _has_items(self, plan: RulePlan, operand: OperandPlan) -> bool:
        """Whether an operand, if it is a share, was certainly counted over enough items at the last point of the rule's
        own metric: each of its points counts as at least one item.
        """
        if operand.condition.measure != "mean_fraction":
            return True
        if operand.condition.divided_by is not None or "step" in (operand.metric, plan.metric):
            return False
        own = self._find(plan.metric).steps
        judged = count_until(own, self._until)
        one = self._extremes(operand)
        behind = one.seen - count_until(one.metric.steps, int(own[judged - 1])) if judged else one.seen
        return one.shares - behind >= operand.condition.items


def _made(condition: Condition, one: Extremes) -> Range:
    """The widest range of values that a condition can measure."""
    if one.slack > SLACK * LARGEST:
        return ANY
    made = _of_measure(condition, one)
    versus = condition.versus
    if versus is None or made in (ANY, NONE) or condition.measure in COUNTS:
        return made
    if KINDS[condition.measure].has_error:  # compared with the first estimate, which is one of its own values
        return made[0] - made[1], made[1] - made[0]
    return _compared(made, one, versus)


def _of_measure(condition: Condition, one: Extremes) -> Range:
    """The widest range of a measure's values, before they are compared with anything."""
    low, high = one.span
    name = condition.measure
    if name == "share_nonfinite":
        return (0.0, 0.0) if one.finite else (0.0, 1.0)
    first = one.start(1)
    if first is None:
        return NONE if name in ("value", "mean", "median", "min", "max", "std", "range", "max_so_far") else ANY
    if name in ("value", "median", "min", "max"):
        return low, high
    if name == "mean":
        return low - one.slack, high + one.slack
    if name == "max_so_far":
        return first, high
    if name in STANDSTILLS and condition.last > 1 and one.least_change > STILL:
        return 0.0, 0.0
    if name in ("std", "range"):
        return (_least_span(condition, one) if name == "range" else 0.0), high - low + one.slack
    if name == "mean_fraction":
        return (max(low, 0.0) - SLACK, min(high, 1.0) + SLACK) if low <= 1 and high >= 0 else NONE
    return _of_count(condition, one) if name in COUNTS else ANY


def _least_span(condition: Condition, one: Extremes) -> float:
    """The smallest span that a window can have: that of two neighbouring points, if it has two."""
    return 0.0 if (condition.at_least or condition.last) < 2 else one.least_change


def _of_count(condition: Condition, one: Extremes) -> Range:
    where = condition.where
    if where is None:
        return ANY
    low, high = one.span if condition.versus is None else _compared(one.span, one, condition.versus)
    beyond = (where.above is not None and high <= where.above) or (where.below is not None and low >= where.below)
    return (0.0, 0.0) if beyond else (0.0, float(condition.last) if condition.measure == "count" else inf)


def _compared(made: Range, one: Extremes, versus: Versus) -> Range:
    """The range of a measure that is compared with the start of a series, or with points before its window."""
    low, high = made
    least, most = one.span
    if versus.start is not None:
        start = one.start(versus.start, versus.by)
        if start is None:
            return NONE
        least = most = start
    if not versus.is_ratio:
        return low - most - one.slack, high - least + one.slack
    if most <= 0:  # a ratio to a value that is not above 0 is unknown
        return NONE
    bottom = low / most if low >= 0 else low / least if least > 0 else -inf
    top = high / most if high <= 0 else high / least if least > 0 else inf
    return bottom - SLACK * abs(bottom), top + SLACK * abs(top)
