"""Heals one run while it trains: runs in the Python of a trainer's era, beside the lab's own files and rlhealth.

    LAB=FOLDER PYTHONPATH=. PYTHON -m benchmarks.advice.live LAB_CODE < SETUP

`HealthCallback` stops the run at its first critical finding. It goes back to the last checkpoint before that began,
takes the advice, and goes on to the step that was planned; at most three times. Answers in JSON, one entry a part.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.advice.trial import look_at
from rlhealth.callback import HealthCallback
from rlhealth.verdict.advised import Advice, advice_of
from rlhealth.verdict.verdicts import RunVerdict

PARTS = 4  # the first, and three that follow advice
SECONDS = 10.0  # that each step is taken to last
EVERY = 5  # steps between checkpoints


class StepsOfSeconds(HealthCallback):  # type: ignore[misc]
    """HealthCallback as it is where a step takes ten seconds: it may judge for a thousandth of the time that passes,
    and a step of the lab takes a twentieth of a second."""

    def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
        super().on_train_begin(*args, **kwargs)
        self.seconds = 0.0
        if self.monitor is not None:
            self.monitor._clock = lambda: time.perf_counter() + self.seconds

    def on_log(self, *args: Any, **kwargs: Any) -> None:
        self.seconds += SECONDS
        super().on_log(*args, **kwargs)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what trainers print is no answer
    sys.path.insert(0, sys.argv[1])
    setup = json.load(sys.stdin)
    setup["report_to"] = ["tensorboard"]
    setup["args"] |= {"save_strategy": "steps", "save_steps": EVERY}
    json.dump(healed(setup, Path(os.environ["LAB"]) / "live" / setup["id"]), answers)
    answers.flush()


def healed(setup: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """What became of each part of a run: where it began, where and why it was stopped, what was changed."""
    import batch

    shutil.rmtree(folder, ignore_errors=True)
    era = __import__(batch.MODULE[setup["era"]])
    parts: list[dict[str, Any]] = []
    resumed = 0
    for part in range(1, PARTS + 1):
        place = folder / f"part-{part}"
        place.mkdir(parents=True, exist_ok=True)
        health = StepsOfSeconds(stop_on="critical")
        era.make_callback = lambda _, one=health: one
        era.main(setup, place)
        assert health.monitor is not None
        run = health.monitor.verdict()
        look = look_at(run)
        one: dict[str, Any] = {
            "from": resumed,
            "to": run.run.last_step,
            "stopped": health.stopped_by is not None,
            "verdict": run.verdict,
            "reward": look.reward,
            "spread": look.spread,
        }
        parts.append(one)
        if health.stopped_by is None:
            return parts
        advice = advice_of(run)
        one["cause"] = advice.cause or advice.title
        one["began"] = began(run, advice)
        one["changes"] = [[change.option, change.before, change.to] for change in advice.changes]
        if not advice.changes:
            return parts
        resumed = last_checkpoint(place, one["began"], resumed)
        setup.pop("resume_from", None)
        if resumed:
            to = folder / f"part-{part + 1}" / f"checkpoint-{resumed}"
            shutil.copytree(place / to.name, to)
            forget_optimizer(to)
            setup["resume_from"] = to.name
        setup["args"] |= {change.option: change.to for change in advice.changes}
    return parts


def began(run: RunVerdict, advice: Advice) -> int:
    """The step at which what the advice is of began, or the first critical finding, whichever was earlier."""
    critical = [one for one in run.findings if one.severity == max(found.severity for found in run.findings)]
    named = [one for one in run.findings if one.rule == advice.cause and one.severity > 0]
    return min(one.first_step for one in (*critical, *named))


def last_checkpoint(place: Path, before: int, resumed: int) -> int:
    """The step of the newest checkpoint whose weights are older than what a step logged; where this part has none, that
    at which it was resumed, or 0 where training began.

    The row of step k is sampled with the weights of checkpoint k - 1: that one is too late.
    """
    steps = [int(one.name.partition("-")[2]) for one in place.glob("checkpoint-*")]
    return max((step for step in steps if step < before - 1), default=resumed if resumed < before - 1 else 0)


def forget_optimizer(checkpoint: Path) -> None:
    """Takes the optimizer's state out of a checkpoint: it holds the old learning rate."""
    for name in ("optimizer.pt", "scheduler.pt"):
        (checkpoint / name).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
