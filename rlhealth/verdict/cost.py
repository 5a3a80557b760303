"""The cost of a broken run: wall-clock time before and after the step since which a critical finding counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlhealth.verdict.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlhealth.verdict.findings import Finding
    from rlhealth.verdict.verdicts import RunVerdict


@dataclass(frozen=True)
class Cost:
    """Wall-clock time of a run before and after it broke.

    Attributes:
        step: since when it is broken: the step at which the earliest critical finding that is not over began.
        before, after: seconds from the first point to that step, and from there to the last point.
        standing: whether such a finding holds now; otherwise the run has not recovered from it.
        earlier: the first and last step of each earlier stretch in which one of those findings held and ended.
    """

    step: int
    before: float
    after: float
    standing: bool
    earlier: tuple[tuple[int, int], ...] = ()


def cost_of(run: RunVerdict) -> Cost | None:
    """The cost of the run after it broke; None if no critical finding counts, or the log has no times of those
    steps."""
    broken = [one for one in run.findings if one.severity is Severity.CRITICAL and not one.ended]
    if not broken:
        return None
    *earlier, (step, _) = _stretches(broken)
    timed = [one for one in run.run.series.values() if len(one) and np.isfinite(one.times).all()]
    if not timed:
        return None
    begun, ended = min(float(one.times[0]) for one in timed), max(float(one.times[-1]) for one in timed)
    reached = [float(one.times[place]) for one in timed if (place := int(np.searchsorted(one.steps, step))) < len(one)]
    if not reached or not begun < ended:
        return None
    before, after = min(reached) - begun, ended - min(reached)
    if not (math.isfinite(before) and math.isfinite(after) and before >= 0 and after >= 0):
        return None  # a clock that was set back between two parts of a run
    return Cost(step, before, after, any(one.active for one in broken), tuple(earlier))


def _stretches(broken: Sequence[Finding]) -> list[tuple[int, int]]:
    """The stretches of steps in which any of those findings held. Overlapping stretches are joined, and so is
    everything from the first one that counts."""
    since = min(one.since_step for one in broken)
    last = max(one.last_step for one in broken)
    earlier = [span for one in broken for span in one.earlier]
    joined: list[tuple[int, int]] = []
    for begun, ended in sorted([*earlier, (since, last)]):
        if joined and begun <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(ended, joined[-1][1]))
        else:
            joined.append((begun, ended))
    return joined
