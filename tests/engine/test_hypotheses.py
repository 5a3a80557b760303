"""Hypotheses on real judgements: a cause is named with its evidence, and is silent where something speaks against it."""

from __future__ import annotations

import numpy as np
import pytest

from rlhealth.check import judge
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from rlhealth.verdict.findings import Finding

RULES = load_rules()
STEPS = np.arange(1, 101)


def causes_of(config: dict[str, object] | None = None, **series: np.ndarray) -> list[Finding]:
    run = Run("run", Place("jsonl", "here"), config=config or {})
    noise = np.random.default_rng(7)
    for tag, values in series.items():
        run.add(tag.replace("__", "/"), STEPS, values + noise.normal(0, 0.01, len(STEPS)) * (tag == "reward"))
    found = judge(run, RULES).findings
    return [one for one in found if one.evidence]


def falling(start: float, end: float, since: int = 20) -> np.ndarray:
    return np.concatenate([np.full(since, start), np.linspace(start, end, 100 - since)])


def test_a_step_size_far_outside_what_is_usual_is_named_with_its_evidence_and_what_to_change() -> None:
    kl = np.concatenate([np.linspace(0.5, 4, 8), np.full(92, 4.0)])
    found = causes_of(
        {"learning_rate": 0.01, "num_iterations": 1, "beta": 0.04, "max_completion_length": 64},
        kl=kl,
        reward=falling(0.7, 0.1, 3),
        learning_rate=np.full(100, 0.01),
        completions__mean_length=np.full(100, 30.0),
        frac_reward_zero_std=np.full(100, 0.1),
    )
    assert [one.rule for one in found] == ["step-size-too-large"]
    assert any("learning rate reached 0.01" in line for line in found[0].evidence)
    assert [(one.option, one.before, one.to) for one in found[0].changes] == [("learning_rate", 0.01, 0.001)]


def test_drift_under_usual_updates_is_another_cause_and_another_change() -> None:
    found = causes_of(
        {"learning_rate": 1e-5, "beta": 0.0001, "max_completion_length": 64},
        kl=np.linspace(0, 5, 100),
        reward=np.concatenate([np.linspace(0.2, 0.8, 50), np.linspace(0.8, 0.1, 50)]),
        learning_rate=np.full(100, 1e-5),
        completions__mean_length=np.full(100, 30.0),
        frac_reward_zero_std=np.full(100, 0.1),
    )
    assert [one.rule for one in found] == ["policy-ran-away"]
    assert [(one.option, one.to) for one in found[0].changes] == [("beta", 0.001), ("learning_rate", 3e-06)]


def test_what_was_so_from_the_start_is_no_consequence_of_what_came_later() -> None:
    found = causes_of(
        {"max_completion_length": 64},
        kl=np.concatenate([np.full(50, 0.05), np.linspace(0.05, 5, 50)]),
        reward=falling(0.5, 0.1, 50),
        completions__clipped_ratio=np.full(100, 0.97),
        completions__mean_length=np.full(100, 63.0),
    )
    explained = {
        one.rule for one in found if "completions-cut-off" in str(one.evidence) or "cut off" in str(one.evidence)
    }
    assert explained <= {"length-limit-too-short"}


def test_no_change_is_proposed_where_the_present_value_is_not_known() -> None:
    kl = np.concatenate([np.linspace(0.5, 4, 8), np.full(92, 4.0)])
    found = causes_of(
        None, kl=kl, reward=falling(0.7, 0.1, 3), policy__approxkl_avg=np.full(100, 0.9), val__ratio=np.full(100, 3.0)
    )
    assert all(not one.changes for one in found)


@pytest.mark.parametrize("jump", [True, False])
def test_a_reward_that_drops_at_once_was_changed_from_outside_unless_the_policy_moved_with_it(jump: bool) -> None:
    reward = np.concatenate([np.full(60, 0.6), np.full(40, 0.05)])
    kl = np.concatenate([np.full(60, 0.1), np.full(40, 5.0 if jump else 0.1)])
    found = causes_of(
        kl=kl, reward=reward, reward_std=np.where(reward > 0.3, 0.3, 0.0), grad_norm=np.where(reward > 0.3, 0.5, 0.0)
    )
    assert ("reward-changed" in [one.rule for one in found]) is not jump
