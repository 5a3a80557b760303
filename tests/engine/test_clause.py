"""Clauses: where conditions hold, which of them began a level, and what is looked at only where it matters."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.clause import Clause, ClausePoints
from rlhealth.engine.estimate import Estimate
from rlhealth.engine.plan import rule_book
from rlhealth.rules.model import Rule
from rlhealth.run import Place, Run
from tests.canonical import translated

RULE = {
    "id": "kl-grows-and-reward-falls",
    "family": "kl-high",
    "title": "A policy that drifts and earns less",
    "severity": "warning",
    "when": {"all": [{"metric": "kl", "above": 1.0}, {"metric": "reward", "below": 0.5}]},
    "critical": {"above": 5.0},
    "message": "KL is {value}",
    "because": "it drifts",
    "try": ["Lower the learning rate."],
    "source": [{"text": "a test"}],
}


def clause_of(**series: list[float]) -> Clause:
    run = Run("run", Place("jsonl", "run.jsonl"))
    for name, values in series.items():
        run.add(name, np.arange(1, len(values) + 1), np.asarray(values, np.float64), 1e9 + np.arange(len(values)))
    translation = translated(run)
    [plan] = rule_book([Rule.model_validate(RULE)]).plan(run, translation).clauses
    return Clause(plan, translation.metrics["kl"], translation)


def test_a_level_holds_where_all_conditions_do_and_the_critical_one_where_its_limit_is_passed_too() -> None:
    points = clause_of(kl=[0, 2, 2, 9, 9], reward=[0, 1, 0, 0, 1]).advance(5)
    assert points is not None and points.is_whole
    assert points.level(is_worse=False).tolist() == [False, False, True, True, False]
    assert points.level(is_worse=True).tolist() == [False, False, False, True, False]


def test_what_began_a_level_is_the_conditions_that_did_not_hold_before() -> None:
    points = clause_of(kl=[0, 2, 2, 2], reward=[1, 1, 0, 0]).advance(4)
    assert points is not None
    assert points.begun(points.level(is_worse=False)).tolist() == [0, 0, 2, 0], "the second one made it hold"


def test_a_condition_is_not_looked_at_while_the_first_never_holds_and_is_looked_back_at_once_it_does() -> None:
    clause = clause_of(kl=[0, 0, 0, 2], reward=[0, 0, 0, 0])
    first = clause.advance(3)
    assert first is not None and not first.is_whole and not first.level(is_worse=False).any()
    assert clause.held == [False, None] and clause.left_out == 3
    second = clause.advance(4)
    assert second is not None and second.before == [False, True], "reward was low already at the point before"
    assert second.begun(second.level(is_worse=False)).tolist() == [1]


def test_points_say_nothing_of_a_level_whose_conditions_were_left_out() -> None:
    flags = np.array([True, True])
    points = ClausePoints(np.array([1, 2]), Estimate(np.array([2.0, 2.0])), [flags], flags, [False, None], base=2)
    assert not points.level(is_worse=False).any()
