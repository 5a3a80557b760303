"""Reach: a clause that is left out because no value so far can meet it is one that measuring does not raise either."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlhealth.engine.judge import NEVER, Judge
from rlhealth.engine.operands import Operand
from rlhealth.engine.plan import RuleBook
from rlhealth.engine.reach import Reach
from rlhealth.engine.rule_state import UnmetRule
from rlhealth.metrics import Translation
from rlhealth.rules.conditions import Condition
from rlhealth.rules.loading import load_rules
from rlhealth.rules.measures import ESTIMATED, MEASURES
from rlhealth.rules.model import Rule, Source, When
from rlhealth.rules.scope import Scope
from rlhealth.run import Place, Run
from rlhealth.verdict.verdicts import RunVerdict
from tests.canonical import translated
from tests.examples import examples

NOW = 4e9
TAGS = ("kl", "reward", "frac_reward_zero_std")
LIMITS = (-2.0, -0.5, -1e-9, 0.0, 1e-300, 0.05, 0.25, 0.5, 1.0, 1.0001, 2.0, 3.0, 10.0, 1e6)
ODD = st.sampled_from(
    (np.nan, np.inf, -np.inf, 0.0, 5e-324, 1e-320, -1e-320, 1e-300, 1e200, -1e200, 1.7e308, -1.0, 1.0)
)
NUMBERS = st.one_of(
    st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0)), st.floats(0.9, 1.1), st.floats(-10, 10), st.floats(), ODD
)
ALIKE = st.builds(lambda level, more: [level + one for one in more], st.floats(0.5, 4), st.lists(st.floats(0, 0.4)))
SERIES = st.one_of(st.lists(NUMBERS, min_size=1, max_size=40), ALIKE.filter(bool))


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    """Any condition on one metric, but for those that measure two."""
    measure = draw(st.sampled_from([one for one in MEASURES if one != "correlation"]))
    said: dict[str, Any] = {"metric": draw(st.sampled_from(TAGS)), "measure": measure}
    if measure != "value":
        said["last"] = draw(st.integers(1, 6))
    if measure in ("mean", "median", "min", "max", "std", "range", "mean_fraction") and draw(st.booleans()):
        said["at_least"] = draw(st.integers(1, said["last"]))
    if measure == "mean_fraction":
        said["items"] = draw(st.integers(1, 30))
    if measure in ("share_of_points", "count", "streak"):
        said["where"] = {draw(st.sampled_from(("above", "below"))): draw(st.sampled_from(LIMITS))}
    past = draw(st.sampled_from(("start", "before", "largest", "smallest", "", "")))
    if measure in ESTIMATED:
        past = draw(st.sampled_from(("start", "")))
    if past and measure not in ("climb", "plunge", "arrival"):
        how = "difference" if measure in ESTIMATED else draw(st.sampled_from(("ratio", "difference")))
        said["versus"] = {past: draw(st.integers(1, 6)), "as": how}
    said["absolute"] = draw(st.booleans())
    said[draw(st.sampled_from(("above", "below", "equals")))] = draw(st.sampled_from(LIMITS))
    if measure in ESTIMATED:
        said["standard_errors"] = draw(st.sampled_from((0, 0, 1.5, -1.65)))
    return Condition.model_validate(said)


def rule_of(*all_of: Condition) -> Rule:
    said = {"title": "T", "severity": "warning", "message": "{value:g}", "because": "b", "try_": ("t",)}
    return Rule(
        id="a-rule", family="mismatch", scope=Scope(), when=When(all=all_of), source=(Source(text="s"),), **said
    )


def run_of(series: list[list[float]]) -> tuple[Run, Translation]:
    run = Run("run", Place("jsonl", "run.jsonl"))
    for number, (tag, values) in enumerate(zip(TAGS, series, strict=False), 1):
        run.add(tag, np.arange(1, len(values) + 1) * number, values, 1e9 + np.arange(len(values)))
    return run, translated(run)


def said_of(verdict: RunVerdict) -> list[Any]:
    return [*map(repr, verdict.findings), *map(repr, verdict.skipped), *verdict.quiet, verdict.verdict]


def judged(run: Run, rules: list[Rule], made: Translation | None, every: bool = False) -> tuple[RunVerdict, int]:
    """The verdict, and how many clauses were left out; `every` where none is to be."""
    judge = Judge(run, rules, translation=made)
    if every:
        judge.follow_all()
    judge.advance()
    return judge.verdict(NOW), sum(isinstance(one, UnmetRule) for one in judge.states)


@given(SERIES, conditions())
@settings(max_examples=examples(1000))
def test_all_that_is_measured_lies_within_reach(series: list[float], condition: Condition) -> None:
    _, made = run_of([series, series, series])
    (operand,) = RuleBook([rule_of(condition)]).plan(Run("run", Place("jsonl", "here")), made).clauses[0].operands
    metric = made.metrics[condition.metric]
    with np.errstate(all="ignore"):
        measured = Operand(condition, metric, None, 1.0).advance(int(metric.steps[-1]))[1].value
    reach = Reach(made.metrics.__getitem__)
    reach.grow(int(metric.steps[-1]))
    low, high = reach.range_of(operand)
    said = measured[~np.isnan(measured)]
    assert np.all((said >= low) & (said <= high)), f"{said} is not between {low} and {high}"


LEVEL = Condition.model_validate({"metric": "kl", "measure": "mean", "last": 3, "above": 0.1})
FALL = Condition.model_validate({"metric": "kl", "measure": "plunge", "last": 3, "above": -2.0})
STILL = Condition.model_validate({"metric": "kl", "measure": "standstill", "last": 2, "equals": 0})


@given(st.lists(SERIES, min_size=3, max_size=3), st.lists(conditions(), min_size=1, max_size=3))
@example([[0.1, 0.1, 0.1], [1.0], [1.0]], [LEVEL])  # whose mean is 0.10000000000000002
@example([[0.0], [0.0], [0.0]], [STILL])  # a single point says nothing yet
@settings(max_examples=examples(400))
def test_a_run_that_is_read_to_its_end_is_judged_as_if_every_clause_were_measured(
    series: list[list[float]], all_of: list[Condition]
) -> None:
    run, made = run_of(series)
    rules = [rule_of(*all_of)]
    assert said_of(judged(run, rules, made)[0]) == said_of(judged(run, rules, made, every=True)[0])


@given(
    st.lists(SERIES, min_size=3, max_size=3),
    st.lists(conditions(), min_size=1, max_size=3),
    st.lists(st.integers(1, 9)),
)
@example([[0.1, 0.1, 0.1], [1.0], [1.0]], [LEVEL], [1])
@example([[0.0, 0.0], [0.0], [0.0]], [FALL], [])  # two equal points are no plunge yet
@settings(max_examples=examples(400))
def test_a_run_that_grows_is_judged_at_each_look_as_if_every_clause_were_measured(
    series: list[list[float]], all_of: list[Condition], looks: list[int]
) -> None:
    run, made = run_of(series)
    here, everywhere = (Judge(run, [rule_of(*all_of)], translation=made) for _ in range(2))
    everywhere.follow_all()
    for until in [*np.cumsum(looks).tolist(), NEVER]:
        here.advance(until)
        everywhere.advance(until)
        assert said_of(here.verdict(NOW)) == said_of(everywhere.verdict(NOW)), until


@pytest.mark.parametrize(
    ("said", "left_out"),
    [
        ({"above": 2.0}, True),
        ({"above": 1.5}, False),
        ({"below": 0.25}, True),
        ({"below": 0.75}, False),
        ({"equals": 3.0}, True),
        ({"measure": "median", "last": 3, "above": 2.0}, True),
        ({"measure": "share_nonfinite", "above": 0.0}, True),
        ({"measure": "max_so_far", "below": 0.5}, True),
        ({"measure": "standstill", "last": 3, "above": 1.5}, True),
        ({"measure": "range", "last": 3, "below": 0.25}, True),
        ({"measure": "range", "last": 3, "below": 0.75}, False),
        ({"versus": {"start": 2, "as": "ratio"}, "above": 4.0}, True),
        ({"versus": {"before": 3, "as": "ratio"}, "above": 4.5}, True),
        ({"versus": {"before": 3, "as": "ratio"}, "above": 3.5}, False),
        ({"versus": {"before": 3, "as": "difference"}, "above": 1.6}, True),
        ({"measure": "count", "last": 5, "where": {"above": 2.0}, "above": 0}, True),
        ({"measure": "drop_from_best", "last": 2, "above": 1e9}, False),  # of noise nothing is known before
    ],
)
def test_what_no_value_of_the_run_can_meet_is_left_out(said: dict[str, Any], left_out: bool) -> None:
    run, made = run_of([[0.5, 1.5, 2.0, 1.0, 0.5, 2.0]])
    rules = [rule_of(Condition.model_validate({"metric": "kl"} | said))]
    assert judged(run, rules, made)[1] == left_out
    assert judged(run, rules, made, every=True)[1] == 0


def test_a_rule_is_followed_from_the_look_on_at_which_it_can_first_be_met() -> None:
    run, made = run_of([[0.5, 1.5, 2.0, 1.0, 9.0, 2.0]])
    above = Condition.model_validate({"metric": "kl", "measure": "max", "last": 2, "above": 3.0})
    judge = Judge(run, [rule_of(above)], translation=made)
    followed = []
    for until in range(1, 7):
        judge.advance(until)
        followed.append(len(judge.watched))
    assert followed == [0, 0, 0, 0, 1, 1]
    assert [one.first_step for one in judge.verdict(NOW).findings] == [5]


def test_a_share_of_too_few_items_is_followed_only_until_there_are_enough() -> None:
    run, made = run_of([[1.0], [1.0], [0.1] * 6])
    share = {"metric": "frac_reward_zero_std", "measure": "mean_fraction", "last": 6, "items": 4, "above": 0.5}
    judge = Judge(run, [rule_of(Condition.model_validate(share))], translation=made)
    followed = []
    for until in range(3, 19, 3):
        judge.advance(until)
        followed.append(len(judge.watched))
    assert followed == [1, 1, 1, 0, 0, 0]


def test_most_clauses_on_a_healthy_run_are_left_out() -> None:
    random = np.random.default_rng(1)
    rise = np.linspace(0, 1, 200)
    logged = {
        "reward": 0.3 + 0.5 * rise + random.normal(0, 0.05, 200),
        "kl": 0.05 * rise + random.uniform(0, 0.01, 200),
        "entropy": 0.8 - 0.2 * rise + random.normal(0, 0.01, 200),
        "grad_norm": random.uniform(0.3, 0.6, 200),
        "loss": random.normal(0, 0.02, 200),
        "learning_rate": 1e-6 * (1 - rise),
        "completions/mean_length": random.uniform(180, 220, 200),
        "completions/clipped_ratio": random.choice([0.0, 0.0625], 200),
    }
    run = Run("run", Place("tensorboard", "here"))
    for name, values in logged.items():
        run.add(f"train/{name}", range(1, 201), values)
    judge = Judge(run, load_rules())
    judge.advance(last=True)
    assert judge.verdict(NOW).verdict == "healthy"
    assert len(judge.watched) < len(judge.states) / 2
