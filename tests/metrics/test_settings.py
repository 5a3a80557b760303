"""A trainer's own settings become canonical ones, and advice can name them as that trainer does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlhealth.engine.advice import changes_of
from rlhealth.metrics import translate
from rlhealth.metrics.settings import plain
from rlhealth.rules.loading import load_rules
from tests.metrics.logged import GRPO, LEGACY, PPO, SB3, run_of

CORRECTION = "vllm_importance_sampling_correction"


def test_grpo_settings_have_canonical_names() -> None:
    config = translate(
        run_of(
            GRPO,
            config={
                "beta": 0.04,
                "epsilon": 0.2,
                "epsilon_high": None,
                "num_iterations": 4,
                "max_completion_length": 256,
                "num_generations": 8,
            },
        )
    ).config
    assert config["kl_coef"] == config["beta"] == 0.04
    assert config["clip_range"] == 0.2
    assert config["clip_range_high"] == 0.2, "epsilon_high is epsilon where it is not set"
    assert config["epochs"] == 4
    assert config["max_completion_length"] == 256
    assert config["group_size"] == 8


def test_legacy_settings_are_found_flat_and_nested_as_wandb_has_them() -> None:
    flat = translate(run_of(LEGACY, config={"init_kl_coef": 0.1, "cliprange": 0.3, "target": 4.0})).config
    nested = translate(
        run_of(
            LEGACY,
            config={
                f"trl_ppo_trainer_config.{key}": value
                for key, value in {"init_kl_coef": 0.1, "cliprange": 0.3, "target": 4.0}.items()
            },
        )
    ).config
    assert flat == nested
    assert flat["kl_coef"] == 0.1
    assert flat["kl_target"] == 4.0


def test_settings_that_a_tracker_keeps_as_text_become_values() -> None:
    assert plain("0.2") == 0.2
    assert plain("8") == 8
    assert plain("1e-6") == 1e-6
    assert plain("True") is True
    assert plain("None") is None
    assert plain("cosine") == "cosine"
    assert plain([1]) == [1]
    assert translate(run_of(LEGACY, config={"adap_kl_ctrl": "True", "cliprange": "0.2"})).config["adaptive_kl"] is True


def test_settings_of_verl_are_found_by_their_path() -> None:
    config = translate(
        run_of(["actor/pg_loss"], config={"actor_rollout_ref.actor.clip_ratio": 0.2, "data.max_response_length": 1024})
    ).config
    assert config == {"clip_range": 0.2, "max_completion_length": 1024, "max_length": 1024}


def test_sampling_settings_of_an_old_models_own_configuration_are_not_taken() -> None:
    """wandb mixes the model's configuration in; GRPO had no top_k before 0.16, nor has PPO one now."""
    old = ["reward", "reward_std", "completion_length", "kl"]
    assert "top_k" not in translate(run_of(old, config={"top_k": 50, "num_generations": 8, "temperature": 1.0})).config
    assert "top_k" not in translate(run_of(PPO, config={"top_k": 50, "top_p": 1.0, "min_length": 0})).config
    assert translate(run_of(GRPO, config={"top_k": 50})).config["top_k"] == 50


def test_advice_names_an_option_as_the_trainer_and_its_era_do() -> None:
    assert translate(run_of(GRPO)).options["kl_coef"] == "beta"
    assert translate(run_of(PPO)).options["kl_coef"] == "kl_coef"
    assert translate(run_of(LEGACY)).options["kl_coef"] == "init_kl_coef"
    assert translate(run_of(PPO)).options["max_length"] == "response_length"
    assert translate(run_of(SB3)).options["entropy_coef"] == "ent_coef"
    assert "entropy_coef" not in translate(run_of(GRPO, versions={"trl": "1.7.0"})).options
    assert translate(run_of(GRPO, versions={"trl": "1.8.0"})).options["entropy_coef"] == "entropy_coef"


def test_planned_steps_are_reported_where_the_file_can_be_trusted() -> None:
    assert translate(run_of(GRPO, config={"max_steps": 200})).planned_steps == 200


def test_a_run_planned_by_epochs_takes_the_trackers_number() -> None:
    run = run_of(GRPO, config={"max_steps": -1})
    run.planned_steps = 467
    assert translate(run).planned_steps == 467


def test_ppo_is_planned_in_batches_and_its_trackers_number_counts_mini_batches() -> None:
    run = run_of(PPO, config={"max_steps": -1, "num_total_batches": 150})
    run.planned_steps = 600
    assert translate(run).planned_steps == 150
    del run.config["num_total_batches"]
    assert translate(run).planned_steps is None


def test_the_unused_defaults_of_legacy_ppo_plan_nothing() -> None:
    assert translate(run_of(LEGACY, config={"steps": 20000, "total_ppo_epochs": 625})).planned_steps is None
    assert translate(run_of(SB3)).planned_steps is None


