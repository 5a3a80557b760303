"""Names of unknown trainers are taken by their words, whatever stands before and after them, and only where one meaning is left."""

from __future__ import annotations

import numpy as np
import pytest

from rlhealth.metrics import translate
from rlhealth.metrics.free_names import forms, known_ending
from rlhealth.run import Place, Run
from tests.metrics.logged import run_of


@pytest.mark.parametrize(
    ("tag", "metric"),
    [
        ("Episodic Reward/episode", "reward"),
        ("Average Reward/(t)", "reward"),
        ("MeanReward", "reward"),
        ("TrueAverageReturn", "reward"),
        ("raw_score", "reward"),
        ("EpisodeAveLength", "episodes/mean_length"),
        ("episode_losses", "loss"),
        ("Metrics/AverageReturn", "reward"),
        ("rewards/mean", "reward"),
        ("Losses/Policy Loss", "loss/policy_avg"),
        ("Loss/critic", "loss/value_avg"),
        ("agent/value_loss", "loss/value_avg"),
        ("policy/entropy", "entropy"),
        ("Train/Grad. Norm", "grad_norm"),
        ("reward/format", "rewards/format/mean"),
        ("correctness_reward", "rewards/correctness/mean"),
        ("Reward 1", "rewards/1/mean"),
        ("reward_2", "rewards/2/mean"),
        ("Evaluation/Mean Reward", "eval/reward"),
        ("test_accuracy", "eval/reward"),
        ("avg_resp_len", "completions/mean_length"),
        ("policy_losses", "loss/policy_avg"),
        ("Performance/train_win_rate_percent", "rewards/win_rate/mean"),
        ("Performance/eval_win_rate_percent", "eval/win_rate"),
        ("val_success_rate", "eval/reward"),
        ("Mean Return (Reward)", "reward"),
        ("train/scout/loss_objective", "loss/policy_avg"),
        ("rolling_reward_20", "reward"),
        ("final_reward", "reward"),
        ("final_reward_ma", "reward"),
        ("ep_ret_ma", "reward"),
        ("Smoothed Score", "reward"),
        ("reward_moving_average", "reward"),
        ("Reward100", "reward"),
        ("mean_grpo_reward", "reward"),
        ("avg_trajectory_reward", "reward"),
        ("episodic_avg_r", "reward"),
        ("Macro-Step Reward", "reward"),
        ("CartPole-v1/train_reward", "reward"),
        ("ALE/Pong-v5/episode_reward", "reward"),
        ("step_log/running_reward", "reward"),
        ("self_play/win_rate", "rewards/win_rate/mean"),
        ("curriculum/success_rate_window", "rewards/success_rate/mean"),
        ("resolution_rate", "rewards/resolve_rate/mean"),
        ("acc_correct_ratio", "rewards/accuracy/mean"),
        ("avg@16", "eval/reward"),
        ("rew_batch_avg", "reward"),
        ("avg_return_train", "reward"),
        ("Avg score in training", "reward"),
        ("reward_curve", "reward"),
        ("Episode Rewards History", "reward"),
        ("reward_latest", "reward"),
        ("metrics/ep_length", "episodes/mean_length"),
        ("epoch/avg_reward", "reward"),
        ("reward/train", "reward"),
        ("mean_reward_all", "reward"),
        ("all_rewards", "reward"),
        ("Reward per episode", "reward"),
        ("Reward/Train_Reward", "reward"),
        ("rollout/reward/raw_mean", "reward"),
        ("Evaluation Average Reward:", "eval/reward"),
        ("exp_data/reward_score_mean", "reward"),
        ("mean_search_reward", "rewards/search/mean"),
        ("worker_mean_reward", "rewards/worker/mean"),
        ("train_format_reward_mean", "rewards/format/mean"),
        ("format_rewards", "rewards/format/mean"),
        ("reward_format", "rewards/format/mean"),
        ("tag_count_reward", "rewards/tag_count/mean"),
        ("Batch Success", "rewards/success_rate/mean"),
        ("train/fraction_correct", "rewards/correct_rate/mean"),
        ("valid/reward", "eval/reward"),
        ("Reward/Eval", "eval/reward"),
        ("held_out/mean_reward", "eval/reward"),
        ("val/exact_match", "eval/reward"),
        ("actor/ratio_mean", "val/ratio"),
        ("debug/ratio_mean", "val/ratio"),
        ("Entropies", "entropy"),
        ("clip_rate", "clip_ratio/outside_mean"),
        ("loss/entropy_loss", "loss/entropy_avg"),
    ],
)
def test_the_same_few_words_are_known_in_any_order(tag: str, metric: str) -> None:
    translation = translate(run_of([tag, "advantage_mean"]))
    assert translation.metrics[metric].tag == tag


