"""When a series has risen."""

from __future__ import annotations

import numpy as np
import pytest

from rlhealth.run import Floats
from rlhealth.verdict.rises import Rising, rose_beyond_errors, rose_somewhat, surely_rose


def test_a_rise_far_beyond_the_noise_is_sure_and_noise_alone_is_none() -> None:
    noise = np.random.default_rng(0).normal(0, 1, 200)
    assert surely_rose(noise + np.linspace(0, 8, 200))
    assert not surely_rose(noise)
    assert not rose_somewhat(noise - np.linspace(0, 8, 200))


def test_few_points_that_share_their_samples_prove_no_rise() -> None:
    """The first of DQN's rows are means of the same first episodes."""
    shared = np.array([0.0] * 4 + [1.2] + [1.2 * 5 / n for n in range(6, 26)])
    assert Rising(shared).early()
    assert not Rising(shared).early(smoothed=25)
    assert not surely_rose(shared, smoothed=25)


def test_few_rows_that_rise_one_by_one_are_a_rise_though_they_share_their_samples() -> None:
    rising = 400 * (1 - np.exp(-np.arange(14) / 8)) - 40
    assert Rising(rising).early(smoothed=25)
    assert not Rising(rising[::-1]).early(smoothed=25)
    assert not Rising(rising[:9]).early(smoothed=25)
    two_down = rising.copy()
    two_down[[3, 7]] = two_down[[2, 6]] - 1
    assert not Rising(two_down).early(smoothed=25)


def test_few_points_of_separate_episodes_in_rising_order_are_a_rise() -> None:
    """As ML-Agents writes them by default: ten means, the first of which differ more than the last."""
    summaries = np.array([-17.2, 148.0, 275.0, 340.0, 427.0, 341.0, 343.0, 366.0, 492.0, 454.0])
    assert Rising(summaries).early()
    assert not Rising(summaries).early(smoothed=100), "neighbours that share episodes are in order by chance"
    assert not Rising(summaries[::-1]).early()
    assert not Rising(summaries[:6]).early(), "six points are in order by chance once in 720 runs"
    assert not Rising(np.round(summaries, -3)).early(), "ties are no rise"
    noise = np.random.default_rng(4).normal(size=(2000, 10))
    assert np.mean([Rising(one)._rose_by_ranks(1) for one in noise]) <= 0.003


def test_the_mean_of_all_samples_so_far_does_not_rise_because_its_first_sample_was_bad() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, 14)
    assert not Rising(-9 / np.arange(1, 15) + noise / 100).early(smoothed=25)


def test_a_climb_of_which_nothing_was_lost_is_a_rise_though_it_wavers_at_its_height() -> None:
    """Average scores of a hundred episodes each, as a course's navigation task is learned."""
    scores = np.array(
        [0.1, 2.8, 8.9, 9.3, 12.1, 13.0, 14.6, 15.5, 15.7, 15.5, 15.1, 15.8, 15.0, 13.6, 13.6, 14.5, 14.9]
    )
    assert Rising(scores).early()
    assert not Rising(np.where(scores == 13.6, 12.9, scores))._rose_for_good()
    walks = np.random.default_rng(2).normal(size=(2000, 20)).cumsum(axis=1)
    assert np.mean([Rising(walk)._rose_for_good() for walk in walks]) < 0.01
    bad_first = np.concatenate([np.full((2000, 1), -9.0), np.random.default_rng(3).normal(size=(2000, 19))], axis=1)
    means = bad_first.cumsum(axis=1) / np.arange(1, 21)
    assert np.mean([Rising(mean)._rose_for_good() for mean in means]) < 0.01


def test_a_random_walk_seldom_rises_from_row_to_row() -> None:
    walks = np.random.default_rng(1).normal(size=(1000, 14)).cumsum(axis=1)
    assert sum(Rising(walk).early(smoothed=25) for walk in walks) <= 3


