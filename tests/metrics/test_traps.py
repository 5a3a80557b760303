"""The traps of metric names: one word for several quantities, signs, units, changes between versions, fillers.

Numbered as in the project's catalogue of 59 traps. Those that are not here concern other parts:
  readers (tests/sources): 36 to 42 (axes, spellings of NaN), 43 to 47 (wandb, TensorBoard and their files), 56 (rows),
  58 (which file there is); rules (rules/*/*.test.yaml): 27 (a legacy loss of exactly 0), 33 (losses hide NaN), 34
  (averages of extremes), 53 (runs that end abruptly);
  nothing to translate: 13 (errors of TRL's page; 13's kl_coef is below), 35 (numbers of one rank only), 51 (glued words
      in old documents).
19, 20, 23 and 24's second half are reported in the metric's note, since values cannot show them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlhealth.metrics import Translation, meanings, translate
from tests.metrics.logged import GRPO, LEGACY, PPO, SB3, run_of

OPENRLHF = ("train/reward", "train/kl", "train/ppo_clip_ratio", "train/actor_lr", "train/entropy_loss", "train/return")
SLIME = (
    "rollout/raw_reward",
    "rollout/rewards",
    "train/entropy_loss",
    "train/pg_clipfrac",
    "train/ppo_kl",
    "train/critic-value_loss",
)
VERL = (
    "actor/pg_loss",
    "critic/score/mean",
    "critic/rewards/mean",
    "response_length/clip_ratio",
    "actor/entropy_loss",
    "critic/vf_loss",
    "actor/ppo_kl",
    "actor/kl_loss",
)
NEMO = (
    "train/reward",
    "train/probs_ratio",
    "train/probs_ratio_max",
    "train/kl_penalty",
    "train/grad_norm",
    "timing/train/total_step_time",
)
CLEANRL = ("charts/SPS", "losses/approx_kl", "losses/old_approx_kl", "losses/clipfrac", "losses/value_loss")
ASYNC = ("reward", "reward_std", "kl", "ratio", "entropy", "completions/mean_length")
RLOO = {"normalize_advantages": False}


def tag_of(translation: Translation, name: str) -> str:
    return translation.metrics[name].tag


def first(translation: Translation, name: str) -> float:
    return float(translation.metrics[name].values[0])


# names and signs


def test_1_entropy_loss_is_minus_the_entropy_in_sb3_and_plus_elsewhere() -> None:
    assert first(translate(run_of(SB3)), "entropy") == -0.5
    for logged in (OPENRLHF, SLIME, VERL):
        assert first(translate(run_of(logged)), "entropy") == 0.5


def test_2_kl_has_five_meanings() -> None:
    grpo, rloo = translate(run_of(GRPO)).metrics["kl"], translate(run_of(GRPO, config=RLOO)).metrics["kl"]
    assert (grpo.estimator, rloo.estimator) == ("k3", "k1")
    assert "kl" not in translate(run_of(ASYNC)).metrics
    assert tag_of(translate(run_of(ASYNC)), "policy/approxkl_k3") == "kl"
    assert tag_of(translate(run_of(["rewards/chosen", "rewards/rejected", "kl"])), "kto/kl") == "kl"
    rllib = translate(run_of(["env_runners/episode_return_mean", "learners/default_policy/mean_kl_loss"]))
    assert "policy/approxkl_exact" in rllib.metrics
    assert "kl" not in rllib.metrics


def test_3_kl_of_a_sequence_and_kl_of_a_token_are_two_metrics() -> None:
    assert translate(run_of(PPO)).metrics["objective/kl"].unit == "nats/sequence"
    assert translate(run_of(GRPO)).metrics["kl"].unit == "nats/token"
    assert "kl" not in translate(run_of(PPO)).metrics
    assert "objective/kl" not in translate(run_of(GRPO)).metrics


def test_4_an_estimator_tells_whether_a_kl_may_be_negative() -> None:
    assert translate(run_of(LEGACY)).metrics["objective/kl"].estimator == "k1"
    assert translate(run_of(PPO)).metrics["objective/kl"].estimator == "k1"
    assert translate(run_of(["actor/pg_loss", "actor/reward_kl_penalty"])).metrics["kl"].estimator == "k1"
    assert translate(run_of(OPENRLHF)).metrics["kl"].estimator == "k1"
    assert translate(run_of(PPO)).metrics["policy/approxkl_avg"].estimator == "k2"
    assert meanings()["policy/approxkl_avg"].low == meanings()["policy/approxkl_k3"].low == 0
    assert meanings()["kl"].low is meanings()["objective/kl"].low is meanings()["policy/approxkl_k1"].low is None


def test_5_and_6_the_summed_entropy_of_ppo_is_not_the_entropy_and_counts_padding() -> None:
    metrics = translate(run_of(PPO)).metrics
    assert metrics["entropy"].tag == "policy/entropy_avg"
    assert metrics["objective/entropy"].unit == "nats/sequence"
    assert "padded" in metrics["objective/entropy"].note
    assert "padded" not in translate(run_of(PPO, versions={"trl": "1.10.0"})).metrics["objective/entropy"].note


def test_7_the_update_kl_of_the_first_rloo_is_of_sequences() -> None:
    metrics = translate(run_of([name for name in PPO if name != "loss/value_avg"])).metrics
    assert metrics["policy/approxkl_seq"].tag == "policy/approxkl_avg"
    assert "policy/approxkl_avg" not in metrics
    assert "clip_ratio/sequence_region_mean" in metrics


def test_8_val_is_the_value_function_in_trl_and_validation_in_verl() -> None:
    assert tag_of(translate(run_of(PPO)), "val/clipfrac_avg") == "val/clipfrac_avg"
    assert not any(name.startswith("eval/") for name in translate(run_of(PPO)).metrics)
    assert (
        tag_of(translate(run_of([*VERL, "val-core/gsm8k/reward/mean@8"])), "eval/reward")
        == "val-core/gsm8k/reward/mean@8"
    )
    assert (
        tag_of(translate(run_of(["objective/kl0_avg", "val/sequence_lengths"])), "completions/mean_length")
        == "val/sequence_lengths"
    )


def test_9_eps_is_a_speed() -> None:
    translation = translate(run_of(PPO, config={"cliprange": 0.2}))
    assert translation.metrics["eps"].unit == "episodes/s"
    assert translation.config["clip_range"] == 0.2
    assert "clip_range" not in translation.metrics


def test_10_implicit_rewards_are_no_reward_functions() -> None:
    dpo = translate(run_of(["rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies"]))
    assert set(dpo.metrics) == {"rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies"}
    old = translate(run_of(["reward", "completion_length", "rewards/chosen", "rewards/format"]))
    assert "rewards/chosen/mean" not in old.metrics
    assert "rewards/chosen" in old.unrecognised
    nash = translate(run_of(["mixture_coef", "rewards/chosen", "rewards/margins"]))
    assert tag_of(nash, "reward") == "rewards/chosen"
    assert "rewards/chosen" not in nash.metrics


def test_11_truncation_and_clipping_are_two_things() -> None:
    grpo = translate(run_of([*GRPO, "completions/clipped_ratio"]))
    assert tag_of(grpo, "completions/clipped_ratio") == "completions/clipped_ratio"
    assert tag_of(grpo, "clip_ratio/region_mean") == "clip_ratio/region_mean"
    assert tag_of(translate(run_of(VERL)), "completions/clipped_ratio") == "response_length/clip_ratio"
    assert tag_of(translate(run_of(OPENRLHF)), "clip_ratio/region_mean") == "train/ppo_clip_ratio"


def test_12_legacy_policykl_and_non_score_reward_changed_at_0_3() -> None:
    old, new = (translate(run_of(LEGACY, versions={"trl": version})) for version in ("0.2.1", "0.3.0"))
    assert (first(old, "policy/approxkl_k1"), first(new, "policy/approxkl_k1")) == (-0.5, 0.5)
    assert "objective/non_score_reward" in old.metrics
    assert "objective/non_score_reward_per_token" in new.metrics
    assert "objective/non_score_reward_per_token" in translate(run_of(LEGACY)).metrics


def test_13_current_ppo_never_logs_its_coefficient_and_still_has_a_name_for_it() -> None:
    translation = translate(run_of(PPO, config={"kl_coef": 0.05}))
    assert "objective/kl_coef" not in translation.metrics
    assert translation.config["kl_coef"] == 0.05


def test_14_the_old_of_cleanrl_and_the_index_of_open_instruct_are_no_estimators() -> None:
    cleanrl = translate(run_of(CLEANRL)).metrics
    assert cleanrl["policy/approxkl_k1"].tag == "losses/old_approx_kl"
    assert cleanrl["policy/approxkl_k3"].tag == "losses/approx_kl"
    tulu = translate(
        run_of(
            [
                "val/sequence_lengths",
                "objective/kl0_avg",
                "objective/kl1_avg",
                "objective/kl2_avg",
                "objective/kl3_avg",
                "loss/kl_avg",
            ]
        )
    ).metrics
    assert (tulu["kl"].tag, tulu["kl"].estimator) == ("objective/kl0_avg", "k1")
    assert tulu["kl/k2"].tag == "objective/kl1_avg"
    assert tulu["kl/importance_weighted"].tag == "objective/kl3_avg"
    assert translate(run_of(["val/sequence_lengths", "objective/kl2_avg"])).metrics["kl"].estimator == "k3"
    assert "loss/kl_avg" in tulu


def test_15_the_std_of_sb3_is_of_actions_and_its_clip_range_a_setting() -> None:
    metrics = translate(run_of(SB3)).metrics
    assert metrics["policy/action_std"].tag == "train/std"
    assert "reward_std" not in metrics
    assert metrics["clip_range"].tag == "train/clip_range"


# silent changes of meaning inside one name


@pytest.mark.parametrize("config", [{}, RLOO])
def test_16_reward_std_is_within_groups_until_0_26_and_over_the_batch_after(config: dict[str, bool]) -> None:
    for version, name in (("0.26.2", "reward_group_std"), ("0.27.0", "reward_std"), ("1.16.0", "reward_std")):
        metrics = translate(run_of(GRPO, config=config, versions={"trl": version})).metrics
        assert metrics[name].tag == "reward_std"
        assert len({"reward_std", "reward_group_std"} & set(metrics)) == 1
    assert "reward_group_std" in translate(run_of(ASYNC, versions={"trl": "1.16.0"})).metrics


def test_17_the_reward_of_rloo_contained_the_kl_penalty_until_0_26() -> None:
    old, new = (translate(run_of(GRPO, config=RLOO, versions={"trl": version})) for version in ("0.22.0", "0.27.0"))
    assert tag_of(old, "objective/rlhf_reward") == "reward"
    assert "reward" not in old.metrics
    assert tag_of(new, "reward") == "reward"
    assert "unweighted" in translate(run_of(GRPO)).metrics["reward"].note


def test_18_clip_ratio_of_0_16_is_inverted_and_later_ones_are_not() -> None:
    names = ["reward", "reward_std", "completion_length", "clip_ratio"]
    old = translate(run_of(names))
    assert "NOT clipped" in old.dropped["clip_ratio"]
    assert not any(name.startswith("clip_ratio") for name in old.metrics)
    liger = translate(
        run_of(["reward", "reward_std", "completions/mean_length", "clip_ratio"], versions={"trl": "0.20.0"})
    )
    assert tag_of(liger, "clip_ratio/region_mean") == "clip_ratio"
    assert (
        tag_of(translate(run_of([*ASYNC, "clip_ratio"], versions={"trl": "1.0.0"})), "clip_ratio/outside_mean")
        == "clip_ratio"
    )


def test_19_20_and_23_what_values_cannot_show_is_reported_in_the_note() -> None:
    metrics = translate(run_of([*GRPO, "clip_ratio/high_max", "sampling/importance_sampling_ratio/mean"])).metrics
    assert "1.9" in metrics["clip_ratio/high_max"].note
    assert "0.26" in metrics["sampling/importance_sampling_ratio/mean"].note
    assert "beta is 0" in translate(run_of(GRPO, config=RLOO)).metrics["frac_reward_zero_std"].note


def test_21_a_kl_that_was_not_computed_is_absent_and_not_zero() -> None:
    assert "kl" not in translate(run_of([name for name in GRPO if name != "kl"])).metrics
    zeros = translate(run_of({name: [0.0, 0.0] for name in OPENRLHF})).metrics
    assert len(zeros["kl"]) == 0
    assert len(zeros["reward"]) == 2
    assert len(translate(run_of({name: [0.0, 0.0] for name in NEMO})).metrics["kl"]) == 0


def test_22_the_update_kl_of_sb3_and_cleanrl_became_k3() -> None:
    assert "policy/approxkl_k1" in translate(run_of(SB3, versions={"stable_baselines3": "1.0"})).metrics
    assert "policy/approxkl_k3" in translate(run_of(SB3, versions={"stable_baselines3": "1.1.0"})).metrics
    assert "policy/approxkl_k3" in translate(run_of(SB3)).metrics
    assert (
        "policy/approxkl_k1"
        in translate(run_of(["charts/SPS", "losses/approx_kl"], versions={"cleanrl": "0.4.8"})).metrics
    )


def test_24_and_57_value_losses_are_in_one_convention() -> None:
    assert first(translate(run_of(PPO)), "loss/value_avg") == 0.5
    assert first(translate(run_of(CLEANRL)), "loss/value_avg") == 0.5
    assert first(translate(run_of(SB3)), "loss/value_avg") == 0.25
    assert first(translate(run_of(SLIME)), "loss/value_avg") == 0.25
    for version, value in (("0.3.0", 0.5), ("0.4.0", 0.25), ("0.4.1", 0.5)):
        assert first(translate(run_of(VERL, versions={"verl": version})), "loss/value_avg") == value
    assert first(translate(run_of(VERL)), "loss/value_avg") == 0.5
    assert "0.6.0" in translate(run_of(VERL)).metrics["kl"].note


def test_25_sums_over_optimiser_steps_are_divided_by_their_number() -> None:
    settings = {
        "grpo.num_prompts_per_step": 32,
        "grpo.num_generations_per_prompt": 16,
        "policy.train_global_batch_size": 128,
    }
    run = run_of({name: [4.0] for name in NEMO}, config=settings)
    assert first(translate(run), "val/ratio") == 1.0
    run.config.clear()
    unknown = translate(run)
    assert "val/ratio" not in unknown.metrics
    assert "updates per step" in unknown.dropped["train/probs_ratio"]
    assert first(unknown, "grad_norm") == 4.0


# missing, constant, sentinel and fake values


def test_26_a_trainer_without_a_critic_has_no_value_loss() -> None:
    values = {name: [0.0, 0.0] if name in ("loss/value_avg", "val/clipfrac_avg") else [0.5, 0.5] for name in PPO}
    translation = translate(run_of(values))
    assert translation.framework == "trl-rloo-v1"
    assert not {"loss/value_avg", "val/clipfrac_avg"} & set(translation.metrics)
    assert "no critic" in translation.dropped["loss/value_avg"]


def test_28_a_sentinel_is_no_measurement() -> None:
    ratio = translate(run_of({name: [-1.0, 1.5] for name in NEMO})).metrics["ratio/max"]
    assert list(ratio.values) == [1.5]
    assert list(ratio.steps) == [2]
    assert (
        "no completion ended"
        in translate(run_of([*GRPO, "completions/mean_terminated_length"]))
        .metrics["completions/mean_terminated_length"]
        .note
    )
    gap = translate(
        run_of({"actor/pg_loss": [0.1, 0.1], "training/rollout_probs_diff_mean": [math.nan, 0.01]})
    ).metrics["sampling/sampling_prob_difference/mean"]
    assert list(gap.steps) == [2]


def test_29_a_negative_share_of_truncated_completions_is_read_as_none() -> None:
    run = run_of(
        {"reward": [1.0], "reward_std": [0.1], "completions/mean_length": [9.0], "completions/clipped_ratio": [-3.0]}
    )
    assert first(translate(run), "completions/clipped_ratio") == 0.0


def test_30_the_ratio_of_legacy_comes_without_its_filler() -> None:
    run = run_of(LEGACY, config={"cliprange": 0.2})
    counts, edges = np.histogram([1.0] * 60 + [1.05] * 4 + [-1.0] * 30, bins=32)
    run.histogram("ppo/policy/ratio").add(1, edges, counts)
    translation = translate(run)
    assert first(translation, "val/ratio") == pytest.approx(1.0, abs=0.05)
    assert first(translation, "ratio/min") > 0.8
    assert first(translation, "ratio/mass_outside") == 0.0


def test_31_a_variance_of_one_number_is_not_measured() -> None:
    assert len(translate(run_of({name: [math.nan, math.nan] for name in PPO})).metrics["val/ratio_var"]) == 0
    legacy = translate(run_of({name: [math.nan] for name in (*LEGACY, "env/reward_std")})).metrics
    assert len(legacy["reward_std"]) == 0
    assert np.isnan(legacy["loss"].values[0]), "NaN anywhere else is kept"


def test_32_a_gap_stays_a_gap() -> None:
    run = run_of(GRPO)
    run.add("kl", [3, 4, 5, 6, 7, 8, 9], [0.1] * 7)
    run.add("reward", [5, 9], [0.6, 0.7])
    metrics = translate(run).metrics
    assert list(metrics["reward"].steps) == [1, 2, 5, 9]
    assert list(metrics["kl"].steps) == list(range(1, 10))


# formats


def test_48_a_prefix_is_part_of_the_name_in_some_frameworks() -> None:
    assert translate(run_of(OPENRLHF)).framework == "openrlhf"
    assert translate(run_of(NEMO)).framework == "nemo-rl"
    assert translate(run_of(GRPO, prefix="train/")).framework == "trl-grpo"
    kto = translate(run_of(["rewards/chosen", "rewards/rejected", "kl"], prefix="train/train/"))
    assert kto.framework == "trl-kto"
    assert tag_of(kto, "rewards/chosen") == "train/train/rewards/chosen"


def test_49_a_metric_of_the_users_own_keeps_its_raw_name() -> None:
    assert "test/accuracy" in translate(run_of([*GRPO, "test/accuracy"])).unrecognised
    assert "train/my/thing" in translate(run_of([*(f"train/{name}" for name in GRPO), "train/my/thing"])).unrecognised


def test_50_names_that_tensorboardx_rewrote_are_known() -> None:
    assert first(
        translate(run_of(["actor/pg_loss", "actor/lr_1e-4_"], versions={"verl": "0.1"})), "learning_rate"
    ) == pytest.approx(5e-5)
    assert "eval/reward" in translate(run_of([*VERL, "val-core/gsm8k/reward/mean_8"])).metrics


def test_52_grpo_and_rloo_are_distinguished_by_settings_only() -> None:
    assert translate(run_of(GRPO, config=RLOO)).framework == "trl-rloo"
    assert translate(run_of(GRPO, config={"reward_clip_range": None})).framework == "trl-rloo"
    assert translate(run_of(GRPO, config={"loss_type": "dapo"})).framework == "trl-grpo"


def test_54_a_learning_rate_by_any_name_is_one() -> None:
    for logged, tag in (
        (GRPO, "learning_rate"),
        (PPO, "lr"),
        (OPENRLHF, "train/actor_lr"),
        (["policy/final_loss", "policy/policy_lr"], "policy/policy_lr"),
    ):
        assert tag_of(translate(run_of(logged)), "learning_rate") == tag
    assert first(translate(run_of(["actor/pg_loss", "actor/lr(1e-4)"])), "learning_rate") == pytest.approx(5e-5)


def test_55_the_reward_of_ddpo_is_a_distribution() -> None:
    run = run_of(["reward_mean", "reward_std", "approx_kl", "clipfrac"])
    run.histogram("reward").add(1, [0.0, 1.0], [4.0])
    translation = translate(run)
    assert translation.framework == "trl-ddpo"
    assert tag_of(translation, "reward") == "reward_mean"


def test_59_percentages_become_fractions() -> None:
    values = {name: [1.0] for name in NEMO} | {
        "train/baseline_reward/pct_mixed": [75.0],
        "train/baseline_reward/pct_1": [10.0],
    }
    translation = translate(run_of(values))
    assert first(translation, "frac_reward_zero_std") == 0.25
    assert first(translation, "groups/solved_all") == 0.1


# shares that are logged the other way round


@pytest.mark.parametrize(
    ("logged", "tag"),
    [
        (["objective/scores_margin", "rewards/margins", "val/contain_eos_token"], "val/contain_eos_token"),
        (["objective/kl0_avg", "val/sequence_lengths", "val/stop_rate"], "val/stop_rate"),
    ],
)
def test_a_share_that_ends_becomes_the_share_that_is_truncated(logged: list[str], tag: str) -> None:
    metric = translate(run_of(logged)).metrics["completions/clipped_ratio"]
    assert metric.tag == tag
    assert list(metric.values) == [0.5, 0.75]


def test_the_reward_that_is_centred_is_not_the_reward() -> None:
    slime, verl = translate(run_of(SLIME)), translate(run_of(VERL))
    assert tag_of(slime, "reward") == "rollout/raw_reward"
    assert "reward/optimized_mean" not in slime.metrics  # the mean of what is centred has the sign of a rounding error
    assert "centred" in slime.dropped["rollout/rewards"]
    assert tag_of(verl, "reward") == "critic/score/mean"
    assert tag_of(verl, "objective/rlhf_reward") == "critic/rewards/mean"


def test_the_mean_distance_of_ratios_from_1_is_no_mean_ratio_and_a_lag_in_steps_of_the_optimiser_none_in_updates() -> (
    None
):
    """Sample Factory calls the first `ratio_mean`; 0 is no change, and no ratio of 0."""
    names = [
        "train/ratio_mean",
        "train/ratio_min",
        "train/ratio_max",
        "train/fraction_clipped",
        "train/version_diff_avg",
    ]
    found = translate(run_of({name: [0.04] for name in names}))
    assert found.framework == "sample-factory"
    assert not {"val/ratio", "sample/staleness_mean"} & found.metrics.keys()
    assert {"ratio/min", "ratio/max"} <= found.metrics.keys()
    assert not found.unrecognised


ROLL_NAMES = ("actor/ppo_ratio_clipfrac", "critic/score/mean")
OPEN_INSTRUCT = ("scores", "val/sequence_lengths")
SB2_NAMES = ("episode_reward", "loss/clip_factor", "loss/approximate_kullback-leibler", "input_info/learning_rate")


@pytest.mark.parametrize(
    ("others", "name", "metric", "value"),
    [
        (ROLL_NAMES, "actor/policykl", "policy/approxkl_k1", -0.5),  # the new minus the old log-probability
        (OPEN_INSTRUCT, "objective/kl2_avg", "kl", 0.5),  # since December 2025 that is k3
        ((*OPEN_INSTRUCT, "objective/kl_avg"), "objective/kl2_avg", "kl/k2", 0.5),  # before, it was k2
        (("rewards/train/score/mean",), "rewards/train/reward_kl_penalty", "kl", 0.5),  # not yet weighted
        (("reward/overall", "response_length/mean"), "actor/pg_clipfrac_higher", "clip_ratio/region_mean", 0.5),
        (("dist_entropy", "value_loss", "ratio"), "kl", "policy/approxkl_exact", 0.5),  # of HATRPO's update
        ((*SB2_NAMES, "input_info/old_value_pred"), SB2_NAMES[2], "policy/approxkl_avg", 0.5),  # PPO2's
        (SB2_NAMES, SB2_NAMES[2], "policy/approxkl_exact", 0.5),  # PPO1's
        (("losses/a_loss", "rewards/step"), "losses/c_loss", "loss/value_avg", 0.25),
        (("losses/a_loss", "rewards/step", "losses/c_loss"), "losses/cval_loss", "loss/value_avg", 0.25),
        (("train/kl_approx", "train/reward/reward_mean"), "train/reward/episode_reward_mean", "reward", 0.5),
    ],
)
def test_a_name_means_what_the_source_of_its_trainer_computes(
    others: tuple[str, ...], name: str, metric: str, value: float
) -> None:
    found = translate(run_of({**dict.fromkeys(others, (0.125,)), name: [0.5]})).metrics[metric]
    assert found.tag == name
    assert found.values.tolist() == [value]


@pytest.mark.parametrize(
    ("others", "name"),
    [
        (OPEN_INSTRUCT, "debug/vllm_local_reverse_kl"),  # signed, and weighted with each token's probability
        (("train/mb_kl", "objective/kl2", "objective/kl3"), "policy/entropy_avg"),  # nothing fills it
        (("learners/p/entropy",), "learners/p/mean_IS"),  # of the sampler to the target policy
    ],
)
def test_a_name_that_is_no_estimate_of_what_it_says_is_left_out(others: tuple[str, ...], name: str) -> None:
    assert name in translate(run_of({**dict.fromkeys(others, (0.125,)), name: [0.5]})).dropped
