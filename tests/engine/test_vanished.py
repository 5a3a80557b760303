"""A metric has vanished where others on its own axis of steps go on; one on another axis proves nothing."""

from __future__ import annotations

import numpy as np

from rlhealth.check import judge
from rlhealth.engine.judge import Judge
from rlhealth.engine.vanished import axes_of
from rlhealth.rules.loading import load_rules
from rlhealth.run import Ints, Place, Run


def steps(*values: int) -> Ints:
    return np.array(values, np.int64)


def test_metrics_that_begin_at_the_same_steps_count_alike() -> None:
    often, seldom = steps(1, 2, 3, 4, 5, 6), steps(2, 4, 6)
    assert axes_of([often, seldom]) == [0, 0]


def test_gradient_steps_and_steps_of_the_environment_are_two_axes() -> None:
    assert axes_of([steps(1000, 2000, 3000, 4000), steps(10, 20, 30, 40), steps(2000, 3000, 4000)]) == [0, 1, 0]


def test_too_few_points_say_nothing_of_an_axis() -> None:
    assert axes_of([steps(1, 2, 3, 4), steps(1, 2)]) == [0, 1]


def vanished(run: Run) -> set[str]:
    return {one.rule for one in judge(run, load_rules(), now=2e9).findings if "vanished" in one.rule}


def test_a_reward_counted_in_episodes_has_not_vanished_among_timesteps() -> None:
    run = Run("exp", Place("tensorboard", "exp"))
    noise = np.random.default_rng(0).normal(size=60)
    run.add("Episode Reward", np.arange(5, 305, 5), noise + 10, np.arange(60.0))
    run.add("Entropy", np.arange(1, 61) * 2048, 1 + 0.01 * noise, np.arange(60.0))
    assert not vanished(run)


def test_a_reward_that_stops_on_the_axis_of_the_others_has_vanished() -> None:
    run = Run("exp", Place("tensorboard", "exp"))
    noise = np.random.default_rng(0).normal(size=60)
    run.add("Episode Reward", np.arange(1, 21) * 2048, noise[:20] + 10, np.arange(20.0))
    run.add("Entropy", np.arange(1, 61) * 2048, 1 + 0.01 * noise, np.arange(60.0))
    assert vanished(run) == {"reward-vanished"}


def test_a_reward_of_which_somebody_displayed_an_excerpt_has_not_vanished() -> None:
    run = Run("exp", Place("notebook", "exp"), excerpted={"Episode Reward"})
    noise = np.random.default_rng(0).normal(size=60)
    run.add("Episode Reward", np.arange(1, 21) * 2048, noise[:20] + 10, np.arange(20.0))
    run.add("Entropy", np.arange(1, 61) * 2048, 1 + 0.01 * noise, np.arange(60.0))
    assert not vanished(run)


def test_that_two_metrics_count_alike_may_show_only_later() -> None:
    """At the first look the others have not reached the third point of the reward."""
    whole, growing = Run("exp", Place("tensorboard", "exp")), Run("exp", Place("tensorboard", "exp"))
    judging = Judge(growing, load_rules())
    noise = np.random.default_rng(0).normal(size=60)
    reward, entropy = np.append([0, 1], np.arange(3, 12)), np.arange(60)
    for at in (slice(0, 3), slice(3, None)):
        for run in (growing, whole):
            run.add("Episode Reward", reward[at], noise[: len(reward)][at] + 10, reward[at].astype(float))
            run.add("Entropy", entropy[at], 1 + 0.01 * noise[at], entropy[at].astype(float))
        judging.advance()
    found = {one.rule for one in judging.verdict(2e9).findings if "vanished" in one.rule}
    assert found == vanished(whole) == {"reward-vanished"}


def test_a_reward_of_episodes_is_still_logged_when_a_tag_counts_on_two_axes() -> None:
    """The other metric has points of single episodes too, and of timesteps behind the last episode."""
    run = Run("exp", Place("tensorboard", "exp"))
    noise = np.random.default_rng(0).normal(size=200)
    run.add("rollout/ep_rew_mean", np.arange(99), noise[:99] - 45, 10.0 * np.arange(99))
    counted = np.append(np.arange(21, 99), np.arange(1, 41) * 10_000)
    run.add(
        "train/actor_loss", counted, noise[: len(counted)], np.append(10.0 * np.arange(21, 99), 20.0 * np.arange(40))
    )
    assert not vanished(run)
