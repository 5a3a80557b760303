"""What reward functions pay for: a word stands for the names that people give such functions."""

from __future__ import annotations

import fnmatch

import pytest

from rlhealth.metrics import meanings
from rlhealth.metrics.rewards import kinds, written_out
from rlhealth.rules.conditions import Condition


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
