"""The gap between the newest points and those of the best level, whatever their distribution."""

import numpy as np

from rlhealth.engine.apart import EXACT, GapFromBest, left_out
from rlhealth.engine.best import DropFromBest, ShareOfGainLost
from rlhealth.run import Floats


def test_the_interval_of_a_median_leaves_out_as_many_points_as_the_sign_test_allows() -> None:
    outside = left_out(25)
    assert [int(outside[count]) for count in (5, 8, 9, 11, 12, 20, 25)] == [0, 0, 1, 1, 2, 5, 7]  # Conover 1999, 3.2


def test_the_interval_of_many_points_goes_on_where_that_of_few_ends() -> None:
    outside = left_out(400)
    assert np.all(np.diff(outside[EXACT - 8 : EXACT + 8]) >= 0) and outside[EXACT + 1] - outside[EXACT] <= 1
    assert np.isclose(outside[400], 180, atol=2), "half of the points less two standard deviations of sqrt(400) / 2"
    values = np.concatenate([np.full(200, 1.0), np.zeros(200)])
    assert GapFromBest(150, 100).extend(values)[-1] == 1


def scores(share: float, count: int, seed: int) -> Floats:
    """Returns of single episodes: most end at once, a share of them wins 2.6, as in a game of two rackets."""
    dice = np.random.default_rng(seed)
    wins = dice.random(count) < share
    return np.where(wins, 2.6, np.abs(dice.normal(0.2, 0.15, count)))


def test_a_few_wins_in_a_row_are_no_level_from_which_a_game_falls() -> None:
    quiet = np.zeros(300) + np.random.default_rng(1).normal(0, 0.002, 300)
    won = scores(0.25, 150, 2)
    won[60:70] = [0.1, 2.6, 2.6, 0.1, 2.6, 2.6, 0.3, 2.6, 2.6, 0.2]
    values = np.concatenate([quiet, won])
    fall = DropFromBest(10, 5).extend(values)
    lost = ShareOfGainLost(10, 5).extend(values)
    assert np.any((fall.value > 3.5 * fall.error) & (lost > 0.5)), "the noise of the quiet points says nothing of these"
    assert np.nanmax(GapFromBest(10, 5).extend(values)) < 0


def test_a_level_that_all_newest_points_lie_below_is_apart() -> None:
    dice = np.random.default_rng(3)
    values = np.concatenate([dice.normal(1.0, 0.1, 50), dice.normal(0.2, 0.1, 30)])
    gap = GapFromBest(10, 5).extend(values)
    assert np.all(gap[:50][~np.isnan(gap[:50])] < 0) and np.all(gap[60:] > 0)


def test_of_equally_good_levels_that_with_the_highest_lower_end_counts() -> None:
    values = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2], float)
    gap = GapFromBest(5, 5).extend(values)
    assert gap[-1] == 1 - 0.2


def test_a_series_that_only_falls_is_compared_with_its_first_points() -> None:
    gap = GapFromBest(3, 3).extend(np.array([5.0, 4.9, 5.1, 1.0, 1.1, 0.9, 1.0]))
    assert gap[-1] == 4.9 - 1.1
