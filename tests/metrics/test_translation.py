"""A translation is made once and serves a run that grows; tags that nobody knows are reported, none is guessed."""

from __future__ import annotations

import numpy as np

from rlhealth.metrics import translate
from rlhealth.run import Place, Run
from tests.metrics.logged import GRPO, LEGACY, PPO, SB3, run_of


def test_a_translation_serves_for_as_long_as_no_name_is_new() -> None:
    run = run_of(GRPO, prefix="train/")
    first = translate(run)
    run.add("train/reward", [3], [0.75])
    again = translate(run, previous=first)
    assert again is first
    assert list(again.metrics["reward"].values) == [0.5, 0.25, 0.75]


def test_a_new_name_a_setting_or_another_run_makes_a_new_translation() -> None:
    run = run_of(GRPO, prefix="train/")
    first = translate(run)
    run.add("train/step_time", [1], [2.0])
    second = translate(run, previous=first)
    assert "step_time" in second.metrics
    run.config["beta"] = 0.04
    assert translate(run, previous=second).config["beta"] == 0.04
    assert translate(run_of(GRPO, prefix="train/"), previous=first) is not first


def test_steps_in_the_environment_are_the_steps_of_the_run_or_the_sum_of_its_episodes() -> None:
    run = run_of(SB3)
    assert (
        translate(run).metrics["environment_steps"].values.tolist() == run.series["rollout/ep_rew_mean"].steps.tolist()
    )
    run.step_axis = "row"
    assert "environment_steps" not in translate(run).metrics
    episodes = run_of(["r", "l", "t"])
    episodes.add("l", [3, 4], [200.0, 150.0])
    before = episodes.series["l"].values[:-2].sum()
    assert translate(episodes).metrics["environment_steps"].values[-2:].tolist() == [before + 200, before + 350]


def test_evaluation_is_kept_apart_from_training() -> None:
    for tag in ("eval/reward", "eval_reward", "train/eval_reward"):
        metrics = translate(run_of([*(f"train/{name}" for name in GRPO), tag])).metrics
        assert metrics["reward"].tag == "train/reward"
        assert metrics["eval/reward"].tag == tag
    assert "eval/kl" in translate(run_of([*GRPO, "eval_kl"])).metrics


def test_the_reward_of_the_only_episode_that_ended_does_not_hide_many_evaluations() -> None:
    run = Run("run", Place("csv", "log.csv"))
    run.add("test/reward", range(12), np.arange(12.0))
    run.add("train/reward", [500], [-4.0])
    assert translate(run).metrics["reward"].tag == "test/reward"
    run.add("train/reward", [900], [-3.0])
    assert translate(run).metrics["reward"].tag == "train/reward"


def test_the_name_of_a_tracker_wins_over_a_bare_copy() -> None:
    assert translate(run_of([*GRPO, *(f"train/{name}" for name in GRPO)])).metrics["reward"].tag == "train/reward"


def test_spaces_round_a_slash_are_no_part_of_a_name() -> None:
    metrics = translate(
        run_of(["reward", "reward_std", "completions / mean_length", "rewards / match_format / mean", "Training Loss"])
    ).metrics
    assert metrics["completions/mean_length"].tag == "completions / mean_length"
    assert "rewards/match_format/mean" in metrics
    assert "loss" in metrics


def test_the_rewards_of_functions_old_and_new() -> None:
    new = translate(run_of([*GRPO, "rewards/format/mean", "rewards/format/std"], prefix="train/"))
    old = translate(run_of(["reward", "completion_length", "rewards/format"]))
    assert {"rewards/format/mean", "rewards/format/std"} <= set(new.metrics)
    assert old.metrics["rewards/format/mean"].tag == "rewards/format"


def test_a_reward_of_ones_own_counts_where_the_trainer_logs_none() -> None:
    names = ["actor/approxkl", "actor/kl_loss", "actor_train/grad_norm", "actor/ppo_ratio_clipfrac"]
    own = ["reward/hard_pass_rate", "reward/judge_failed_rate", "kl_of_mine"]
    found = translate(run_of([*names, *own]))
    assert found.framework == "roll"
    assert found.metrics["rewards/hard_pass_rate/mean"].tag == "reward/hard_pass_rate"
    assert set(found.unrecognised) == {"reward/judge_failed_rate", "kl_of_mine"}


def test_unknown_names_are_reported_and_never_guessed() -> None:
    translation = translate(run_of([*GRPO, "my_kl", "test_reward", "reward_total", "story/reward"]))
    assert set(translation.unrecognised) == {"my_kl", "test_reward", "reward_total", "story/reward"}


def test_texts_are_shown_by_a_known_trainer_or_by_a_metric_that_only_they_have() -> None:
    assert translate(run_of(GRPO)).writes_texts
    assert translate(run_of(["reward", "loss", "completion_length"])).writes_texts
    bare = translate(run_of(["reward", "loss"]))
    assert bare.writes_texts is None, "nothing says which it is"
    assert translate(run_of(["rollout/ep_rew_mean", "train/approx_kl"])).writes_texts is False


def test_what_trackers_and_trainers_write_beside_metrics_is_no_unknown_tag() -> None:
    noise = [
        "_step",
        "_runtime",
        "_timestamp",
        "train/global_step",
        "train/train_runtime",
        "train/total_flos",
        "profiling/Time taken: GRPOTrainer._prepare_inputs",
    ]
    assert translate(run_of([*(f"train/{name}" for name in GRPO), *noise])).unrecognised == ()
    legacy = ["time/ppo/forward_pass", "game_log/nrows", "env/reward_dist", "_step"]
    assert translate(run_of([*LEGACY, *legacy])).unrecognised == ()


def test_a_series_without_points_is_not_there_yet() -> None:
    run = run_of(GRPO)
    run.add("sampling/importance_sampling_ratio/mean", [], [])
    assert "sampling/importance_sampling_ratio/mean" not in translate(run).metrics


def test_the_translation_of_a_beginning_is_that_of_the_whole() -> None:
    for logged in (GRPO, PPO, LEGACY, SB3):
        run = run_of(logged)
        whole, start = translate(run), translate(run.until(1))
        assert (whole.framework, set(whole.metrics), whole.assumed) == (
            start.framework,
            set(start.metrics),
            start.assumed,
        )


def test_counts_of_tied_groups_become_the_share_of_groups_without_spread() -> None:
    values = {
        "rollout/raw_reward": [0.1, 0.2, 0.3],
        "train/pg_loss": [0.0, 0.0, 0.0],
        "rollout/zero_std/count_0.0": [8.0],
    }
    run = run_of(values, config={"rollout_batch_size": 32})
    run.add("rollout/zero_std/count_1.0", [1, 3], [8.0, 16.0])
    metric = translate(run).metrics["frac_reward_zero_std"]
    assert list(metric.values) == [0.5, 0.0, 0.5]
    assert list(metric.steps) == [1, 2, 3]
    del run.config["rollout_batch_size"]
    assert "frac_reward_zero_std" not in translate(run).metrics


def test_a_loop_that_logs_before_an_episode_ends_begins_with_the_first_that_ended() -> None:
    run = run_of(["policy_loss", "entropy"])
    run.add("mean_return", [1, 2, 3, 4], [0.0, 0.0, -200.0, 0.0])
    run.add("mean_episode_length", [1, 2, 3, 4], [0.0, 0.0, 200.0, 150.0])
    assert translate(run).metrics["reward"].values.tolist() == [-200.0, 0.0]