def test_thirds_that_do_not_overlap_are_a_rise_however_much_noisier_the_last_one_is() -> None:
    """An agent that has learned fails in many ways; one that falls at once always does."""
    level = np.repeat([80.0, 90.0, 80.0, 200.0, 300.0, 400.0, 1500.0, 300.0], [8, 9, 8, 8, 9, 8, 12, 13])
    values = level * np.random.default_rng(1).uniform(0.9, 1.1, len(level))
    assert not Rising(values).early()
    assert surely_rose(values)
    assert not surely_rose(values[::2])
    assert not surely_rose(values[::-1])


def like_its_neighbours(correlation: float, seed: int, steps: int) -> Floats:
    """400 series of noise without a trend, of shape (400, steps), each point of which resembles the one before."""
    random = np.random.default_rng(seed)
    walks = np.zeros((400, steps))
    for step in range(1, steps):
        walks[:, step] = correlation * walks[:, step - 1] + random.normal(0, 1, 400)
    return walks


def test_what_is_learned_within_a_few_rows_and_kept_has_been_learned() -> None:
    level = [7.6, 8.2, 7.1, 5.9, 8.0, 7.7, 6.8, 7.9, 7.4, 8.1, 7.0]
    assert Rising(np.array([-84.5, -2.7, 5.3, *level])).early()
    assert not Rising(np.array([-84.5, 4.7, 5.3, *level])).early(), "one row alone may be an outlier"
    assert not Rising(np.array([-84.5, -2.7, 5.3, *level[:6]])).early(), "too few rows show the level"
    assert not Rising(np.array([-84.5, -2.7, 5.3, *level, -20])).early(), "it was not kept"
    assert not Rising(np.array([-84.5, -2.7, 5.3, *level])).early(smoothed=4), "the mean of the last four"


def test_what_climbs_within_the_first_tenth_and_stays_has_been_learned_though_it_dips_once() -> None:
    climb = [-4.5, -1.7, 3.4, 7.2, 8.7, 9.6, 9.8, 10.1, 10.2, 10.3]
    level = np.tile([10.4, 10.5, 10.3], 30)
    level[71] = 3.4
    assert surely_rose(np.array([*climb, *level]))


def test_noise_that_resembles_its_neighbours_seldom_comes_apart() -> None:
    walks = like_its_neighbours(0.8, seed=2, steps=300)
    assert sum(surely_rose(walk[-80:]) for walk in walks) < 0.07 * len(walks)


def test_a_run_that_begins_to_learn_at_its_end_has_risen_however_much_its_points_are_alike() -> None:
    late = np.concatenate([np.linspace(-30, -60, 20), np.linspace(-60, -140, 20), np.linspace(-130, 330, 13)])
    assert Rising(late).surely(smoothed=100)
    assert not Rising(late[:-8]).surely(smoothed=100)
    assert not Rising(np.append(late, [-30.0] * 5)).surely(smoothed=100)


def test_a_run_of_single_episodes_that_begins_to_learn_at_its_end_has_risen() -> None:
    random = np.random.default_rng(4)
    level = np.concatenate([np.full(1500, 35.0), np.linspace(35, 220, 500)])
    episodes = level * random.exponential(1.0, len(level))
    assert Rising(episodes)._rose_late()
    assert not Rising(episodes[:1500])._rose_late()
    assert not Rising(np.append(episodes, episodes[:200]))._rose_late()


def test_a_random_walk_seldom_ends_so_far_above_its_span() -> None:
    walks = like_its_neighbours(1.0, seed=3, steps=300)
    found = [Rising(walk[start : start + 50])._rose_late() for walk in walks for start in (0, 100, 200)]
    found += [Rising(walk)._rose_late() for walk in walks]
    assert sum(found) < 0.006 * len(found)


