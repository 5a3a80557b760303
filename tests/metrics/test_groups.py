"""Every trainer is in one group, so that a rule about language models or about control reaches it."""

from __future__ import annotations

from rlhealth.metrics.catalogue import frameworks
from rlhealth.metrics.groups import groups, is_named

UNKNOWN = {"generic"}  # reads logs of unknown trainers: a scope names it where it is meant


def test_every_trainer_of_reinforcement_learning_is_in_one_group() -> None:
    trainers = {entry["id"] for entry in frameworks() if entry.get("is_rl") != "no"} - UNKNOWN
    assert {one for one in trainers if sum(is_named(one, [group]) for group in groups()) != 1} == set()


def test_a_scope_names_a_trainer_by_its_id_a_pattern_or_a_group_and_one_that_names_none_is_about_all() -> None:
    for named in ([], ["trl-grpo"], ["trl-*"], ["language-models"], ["control", "language-models"]):
        assert is_named("trl-grpo", named)
    for named in (["verl"], ["control"], ["trl-ppo*"]):
        assert not is_named("trl-grpo", named)
