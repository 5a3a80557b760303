"""How a run ended, or that it goes on: what the logs themselves prove of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from rlhealth.engine.windows import plain_median
from rlhealth.metrics import Translation
from rlhealth.run import Run

CLOSING = (
    "train_runtime",
    "train_samples_per_second",
    "total_flos",
)  # transformers logs these once, when train() returns
PATIENCE = 20.0  # a run is silent when its last event is this many usual steps old …
AT_LEAST = 600.0  # … and this many seconds: evaluation and checkpoints take their time


@dataclass(frozen=True)
class Ending:
    """How a run stands at its newest point.

    Attributes:
        state: finished, running, stopped or unknown.
        kinds: what is wrong with the end: `died` (a non-zero exit, or a file torn by its writer's death), `early`
            (ended in good order before its plan), `silent` (nothing new for long, before its plan, no end recorded).
        step: the newest step.
        planned: the number of steps planned, where the logs tell it.
        idle: seconds since the last event, at the time of asking; NaN where no time is known.
        usual: the median seconds between steps.
        said: the evidence in a sentence.
    """

    state: str
    kinds: frozenset[str]
    step: int
    planned: int | None
    idle: float
    usual: float
    said: str


def ending_of(run: Run, translation: Translation, now: float | None = None) -> Ending:
    """Judges how the run stands, at `now` (seconds since 1970; the clock's time where not given)."""
    step = run.last_step or 0
    planned = translation.planned_steps
    usual = usual_seconds(run)
    idle = (time.time() if now is None else now) - last_sign(run)
    if idle < 0:  # the clock of whoever wrote the log is ahead of ours
        idle = 0.0
    closed = any(tag.rpartition("/")[2] in CLOSING for tag in run.series)
    short = (
        _between_plans(run.planned_steps, step) if planned is None else step < planned * 0.99 and planned - step >= 2
    )
    waiting = math.isfinite(idle) and idle < max(PATIENCE * usual if math.isfinite(usual) else 0.0, AT_LEAST)
    plan = (
        f"step {step:,} of {planned:,} planned"
        if planned
        else f"step {step:,}" + (f" (the tracker planned {run.planned_steps:,})" if run.planned_steps else "")
    )

    def told(state: str, said: str, *kinds: str) -> Ending:
        return Ending(state, frozenset(kinds), step, planned, idle, usual, said)

    if run.exit_code not in (None, 0):
        return told("stopped", f"the process ended with exit code {run.exit_code} at {plan}", "died")
    if closed or run.exit_code == 0 or run.clean is True:
        if short:
            return told("stopped", f"training was ended in good order at {plan}", "early")
        return told("finished", f"training ended in good order at {plan}")
    if planned is not None and not short:
        return told("finished", f"reached {plan}")
    if run.clean is False and not waiting:
        return told(
            "stopped",
            f"the log breaks off inside a record at {plan}: its writer was killed, or the disk was full",
            "died",
        )
    if waiting:
        return told("running", f"last event {idle:.0f} s ago, at {plan}")
    if short and (math.isfinite(run.last_time) or run.place.kind == "trainer_state"):
        return told("stopped", f"nothing was written after {plan}, and no end was recorded", "silent")
    return told("unknown", f"no end was recorded and the plan is not known; last at {plan}")


def last_sign(run: Run) -> float:
    """When the run last gave a sign of life: its newest point, or the last writing of its log; NaN where no time is known."""
    return max((moment for moment in (run.last_time, run.modified) if math.isfinite(moment)), default=math.nan)


def _between_plans(said: int | None, step: int) -> bool:
    """Whether a run certainly ended early, where its tracker's plan may count mini-batches (TRL 0.13's PPO): a finished run's steps divide it."""
    return said is not None and 0 < step < said and said % step != 0


def usual_seconds(run: Run) -> float:
    """Median seconds between the steps of the longest series; NaN where no times are known."""
    longest = max(run.series.values(), key=len, default=None)
    if longest is None or len(longest) < 3:
        return math.nan
    gaps = np.diff(longest.times[-200:])
    gaps = gaps[np.isfinite(gaps) & (gaps >= 0)]
    return plain_median(gaps) if len(gaps) else math.nan
