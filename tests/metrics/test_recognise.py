"""The framework that logged a run is recognised by names, settings and the trainer's class, and what stays open is said."""

from __future__ import annotations

import pytest

from rlhealth.metrics import translate
from tests.metrics.logged import GRPO, LEGACY, PPO, SB3, run_of

MARKS = {
    "verl": ["actor/pg_loss", "critic/score/mean", "response_length/clip_ratio"],
    "openrlhf": ["train/reward", "train/kl", "train/ppo_clip_ratio", "train/actor_lr"],
    "cleanrl": ["charts/SPS", "losses/approx_kl", "losses/old_approx_kl"],
    "nemo-rl": ["train/reward", "train/probs_ratio", "train/loss", "timing/train/total_step_time"],
    "skyrl": ["policy/final_loss", "generate/avg_num_tokens"],
    "slime": ["rollout/raw_reward", "train/pg_clipfrac", "train/loss"],
    "prime-rl": ["optim/lr", "reward/all/mean"],
    "open-instruct": ["objective/kl0_avg", "val/sequence_lengths", "scores"],
    "rllib": ["env_runners/episode_return_mean", "learners/default_policy/entropy"],
    "trl-async-grpo": ["train/ratio", "train/kl", "train/reward", "train/completions/mean_length"],
    "trl-online-dpo": ["train/objective/scores_margin", "train/rewards/margins", "train/objective/kl"],
    "trl-nash-md": ["train/mixture_coef", "train/rewards/chosen", "train/rewards/margins"],
    "trl-xpo": ["train/loss/xpo", "train/objective/kl"],
}


@pytest.mark.parametrize(("framework", "marks"), MARKS.items())
def test_a_framework_is_known_by_its_names(framework: str, marks: list[str]) -> None:
    translation = translate(run_of(marks))
    assert translation.framework == framework
    assert translation.is_rl


@pytest.mark.parametrize("prefix", ["", "train/"])
@pytest.mark.parametrize(("framework", "logged"), [("trl-grpo", GRPO), ("trl-ppo", PPO)])
def test_with_and_without_the_prefix_of_a_tracker(framework: str, logged: tuple[str, ...], prefix: str) -> None:
    translation = translate(run_of(logged, prefix=prefix))
    assert translation.framework == framework
    assert not translation.unrecognised


def test_names_that_are_complete_keep_their_prefix() -> None:
    assert translate(run_of(LEGACY)).framework == "trl-ppo-legacy"
    assert translate(run_of(SB3)).framework == "sb3"


def test_rloo_and_grpo_are_distinguished_by_a_setting() -> None:
    assert translate(run_of(GRPO, config={"normalize_advantages": False})).framework == "trl-rloo"
    decided = translate(run_of(GRPO, config={"epsilon_high": None}))
    assert decided.framework == "trl-grpo"
    assert not any("RLOO" in sentence for sentence in decided.assumed)


def test_rloo_and_grpo_are_distinguished_by_the_trainer_in_the_profile() -> None:
    assert translate(run_of([*GRPO, "profiling/Time taken: RLOOTrainer._prepare_inputs"])).framework == "trl-rloo"
    named = translate(run_of([*GRPO, "profiling/Time taken: UnslothGRPOTrainer.compute_loss"]))
    assert named.framework == "trl-grpo"
    assert not any("RLOO" in sentence for sentence in named.assumed)
    assert translate(run_of([*GRPO, "profiling/Time_taken__RLOOTrainer._prepare_inputs"])).framework == "trl-rloo"


def test_a_class_of_the_users_own_does_not_hide_the_framework() -> None:
    assert translate(run_of([*GRPO, "profiling/Time taken: RAGTrainer.retrieve"])).framework == "trl-grpo"


@pytest.mark.parametrize(
    ("kl", "clipped", "framework"),
    [
        ([-0.001, 0.02], [one / 80 for one in (21, 24, 17, 29, 25, 22)], "trl-rloo"),
        ([0.001, 0.02], [one / 80 for one in (21, 24, 17, 29, 25, 22)], "trl-grpo"),
        ([-0.001, 0.02], [one / 7919 for one in (2100, 2400, 1700, 2900, 2500, 2200)], "trl-grpo"),
        ([-0.001, 0.02], [0.21, 0.24, 0.17, 0.29, 0.25, 0.22], "trl-grpo"),
        ([-1e-5, 0.02], [one / 80 for one in (21, 24, 17, 29, 25, 22)], "trl-grpo"),
        ([-0.001, 0.02], [0.0, 0.0], "trl-grpo"),
    ],
)
def test_rloo_is_known_by_a_signed_kl_and_clipped_shares_of_sequences(
    kl: list[float], clipped: list[float], framework: str
) -> None:
    values = {name: [0.5, 0.6] for name in GRPO} | {"kl": kl, "clip_ratio/region_mean": clipped}
    assert translate(run_of(values)).framework == framework


