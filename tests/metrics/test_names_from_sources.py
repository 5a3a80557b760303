"""What the sources of trainers log, in the spelling and with the sign that they log it: names that no known log has held yet."""

from __future__ import annotations

import pytest

from rlhealth.metrics import Translation, translate
from tests.metrics.logged import run_of

VERL = ("actor/pg_loss", "critic/score/mean", "actor/ppo_kl")
AREAL = ("ppo_actor/task_reward/avg", "ppo_actor/update/actor_loss/avg")
SLIME = ("rollout/raw_reward", "train/pg_clipfrac")
MINIMIND_GRPO = ("reward", "kl_ref", "advantages_std", "advantages_mean", "policy_loss", "avg_response_len")
MINIMIND_PPO = ("reward", "kl_ref", "approx_kl", "clipfrac", "critic_loss", "avg_response_len", "actor_lr", "critic_lr")
MINIMIND_PPO_2510 = ("actor_loss", "critic_loss", "reward", "kl", "kl_ref", "avg_response_len", "actor_lr")
LIGHTNING = ("actor/pg_loss", "critic/score/mean_before_processing", "response_length/mean_after_processing")
ALIGNER = ("train_rollouts/rewards", "train_optim/ppo_ratio")
FLOW = ("reward_avg", "reward_ori_avg", "clipfrac_gt_one", "zero_std_ratio", "reward_std_mean")
NANO_AHA = ("train/kl_penalty", "train/non_stop_rate", "train/response_lengths", "train/rewards")
CS285 = ("rollout/mean_total_reward_across_all_completions_in_batch_and_groups",)
REASONING = ("reward_avg", "tokens_per_sec", "avg_response_len")
REASONING_PRINTED = ("reward_avg", "tok/sec", "avg_resp_len")
RLLM = ("reward/solver/mean", "advantage/solver/fraction_zero", "batch/solver/fractions/effective")


def logged(marks: tuple[str, ...], *names: str) -> Translation:
    return translate(run_of([*marks, *names]))


