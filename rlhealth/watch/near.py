"""Near: how far each metric is from the limits that it is judged by, and which findings are pending."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rlhealth.engine.episodes import Episodes
from rlhealth.engine.estimate import Bound
from rlhealth.engine.judge import Judge
from rlhealth.engine.rule_state import RuleState
from rlhealth.verdict.findings import Severity

CLOSE = 0.8  # of the way to a limit: worth a second look


@dataclass(frozen=True)
class LimitMargin:
    """How close a metric is to the limit of a rule.

    Attributes:
        share: 1 at the limit, more beyond it.
        rule: whose limit it is.
    """

    share: float
    rule: str


@dataclass(frozen=True)
class Pending:
    """A rule whose condition holds, but not yet for long enough.

    Attributes:
        held: for how many points in a row.
        needed: for how many it has to.
    """

    rule: str
    severity: Severity
    metric: str
    held: int
    needed: int


def nearest(judge: Judge) -> dict[str, LimitMargin]:
    """By metric, its nearest limit, as a share of the distance to it."""
    found: dict[str, LimitMargin] = {}
    for one in judge.follow_all():
        share = None if one.asks_at_end else share_of(one)
        if share is not None and (one.metric.name not in found or share > found[one.metric.name].share):
            found[one.metric.name] = LimitMargin(share, one.rule.id)
    return found


def share_of(watched: RuleState) -> float | None:
    """How far a rule has come: where all its conditions must hold, as far as the one that is furthest behind; None
    where that is unknown.
    """
    clause = watched.clause
    clause.catch_up()
    values = [clause.latest, *(float(one.values[-1]) if len(one.values) else math.nan for one in clause.others)]
    shares = [way(bound, value) for bound, value in zip(clause.bounds[: clause.base], values, strict=False)]
    known = [one for one in shares if one is not None]
    if watched.rule.when is not None and watched.rule.when.any:
        return max(known, default=None)
    return min(known) if len(known) == len(shares) else None


def way(bound: Bound, value: float) -> float | None:
    """How far a value has come to a limit: 1 there, more beyond; None if that is not a matter of more or less."""
    if not math.isfinite(value):
        return None
    beyond = bool(bound.holds(np.asarray([value]))[0])
    if bound.sign == "equals" or not bound.limit or not value or (value > 0) != (bound.limit > 0):
        return 1.0 if beyond else (0.0 if bound.sign == "above" and bound.limit > 0 else None)
    share = value / bound.limit if (bound.sign == "above") == (bound.limit > 0) else bound.limit / value
    return max(share, 1.0) if beyond else share


def pending(judge: Judge) -> list[Pending]:
    """The pending findings, the closest to being raised first."""
    found = [
        Pending(one.rule.id, severity, one.metric.name, level.streak, level.hold)
        for one in judge.watched
        for severity, level in one.levels.items()
        if isinstance(level, Episodes) and not level.open and 0 < level.streak < level.hold and severity > Severity.INFO
    ]
    return sorted(found, key=lambda one: (one.needed - one.held, one.rule))
