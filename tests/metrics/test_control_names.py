"""What libraries of control, games and robotics log is recognised from the names that their sources write."""

from __future__ import annotations

import pytest

from rlhealth.metrics import translate
from tests.metrics.logged import run_of

#: By library: the names of one of its algorithms, each with what it is; None where it must be no metric.
LOGGED: dict[str, tuple[str, dict[str, str | None]]] = {
    "CleanRL's DQN": (
        "cleanrl",
        {
            "charts/episodic_return": "reward",
            "charts/epsilon": "policy/exploration_rate",
            "losses/td_loss": "loss",
            "losses/q_values": "values/mean",
            "charts/SPS": "throughput/fps",
        },
    ),
    "CleanRL's SAC": (
        "cleanrl",
        {
            "charts/episodic_return": "reward",
            "losses/qf_loss": "loss/value_avg",
            "losses/qf1_values": "values/mean",
            "losses/actor_loss": "loss/policy_avg",
            "losses/alpha": "entropy_coef",
            "losses/alpha_loss": None,
        },
    ),
    "Stable-Baselines3-contrib's TRPO": (
        "sb3",
        {
            "rollout/ep_rew_mean": "reward",
            "train/policy_objective": "loss/policy_avg",
            "train/kl_divergence_loss": "policy/approxkl_exact",
        },
    ),
    "ML-Agents until 0.4": (
        "ml-agents",
        {
            "Info/cumulative_reward": "reward",
            "Info/episode_length": "completions/mean_length",
            "Info/value_loss": "loss/value_avg",
            "Info/entropy": "entropy",
            "Info/Lesson": None,
        },
    ),
    "Dreamer, the first": (
        "dreamer",
        {"sim/train/return": "reward", "sim/test/return": "eval/reward", "agent/div": None},
    ),
    "Baselines' HER": (
        "baselines",
        {
            "train/success_rate": "rewards/success_rate/mean",
            "test/success_rate": "eval/rewards/success_rate/mean",
            "test/mean_Q": "eval/values/mean",
            "stats_o/mean": None,
        },
    ),
    "RLlib's SAC, old": (
        "rllib",
        {
            "episode_reward_mean": "reward",
            "episode_reward_min": "reward/min",
            "info/learner/default_policy/learner_stats/critic_loss": "loss/value_avg",
            "info/learner/default_policy/learner_stats/mean_q": "values/mean",
            "info/learner/default_policy/learner_stats/alpha_value": "entropy_coef",
        },
    ),
    "RLlib's DQN, new": (
        "rllib",
        {
            "env_runners/episode_return_mean": "reward",
            "learners/default_policy/qf_loss": "loss/value_avg",
            "learners/default_policy/qf_mean": "values/mean",
        },
    ),
    "RLlib's progress.csv of a run that has not learned yet": (
        "rllib",
        {"episode_reward_mean": "reward", "episodes_this_iter": None, "timesteps_total": None},
    ),
    "Tianshou's first logger": (
        "tianshou",
        {
            "train/reward": "reward",
            "train/length": "completions/mean_length",
            "test/reward": "eval/reward",
            "test/reward_std": None,
            "test/length": "eval/completions/mean_length",
            "test/length_std": None,
        },
    ),
    "skrl's DQN": (
        "skrl",
        {
            "Reward / Total reward (mean)": "reward",
            "Loss / Q-network loss": "loss",
            "Exploration / Exploration epsilon": "policy/exploration_rate",
        },
    ),
    "d3rlpy's SAC in TensorBoard": (
        "d3rlpy",
        {
            "metrics/time_algorithm_update": None,
            "metrics/environment": "eval/reward",
            "metrics/critic_loss": "loss/value_avg",
            "metrics/temp": "entropy_coef",
        },
    ),
    "XuanCe's PPO": (
        "xuance",
        {
            "Train-Episode-Rewards/rank_0/env-0": "reward",
            "Test-Episode-Rewards/Mean-Score": "eval/reward",
            "predict_value": "values/mean",
            "clip_ratio": "clip_ratio/outside_mean",
        },
    ),
    "garage's PPO": (
        "garage",
        {
            "Evaluation/AverageReturn": "reward",
            "Evaluation/AverageDiscountedReturn": None,
            "GaussianMLPPolicy/KL": "policy/approxkl_exact",
            "GaussianMLPPolicy/Entropy": "entropy",
            "GaussianMLPValueFunction/LossBefore": None,
        },
    ),
    "garage's SAC": (
        "garage",
        {
            "Average/TrainAverageReturn": "reward",
            "Evaluation/AverageReturn": "eval/reward",
            "QF/Qf1Loss": "loss/value_avg",
        },
    ),
    "RL Coach's table": (
        "rl-coach",
        {
            "ER #Transitions": None,
            "Training Reward": "reward",
            "Evaluation Reward": "eval/reward",
            "Entropy/Mean": "entropy",
            "KL Divergence/Mean": "policy/approxkl_exact",
            "Value Loss/Mean": "loss/value_avg",
            "Entropy/Stdev": None,
        },
    ),
    "RL Coach's output": (
        "rl-coach",
        {
            "Policy training> Surrogate loss": "loss/policy_avg",
            "KL divergence": "policy/approxkl_exact",
            "Entropy": "entropy",
            "Total reward": "reward",
            "Worker": None,
        },
    ),
    "Dopamine": (
        "dopamine",
        {"Train/AverageReturns": "reward", "Eval/AverageReturns": "eval/reward", "Train/NumEpisodes": None},
    ),
    "Brax's PPO": (
        "brax",
        {
            "eval/episode_reward": "eval/reward",
            "training/sps": "throughput/fps",
            "training/kl_mean": "policy/approxkl_exact",
            "training/entropy_loss": None,
        },
    ),
    "ManiSkill's PPO": (
        "maniskill",
        {
            "train/return": "reward",
            "train/reward": None,
            "train/success_once": "rewards/success_rate/mean",
            "eval/return": "eval/reward",
            "losses/approx_kl": "policy/approxkl_k3",
        },
    ),
    "BenchMARL's MAPPO": (
        "benchmarl",
        {
            "collection/reward/episode_reward_mean": "reward",
            "eval/reward/episode_reward_mean": "eval/reward",
            "train/agents/entropy": "entropy",
            "train/agents/kl_approx": "policy/approxkl_k1",
        },
    ),
    "Stoix": (
        "stoix",
        {
            "actor/episode_return/mean": "reward",
            "evaluator/episode_return/mean": "eval/reward",
            "trainer/actor_loss": "loss/policy_avg",
        },
    ),
    "PyMARL's QMIX": (
        "pymarl",
        {
            "return_mean": "reward",
            "test_return_mean": "eval/reward",
            "test_battle_won_mean": "eval/win_rate",
            "q_taken_mean": "values/mean",
            "td_error_abs": None,
        },
    ),
    "MAPPO": (
        "mappo",
        {
            "average_episode_rewards": "reward",
            "value_loss": "loss/value_avg",
            "policy_loss": "loss/policy_avg",
            "dist_entropy": "entropy",
            "actor_grad_norm": "grad_norm",
            "ratio": "val/ratio",
        },
    ),
    "keras-rl": (
        "keras-rl",
        {
            "episode_reward": "reward",
            "nb_episode_steps": "episodes/mean_length",
            "mean_eps": "policy/exploration_rate",
            "loss": "loss/value_avg",
        },
    ),
    "Attention, Learn to Solve Routing Problems!": (
        "learn-to-route",
        {"avg_cost": "reward", "val_avg_reward": "eval/reward", "actor_loss": "loss/policy_avg", "nll": None},
    ),
    "DreamerV3 in PyTorch": (
        "dreamer",
        {"train_return": "reward", "eval_return": "eval/reward", "kl": None, "model_loss": None, "value_loss": None},
    ),
    "TD-MPC2": (
        "tdmpc2",
        {"train/episode_reward": "reward", "train/consistency_loss": None, "train/value_loss": None},
    ),
    "AgileRL": ("agilerl", {"train/mean_score": "reward", "eval/mean_fitness": "eval/reward"}),
}


