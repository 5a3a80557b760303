"""Names of unknown trainers are taken by their words, whatever stands before and after them, and only where one meaning is left."""

from __future__ import annotations

import pytest

from rlhealth.metrics import translate
from rlhealth.metrics.free_names import forms
from tests.metrics.logged import run_of


@pytest.mark.parametrize(
    ("tag", "metric"),
    [
        ("Episodic Reward/episode", "reward"),
        ("Average Reward/(t)", "reward"),
        ("MeanReward", "reward"),
        ("Metrics/AverageReturn", "reward"),
        ("rewards/mean", "reward"),
        ("Losses/Policy Loss", "loss/policy_avg"),
        ("Loss/critic", "loss/value_avg"),
        ("agent/value_loss", "loss/value_avg"),
        ("policy/entropy", "entropy"),
        ("Train/Grad. Norm", "grad_norm"),
        ("reward/format", "rewards/format/mean"),
        ("correctness_reward", "rewards/correctness/mean"),
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
        ("rew_batch_avg", "reward"),
        ("reward_curve", "reward"),
        ("Episode Rewards History", "reward"),
        ("reward_latest", "reward"),
        ("metrics/ep_length", "episodes/mean_length"),
    ],
)
def test_the_same_few_words_are_known_in_any_order(tag: str, metric: str) -> None:
    translation = translate(run_of([tag, "advantage_mean"]))
    assert translation.metrics[metric].tag == tag


@pytest.mark.parametrize(
    ("tag", "over"),
    [
        ("reward/mean_100", 100),
        ("rewards/mean_10", 10),
        ("Reward/Mean_100_Episodes", 100),
        ("mean_reward_100", 100),
        ("mean_100ep_reward", 100),
        ("avg_score_last_50_episodes", 50),
        ("train/average_return_20", 20),
        ("avg_reward_last_5", 5),
    ],
)
def test_a_mean_over_the_last_episodes_is_the_reward_and_knows_over_how_many(tag: str, over: int) -> None:
    found = translate(run_of([tag, "epsilon"])).metrics["reward"]
    assert (found.tag, found.smoothed) == (tag, over)


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
        "entropy_loss",
        "clip_ratio",
        "agent_0/value_loss",
        "Cumulative Reward/info",
        "time_step",
        "mean_of_return",
    ],
)
def test_a_name_with_two_meanings_stays_unrecognised(tag: str) -> None:
    assert tag in translate(run_of([tag, "advantage_mean"])).unrecognised


def test_preference_training_is_not_taken_for_reinforcement_learning() -> None:
    assert translate(run_of(["chosen_reward", "rejected_reward", "reward_margin"])).framework != "generic"


def test_the_surest_form_comes_first() -> None:
    assert forms("Train/Policy/Loss")[0] == "train/policy/loss"
    assert forms("Train/Policy/Loss")[1] == "policy/loss"
    assert "policy_loss" in forms("Train/Policy/Loss")
    assert forms("Reward/(t)")[0] == "reward"


def test_the_length_of_an_episode_is_no_length_of_a_completion() -> None:
    for names in (["episode_reward", "episode_length"], ["rewards", "lengths"], ["mean_reward", "mean_length", "eps"]):
        known = translate(run_of(names)).metrics
        assert known["episodes/mean_length"].tag == names[1]
        assert "completions/mean_length" not in known


def test_a_loss_that_slime_names_too_does_not_make_a_trainer_slime() -> None:
    assert translate(run_of(["train/pg_loss", "train/v_loss", "metrics/ep_reward"])).framework == "generic"
    assert translate(run_of(["train/pg_loss", "train/ppo_kl", "train/entropy_loss"])).framework == "slime"