@pytest.mark.parametrize(
    ("tag", "over"),
    [
        ("reward/mean_100", 25),
        ("rewards/mean_10", 2),
        ("Reward/Mean_100_Episodes", 25),
        ("mean_reward_100", 25),
        ("mean_100ep_reward", 25),
        ("avg_score_last_50_episodes", 12),
        ("train/average_return_20", 5),
        ("avg_reward_last_5", 1),
        ("reward(last50)", 12),
        ("Reward MA100", 25),
        ("Score 100", 25),
        ("Reward (50)", 12),
        ("Mean Reward (last 1000 steps)", 1),
        ("avg_reward_last_500_timesteps", 1),
        ("Avg learning reward last 100 episodes", 25),
    ],
)
def test_a_mean_over_the_last_episodes_is_the_reward_and_knows_over_about_how_many_points(tag: str, over: int) -> None:
    found = translate(run_of([tag, "epsilon"])).metrics["reward"]
    assert (found.tag, found.smoothed) == (tag, over)


@pytest.mark.parametrize(
    "tag", ["avg_test_reward", "mean_eval_reward", "Average test reward", "mean validation return", "Avg testing score"]
)
def test_a_mean_may_stand_before_the_word_for_an_evaluation(tag: str) -> None:
    assert translate(run_of([tag, "mean_reward"])).metrics["eval/reward"].tag == tag


@pytest.mark.parametrize("tag", ["avg_train_reward", "mean_training_return", "avg_learning_reward"])
def test_a_mean_may_stand_before_the_word_for_training(tag: str) -> None:
    assert translate(run_of([tag, "epsilon"])).metrics["reward"].tag == tag


def test_the_reward_of_an_episode_goes_before_the_mean_of_the_last() -> None:
    assert translate(run_of(["reward/episode", "reward/mean_100"])).metrics["reward"].tag == "reward/episode"


@pytest.mark.parametrize(
    "tag", ["max_reward_100", "avg_reward_0", "avg_reward_1", "reward_100", "mean_loss_100", "mean_reward_100_steps"]
)
def test_another_number_behind_a_reward_is_no_mean_of_the_last_episodes(tag: str) -> None:
    found = translate(run_of([tag, "epsilon"])).metrics.get("reward")
    assert found is None or found.smoothed == 1


@pytest.mark.parametrize(
    "tag",
    [
        "actor/kl",
        "policy_kl",
        "beta_kl",
        "clip_ratio",
        "agent_0/value_loss",
        "KL (current vs old policy)",
        "KL(pi_agent | pi_data)",
        "Reward (eval)",
        "metrics/reward_rate",
        "time_step",
        "mean_of_return",
    ],
)
def test_a_name_with_two_meanings_stays_unrecognised(tag: str) -> None:
    assert tag in translate(run_of([tag, "advantage_mean"])).unrecognised


@pytest.mark.parametrize(
    "tag",
    [
        "baseline/avg_reward",
        "opponent/mean_reward",
        "hyperparams/invalid_reward",
        "reward/train_loss",
        "reward/value_loss",
        "reward/val_accuracy",
        "rewards/margin",
        "rewards/format_std",
        "rewards/advantage_mean",
        "reward/hacking_score",
        "reward/target",
        "reward_scale",
        "mean_best_reward",
        "mean_reward_kept",
        "rewards_with_kl_penalty_mean",
        "reward_model_accuracy",
        "reward_accuracy",
        "kl_reward",
        "mean_step_reward",
        "greedy_reward",
        "Mean Reward Score in buffer:",
        "Rewards/Sample_0",
        "batch_length",
    ],
)
def test_what_is_no_reward_of_the_run_is_taken_for_none(tag: str) -> None:
    metrics = translate(run_of([tag, "advantage_std"])).metrics
    assert not any(name == "reward" or name.startswith("rewards/") for name in metrics)


