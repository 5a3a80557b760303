"""Onset: a finding begins at the first row that agrees, not where a window was full, and no later data moves it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.engine.estimate import Bound
from rlhealth.engine.judge import Judge
from rlhealth.engine.onset import dated_back
from rlhealth.metrics import Metric
from rlhealth.rules.conditions import Condition
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run, Series
from tests.canonical import translated
from tests.examples import examples

RULES = [rule for rule in load_rules() if rule.cause is None]


def metric(values: list[float]) -> Metric:
    series = Series("kl")
    series.extend(np.arange(1, len(values) + 1), np.asarray(values, float), np.full(len(values), 1e9))
    return Metric("kl", "kl", "nats/token", "", "", "", series)


NAN = float("nan")


@pytest.mark.parametrize(
    ("condition", "values", "step", "onset"),
    [
        ({"last": 5, "measure": "median", "above": 1}, [0, 0, 2, 2, 2], 5, (3, False)),
        ({"last": 5, "at_least": 3, "measure": "median", "above": 1}, [2, 2, 2], 3, (1, True)),
        ({"last": 5, "at_least": 3, "measure": "median", "above": 1}, [NAN, 2, 2, 2], 4, (2, True)),
        ({"last": 4, "measure": "range", "below": 0.1}, [5, 7, 3, 3, 3, 3], 6, (3, False)),
        ({"measure": "streak", "where": {"above": 0}, "above": 2}, [0, 1, 1, 1], 4, (2, False)),
        ({"measure": "streak", "where": {"above": 0}, "below": 1}, [1, 1, 0], 3, (3, False)),
        (
            {"last": 3, "measure": "median", "versus": {"start": 1, "as": "difference"}, "above": 1},
            [4, 4, 4, 6, 6],
            5,
            (4, False),
        ),
        (
            {"last": 2, "measure": "mean", "versus": {"before": 3, "as": "ratio"}, "above": 4},
            [1, 1, 1, 9, 9],
            5,
            (4, False),
        ),
        ({"last": 4, "measure": "share_nonfinite", "above": 0.3}, [1, 1, NAN, 1, NAN], 5, (3, False)),
        (
            {"last": 4, "measure": "share_of_points", "where": {"below": 1}, "above": 0.5},
            [2, 2, 0, 2, 0, 0],
            6,
            (3, False),
        ),
        ({"last": 4, "measure": "max", "below": 1}, [3, 0, 0, 0, 0], 5, (2, False)),
        ({"absolute": True, "above": 1}, [0, -3], 2, (2, False)),
        ({"last": 2, "measure": "standstill", "above": 2}, [5, 7, 7, NAN, 7, 7, 7], 6, (2, False)),
        ({"last": 2, "measure": "standstill", "above": 2}, [NAN, 7, 7, 7], 4, (2, True)),
    ],
)
def test_the_onset_is_the_first_row_of_the_window_that_agrees(condition, values, step, onset):
    made = Condition.model_validate({"metric": "kl"} | condition)
    side = next(name for name in ("above", "below") if condition.get(name) is not None)
    found, from_start = dated_back(made, Bound(side, condition[side]), metric(values), None, 1.0, np.array([step]))
    assert [(int(found[0]), bool(from_start[0]))] == [onset]


@given(level=st.floats(1.7, 90), at=st.integers(0, 60), length=st.integers(6, 40), more=st.integers(0, 30))
@settings(max_examples=examples(60), deadline=None)
def test_an_onset_is_where_the_level_changed_and_later_rows_do_not_move_it(level, at, length, more):
    values = np.concatenate([np.zeros(at), np.full(length, level), np.zeros(more)])
    rule = "kl-high-per-sequence" if at else "kl-offset-per-sequence"

    def found(until: int) -> list[tuple[str, int, int, bool]]:
        run = Run("run", Place("jsonl", "run.jsonl"))
        run.add("objective/kl", np.arange(1, until + 1), 4 * values[:until], np.full(until, 1e9))
        judge = Judge(run, RULES, translation=translated(run, "trl-ppo"))
        judge.advance()
        return [
            (one.rule, one.first_step, one.raised_step, one.from_start)
            for one in judge.verdict(4e9).findings
            if one.rule == rule
        ]

    (whole,) = found(len(values))
    assert whole[1] == at + 1
    assert whole[3] is (at == 0)
    assert found(whole[2]) == [whole]
    assert found(whole[2] - 1) == []
