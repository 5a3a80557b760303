"""Near: how far each metric is from the limits that it is judged by, and which findings are on their way."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rlhealth.engine import Judge, Watched
from rlhealth.findings import Severity

CLOSE = 0.8  # of the way to a limit: worth a second look


@dataclass(frozen=True)
class Near:
    """How far a metric has come on the way to the limit of a rule.

    Attributes:
        share: 1 at the limit, more beyond it.
        rule: whose limit it is.
    """

    share: float
    rule: str


@dataclass(frozen=True)
class Pending:
    """A rule whose condition holds, though not yet for as long as it asks.

    Attributes:
        held: for how many points in a row.
        needed: for how many it has to.
    """

    rule: str
    severity: Severity
    metric: str
    held: int
    needed: int


def nearest(judge: Judge) -> dict[str, Near]:
    """By metric, the limit that it is nearest to, as a share of the way; only rules that look at that metric alone can say."""
    found: dict[str, Near] = {}
    for one in judge.watched:
        share = share_of(one)
        if share is not None and (one.metric.name not in found or share > found[one.metric.name].share):
            found[one.metric.name] = Near(share, one.rule.id)
    return found


def share_of(watched: Watched) -> float | None:
    """How far a rule's measure has come; None where that is not a matter of more or less."""
    bound, value = watched.bounds[0], watched.latest
    if watched.base > 1 or not math.isfinite(value) or bound.sign == "equals" or not bound.limit:
        return None
    if bound.sign == "above":
        return max(0.0, value / bound.limit) if bound.limit > 0 else None
    if bound.limit > 0:
        return bound.limit / value if value > 0 else None
    return max(0.0, value / bound.limit)


def pending(judge: Judge) -> list[Pending]:
    """The findings on their way, the nearest to its telling first."""
    found = [
        Pending(one.rule.id, severity, one.metric.name, level.streak, level.hold)
        for one in judge.watched
        for severity, level in one.levels.items()
        if not level.open and 0 < level.streak < level.hold and severity > Severity.INFO
    ]
    return sorted(found, key=lambda one: (one.needed - one.held, one.rule))