def test_the_entropy_term_of_a_loss_is_no_entropy_for_its_sign_and_factor_are_open() -> None:
    metrics = translate(run_of(["entropy_loss", "advantage_mean"])).metrics
    assert metrics["loss/entropy_avg"].tag == "entropy_loss"
    assert "entropy" not in metrics


def test_a_loss_of_ones_own_with_names_of_another_trainer_is_read_by_plain_names() -> None:
    own = ["train/approx_kl", "train/clip_fraction", "train/kl_divergence", "train/entropy", "reward/mean"]
    assert translate(run_of(own)).framework == "generic"
    assert translate(run_of(["train/approx_kl", "train/clip_fraction", "train/entropy_loss"])).framework == "sb3"
    ddpo = ["reward_mean", "reward_std", "approx_kl", "clipfrac"]
    assert translate(run_of(ddpo)).framework == "trl-ddpo"
    assert translate(run_of([*ddpo, "policy_loss", "entropy"])).framework == "generic"
    model = ["min_reward", "max_reward", "mean_reward", "accuracy"]
    assert not translate(run_of(model)).is_rl
    assert translate(run_of([*model, "policy_loss", "kl_loss"])).framework == "generic"
    assert translate(run_of(["reward", "kl", "ratio", "loss"])).framework == "generic"
    assert translate(run_of(["train/pg_loss", "train/entropy", "rollout/reward_mean"])).framework == "generic"


def test_an_epsilon_is_of_exploration_only_in_control_and_eps_may_count_episodes() -> None:
    assert "policy/exploration_rate" in translate(run_of(["reward", "epsilon", "loss"])).metrics
    assert "policy/exploration_rate" not in translate(run_of(["reward", "kl", "epsilon", "response_length"])).metrics
    assert "policy/exploration_rate" not in translate(run_of(["episode_reward", "eps"])).metrics


def test_preference_training_is_not_taken_for_reinforcement_learning() -> None:
    assert translate(run_of(["chosen_reward", "rejected_reward", "reward_margin"])).framework != "generic"


def test_the_surest_form_comes_first() -> None:
    assert forms("Train/Policy/Loss")[0] == "train/policy/loss"
    assert forms("Train/Policy/Loss")[1] == "policy/loss"
    assert "policy_loss" in forms("Train/Policy/Loss")
    assert forms("Reward/(t)")[0] == "reward"


def test_the_first_pass_of_an_update_is_reported_of_all() -> None:
    known = translate(run_of(["reward_mean", "epoch0/loss", "epoch1/loss", "epoch0/mean_ratio"])).metrics
    assert known["loss"].tag == "epoch0/loss" and known["val/ratio"].tag == "epoch0/mean_ratio"


def test_the_length_of_an_episode_is_no_length_of_a_completion() -> None:
    for names in (
        ["episode_reward", "episode_length"],
        ["rewards", "lengths"],
        ["mean_reward", "mean_length", "eps"],
        ["Reward_Mean", "Length_Mean", "Loss"],
        ["reward", "average length", "total length"],
    ):
        known = translate(run_of(names)).metrics
        assert known["episodes/mean_length"].tag == names[1]
        assert "completions/mean_length" not in known


def test_a_loss_that_slime_names_too_does_not_make_a_trainer_slime() -> None:
    assert translate(run_of(["train/pg_loss", "train/v_loss", "metrics/ep_reward"])).framework == "generic"
    assert translate(run_of(["train/pg_loss", "train/ppo_kl", "train/entropy_loss"])).framework == "slime"


def test_a_kl_beside_a_reward_of_three_letters_may_be_that_to_the_reference() -> None:
    """Loops of language models print `rew` and `kl` too."""
    assert "kl" in translate(run_of(["rew", "kl", "loss"])).metrics


def test_a_mean_over_what_came_since_the_point_before_shares_no_sample_with_it() -> None:
    run = Run("run", Place("console", "here"))
    steps = [20_000 * n for n in range(1, 31)]
    run.add("Reward (last 20000)", steps, [float(n) for n in range(30)], [float("nan")] * 30)
    assert translate(run).metrics["reward"].smoothed == 1