@pytest.mark.parametrize(
    ("version", "option", "said"),
    [("0.23.0", CORRECTION, ""), ("0.22.2", None, ""), ("", CORRECTION, "in trl from 0.23.0 on")],
)
def test_an_option_is_named_where_the_version_has_it_and_with_its_versions_where_none_is_known(
    version: str, option: str | None, said: str
) -> None:
    known = translate(run_of(GRPO, versions={"trl": version} if version else {}))
    assert known.options.get("sampler_correction_on") == option
    assert known.option_versions.get("sampler_correction_on", "") == said


def test_a_change_says_which_versions_have_its_option_where_the_runs_own_is_not_known() -> None:
    [rule] = [one for one in load_rules() if one.id == "learning-rate-unusual"]
    asked = replace(rule.changes[0], setting="sampler_correction_on", times=None, to=True)
    changed = replace(rule, changes=(asked,))
    [change] = changes_of(changed, translate(run_of(GRPO)))
    assert (change.option, change.why) == (CORRECTION, f"{asked.why} (in trl from 0.23.0 on)")
    [sure] = changes_of(changed, translate(run_of(GRPO, versions={"trl": "0.23.0"})))
    assert sure.why == asked.why
    assert changes_of(changed, translate(run_of(GRPO, versions={"trl": "0.22.2"}))) == ()


def test_an_option_that_the_run_itself_has_is_in_its_version() -> None:
    known = translate(run_of(GRPO, config={"num_iterations": 4, "max_prompt_length": 512}))
    assert "epochs" not in known.option_versions
    assert "max_prompt_length" not in known.option_versions
    later = translate(run_of(GRPO, versions={"trl": "1.9.0"}))
    assert "max_prompt_length" not in later.options, "gone since 0.28"


@pytest.mark.parametrize(
    ("names", "version", "setting", "option"),
    [
        (LEGACY, "0.11.4", "epochs", "ppo_epochs"),
        (LEGACY, "0.11.4", "kl_coef", "init_kl_coef"),
        (PPO, "0.29.0", "epochs", "num_ppo_epochs"),
        (PPO, "0.29.0", "max_completion_length", "response_length"),
        (GRPO, "0.25.1", "sampler_correction_on", "vllm_importance_sampling_correction"),
        (GRPO, "0.22.0", "sampler_correction_on", None),
        (GRPO, "0.25.1", "sampler_correction", None),
        (GRPO, "0.26.0", "sampler_correction", "vllm_importance_sampling_mode"),
        (GRPO, "1.7.0", "entropy_coef", None),
        (GRPO, "1.8.0", "entropy_coef", "entropy_coef"),
        (GRPO, "0.16.1", "loss_type", None),
        (GRPO, "0.17.0", "loss_type", "loss_type"),
    ],
)
def test_options_are_those_of_the_trainer_and_the_version(
    names: tuple[str, ...], version: str, setting: str, option: str | None
) -> None:
    assert translate(run_of(names, versions={"trl": version})).options.get(setting) == option


def test_a_setting_that_is_switched_off_is_not_proposed() -> None:
    [rule] = [one for one in load_rules() if one.id == "kl-coef-rising"]
    sure = translate(run_of(LEGACY, config={"target": 0.05, "adap_kl_ctrl": True}))
    assert [(one.option, one.to) for one in changes_of(rule, sure)] == [("target", 6.0)]
    off = translate(run_of(LEGACY, config={"target": 0.05, "adap_kl_ctrl": "False"}))
    assert changes_of(rule, off) == ()


@pytest.mark.parametrize(
    ("told", "inert"), [({}, False), ({"use_kl_loss": True}, False), ({"use_kl_loss": False}, True)]
)
def test_the_kl_loss_of_verl_has_no_coefficient_where_it_is_off(told: dict[str, bool], inert: bool) -> None:
    config = {f"actor_rollout_ref.actor.{name}": value for name, value in (told | {"kl_loss_coef": 0.001}).items()}
    names = ("actor/pg_loss", "actor/ppo_kl", "critic/score/mean", "response_length/mean")
    assert ("kl_coef" in translate(run_of(names, config=config)).inert) is inert


@pytest.mark.parametrize(
    ("config", "versions", "option", "said"),
    [
        ({}, {}, "actor.adam.lr", "in openrlhf from 0.10.2 on"),
        ({"actor_learning_rate": 1e-6}, {}, "actor_learning_rate", None),
        ({}, {"openrlhf": "0.9.2"}, "actor_learning_rate", None),
        ({}, {"openrlhf": "0.11.0"}, "actor.adam.lr", None),
    ],
)
def test_of_a_renamed_option_the_newer_name_is_proposed_unless_the_run_has_the_older_one(
    config: dict[str, Any], versions: dict[str, str], option: str, said: str | None
) -> None:
    known = translate(run_of(("train/policy_loss", "train/response_length"), config=config, versions=versions))
    assert known.framework == "openrlhf"
    assert known.options["learning_rate"] == option
    assert known.option_versions.get("learning_rate") == said