@pytest.mark.parametrize("library", LOGGED)
def test_the_names_of_a_library_mean_what_its_source_computes(library: str) -> None:
    framework, expected = LOGGED[library]
    translation = translate(run_of(list(expected)))
    named = {metric.tag: name for name, metric in reversed(translation.metrics.items())}  # a sole one is the reward too
    assert translation.framework == framework
    assert {tag: named.get(tag) for tag in expected} == expected
    assert not translation.unrecognised


def test_a_mean_squared_error_of_critics_is_halved_as_the_other_value_losses_are() -> None:
    found = translate(run_of({"charts/SPS": [1.0], "losses/qf_loss": [4.0], "losses/td_loss": [4.0]})).metrics
    assert list(found["loss/value_avg"].values) == [2.0]
    assert list(found["loss"].values) == [4.0]


def test_signs_follow_the_source() -> None:
    trpo = translate(run_of({"train/policy_objective": [0.25], "time/fps": [1.0]})).metrics
    assert list(trpo["loss/policy_avg"].values) == [-0.25]
    sheeprl = translate(run_of({"Rewards/rew_avg": [1.0], "Loss/entropy_loss": [-0.5]})).metrics
    assert list(sheeprl["entropy"].values) == [0.5]


def test_a_kl_that_was_not_computed_is_no_kl_of_zero() -> None:
    names = {"eval/episode_reward": [1.0, 2.0], "training/sps": [1.0, 1.0], "training/kl_mean": [0.0, 0.02]}
    assert list(translate(run_of(names)).metrics["policy/approxkl_exact"].values) == [0.02]


def test_with_a_conservative_term_the_loss_of_critics_is_no_squared_error() -> None:
    names = ["critic_loss", "actor_loss", "environment", "time_algorithm_update"]
    assert translate(run_of(names)).metrics["loss/value_avg"].tag == "critic_loss"
    cql = translate(run_of([*names, "conservative_loss"])).metrics
    assert "loss/value_avg" not in cql
    assert cql["loss"].tag == "critic_loss"


def test_returns_of_episodes_beside_losses_are_not_those_of_a_language_model() -> None:
    maniskill = translate(run_of(["train/return", "train/success_once", "losses/value_loss", "charts/SPS"]))
    assert "objective/rlhf_reward" not in maniskill.metrics
    assert translate(run_of(["policy_loss", "value_loss", "actor_grad_norm", "dist_entropy"])).framework == "mappo"
    assert translate(run_of(["train/reward", "train/kl", "train/return", "train/actor_lr"])).framework == "openrlhf"


def test_what_mappo_writes_as_folders_of_one_name_is_the_same_name() -> None:
    names = ["average_episode_rewards", "value_loss", "policy_loss", "dist_entropy", "ratio"]
    found = translate(run_of([f"{name}/{name}" for name in names]))
    assert found.framework == "mappo"
    assert found.metrics["reward"].tag == "average_episode_rewards/average_episode_rewards"
