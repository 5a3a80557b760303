"""The evidence of a finding: what the conditions of its clause measured at the worst point."""

from __future__ import annotations

import math
from functools import lru_cache

from rlhealth.engine.clause import Clause
from rlhealth.engine.episodes import Worst
from rlhealth.engine.estimate import Bound
from rlhealth.engine.limits import level_of, unit_of
from rlhealth.engine.operands import ForwardFill, OperandCursor
from rlhealth.metrics import Metric
from rlhealth.rules.conditions import Condition
from rlhealth.rules.words import measure_in_words
from rlhealth.verdict.evidence import Evidence


def evidence_of(clause: Clause, is_worse: bool, worst: Worst) -> tuple[Evidence, ...]:
    """The conditions that made a clause hold at its worst point, the first condition first; `is_worse` for those of
    its critical level, if it has one of its own."""
    count = len(clause.bounds) if is_worse else clause.base
    bounds = [clause.first_bound(is_worse), *clause.bounds[1:count]]
    seen = zip(clause.sides, bounds, worst.each, strict=False)  # conditions of the critical level alone come last
    return tuple(_evidence(side, bound, worst.step, *found) for side, bound, found in seen)


def _evidence(side: OperandCursor, bound: Bound, step: int, value: float, error: float) -> Evidence:
    operand, condition = side.shared.operand, side.condition
    return Evidence(
        metric=operand.metric.name,
        tag=operand.metric.tag,
        step=step,
        value=value,
        limit=bound.limit,
        side=bound.sign,
        measured=unit_of(condition),
        unit=operand.metric.unit,
        error=error if math.isfinite(error) else None,
        sure=bound.sure,
        level=level_of(condition, bound.limit, operand.metric),
        measure=_said(condition, operand.metric.name, _name_of(operand.per), _name_of(operand.other)),
    )


def _name_of(filled: ForwardFill | None) -> str:
    return filled.source.name if filled is not None and isinstance(filled.source, Metric) else ""


@lru_cache(maxsize=1024)
def _said(condition: Condition, metric: str, per: str, other: str) -> str:
    """What was measured, with the canonical names of the run's metrics."""
    named: dict[str, object] = {"metric": metric}
    if condition.divided_by is not None and per:
        named["divided_by"] = condition.divided_by.model_copy(update={"metric": per})
    if other:
        named["with_"] = other
    return measure_in_words(condition.model_copy(update=named)).replace("`", "").rstrip(",")
