"""Evidence: a finding carries what each condition that made it fire measured at its worst point."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from rlhealth.check import judge
from rlhealth.engine.estimate import Bound, Estimate
from rlhealth.engine.judge import Judge
from rlhealth.engine.operands import Operand
from rlhealth.rules.conditions import Condition
from rlhealth.rules.loading import load_rules
from rlhealth.rules.model import Rule
from rlhealth.run import Place, Run
from rlhealth.sources import open_runs
from rlhealth.verdict.findings import Finding, Severity
from tests.canonical import translated

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOGS = [one for folder in ("tensorboard", "trainer_state", "wandb") for one in sorted((FIXTURES / folder).iterdir())]
RULES = load_rules()
TRADE = {
    "id": "kl-grows-and-reward-falls",
    "family": "kl-high",
    "title": "A policy that drifts and earns less",
    "severity": "warning",
    "when": {
        "all": [
            {"metric": "kl", "last": 3, "measure": "median", "versus": {"start": 1, "as": "ratio"}, "above": 2},
            {"metric": "reward", "last": 5, "measure": "drop_from_best", "above": 0, "standard_errors": 2},
        ],
        "held_for": 2,
    },
    "critical": {"above": 50, "and": [{"metric": "entropy", "below": 0.5}]},
    "message": "KL grew to {value} times its start by step {worst_step} (limit {limit})",
    "because": "it drifts",
    "try": ["Lower the learning rate."],
    "source": [{"text": "a test"}],
}


def run_of(worst: float, entropy: float) -> Run:
    """KL rises from step 40 on and is worst at step 60; reward falls at the same time."""
    random, steps = np.random.default_rng(1), np.arange(1, 81)
    run = Run("run", Place("jsonl", "run.jsonl"))
    kl = np.where(steps < 40, 0.1, 0.1 * np.minimum(worst, worst - 0.05 * worst * np.abs(steps - 60) / 20))
    run.add("kl", steps, kl, 1e9 + steps)
    run.add("reward", steps, np.where(steps < 40, 1.0, 0.2) + random.normal(0, 0.02, 80), 1e9 + steps)
    run.add("entropy", steps, np.full(80, entropy), 1e9 + steps)
    return run


def judging(run: Run) -> Judge:
    return Judge(run, [Rule.model_validate(TRADE)], translation=translated(run))


def finding_of(run: Run) -> Finding:
    made = judging(run)
    made.advance()
    [found] = made.verdict().findings
    return found


def test_each_condition_says_what_it_measured_where_the_first_was_worst() -> None:
    run = run_of(worst=20.0, entropy=2.0)
    found = finding_of(run)
    first, second = found.conditions
    assert (first.metric, first.step, first.measured, first.limit, first.side) == ("kl", 60, "ratio", 2.0, "above")
    assert (found.worst_value, found.worst_step) == (first.value, 60)
    assert first.error is None and first.level == pytest.approx(0.2), "twice the first point, as the chart draws it"
    assert (second.metric, second.step, second.measured, second.sure) == ("reward", 60, "noise", 2.0)
    condition = Condition.model_validate(TRADE["when"]["all"][1])  # type: ignore[index]
    steps, measured = Operand(condition, translated(run).metrics["reward"], None, 1.0).advance(60)
    assert steps[-1] == 60 and measured.error is not None
    assert (second.value, second.error) == (measured.value[-1], measured.error[-1]), "as measured by itself"
    assert second.errors_beyond == measured.value[-1] / measured.error[-1] > 2


def test_a_critical_finding_has_the_critical_limit_and_what_that_level_asks_for_beside() -> None:
    found = finding_of(run_of(worst=90.0, entropy=0.1))
    assert found.severity is Severity.CRITICAL
    assert [(one.metric, one.limit, one.side) for one in found.conditions] == [
        ("kl", 50.0, "above"),
        ("reward", 0.0, "above"),
        ("entropy", 0.5, "below"),
    ]
    milder = finding_of(run_of(worst=90.0, entropy=2.0))
    assert milder.severity is Severity.WARNING
    assert [(one.metric, one.limit) for one in milder.conditions] == [("kl", 2.0), ("reward", 0.0)]


def test_what_was_measured_is_said_by_the_names_that_the_run_logs() -> None:
    named = {"metric": "kl|objective/kl", "divided_by": {"metric": "same", "max_so_far": True}, "above": 0.9}
    rule = Rule.model_validate(TRADE | {"when": {"all": [named, *TRADE["when"]["all"]]}})  # type: ignore[index]
    run = run_of(worst=20.0, entropy=2.0)
    made = Judge(run, [rule], translation=translated(run))
    made.advance()
    [found] = made.verdict().findings
    assert [one.measure for one in found.conditions] == [
        "kl over the largest kl so far",
        "the median of the last 3 points of kl, as a multiple of the run's first point",
        "the fall of reward from its best so far (by the median of the last 5 points)",
    ]


def test_the_evidence_of_a_run_that_is_watched_is_that_of_the_step_that_is_worst_so_far() -> None:
    run = run_of(worst=20.0, entropy=2.0)
    made = judging(run)
    seen = []
    for step in range(1, 81):
        made.advance(step)
        for found in made.verdict().findings:
            alone = judging(run.until(step))
            alone.advance()
            assert repr(alone.verdict().findings[0].conditions) == repr(found.conditions), f"at step {step}"
            assert {one.step for one in found.conditions} == {found.worst_step}
            seen.append(found.worst_step)
    assert seen == sorted(seen) and seen[0] < seen[-1] == 60


@pytest.mark.parametrize("log", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_condition_of_every_finding_holds_at_its_worst_step(log: Path) -> None:
    for run in open_runs(str(log)):
        for found in judge(run, RULES, now=4e9).findings:
            for one in found.conditions:
                if one.measure:
                    assert one.limit is not None
                    error = math.nan if one.error is None else one.error
                    sure = 0.0 if one.error is None else one.sure
                    estimate = Estimate(np.array([one.value]), np.array([error]))
                    assert Bound(one.side, one.limit, sure).holds(estimate)[0], (found.rule, one)
