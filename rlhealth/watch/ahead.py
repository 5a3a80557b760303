"""Ahead: when a run will reach the end of its plan, and where a metric that moves will reach a limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlhealth.engine.ending import usual_seconds, usual_steps
from rlhealth.engine.judge import Judge
from rlhealth.engine.limits import level_of
from rlhealth.engine.plan import RulePlan
from rlhealth.metrics import Metric
from rlhealth.verdict.courses import course

WINDOW = (
    60  # points of a metric that say where it goes; nothing is said of what lies further ahead than they reach back
)


@dataclass(frozen=True)
class Ahead:
    """Where a metric will reach a limit if it continues as it went.

    Attributes:
        level: the limit, in the metric's own unit.
        step: about when.
    """

    metric: str
    unit: str
    rule: str
    level: float
    step: int


def limits_of(judge: Judge) -> dict[str, list[tuple[float, str, str]]]:
    """By metric, the limits that are levels of its own values: level, rule, and on which side it is sick."""
    found: dict[str, list[tuple[float, str, str]]] = {}
    for one in judge.states:
        level = _level(one.plan, one.metric)
        if level is not None:
            found.setdefault(one.metric.name, []).append((level, one.rule.id, one.plan.bounds[0].sign))
    return found


def projections(judge: Judge) -> dict[str, Ahead]:
    """By metric, the limit that it will reach first, where its last points move towards one by more than chance.

    The slope is the change between the first and the last third of the last points, which must continue in the last
    third.
    """
    found: dict[str, Ahead] = {}
    planned = judge.translation.planned_steps
    for name, limits in limits_of(judge).items():
        metric = judge.translation.metrics[name]
        steps, values = metric.steps[-WINDOW:], metric.values[-WINDOW:]
        finite = np.isfinite(values)
        steps, values = steps[finite], values[finite]
        trend, moving = course(values)
        if not moving or trend not in ("rose", "fell"):
            continue
        third = len(values) // 3
        now, then = float(np.mean(values[-third:])), float(np.mean(values[:third]))
        slope = (now - then) / float(np.mean(steps[-third:]) - np.mean(steps[:third]))
        centre, last = float(np.mean(steps[-third:])), int(steps[-1])
        for level, rule, side in limits:
            reached = centre + (level - now) / slope if slope else np.inf
            beyond = (side == "above") == (slope > 0) and side != "equals"
            if not beyond or not last < reached <= last + (last - int(steps[0])) or (planned and reached > planned):
                continue
            if name not in found or reached < found[name].step:
                found[name] = Ahead(name, metric.unit, rule, level, round(reached))
    return found


def seconds_left(judge: Judge) -> float | None:
    """Seconds to the end of the plan at the usual pace; None if the plan or the pace is not known."""
    planned, last = judge.translation.planned_steps, judge.run.last_step
    pace = usual_seconds(judge.run)
    apart = max(usual_steps(judge.run), 1.0)
    if planned is None or last is None or not np.isfinite(pace) or planned <= last:
        return None
    return (planned - last) / apart * pace


def _level(plan: RulePlan, metric: Metric) -> float | None:
    """The limit of a rule with one condition as a level of its metric; of several, no one of them is the limit."""
    if plan.base != 1:
        return None
    return level_of(plan.operands[0].condition, plan.bounds[0].limit, metric)
