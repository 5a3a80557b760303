"""What reward functions pay for: a word stands for the names that people give such functions."""

from __future__ import annotations

import fnmatch

import numpy as np
import pytest

from rlhealth.metrics import meanings, translate
from rlhealth.metrics.rewards import kinds, written_out
from rlhealth.rules.conditions import Condition
from rlhealth.run import Place, Run


def test_a_word_stands_for_its_names_beside_others_and_a_metric_for_itself() -> None:
    assert written_out("kl|form_reward|loss") == "|".join(["kl", *kinds()["form_reward"], "loss"])
    assert written_out("reward") == "reward"


def test_a_condition_that_names_a_word_looks_at_the_metrics_that_it_stands_for() -> None:
    assert Condition(metric="answer_reward", above=0).metric == "|".join(kinds()["answer_reward"])


def test_no_word_is_the_name_of_a_metric() -> None:
    assert not kinds().keys() & meanings().keys()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("correctness_reward_func", "answer_reward"),
        ("accuracy_reward", "answer_reward"),
        ("check_answer", "answer_reward"),
        ("equation_reward_func", "answer_reward"),
        ("check_numbers", "answer_reward"),
        ("exact_match_reward", "answer_reward"),
        ("strict_format_reward_func", "form_reward"),
        ("xmlcount_reward_func", "form_reward"),
        ("match_format_exactly", "form_reward"),
        ("match_format_approximately", "form_reward"),
        ("reward_len", None),
        ("int_reward_func", None),
        ("isnumber_reward_func", None),
        ("cosine_reward", None),
    ],
)
def test_a_published_reward_function_pays_for_the_answer_or_the_form(name: str, kind: str | None) -> None:
    tag = f"rewards/{name}/mean"
    found = [one for one, patterns in kinds().items() if any(fnmatch.fnmatchcase(tag, each) for each in patterns)]
    assert found == ([] if kind is None else [kind])


@pytest.mark.parametrize(
    ("tags", "reward"),
    [
        (["success_rate", "loss"], "success_rate"),
        (["success_rate", "episode_reward"], "episode_reward"),
        (["reward_format", "loss"], None),
        (["predator_reward", "prey_reward"], None),
    ],
)
def test_the_only_reward_function_of_a_run_that_logs_no_total_is_its_reward(
    tags: list[str], reward: str | None
) -> None:
    run = Run("run", Place("csv", "run.csv"))
    for tag in tags:
        run.add(tag, np.arange(20), np.linspace(0, 1, 20), np.full(20, np.nan))
    found = translate(run).metrics.get("reward")
    assert (found and found.tag) == reward
