"""How a run ended, or that it continues, as far as the logs prove it."""

from __future__ import annotations

import math
import re
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rlhealth.metrics import Translation
from rlhealth.parsing.own_texts import read_texts
from rlhealth.run import INTERRUPT, Run
from rlhealth.series import plain_median

CLOSING = (
    "train_runtime",
    "train_samples_per_second",
    "total_flos",
)  # transformers logs these once, when train() returns
PATIENCE = 20.0  # a run is silent when its last event is older than this many usual step intervals …
AT_LEAST = 600.0  # … and this many seconds: evaluation and checkpoints take time
#: Exit codes of an interrupt from the keyboard: wandb's exit hook records 255 for KeyboardInterrupt, a shell 130,
#: Python -2.
BY_HAND = frozenset((255, 130, -2))
OPEN = frozenset(("running", "unknown"))  # states in which no end is known
SNAPSHOTS = frozenset(("trainer_state",))  # a checkpoint's file shows the run at one step, never how it ended


class Ending(NamedTuple):
    """The state of a run at its newest point.

    Attributes:
        state: finished, running, stopped or unknown.
        kinds: what is wrong with the end: `died` (a non-zero exit, or a torn log of a run that went silent), `early`
            (ended in good order or by hand before its plan), `silent` (nothing new for long by the log's own times,
            before its plan, no end recorded), `raised` (an exception that is not of a notebook's cell, and no plan is
            known), `torn` (the log ends inside a record, and nothing else says how it
            ended), `at_start` (an exception before a second row), `not_finite` (an exception that says so).
        step: the newest step.
        planned: the number of planned steps, if it is logged.
        idle: seconds from the last sign of life until now; NaN if no time is known.
        usual: the median seconds between steps.
        said: the evidence in a sentence.
        is_over: no more points will come, as far as is known. It reached its planned steps, if they are known, or was
                    stopped. Its own times, or the file's date while the log is watched, show that it does not go on.
                        And it was not restarted.
        is_whole: the log shows the whole run: it is over, and its first step is no higher than the number of steps in
                    the log (a resumed run starts higher).
    """

    state: str
    kinds: frozenset[str]
    step: int
    planned: int | None
    idle: float
    usual: float
    said: str
    is_over: bool
    is_whole: bool


def ending_of(
    run: Run, translation: Translation, now: float | None = None, ended: bool = False, followed: bool = False
) -> Ending:
    """Judges the state of the run at `now` (seconds since 1970; default: the current time).

    Args:
        ended: the user says that the run is over, so no more points will come.
        followed: the log is watched as it grows.

    Problems with an end are judged by the log alone (its planned steps, exit code, times), so that a copy of the log
    gives the same answer. The date of a file decides only whether a log without timestamps counts as running.
    """
    step = run.last_step or 0
    planned = translation.planned_steps
    usual = usual_seconds(run)
    idle = (time.time() if now is None else now) - last_sign(run)
    if idle < 0:  # the clock of the machine that wrote the log is ahead of ours
        idle = 0.0
    short = (
        _between_plans(run.planned_steps, step)
        if planned is None
        else step < planned * 0.99 and planned - step >= max(2, usual_steps(run))
    )
    patience = max(PATIENCE * usual if math.isfinite(usual) else 0.0, AT_LEAST)
    waiting = not ended and math.isfinite(idle) and idle < patience
    may_go_on = waiting and (followed or bool(_own_signs(run)))
    is_moment = run.place.kind in SNAPSHOTS
    from_start = 2 * (run.first_step or 0) <= step
    plan = (
        f"step {step:,} of {planned:,} planned"
        if planned
        else f"step {step:,}" + (f" (the tracker planned {run.planned_steps:,})" if run.planned_steps else "")
    )

    def end(state: str, said: str, *kinds: str) -> Ending:
        is_over = not run.begun_anew and (state not in OPEN or not (may_go_on or short or is_moment))
        return Ending(
            state=state,
            kinds=frozenset(kinds),
            step=step,
            planned=planned,
            idle=idle,
            usual=usual,
            said=said,
            is_over=is_over,
            is_whole=is_over and from_start,
        )

    broken = ["not_finite"] if _says_not_finite(run.raised) else []
    recorded = _recorded(run)
    if recorded == "by hand":
        said = f"stopped by hand at {plan} (exit code {run.exit_code} is an interrupt from the keyboard)"
        return end("stopped", said, *(["early"] if short else []))
    if recorded == "died":
        return end("stopped", f"the process ended with exit code {run.exit_code} at {plan}", "died", *broken)
    if recorded == "ended":
        if short:
            return end("stopped", f"training was ended in good order at {plan}", "early")
        return end("finished", f"training ended in good order at {plan}")
    if planned is not None and not short:
        return end("finished", f"reached {plan}")
    if run.raised.startswith(INTERRUPT):
        return end("stopped", f"stopped by hand at {plan} ({INTERRUPT})", *(["early"] if short else []))
    if run.died_at_start:
        rows = "its second row" if run.series else "it logged a row"
        return end("stopped", f"the process ended with an error before {rows}: {run.raised}", "at_start", *broken)
    if run.raised:
        said = f"training ended with an error at {plan}: {run.raised}"
        is_unplanned = planned is None and run.planned_steps is None and run.place.kind != "notebook"
        return end("stopped", said, *(["died"] if short else ["raised"] if is_unplanned else []), *broken)
    if is_moment:
        return end("unknown", f"a checkpoint's state: it shows the run at {plan}, not how it ended")
    if waiting:
        return end("running", f"last event {idle:.0f} s ago, at {plan}")
    torn = run.clean is False
    if short and (ended or math.isfinite(run.last_time)):
        if torn:
            said = f"the log breaks off inside a record at {plan}: its writer was killed, or the disk was full"
            return end("stopped", said, "died")
        return end("stopped", f"nothing was written after {plan}, and no end was recorded", "silent")
    if torn:
        said = (
            f"the log ends inside a record at {plan}: its writer was killed, or the log was copied while it was written"
        )
        return end("unknown", said, "torn")
    unplanned = " and the plan is not known" if planned is None else ""
    return end("unknown", f"no end was recorded{unplanned}; last at {plan}")