@pytest.mark.parametrize(
    ("marks", "name", "metric"),
    [
        (VERL, "val-core/openai/gsm8k/reward/mean@1", "eval/reward"),  # a data source with a slash
        (VERL, "val-core/math-ai/aime24/acc/mean@32", "eval/reward"),
        (VERL, "val/test_score/openai/gsm8k", "eval/reward"),
        (VERL, "fully_async/count/dropped_stale_samples", "sample/dropped_stale_total"),
        (("train/ppo_clip_ratio",), "train/rollout/reward_mean", "reward"),
        (("train/ppo_clip_ratio",), "train/rollout/truncated_rate", "completions/clipped_ratio"),
        (("train/ppo_clip_ratio",), "eval/eval_openai/gsm8k_pass1", "eval/reward"),
        (("policy_loss", "ppo_clip_ratio"), "eval_aime_pass1", "eval/reward"),
        (AREAL, "ppo_critic/update/critic_loss/avg", "loss/value_avg"),
        (AREAL, "ppo_critic/update/target_value/avg", "returns/mean"),
        (AREAL, "ppo_actor/update/version_stats/sample_staleness_theta_avg", "sample/staleness_mean"),
        (AREAL, "rollout/num_turns", "turns/mean"),
        (SLIME, "train/mis_k3_kl", "sampling/kl_k3"),
        (SLIME, "multi_turn/multi_turn_metric/round_number_mean", "turns/mean"),
        (("train/probs_ratio",), "train/critic/grad_norm", "critic/grad_norm"),
        (("train/probs_ratio",), "train/turns_per_sample/mean", "turns/mean"),
        (("train/probs_ratio",), "train/total_reward/mean", "reward"),
        (("actor/policykl",), "token/response_length/mean", "completions/mean_length"),
        (("actor/policykl",), "group/all_incorrect_groups_ratio", "groups/solved_none"),
        (("actor/policykl",), "val_correct/math_rule/mean", "eval/reward"),
        (("generate/avg_num_tokens",), "eval/all/avg_score", "eval/reward"),
        (("mismatch_kl/all/mean",), "eval/aime24/effective/default/avg@4", "eval/reward"),
        (RLLM, "val/deepscaler/pass@1", "eval/reward"),
        (VERL, "val/text/test_score", "eval/reward"),  # verl-agent
        (("actor/pg_loss",), "episode/reward/mean", "reward"),
        (("actor/pg_loss", "rollout/in_group_std"), "rollout/in_group_mean", "reward"),  # RAGEN
        (LIGHTNING, "training/reward", "reward"),
        (LIGHTNING, "response_length/clip_ratio_after_processing", "completions/clipped_ratio"),
        (ALIGNER, "train_rollouts/grouped_reward_std", "reward_group_std"),
        (("rollout_info/ep_rew",), "rollout_info/kl_div_mean", "kl"),  # RL4LMs
        (("grpo/score/mean", "response_length/mean", "actor/pg_loss"), "actor/kl_loss", "kl"),  # MindSpeed-RL
        (CS285, "train/approximate_kl_divergence_policy_vs_reference_mean_over_minibatches", "kl"),
        (CS285, "rollout/fraction_of_completions_with_nonzero_advantage", "frac_reward_zero_std"),
        (CS285, "rollout/fraction_of_completions_that_hit_max_new_tokens_limit", "completions/clipped_ratio"),
        (CS285, "math_hard/reward_component_exact_match", "rewards/exact_match/mean"),
        (CS285, "eval/math_hard_test_subset_split_fraction_exact_match_using_boxed_answer_parser", "eval/reward"),
        (("grpo/rewards/mean", "grpo/score/mean", "response_length/mean"), "grpo/score/mean", "reward"),
        (("env/success_once", "train/actor/policy_loss"), "env/return", "reward"),  # RLinf
        (("env/return", "eval/success_once", "train/actor/approx_kl"), "train/actor/entropy_loss", "entropy"),
        (("response/rewards/mean",), "train_metrics/worker_0/step_avg_grad_norm", "grad_norm"),  # XTuner
        (("rewards/mean", "response_len/mean", "avg rollout entropy"), "avg entropy", "entropy"),
        (("act_loss", "cri_loss"), "average reward score", "reward"),  # DeepSpeed-Chat
        (("PPO Epoch", "Actor Loss", "Average reward score"), "Critic Loss", "loss/value_avg"),
        (("actor_loss_sum", "critic_loss_sum", "reward"), "actor_loss", "loss/policy_avg"),
        (FLOW, "eval_reward_avg", "eval/reward"),
        (("objective/kl0_avg", "scores"), "tools/aggregate/failure_rate", "tools/failure_frequency"),
        (("objective/kl0_avg", "scores"), "objective/gsm8k_correct_rate", "rewards/gsm8k_correct/mean"),
        (("train/reward", "train/reward_std_dev"), "loss/probs_corr", "sampling/prob_pearson"),  # ART
        (("metrics/reward", "train/sample_utilization"), "metrics/response_length", "completions/mean_length"),
        (("objective/score_total", "objective/kl"), "objective/scores", "reward"),  # summarize_from_feedback_details
        (("reward/total", "progress/done_frac"), "optim/lr", "learning_rate"),  # Tinker's small loop
        (RLLM, "batch/solver/fractions/too_hard", "groups/solved_none"),
        (RLLM, "async/staleness_max", "sample/staleness_max"),
    ],
)
def test_a_name_of_the_source_is_known(marks: tuple[str, ...], name: str, metric: str) -> None:
    assert logged(marks, name).metrics[metric].tag == name


def test_a_truncated_share_beside_an_evaluation_is_no_reward() -> None:
    beside = ("eval/step", "eval/aime-truncated_ratio", "eval/aime-pass@8")
    assert "eval/reward" not in logged(SLIME, *beside).metrics
    assert logged(SLIME, *beside, "eval/aime").metrics["eval/reward"].tag == "eval/aime"


def test_the_clipped_values_of_a_critic_are_not_the_clipped_share_of_the_policy() -> None:
    metrics = logged(AREAL, "ppo_critic/update/clip_ratio/avg", "ppo_actor/update/clip_ratio/avg").metrics
    assert metrics["val/clipfrac_avg"].tag == "ppo_critic/update/clip_ratio/avg"
    assert metrics["clip_ratio/region_mean"].tag == "ppo_actor/update/clip_ratio/avg"


def test_the_weights_of_an_approximation_are_not_those_of_the_policy() -> None:
    tried = "ppo_actor/update/compute_logp/loglinear/importance_weight/avg"
    found = logged(AREAL, tried, "ppo_actor/update/importance_weight/avg")
    assert found.metrics["val/ratio"].tag == "ppo_actor/update/importance_weight/avg"
    assert tried in found.dropped


def test_the_clip_fraction_of_rolls_critic_is_a_squared_error_without_a_clip_range() -> None:
    found = logged(("actor/policykl",), "critic/clipfrac", "critic/loss")
    assert "val/clipfrac_avg" not in found.metrics
    assert found.metrics["loss/value_avg"].tag == "critic/loss"


def test_a_teachers_log_ratio_is_no_kl_to_the_reference() -> None:
    found = logged(("mismatch_kl/all/mean",), "ref_kl/mean")
    assert "kl" not in found.metrics
    assert "ref_kl/mean" in found.dropped


