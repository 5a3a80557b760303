"""Plans: runs of the same names and settings share one, and what is kept of one run changes nothing for the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.check import judge
from rlhealth.engine import plan as plans
from rlhealth.engine.plan import RuleBook, rule_book
from rlhealth.metrics import sorting, translate
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from rlhealth.verdict.verdicts import RunVerdict
from tests.examples import examples

RULES = load_rules()
NAMES = ("reward", "kl", "entropy", "grad_norm", "learning_rate", "completions/clipped_ratio", "clip_ratio/region_mean")
SETTINGS: dict[str, tuple[Any, ...]] = {
    "train/learning_rate": (1e-6, 1e-3),
    "beta": (0.0, 0.04, "0.04"),
    "num_iterations": (1, 2),
    "scale_rewards": (True, False, "none"),
    "max_completion_length": (256, "unknown"),
    "max_steps": (10, 1000),
    "epsilon": (0.2, 0.3),
}
CONFIGS = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in SETTINGS.items()})
RUNS = st.tuples(CONFIGS, st.sets(st.sampled_from(NAMES), min_size=1), st.sampled_from(("jsonl", "tensorboard")))


def run_of(config: dict[str, Any], names: set[str], kind: str, rounded: bool = False) -> Run:
    run = Run("run", Place(kind, "here"), config=dict(config))
    random = np.random.default_rng(len(names))
    for name in sorted(names):
        values = random.normal(1, 0.3, 40)
        run.add(f"train/{name}", range(1, 41), np.round(values, 2) if rounded else values, 1e9 + np.arange(40))
    return run


def said_of(verdict: RunVerdict) -> list[Any]:
    return [*map(repr, verdict.findings), *map(repr, verdict.skipped), *verdict.quiet, verdict.verdict]


@given(st.lists(st.tuples(RUNS, st.booleans()), min_size=2, max_size=6))
@settings(max_examples=examples(60))
def test_a_run_is_judged_after_others_as_it_is_alone(asked: list[tuple[Any, bool]]) -> None:
    runs = [run_of(*one, rounded=rounded) for one, rounded in asked]
    after_others = [said_of(judge(run, RULES, now=4e9)) for run in runs]
    for run, said in zip(runs, after_others, strict=True):
        plans._books.clear()
        sorting._kept.clear()
        assert said_of(judge(run, RULES, now=4e9)) == said


def test_runs_that_differ_in_what_no_rule_names_share_a_plan() -> None:
    book = RuleBook(RULES)
    one, other = (run_of({"beta": 0.04, "seed": seed}, set(NAMES), "tensorboard") for seed in (1, 2))
    assert book.plan(one, translate(one)) is book.plan(other, translate(other))


def test_two_trainers_of_one_id_are_each_called_by_their_name() -> None:
    book = RuleBook(RULES)
    run = run_of({}, {"reward"}, "jsonl")
    for title in ("one trainer", "another trainer"):
        plan = book.plan(run, replace(translate(run), title=title))
        assert any(one.reason.endswith(f"this is {title}") for one in plan.skipped)


def test_a_setting_that_a_rule_names_makes_another_plan() -> None:
    book = RuleBook(RULES)
    one, other = (run_of({"beta": beta}, set(NAMES), "tensorboard") for beta in (0.0, 0.04))
    assert book.plan(one, translate(one)) is not book.plan(other, translate(other))


def test_the_book_of_the_same_rules_is_the_same() -> None:
    assert rule_book(RULES) is rule_book(list(RULES))
    assert rule_book(RULES) is not rule_book(RULES[:-1])


def test_a_reward_that_stays_where_it_is_is_judged_as_that_of_a_control_task_where_nothing_shows_texts() -> None:
    flat = np.random.default_rng(1).normal(-0.3, 1, 600)
    for others, is_judged in (((), True), (("kl",), False), (("frac_reward_zero_std",), False)):
        run = Run("run", Place("jsonl", "here"))
        for name in ("reward", *others):
            run.add(name, np.arange(600), flat if name == "reward" else np.abs(flat) / 100)
        found = {one.rule for one in judge(run, RULES).findings}
        assert ("reward-never-rose-in-control" in found) is is_judged
