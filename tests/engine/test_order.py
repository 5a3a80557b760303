"""The rank trend: which way a series goes."""

import numpy as np

from rlhealth.engine.order import RankTrend


def test_the_rank_trend_says_which_way_all_parts_go_and_nothing_of_noise():
    noise = 0.05 * np.random.default_rng(7).normal(size=240)
    assert RankTrend(100).extend(np.linspace(0, 1, 240))[-1] == 1
    assert RankTrend(100).extend(np.linspace(1, 0, 240) + noise)[-1] < -0.7
    assert abs(RankTrend(100).extend(noise)[-1]) < 0.2
    assert RankTrend(100).extend(np.full(240, 0.1))[-1] == 0  # sums of a tenth round, which is no trend
    assert np.isnan(RankTrend(100).extend(noise)[:99]).all()
