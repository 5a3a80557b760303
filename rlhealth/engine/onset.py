"""Onset: where a condition began to hold in the data, dated back into the window that raised it."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.estimate import Bound, Flags
from rlhealth.engine.measures import MAKE
from rlhealth.engine.windows import first_points, plain_median
from rlhealth.metrics import Metric
from rlhealth.rules.measures import KINDS
from rlhealth.rules.model import Condition
from rlhealth.run import Floats

FIRST = 64  # rows that are looked at before all


def dated_back(
    condition: Condition, bound: Bound, metric: Metric, per: Metric | None, scale: float, step: int
) -> tuple[int, bool]:
    """The first row that agrees, of the window that ends at `step`, where the condition began to hold.

    A median over five rows passes a limit at the third row beyond it: the problem began two rows earlier. Only rows up
    to `step` are looked at, so that a prefix dates an onset as the whole run does.

    Returns:
        the step of that row; whether no finite row of the metric came before it.
    """
    end = int(np.searchsorted(metric.steps, step, side="right"))
    start = max(0, end - condition.last)
    place = end - 1
    if start < place:
        begin = max(0, start - _past(condition)) if condition.measure == "count" else start
        values = points_of(condition, metric, per, scale, begin, end)
        agrees = np.flatnonzero(_agree(condition, bound, metric, values, start)[start - begin :])
        place = start + int(agrees[0]) if len(agrees) else place
    before = metric.values[:place]
    seen = np.isfinite(before[:FIRST]).any() or np.isfinite(before[FIRST:]).any()  # most often in the first rows
    return int(metric.steps[place]), not seen


def points_of(condition: Condition, metric: Metric, per: Metric | None, scale: float, start: int, end: int) -> Floats:
    """The metric's rows from `start` to `end`, each as the condition looks at it: its size, or divided; shape (n,)."""
    values = metric.values[start:end]
    if condition.absolute:
        values = np.abs(values)
    with np.errstate(all="ignore"):
        if per is None or condition.divided_by is None:
            return np.asarray(values / scale if scale != 1 else values, np.float64)
        known = np.isfinite(per.values)
        steps, below = per.steps[known], per.values[known]
        if condition.divided_by.max_so_far:
            below = np.maximum.accumulate(np.abs(below))
        place = np.searchsorted(steps, metric.steps[start:end], side="right") - 1
        held = np.where(place >= 0, below[np.maximum(place, 0)] if len(below) else np.nan, np.nan)
        divisor = held if condition.divided_by.signed else np.abs(held) ** float(condition.divided_by.power)
        return np.asarray(values / (scale * divisor), np.float64)


def _agree(condition: Condition, bound: Bound, metric: Metric, values: Floats, start: int) -> Flags:
    """Which rows of the window are what the condition speaks of, each by itself; shape (n,)."""
    known = np.isfinite(values)
    if condition.measure == "share_nonfinite":
        return ~known
    if condition.measure == "count" and condition.where is not None:
        counted = MAKE["count"](condition.model_copy(update={"last": 1}), 1)
        return np.asarray(counted.extend(values).value > 0)
    if condition.measure == "share_of_points" and condition.where is not None:
        where = condition.where
        sides = (("above", where.above), ("below", where.below))
        hits = [Bound(side, float(level)).holds(values) for side, level in sides if level is not None]
        return np.asarray(np.logical_and.reduce([known, *hits]))
    if KINDS[condition.measure].level:
        return bound.holds(_compared(condition, metric, values, start))
    if KINDS[condition.measure].falls and known.any():
        return np.asarray(known & (values <= plain_median(values[known])))  # the lower half of what has fallen
    if KINDS[condition.measure].foretold:
        return np.zeros(len(values), np.bool_)  # it begins when it is known
    return known  # a spread, a gain: it is said of the window as a whole


def _past(condition: Condition) -> int:
    """How many points before the window the condition looks at."""
    return 0 if condition.versus is None else condition.versus.past


def _compared(condition: Condition, metric: Metric, values: Floats, start: int) -> Floats:
    """The rows against what the condition sets its measure against."""
    versus = condition.versus
    if versus is None:
        return values
    if versus.start is not None:
        before = first_points(metric.values, versus.start)
    else:
        before = metric.values[max(0, start - (versus.past or 1)) : start]
        before = before[np.isfinite(before)]
    if not len(before):
        return np.full(len(values), np.nan)
    before = np.abs(before) if condition.absolute else before
    extreme = before.max() if versus.largest is not None else before.min() if versus.smallest is not None else None
    level = plain_median(before) if extreme is None else float(extreme)
    with np.errstate(all="ignore"):
        return np.asarray(values / level if versus.is_ratio else values - level, np.float64)
