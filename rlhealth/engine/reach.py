"""Reach: how far the values of a series let a measure go. A rule with a condition that no value of a whole run can meet
is not measured at all: the answer is the same, for the bounds hold whatever the order of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import inf, isfinite

import numpy as np

from rlhealth.engine.estimate import Bound
from rlhealth.engine.plan import OperandPlan, RulePlan
from rlhealth.engine.trends import STILL
from rlhealth.engine.windows import plain_median
from rlhealth.metrics import Metric
from rlhealth.rules.conditions import Condition, Versus
from rlhealth.rules.measures import COUNTS, KINDS
from rlhealth.run import Floats

SLACK = 1e-8  # of the largest value: sums and means round, and a share is rounded to nine decimals
LARGEST = 1e100  # of larger values sums and squares may overflow: nothing is known of them
Range = tuple[float, float]
ANY: Range = (-inf, inf)
NONE: Range = (inf, -inf)  # of a measure that never says anything


class Extremes:
    """The smallest and the largest finite value of a metric, and how it began."""

    def __init__(self, metric: Metric, absolute: bool) -> None:
        values = metric.values
        self.values: Floats = np.abs(values) if absolute else values
        span = _span(self.values)
        self.finite = not len(values) or (isfinite(span[0]) and isfinite(span[1]))  # both are NaN where any is
        self.points = self.values if self.finite else self.values[np.isfinite(self.values)]
        self.span: Range = span if self.finite else _span(self.points)
        self.slack = SLACK * max(-self.span[0], self.span[1], 0.0)
        self._starts: dict[int, float | None] = {}

    @cached_property
    def least_change(self) -> float:
        """The least difference of two neighbours; 0 of a single point."""
        return float(np.abs(self.points[1:] - self.points[:-1]).min()) if len(self.points) > 1 else 0.0

    @cached_property
    def shares(self) -> int:
        """How many values lie from 0 to 1."""
        return int(np.count_nonzero((self.points >= 0) & (self.points <= 1)))

    def start(self, count: int) -> float | None:
        """The median of the first `count` finite values; None if there are fewer."""
        if count not in self._starts:
            enough = len(self.points) >= count
            self._starts[count] = plain_median(self.points[:count]) if enough else None
        return self._starts[count]


def _span(points: Floats) -> Range:
    return (float(points.min()), float(points.max())) if len(points) else NONE


class Reach:
    """Which clauses of a plan can raise a finding in one run that is read to its end.

    Args:
        find: the metric that an operand looks at, by its plan and the name of the rule's metric.
    """

    def __init__(self, find: Callable[[str], Metric]) -> None:
        self._find = find
        self._known: dict[tuple[str, bool], Extremes] = {}
        self._ranges: dict[int, Range] = {}

    def can_raise(self, plan: RulePlan) -> bool:
        """Whether all conditions of a clause can hold, each at some point; or whether it has to be measured to say how
        much it lacks.
        """
        if any(one.condition.measure == "mean_fraction" and not self._has_items(one, plan) for one in plan.operands):
            return True
        first, *rest = zip(plan.operands[: plan.base], plan.bounds, strict=False)
        if not (self._can_hold(*first) or (plan.worse is not None and self._can_hold(first[0], plan.worse))):
            return False
        return all(self._can_hold(*one) for one in rest)

    def _can_hold(self, operand: OperandPlan, bound: Bound) -> bool:
        if bound.sure < 0 or operand.metric == "step":
            return True
        low, high = self.range_of(operand)
        if bound.sign == "above":
            return high > bound.limit
        return low < bound.limit if bound.sign == "below" else low <= bound.limit <= high

    def range_of(self, operand: OperandPlan) -> Range:
        """Where all that an operand can measure lies, at the widest."""
        if operand.key not in self._ranges:
            self._ranges[operand.key] = self._made(operand)
        return self._ranges[operand.key]

    def _made(self, operand: OperandPlan) -> Range:
        condition = operand.condition
        if condition.divided_by is not None:
            return ANY
        one = self._extremes(operand)
        if one.slack > SLACK * LARGEST:
            return ANY
        made = _of_measure(condition, one)
        versus = condition.versus
        if versus is None or made in (ANY, NONE) or condition.measure in COUNTS:
            return made
        if KINDS[condition.measure].has_error:  # set against the first estimate, which is one of its own
            return made[0] - made[1], made[1] - made[0]
        return _compared(made, one, versus)

    def _extremes(self, operand: OperandPlan) -> Extremes:
        key = operand.metric, operand.condition.absolute
        if key not in self._known:
            self._known[key] = Extremes(self._find(operand.metric), operand.condition.absolute)
        return self._known[key]

    def _has_items(self, operand: OperandPlan, plan: RulePlan) -> bool:
        """Whether a share was certainly counted over as many items as it takes, at the last point of the rule's own
        metric: each of its points is one, or more.
        """
        if operand.condition.divided_by is not None or "step" in (operand.metric, plan.metric):
            return False
        if self._find(operand.metric).steps[-1] > self._find(plan.metric).steps[-1]:
            return False
        one = self._extremes(operand)
        return one.shares >= operand.condition.items


def _of_measure(condition: Condition, one: Extremes) -> Range:
    """Where the values of a measure lie, at the widest, before they are compared with anything."""
    low, high = one.span
    name = condition.measure
    if name == "share_nonfinite":
        return (0.0, 0.0) if one.finite else (0.0, 1.0)
    if not len(one.points):
        return NONE if name in ("value", "mean", "median", "min", "max", "std", "range", "max_so_far") else ANY
    if name in ("value", "median", "min", "max"):
        return low, high
    if name == "mean":
        return low - one.slack, high + one.slack
    if name == "max_so_far":
        return float(one.points[0]), high
    if name == "standstill" and condition.last > 1 and one.least_change > STILL:
        return 0.0, 0.0
    if name in ("std", "range"):
        return (_least_span(condition, one) if name == "range" else 0.0), high - low + one.slack
    if name == "mean_fraction":
        return (max(low, 0.0) - SLACK, min(high, 1.0) + SLACK) if low <= 1 and high >= 0 else NONE
    return _of_count(condition, one) if name in COUNTS else ANY


def _least_span(condition: Condition, one: Extremes) -> float:
    """The least span that a window can have: with two points of it there, that of some two neighbours."""
    return 0.0 if (condition.at_least or condition.last) < 2 else one.least_change


def _of_count(condition: Condition, one: Extremes) -> Range:
    where = condition.where
    if where is None:
        return ANY
    low, high = one.span if condition.versus is None else _compared(one.span, one, condition.versus)
    beyond = (where.above is not None and high <= where.above) or (where.below is not None and low >= where.below)
    return (0.0, 0.0) if beyond else (0.0, float(condition.last) if condition.measure == "count" else inf)


def _compared(made: Range, one: Extremes, versus: Versus) -> Range:
    """Where a measure lies that is set against the start of a series, or against points before its window."""
    low, high = made
    least, most = one.span
    if versus.start is not None:
        start = one.start(versus.start)
        if start is None:
            return NONE
        least = most = start
    if not versus.is_ratio:
        return low - most - one.slack, high - least + one.slack
    if most <= 0:  # nothing is said of a ratio to what is not above 0
        return NONE
    bottom = low / most if low >= 0 else low / least if least > 0 else -inf
    top = high / most if high <= 0 else high / least if least > 0 else inf
    return bottom - SLACK * abs(bottom), top + SLACK * abs(top)