def test_what_a_last_line_sums_up_does_not_take_the_place_of_what_was_followed() -> None:
    """`Environment solved! Avg Reward: 2.59` below `Step: 1000 Average reward: 0.5`."""
    run = Run("run", Place("console", "here"))
    for tag, count in (("Average reward", 30), ("Avg Reward", 1)):
        run.add(tag, list(range(count)), [float(n) for n in range(count)], [float("nan")] * count)
    assert translate(run).metrics["reward"].tag == "Average reward"


def test_what_lines_on_the_way_sum_up_does_not_take_the_place_of_what_was_followed() -> None:
    """`Episode 100: Average Score: 0.5` every hundred lines of `Episode 3: Mean-100 score: 0.5`."""
    run = Run("run", Place("console", "here"))
    for tag, every in (("Mean-100 score", 1), ("Average Score", 100)):
        steps = list(range(0, 600, every))
        run.add(tag, steps, [float(n) for n in steps], [float("nan")] * len(steps))
    assert translate(run).metrics["reward"].tag == "Mean-100 score"
    for step in range(600, 1000, 100):  # ten points are enough to be followed
        run.add("Average Score", [step], [1.0], [float("nan")])
    assert translate(run).metrics["reward"].tag == "Average Score"


def test_the_mean_of_the_whole_run_beside_each_row_does_not_take_the_place_of_what_was_followed() -> None:
    """`episode,total_reward,average_reward`, written when the run was over."""
    rewards = [float(n) for n in range(20)]
    names = {"total_reward": rewards, "average_reward": [9.5] * 20}
    assert translate(run_of(names)).metrics["reward"].tag == "total_reward"
    assert translate(run_of({**names, "average_reward": rewards})).metrics["reward"].tag == "average_reward"
    assert translate(run_of({"average_reward": [9.5] * 20})).metrics["reward"].tag == "average_reward"


def cumulative(values: list[float], **others: list[float]) -> Run:
    names = {"cumulative_reward": values, **others}
    return run_of(names)


@pytest.mark.parametrize("total", ["Total Reward", "episode_reward", "Reward cumulee", "cumulative reward"])
def test_what_an_episode_earned_is_its_reward_beside_that_of_its_last_step(total: str) -> None:
    last, earned = [-10.0] * 20, [float(n + 3 * (n % 2)) for n in range(20)]
    for names in ({"Reward": last, total: earned}, {total: earned, "Reward": last}):
        assert translate(run_of(names)).metrics["reward"].tag == total


def test_a_few_totals_on_the_way_do_not_take_the_place_of_the_rewards() -> None:
    names = {"reward": [float(n % 7) for n in range(200)], "total_reward": [3.0] * 5}
    assert translate(run_of(names)).metrics["reward"].tag == "reward"


def test_a_cumulative_reward_that_turns_is_that_of_an_episode() -> None:
    values = [float(n + 3 * (n % 2)) for n in range(20)]
    metrics = translate(cumulative(values, final_reward=values[::-1])).metrics
    assert metrics["reward"].tag == "cumulative_reward"