def _recorded(run: Run) -> str:
    """What the log records about the end: `by hand`, `died`, `ended`; empty if nothing."""
    if run.exit_code in BY_HAND:
        return "by hand"
    if run.exit_code not in (None, 0):
        return "died"
    closed = any(tag.rpartition("/")[2] in CLOSING for tag in run.series)
    return "ended" if closed or run.exit_code == 0 or run.clean is True else ""


def last_sign(run: Run) -> float:
    """When the run last gave a sign of life: its newest point, or the last time its tracker heard from it.

    The date of its files counts only if neither is known, because a copy is always fresh. NaN if no time is known.
    """
    return max(_own_signs(run), default=run.modified)


def _own_signs(run: Run) -> list[float]:
    """When the run last gave a sign of life, according to the log and its tracker."""
    return [moment for moment in (run.last_time, run.heartbeat) if math.isfinite(moment)]


def _says_not_finite(raised: str) -> bool:
    """Whether an exception says that numbers were NaN or infinite."""
    return bool(raised) and any(re.search(one, raised, re.IGNORECASE) for one in _not_finite())


@cache
def _not_finite() -> tuple[str, ...]:
    texts: dict[str, list[str]] = read_texts(Path(__file__).with_name("raised.yaml"))
    return tuple(texts["not_finite"])


def _between_plans(said: int | None, step: int) -> bool:
    """Whether a run certainly ended early, although its tracker's planned steps may count mini-batches (TRL 0.13's
    PPO): the steps of a finished run divide that number.
    """
    return said is not None and 0 < step < said and said % step != 0


def usual_steps(run: Run) -> float:
    """Median distance of the logged steps of the longest series: the last row of a finished run is up to that far
    from its end.
    """
    longest = max(run.series.values(), key=len, default=None)
    return (
        plain_median(np.diff(longest.steps[-200:]).astype(np.float64))
        if longest is not None and len(longest) > 2
        else 0.0
    )


def usual_seconds(run: Run) -> float:
    """Median seconds between the steps of the longest series; NaN if no times are known."""
    longest = max(run.series.values(), key=len, default=None)
    if longest is None or len(longest) < 3:
        return math.nan
    gaps = np.diff(longest.times[-200:])
    gaps = gaps[np.isfinite(gaps) & (gaps >= 0)]
    return plain_median(gaps) if len(gaps) else math.nan
