"""The rank trend, and the score of the order of all points: which way a series goes."""

import numpy as np

from rlhealth.engine.order import MOST, OrderScore, RankTrend


def test_the_rank_trend_says_which_way_all_parts_go_and_nothing_of_noise():
    noise = 0.05 * np.random.default_rng(7).normal(size=240)
    assert RankTrend(100).extend(np.linspace(0, 1, 240))[-1] == 1
    assert RankTrend(100).extend(np.linspace(1, 0, 240) + noise)[-1] < -0.7
    assert abs(RankTrend(100).extend(noise)[-1]) < 0.2
    assert RankTrend(100).extend(np.full(240, 0.1))[-1] == 0  # sums of a tenth round, which is no trend
    assert np.isnan(RankTrend(100).extend(noise)[:99]).all()


def test_the_order_score_is_that_of_mann_and_kendall():
    # of the 28 pairs of 8 points one rises, 24 fall, and three are ties of 14.1
    falling = np.array([22.6, 20.3, 17.0, 14.9, 14.1, 14.1, 13.8, 14.1])
    rises, fallen, variance = 1, 24, (8 * 7 * 21 - 3 * 2 * 11) / 18
    assert np.isclose(OrderScore(8).extend(falling)[-1], (rises - fallen + 1) / np.sqrt(variance))
    assert np.isnan(OrderScore(8).extend(falling)[:-1]).all()


def test_the_order_score_does_not_depend_on_the_size_of_steps_and_is_smaller_for_running_means():
    points = np.random.default_rng(3).normal(size=60) - np.arange(60) / 20
    score = OrderScore(8).extend(points)[-1]
    assert score < -3
    assert np.isclose(OrderScore(8).extend(np.exp(points))[-1], score)
    assert np.isclose(OrderScore(8, smoothed=4).extend(points)[-1], score / 2)


def test_a_constant_has_no_order_and_a_long_series_no_order_score():
    assert OrderScore(8).extend(np.full(20, 0.1))[-1] == 0
    assert np.isnan(OrderScore(8).extend(np.arange(MOST + 5.0))[MOST:]).all()