@pytest.mark.parametrize("marks", [REASONING, REASONING_PRINTED])
def test_a_ratio_of_whole_sequences_is_not_that_of_tokens(marks: tuple[str, ...]) -> None:
    found = logged(marks, "policy_ratio", "kl_loss", "entropy_avg", "eval_acc")
    assert found.framework == "reasoning-from-scratch"
    assert found.metrics.keys() >= {"reward", "completions/mean_length", "entropy", "eval/reward"}
    assert not {"val/ratio", "kl", "objective/kl"} & found.metrics.keys()


def test_a_kl_of_absolute_differences_is_a_gap_of_log_probabilities() -> None:
    found = logged(RLLM, "train/kl_sample_train_v1", "train/entropy")
    assert found.framework == "rllm"
    assert found.metrics["sampling/sampling_logp_difference/mean"].tag == "train/kl_sample_train_v1"
    assert "entropy" not in found.metrics
    assert found.metrics["entropy/sampled"].tag == "train/entropy"


def test_groups_that_differ_become_groups_without_spread() -> None:
    assert logged(RLLM).metrics["frac_reward_zero_std"].values[1] == 0.75


@pytest.mark.parametrize(
    ("names", "metric", "estimator", "value"),
    [
        (MINIMIND_GRPO, "kl", "k1", -0.5),  # logged as reference minus policy
        (MINIMIND_PPO, "kl", "k3", 0.5),
        (MINIMIND_PPO_2510, "objective/kl", "k1", 0.5),  # summed over an answer
    ],
)
def test_one_name_of_minimind_has_three_meanings(
    names: tuple[str, ...], metric: str, estimator: str, value: float
) -> None:
    found = logged(names)
    assert found.framework == "minimind"
    assert found.metrics[metric].tag == "kl_ref"
    assert found.metrics[metric].estimator == estimator
    assert found.metrics[metric].values[0] == value


def test_the_kl_of_minimind_between_its_policies_is_left_out() -> None:
    found = logged(MINIMIND_PPO_2510)
    assert "kl" not in found.metrics
    assert "kl" in found.dropped


def test_the_value_loss_of_minimind_came_without_its_half() -> None:
    assert logged(MINIMIND_PPO_2510).metrics["loss/value_avg"].values[0] == 0.25
    assert logged(MINIMIND_PPO).metrics["loss/value_avg"].values[0] == 0.5


def test_shares_that_are_named_like_counts_are_shares() -> None:
    metrics = logged(
        ALIGNER, "train_rollouts/num_prompt_with_zero_std", "train_rollouts/num_prompt_with_positive_reward"
    ).metrics
    assert metrics["frac_reward_zero_std"].values[1] == 0.25
    assert metrics["groups/solved_none"].values[1] == 0.75  # the rest have a reward above 0


def test_a_kl_whose_kind_only_a_setting_knows_is_left_out() -> None:
    found = logged(ALIGNER, "train_rollouts/init_policy_kl")
    assert "kl" not in found.metrics
    assert "use_absolute_kl" in found.dropped["train_rollouts/init_policy_kl"]


@pytest.mark.parametrize(
    ("marks", "tag", "metric"),
    [
        (NANO_AHA, "train/kl_penalty", "kl"),
        (NANO_AHA, "train/entropy", "entropy"),
        (("learning/avg_reward", "learning/avg_advantage"), "learning/avg_kl", "kl"),  # MaxText
        (FLOW, "kl_loss", "kl"),
    ],
)
def test_what_is_divided_by_a_number_that_is_not_logged_is_left_out(
    marks: tuple[str, ...], tag: str, metric: str
) -> None:
    found = logged(marks, tag)
    assert metric not in found.metrics
    assert tag in found.dropped


def test_the_update_kl_of_an_image_model_counts_denoising_steps() -> None:
    found = logged(FLOW, "approx_kl").metrics["policy/approxkl_avg"]
    assert (found.estimator, found.unit) == ("k2", "nats/denoising step")


def test_the_clipped_denoising_steps_of_an_image_model_are_no_clipped_tokens() -> None:
    for names in (FLOW, ("reward_mean", "approx_kl")):  # TRL's DDPO
        metrics = logged(names, "clipfrac").metrics
        assert metrics["clip_ratio/denoising_outside_mean"].tag == "clipfrac"
        assert not {"clip_ratio/outside_mean", "clip_ratio/region_mean"} & set(metrics)


def test_rl4lms_logs_minus_the_entropy() -> None:
    assert logged(("rollout_info/ep_rew",), "ppo/entropy_loss").metrics["entropy"].values[0] == -0.5


def test_the_correction_of_a_sampler_is_not_the_ratio_of_ppo() -> None:
    found = logged(("reward", "advantage/absmean", "tokens/completion"), "importance_ratio")
    assert found.framework == "verifiers"
    assert "val/ratio" not in found.metrics
    assert found.metrics["sampling/importance_sampling_ratio/mean"].tag == "importance_ratio"