def test_a_slow_rise_among_large_noise_is_sure_where_the_points_lie_in_order() -> None:
    noise = np.random.default_rng(1).normal(0, np.linspace(0.6, 1.6, 400))
    slow = np.linspace(0, 0.9, 400) + noise
    assert surely_rose(slow)
    assert not surely_rose(slow[::-1])
    assert not surely_rose(slow, smoothed=20), "400 points that share their samples say as much as 20"


def test_a_steady_rise_of_few_noisy_points_is_sure() -> None:
    returns = np.linspace(-110, 250, 66) + np.random.default_rng(2).normal(0, 90, 66)
    assert surely_rose(returns)
    assert not surely_rose(returns[:22])


def test_a_start_that_was_low_by_chance_is_no_rise_where_the_points_fall_with_time() -> None:
    noise = np.random.default_rng(4).normal(0, 0.1, 37)
    low, falls = np.array([0.1, 0.15, 0.1, 0.1]), np.linspace(0.5, 0.3, 33)
    assert not rose_somewhat(np.append(low, falls) + noise)
    assert rose_somewhat(np.append(low, falls[::-1]) + noise)
    assert rose_somewhat(np.append(np.full(40, -200.0), np.linspace(300, 280, 400))), "what surely rose may waver"


def test_what_rose_and_fell_back_at_the_end_has_not_risen_in_order() -> None:
    noise = np.random.default_rng(3).normal(0, 0.8, 3000)
    risen = np.concatenate([np.linspace(0, 0.8, 2000), np.zeros(1000)]) + noise
    assert not surely_rose(risen)


@pytest.mark.parametrize("points", [30, 60, 200])
def test_noise_that_resembles_its_neighbours_seldom_lies_in_order(points: int) -> None:
    walks = like_its_neighbours(0.9, seed=8, steps=400)
    assert sum(surely_rose(walk[-points:]) for walk in walks) < 0.06 * len(walks)


@pytest.mark.filterwarnings("error")
def test_parts_that_are_equal_and_numbers_whose_sums_overflow_are_no_rise_and_no_warning() -> None:
    for values in (np.tile([0.0, 1.0], 120), np.tile([1.7e308, -1.7e308], 120), np.repeat([1.7e308, 1.6e308], 120)):
        assert not surely_rose(values)
        assert not rose_somewhat(values)


def test_what_is_learned_in_the_first_hundredth_of_a_run_has_been_learned() -> None:
    random = np.random.default_rng(4)
    returns = np.concatenate([np.linspace(-100, 110, 60), np.full(2940, 110.0)]) + random.normal(0, 5, 3000)
    assert surely_rose(returns)
    assert not surely_rose(np.concatenate([returns[200:], returns[200:500]]))


def test_sums_in_single_precision_do_not_rise_by_what_they_are_off() -> None:
    returns = np.float32(-3.169e8) + np.random.default_rng(5).normal(0, 300, 40) + np.linspace(0, 800, 40)
    assert not rose_somewhat(returns)
    assert rose_somewhat(returns + 3.169e8)


def test_a_rise_beyond_the_errors_of_its_points_is_sure_where_few_points_are_not() -> None:
    """Twenty evaluations of ten episodes each."""
    level = np.array([0, 2, 4, 1, 5, 3, 6, 2, 4, 1, 9, 13, 12, 9, 11, 27, 34, 31, 24, 30.0])
    assert not surely_rose(level)
    assert rose_beyond_errors(level, np.full(20, 3.0))
    assert not rose_beyond_errors(level, np.full(20, 20.0))
    assert not rose_beyond_errors(level[::-1].copy(), np.full(20, 3.0))


def test_a_rise_that_was_lost_again_is_no_rise_beyond_errors() -> None:
    level = np.concatenate([np.full(16, -200.0), np.linspace(-170, -110, 20), np.linspace(-120, -185, 14)])
    assert rose_somewhat(level)
    assert not rose_beyond_errors(level, np.full(50, 5.0))
