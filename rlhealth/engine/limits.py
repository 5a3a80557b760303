"""Limits of conditions: as numbers, as levels of the metric, and in which unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlhealth.engine.cannot_run import CannotRun
from rlhealth.engine.estimate import Bound
from rlhealth.engine.windows import level_of_start
from rlhealth.metrics import Metric
from rlhealth.rules.conditions import Condition, Limit
from rlhealth.rules.measures import KINDS
from rlhealth.rules.model import CriticalLevel
from rlhealth.series import first_points


def unit_of(condition: Condition) -> str:
    """The unit of a condition's value: the metric's own unit (value), a ratio, noise, or a share of points."""
    unit = KINDS[condition.measure].unit
    is_ratio = condition.divided_by is not None or (condition.versus is not None and condition.versus.is_ratio)
    return "ratio" if unit == "value" and is_ratio else unit


def level_of(condition: Condition, limit: float, metric: Metric) -> float | None:
    """The limit of a condition as a level of the metric's own values; None if it measures something else (noise, a
    rise, a share)."""
    if not np.isfinite(limit) or not KINDS[condition.measure].level or condition.divided_by is not None:
        return None
    versus = condition.versus
    if versus is None:
        return limit
    if versus.start is None:
        return None
    start = first_points(metric.values, versus.start)
    if not len(start):
        return None
    usual = level_of_start(start, versus.by)
    return float(limit * usual) if versus.is_ratio else float(limit + usual)


def bound_of(condition: Condition, config: Mapping[str, Any]) -> Bound:
    """The limit of a condition as a number; raises CannotRun if it depends on a setting that is unknown."""
    sign = next(sign for sign in ("above", "below", "equals") if getattr(condition, sign) is not None)
    return Bound(sign, limit_of(getattr(condition, sign), config), float(condition.standard_errors))


def worse_of(worse: CriticalLevel, base: Bound, config: Mapping[str, Any]) -> Bound:
    """The critical limit: the one given, or the base's own."""
    said = worse.above if worse.above is not None else worse.below
    sure = base.sure if worse.standard_errors is None else float(worse.standard_errors)
    if said is None:
        return base._replace(sure=sure)
    return Bound("above" if worse.above is not None else "below", limit_of(said, config), sure)


def limit_of(said: float | Limit, config: Mapping[str, Any]) -> float:
    """A limit as a number; raises CannotRun if it depends on a setting that is unknown."""
    if not isinstance(said, Limit):
        return float(said)
    setting = config.get(said.setting)
    if isinstance(setting, bool) or not isinstance(setting, int | float):
        if said.default is None:
            raise CannotRun(f"the setting {said.setting} is unknown")
        return float(said.default)
    limit = float(setting) * float(said.times) + float(said.plus)
    return limit if said.at_most is None else min(limit, float(said.at_most))