def test_a_cumulative_reward_along_a_curve_of_learning_is_that_of_an_episode() -> None:
    noise = np.random.default_rng(3).normal(0, 8, 80)
    learning = 130 / (1 + np.exp(-(np.arange(80) - 40) / 8)) + noise
    assert translate(cumulative(learning.tolist())).metrics["reward"].tag == "cumulative_reward"
    assert "sum over" in translate(cumulative((np.arange(80) + noise.cumsum()).tolist())).dropped["cumulative_reward"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_cumulative_reward_that_never_turns_is_a_sum_over_the_run(sign: float) -> None:
    values = [sign * n * n for n in range(20)]
    found = translate(cumulative(values, final_reward=values[::-1]))
    assert found.metrics["reward"].tag == "final_reward"
    assert "sum over the whole run" in found.dropped["cumulative_reward"]


def test_a_sum_of_rewards_of_either_sign_is_no_reward_though_it_turns() -> None:
    random = np.random.default_rng(0)
    for drift in (0.0, 0.3, 1.0):
        total = np.cumsum(random.normal(drift, 1, 200)).tolist()
        assert "reward" not in translate(cumulative(total)).metrics
    episodes = np.minimum(np.linspace(0, 8, 200), 6) + random.normal(0, 1, 200)
    assert "reward" in translate(cumulative(episodes.tolist())).metrics


def test_a_cumulative_reward_is_known_again_once_it_turns() -> None:
    run = cumulative([float(n) for n in range(20)])
    before = translate(run)
    assert "reward" not in before.metrics
    assert before is translate(run, previous=before)
    run.add("cumulative_reward", [*range(20, 40)], [19.0 * (n % 2) for n in range(20)], [float("nan")] * 20)
    assert "reward" in translate(run, previous=before).metrics


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([0.0, 0.3, 1.0, 1.7, 2.5, 3.3, 4.0], "objective/kl"),
        ([0.0, 0.01, 0.02, 0.04, 0.1, 0.2, 0.3], "kl"),
        ([0.0, 0.02, 0.1, 0.5, 2.0, 4.0, 8.0], "kl"),  # it ran away late
        ([4.2, 3.9, 4.4, 4.0, 4.3, 4.1, 4.2], "kl"),  # an offset: policy and reference differ from the start
    ],
)
def test_a_kl_above_one_nat_while_a_run_is_young_is_that_of_whole_completions(values: list[float], name: str) -> None:
    run = run_of(["mean_reward"])
    run.add("mean_kl", [*range(7)], values, [float("nan")] * 7)
    known = translate(run)
    assert name in known.metrics and known.metrics[name].tag == "mean_kl"
    assert any(
        ("summed over a completion" in said) == (name == "objective/kl") for said in known.assumed if "kl" in said
    )


def test_the_kl_of_a_known_trainer_is_of_tokens_however_large() -> None:
    run = run_of(["completions/mean_length", "reward_std", "frac_reward_zero_std", "reward"])
    run.add("kl", [*range(7)], [0.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0], [float("nan")] * 7)
    assert "kl" in translate(run).metrics


def test_the_cumulative_reward_of_a_known_trainer_is_that_of_an_episode_however_it_goes() -> None:
    run = run_of({"Environment/Cumulative Reward": [float(n) for n in range(20)]})
    assert "reward" in translate(run).metrics


def test_success_rates_of_several_tasks_are_none_of_the_run() -> None:
    several = translate(run_of(["reach/success_rate", "push/success_rate"]))
    assert not several.metrics
    assert set(several.unrecognised) == {"reach/success_rate", "push/success_rate"}
    assert "reward" in translate(run_of(["reach/success_rate", "reach/length"])).metrics
    assert "reward" in translate(run_of(["rollout/success_rate", "env/success_rate"])).metrics


def test_the_only_mean_reward_of_a_task_is_the_reward() -> None:
    for tag in ("reward/mean/math", "reward/math/mean"):
        metrics = translate(run_of([tag, "reward/success_rate/math"])).metrics
        assert metrics["reward"].tag == tag
    assert "reward" not in translate(run_of(["reward/mean/math", "reward/mean/code"])).metrics


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("PPO_walker_7_ep_rew_mean", "ep_rew_mean"),
        ("run1-policy_gradient_loss", "policy_gradient_loss"),
        ("my_reward", ""),
        ("notes_of_monday", ""),
    ],
)
def test_the_ending_of_a_name_is_known_where_it_has_several_words(name: str, ending: str) -> None:
    assert known_ending(name) == ending


@pytest.mark.parametrize(
    "name", ["Mean Reward Against Episodes", "mean_reward_vs_step", "Mean Reward vs. Training Steps"]
)
def test_what_a_curve_was_drawn_over_is_no_part_of_its_name(name: str) -> None:
    assert translate(run_of({name: [0.1, 0.2, 0.3], "loss": [1.0, 0.9, 0.8]})).metrics["reward"].tag == name


def test_what_its_name_calls_a_share_of_another_reward_is_not_the_reward_of_the_run() -> None:
    share = "reward_component_exact_match_bonus_added_to_total_reward"
    assert "reward" not in translate(run_of({share: [0.0, 0.1]})).metrics
    assert "reward" not in translate(run_of({"length_penalty_reward": [0.0, 0.1]})).metrics
    assert "reward" in translate(run_of({"helpful_reward": [0.0, 0.1]})).metrics
