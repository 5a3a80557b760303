"""Every check of settings fires where it must and stays quiet where it must, and names a source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rlhealth.errors import RlhealthError
from rlhealth.metrics.catalogue import frameworks, names
from rlhealth.preflight.looking import examine
from rlhealth.preflight.model import Check, load_checks
from rlhealth.preflight.options import Options
from rlhealth.preflight.trainer import settings_in
from rlhealth.sources.discovery.opening import open_all
from tests.conftest import FIXTURES, ROOT

CASES = yaml.safe_load((Path(__file__).parent / "cases.yaml").read_text(encoding="utf-8"))
CHECKS = {one.id: one for one in load_checks()}


def found(options: dict[str, object]) -> dict[str, str]:
    """Check to severity, for options as a config file holds them."""
    return {one.check: str(one.severity) for one in examine(settings_in(Options("grpo.yaml", options))).hurts}


def test_there_are_cases_for_each_check_and_for_no_other() -> None:
    assert set(CASES) == set(CHECKS)


@pytest.mark.parametrize("check", CASES)
def test_it_fires_where_it_must_and_is_quiet_where_it_must(check: str) -> None:
    assert check in found(CASES[check]["fires"])
    assert check not in found(CASES[check]["quiet"])


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda one: one.id)
def test_every_setting_that_a_check_names_is_one_that_some_trainer_has(check: Check) -> None:
    known = {alias.name for entry in frameworks() for alias in names(entry["names"]).settings} | {"devices"}
    asked = {part for one in check.conditions for name in one.names for part in name.split("|")}
    limits = {one.not_divisible_by for one in check.conditions if one.not_divisible_by}
    assert asked | limits | set(check.scope.only_if) | set(check.scope.unless) <= known


def test_what_is_worse_is_critical() -> None:
    assert found({"num_generations": 8, "beta": 0.04, "learning_rate": 0.05}) == {
        "learning-rate-far-too-high": "critical"
    }
    assert found({"num_generations": 8, "beta": 0.04, "learning_rate": 0.005}) == {
        "learning-rate-far-too-high": "warning"
    }


def test_a_batch_of_broken_groups_is_reported_for_the_number_of_processes() -> None:
    options = {"num_generations": 14, "beta": 0.04, "per_device_train_batch_size": 16, "gradient_accumulation_steps": 4}
    settings = settings_in(Options("grpo.yaml", options))
    unknown, eight, seven = (examine(settings, devices) for devices in (None, 8, 7))
    assert "batch-of-broken-groups" in {one.check for one in eight.hurts}
    assert "batch-of-broken-groups" in seven.quiet
    assert unknown.skipped["batch-of-broken-groups"].endswith("--devices N says it")


def test_unsloth_corrects_a_batch_of_broken_groups() -> None:
    options = {"num_generations": 1021, "beta": 0.04, "per_device_train_batch_size": 1}
    settings = settings_in(Options("train.py", options, libraries=frozenset({"unsloth"})))
    assert examine(settings).skipped["batch-of-broken-groups"] == "unsloth corrects it"


def test_a_run_that_started_is_not_reported_as_unable_to_start() -> None:
    [run] = open_all(FIXTURES / "trainer_state" / "grpo-old")[0]
    from rlhealth.preflight.trainer import settings_of_run

    assert not [one for one in examine(settings_of_run(run)).hurts if CHECKS[one.check].scope.until_started]


def test_an_unknown_trainer_is_an_error_that_says_what_may_have_been_meant() -> None:
    with pytest.raises(RlhealthError, match="did you mean `trl-grpo`"):
        settings_in(Options("x.yaml", {"learning_rate": 1e-6}), "trl-grp")
    with pytest.raises(RlhealthError, match="match no known trainer"):
        settings_in(Options("x.yaml", {"colour": "red"}))


def test_the_page_lists_every_check_with_its_title() -> None:
    page = (ROOT / "docs" / "preflight.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \|.*\| (.*) \|$", page, re.MULTILINE))
    assert rows == {one.id: one.title for one in CHECKS.values()}
