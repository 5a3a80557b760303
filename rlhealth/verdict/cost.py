"""What a broken run cost: wall-clock time before and after its first critical finding that still counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rlhealth.verdict.findings import Severity, State
from rlhealth.verdict.verdicts import RunVerdict


@dataclass(frozen=True)
class Cost:
    """Wall-clock time of a run before and after it broke.

    Attributes:
        step: the first step of its earliest critical finding that is not over.
        before, after: seconds from the first point to that step, and from there to the last point.
        standing: whether such a finding holds now; otherwise what it cost has not come back.
    """

    step: int
    before: float
    after: float
    standing: bool


def cost_of(run: RunVerdict) -> Cost | None:
    """What the run cost after it broke; None if nothing critical counts, or the log has no times of those steps."""
    broken = [one for one in run.findings if one.severity is Severity.CRITICAL and one.state is not State.OVER]
    if not broken:
        return None
    step = min(one.first_step for one in broken)
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
    return Cost(step, before, after, any(one.active for one in broken))