def test_where_rloo_and_grpo_cannot_be_distinguished_the_report_says_so() -> None:
    assert (
        "taken for GRPO, not RLOO: the names are the same and no setting distinguishes them"
        in translate(run_of(GRPO)).assumed
    )


def test_a_run_older_than_todays_rloo_can_only_be_grpo() -> None:
    translation = translate(run_of(["reward", "reward_std", "completion_length", "kl", "rewards/accuracy"]))
    assert translation.framework == "trl-grpo"
    assert not translation.assumed


def test_an_rloo_without_a_critic_is_known_by_a_value_loss_of_zero() -> None:
    values = {name: [0.0, 0.0] if name in ("loss/value_avg", "val/clipfrac_avg") else [0.5, 0.5] for name in PPO}
    assert translate(run_of(values)).framework == "trl-rloo-v1"
    assert translate(run_of([name for name in PPO if name != "loss/value_avg"])).framework == "trl-rloo-v1"


def test_a_ppo_run_whose_value_loss_falls_to_zero_stays_ppo() -> None:
    values = {name: [0.5, 0.0] for name in PPO}
    assert translate(run_of(values)).framework == "trl-ppo"


@pytest.mark.parametrize(
    ("framework", "logged"),
    [
        ("trl-sft", ["loss", "mean_token_accuracy", "grad_norm", "num_tokens"]),
        ("trl-reward", ["loss", "accuracy", "margin", "mean_reward", "min_reward", "max_reward"]),
        ("trl-dpo", ["rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "loss"]),
        ("trl-kto", ["rewards/chosen", "kl", "loss"]),
        ("trl-distillation", ["completions/truncated_fraction", "on_policy_loss", "loss"]),
        ("transformers", ["loss", "grad_norm", "learning_rate"]),
    ],
)
def test_what_is_no_reinforcement_learning_says_so(framework: str, logged: list[str]) -> None:
    translation = translate(run_of(logged, prefix="train/"))
    assert translation.framework == framework
    assert not translation.is_rl


def test_preference_tuning_by_llama_factory_is_no_reinforcement_learning() -> None:
    run = run_of(["loss", "accuracy", "lr", "epoch"])
    run.step_axis = "current_steps"
    translation = translate(run)
    assert (translation.title, translation.is_rl) == ("preference tuning (LLaMA-Factory)", False)
    assert "rewards/accuracies" in translation.metrics


def test_a_trainer_of_ones_own_is_read_by_the_plain_meaning_of_its_names() -> None:
    translation = translate(
        run_of(
            ["mean_reward", "approx_kl", "clipfrac", "explained_variance", "policy_entropy", "value_loss", "my/thing"]
        )
    )
    assert translation.framework == "generic"
    assert set(translation.metrics) == {
        "reward",
        "policy/approxkl_k1",
        "clip_ratio/outside_mean",
        "val/explained_variance",
        "entropy",
        "loss/value_avg",
    }
    assert translation.unrecognised == ("my/thing",)
    assert any("no known trainer" in sentence for sentence in translation.assumed)


def test_a_trainer_of_ones_own_on_the_hugging_face_trainer_is_not_called_supervised() -> None:
    translation = translate(run_of(["loss", "grad_norm", "learning_rate", "my_reward_total"], prefix="train/"))
    assert translation.framework == "unknown"
    assert translation.is_rl
    assert set(translation.metrics) == {"loss", "grad_norm", "learning_rate"}


def test_a_bare_kl_of_an_unknown_trainer_is_taken_with_a_word() -> None:
    translation = translate(run_of(["mean_reward", "kl"]))
    assert "kl is taken as the KL to the reference, per token" in translation.assumed


def test_an_empty_run_and_a_run_of_unknown_names_are_unknown() -> None:
    assert translate(run_of([])).framework == "unknown"
    strange = translate(run_of(["foo", "bar/baz"]))
    assert strange.framework == "unknown"
    assert strange.unrecognised == ("foo", "bar/baz")
    assert not strange.metrics


def test_a_recipe_that_logs_rewards_only_by_function_is_still_grpo() -> None:
    assert (
        translate(run_of(["rewards/format/mean", "completions/mean_terminated_length", "loss"])).framework == "trl-grpo"
    )


def test_an_exact_version_beats_what_the_names_suggest() -> None:
    translation = translate(run_of(GRPO, versions={"trl": "0.29.0"}))
    assert translation.version == "0.29.0"
    assert "reward_std" in translation.metrics
    assert "reward_group_std" not in translation.metrics


@pytest.mark.parametrize(
    ("logged", "config", "metric"),
    [
        (["reward", "reward_std", "completion_length"], {}, "reward_group_std"),
        ([*GRPO], {}, "reward_group_std"),  # no step_time: before 0.26
        ([*GRPO, "step_time"], {}, "reward_std"),
        ([*GRPO], {"multi_objective_aggregation": "sum_then_normalize"}, "reward_std"),
    ],
)
def test_without_a_version_the_names_and_settings_tell_the_era(
    logged: list[str], config: dict[str, object], metric: str
) -> None:
    assert metric in translate(run_of(logged, config=config)).metrics


def test_where_the_era_stays_open_the_report_says_what_was_assumed() -> None:
    assert any("0.27" in sentence for sentence in translate(run_of([*GRPO, "step_time"])).assumed)
    certain = translate(run_of([*GRPO, "step_time"], config={"multi_objective_aggregation": "sum_then_normalize"}))
    assert not any("0.27" in sentence for sentence in certain.assumed)


def test_names_below_a_word_of_ones_own_are_those_of_the_trainer() -> None:
    names = ["ppo/loss/total", "ppo/mean_scores", "objective/kl", "objective/kl_coef", "ppo/policy/entropy"]
    found = translate(run_of(["reward", *(f"ppo_stats/{name}" for name in names)]))
    assert found.framework == "trl-ppo-legacy"
    assert found.metrics["objective/kl"].tag == "ppo_stats/objective/kl"
    assert found.metrics["reward"].tag == "reward"


def test_a_known_trainers_names_are_known_with_underscores_too() -> None:
    found = translate(run_of([*GRPO, "step_time", "completions_clipped_ratio"]))
    assert found.metrics["completions/clipped_ratio"].tag == "completions_clipped_ratio"
    assert found.framework == "trl-grpo"


def test_reward_functions_of_a_known_trainer_are_known_with_underscores_too() -> None:
    folded = ["completions_clipped_ratio", "rewards_format_mean", "rewards_format_std", "rewards_was_right_mean"]
    found = translate(run_of([*GRPO, "step_time", *folded]))
    assert found.metrics["rewards/was_right/mean"].tag == "rewards_was_right_mean"
    assert found.metrics["rewards/format/std"].tag == "rewards_format_std"
    assert "rewards/format_mean/mean" not in found.metrics


def test_a_loop_that_logs_the_least_and_the_largest_reward_is_no_reward_model() -> None:
    rewards = ["min_reward", "max_reward", "mean_reward"]
    assert translate(run_of([*rewards, "num_tokens"])).framework == "trl-reward"
    assert translate(run_of([*rewards, "loss", "eval/format_accuracy"])).framework == "generic"


def test_two_plain_names_below_a_word_make_no_trainer() -> None:
    plain = ["test/reward", "test/reward_std", "test/length", "test/length_std", "train/reward"]
    assert translate(run_of(plain)).framework == "generic"
    assert translate(run_of([*plain, "test/env_step"])).framework == "tianshou"


def test_names_with_underscores_for_slashes_are_those_of_the_trainer() -> None:
    found = translate(run_of(["critic_score_mean", "actor_kl_loss", "response_length_clip_ratio", "lambda"]))
    assert found.framework == "verl"
    assert {name: one.tag for name, one in found.metrics.items()} == {
        "reward": "critic_score_mean",
        "kl": "actor_kl_loss",
        "completions/clipped_ratio": "response_length_clip_ratio",
    }
    assert found.unrecognised == ("lambda",)


def test_plain_names_do_not_make_a_trainer() -> None:
    for names in (
        ["policy_loss", "value_loss", "reward_mean", "kl_div"],
        ["loss_policy", "loss_value", "episode_reward"],
    ):
        assert translate(run_of(names)).framework == "generic"
        assert translate(run_of([f"mine/{name}" for name in names])).framework == "generic"


def test_stable_baselines_2_writes_the_entropy_as_a_loss() -> None:
    found = translate(
        run_of(["episode_reward", "loss/clip_factor", "loss/approximate_kullback-leibler", "loss/entropy_loss"])
    )
    assert found.title == "Stable-Baselines 2"
    assert found.metrics["entropy"].tag == "loss/entropy_loss" and not found.metrics["entropy"].transform
    assert found.metrics["policy/approxkl_avg"].unit == "nats/action"
    assert "clip_ratio/outside_mean" not in found.metrics


def test_a_learning_rate_of_the_optimiser_alone_is_no_prime_rl() -> None:
    assert translate(run_of(["optim/lr", "reward/mean", "policy/entropy"])).framework == "generic"


def test_the_tables_of_rlkit_and_pfrl_have_their_own_names() -> None:
    found = translate(run_of(["exploration/Returns Mean", "evaluation/Returns Mean", "trainer/QF1 Loss"]))
    assert found.title == "rlkit"
    assert found.metrics["reward"].tag == "exploration/Returns Mean"
    assert found.metrics["eval/reward"].tag == "evaluation/Returns Mean"
    found = translate(run_of(["steps", "episodes", "elapsed", "mean", "median", "stdev", "max", "min", "average_loss"]))
    assert found.title == "PFRL"
    assert found.metrics["reward"].tag == "mean"


def test_the_alpha_of_bear_weighs_a_constraint_and_no_entropy() -> None:
    names = ["evaluation/Returns Mean", "trainer/QF1 Loss", "trainer/Alpha"]
    assert translate(run_of(names)).metrics["entropy_coef"].tag == "trainer/Alpha"
    found = translate(run_of([*names, "trainer/MMD Loss Mean"]))
    assert found.title == "BEAR (rlkit)" and "entropy_coef" not in found.metrics
    assert found.metrics["loss/value_avg"].tag == "trainer/QF1 Loss"


def test_the_averages_of_the_last_ten_episodes_are_the_reward_of_the_books_agents() -> None:
    found = translate(run_of(["ts", "ar 10", "ex 100", "ev"]))
    assert (found.metrics["reward"].tag, found.metrics["reward"].smoothed) == ("ar 10", 10)
    assert found.metrics["eval/reward"].tag == "ev" and found.metrics["policy/exploration_rate"].tag == "ex 100"


@pytest.mark.parametrize(
    ("own", "of_group"),
    [("Environment/Cumulative Reward", "Environment/Group Cumulative Reward"), ("Mean Reward", "Mean Group Reward")],
)
def test_what_a_group_earns_is_the_reward_where_its_agents_earn_nothing_of_their_own(own: str, of_group: str) -> None:
    assert translate(run_of([own, of_group])).metrics["reward"].tag == own
    found = translate(run_of({own: [0, 0], of_group: [0.5, 0.25]})).metrics
    assert (found["reward"].tag, found["rewards/own/mean"].tag) == (of_group, own)


def test_a_gold_reward_is_what_the_proxy_that_is_trained_on_stands_for() -> None:
    found = translate(run_of(["proxy", "gold", "kl"])).metrics
    assert (found["reward"].tag, found["reward/gold"].tag) == ("proxy", "gold")
    assert "eval/reward" not in found


def test_the_console_of_pytorch_sac_has_names_of_its_own() -> None:
    found = translate(run_of(["S", "E", "R", "BR", "ALOSS", "CLOSS", "TVAL", "AENT"]))
    assert found.title == "pytorch_sac"
    tags = {name: found.metrics[name].tag for name in ("reward", "loss/value_avg", "entropy", "entropy_coef")}
    assert tags == {"reward": "R", "loss/value_avg": "CLOSS", "entropy": "AENT", "entropy_coef": "TVAL"}


def test_the_length_of_an_episode_is_the_reward_of_pytorchs_example_on_cartpole() -> None:
    found = translate(run_of(["Episode", "Last length", "Average length"])).metrics
    assert (found["reward"].tag, found["reward"].smoothed) == ("Average length", 10)


def test_elegantrl_is_known_by_its_objectives_and_has_no_reference_policy() -> None:
    found = translate(run_of(["algorithm/obj_a", "algorithm/obj_c", "algorithm/mean_kl", "reward/avg_reward_sample"]))
    assert found.title == "ElegantRL" and found.writes_texts is False
    assert found.metrics["reward"].tag == "reward/avg_reward_sample"
    assert "kl" not in found.metrics and "policy/approxkl_k1" not in found.metrics


def test_a_wrapper_of_rl_games_logs_the_mean_of_the_last_episodes() -> None:
    known = translate(run_of(["losses/a_loss", "losses/c_loss", "rewards/mean_100"]))
    assert (known.framework, known.metrics["reward"].tag) == ("rl-games", "rewards/mean_100")


def test_likelihood_training_that_logs_a_reward_of_zero_is_no_reinforcement_learning() -> None:
    def known(reward: float, *more: str) -> bool | None:
        run = run_of(["mle_loss", *more])
        run.add("reward", [1, 2], [reward, reward])
        return translate(run).is_rl

    assert known(0.0) is False
    assert known(0.3) is not False, "a reward is earned"
    assert known(0.0, "rl_loss") is not False, "a reward is trained on"
