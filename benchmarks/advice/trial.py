"""One trial: a sick set-up is judged, its advice is applied, and it is trained again, until it is healthy or the advice
ends."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.advice.training import Lab, Setup
from rlhealth.check import check
from rlhealth.verdict.advised import Advice, advice_of
from rlhealth.verdict.verdicts import RunVerdict

ROUNDS = 3  # of advice at most; what counts is two
SEED_STEP = 1000  # between the seeds of one trial


@dataclass(frozen=True)
class TrialRound:
    """One run as it came out: its verdict, its advice, and the reward in the last fifth of its steps (mean, standard
    deviation)."""

    verdict: str
    advice: Advice
    reward: float
    spread: float


@dataclass(frozen=True)
class Outcome:
    """What came of one trial with one seed.

    Attributes:
        rounds: the run as it was, then after each round of advice.
        healthy: the same task with healthy settings; None if no setting is wrong.
        healed: in which round it was healed; None if it was not.
        worse: whether the last round's reward lies below that of the unhealthy run by more than the noise of both.
    """

    rounds: tuple[TrialRound, ...]
    healthy: TrialRound | None
    healed: int | None
    worse: bool


def tried(trial: dict[str, Any], seed: int, lab: Lab) -> Outcome | None:
    """Trains and heals one trial with one seed; None if the lab could not train the unhealthy run or the healthy
    one."""
    setup = setup_of(trial, seed, lab)
    healthy = None
    if trial.get("healthy"):
        healthy = _looked({**setup, "args": setup["args"] | trial["healthy"]}, lab)
        if healthy is None:
            return None
    rounds = list(_rounds(setup, healthy, lab))
    if not rounds:
        return None
    last = len(rounds) - 1
    healed = last if last and healthy is not None and _is_healed(rounds[last], healthy) else None
    noise = 2 * float(np.hypot(rounds[0].spread, rounds[last].spread))
    return Outcome(tuple(rounds), healthy, healed, rounds[last].reward < rounds[0].reward - noise)


def setup_of(trial: dict[str, Any], seed: int, lab: Lab) -> Setup:
    """The sick set-up of a trial with that seed (0, 1, 2 …)."""
    setup = copy.deepcopy(lab.setups[trial["run"]])
    setup["era"] = trial.get("era", setup["era"])
    setup["seed"] += SEED_STEP * seed
    setup["reward"] = trial.get("reward", setup["reward"])
    setup["args"] |= trial.get("args", {})
    return setup


@dataclass(frozen=True)
class LiveOutcome:
    """What came of one trial with one seed, healed while it trained.

    Attributes:
        parts: as `benchmarks.advice.live` gives them.
        healthy: the same task with healthy settings; None if no setting is wrong.
    """

    parts: list[dict[str, Any]]
    healthy: TrialRound | None

    @property
    def healed(self) -> bool:
        """Whether it ends healthy, with the reward of healthy settings."""
        end, healthy = self.parts[-1], self.healthy
        is_healthy = not end["stopped"] and end["verdict"] == "healthy" and len(self.parts) > 1
        return is_healthy and healthy is not None and end["reward"] >= healthy.reward - 2 * healthy.spread


def tried_live(trial: dict[str, Any], seed: int, lab: Lab) -> LiveOutcome | None:
    """Trains one trial with one seed, and heals it while it trains; None if the lab could not."""
    setup = setup_of(trial, seed, lab)
    healthy = _looked({**setup, "args": setup["args"] | trial["healthy"]}, lab) if trial.get("healthy") else None
    parts = lab.healed_live(setup)
    return None if parts is None else LiveOutcome(parts, healthy)


def _rounds(setup: Setup, healthy: TrialRound | None, lab: Lab) -> Iterator[TrialRound]:
    for _ in range(ROUNDS + 1):
        look = _looked(setup, lab)
        if look is None:
            return
        yield look
        if (healthy is not None and _is_healed(look, healthy)) or healthy is None or not look.advice.changes:
            return
        setup = copy.deepcopy(setup)
        setup["args"] |= {one.option: one.to for one in look.advice.changes}


def _is_healed(look: TrialRound, healthy: TrialRound) -> bool:
    """Whether a run is healthy, and its reward ends no lower than twice the noise below that of the healthy
    settings."""
    return look.verdict == "healthy" and look.reward >= healthy.reward - 2 * healthy.spread


def _looked(setup: Setup, lab: Lab) -> TrialRound | None:
    folder = lab.trained(setup)
    if folder is None:
        return None
    runs = check(folder, source="tensorboard").runs
    return look_at(runs[0]) if len(runs) == 1 else None


def look_at(run: RunVerdict) -> TrialRound:
    """A judged run as a trial sees it."""
    values = run.translation.metrics["reward"].values
    end = values[-max(len(values) // 5, 1) :]
    end = end[np.isfinite(end)]
    mean, spread = (float(end.mean()), float(end.std())) if len(end) else (float("-inf"), 0.0)
    return TrialRound(run.verdict, advice_of(run), mean, spread)
