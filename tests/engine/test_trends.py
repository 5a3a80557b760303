"""Trends: how long a series stands still."""

import numpy as np

from rlhealth.engine.trends import Standstill


def test_a_standstill_is_measured_by_how_long_values_usually_stand():
    held = np.repeat([3.0, -5.0, -9.0, -2.0], [7, 8, 8, 9])
    measured = Standstill(8).extend(held)
    assert measured[7:].max() < 1.5
    assert Standstill(8).extend(np.append(held, np.full(40, -7.0)))[-1] > 4


def test_a_value_that_comes_back_is_no_longer_written_but_chance():
    coins = np.append(np.tile([0.0, 0.0, 0.0, 0.5], 8), np.zeros(12))
    assert Standstill(8).extend(coins)[-1] == 12


def test_a_game_that_is_often_lost_is_lost_many_times_in_a_row_by_chance() -> None:
    chance = np.random.default_rng(1)
    plays = [np.where(chance.random(200) < 0.75, -1.0, 1.0) for _ in range(200)]
    ends = [Standstill(8).extend(games)[-1] > 3 for games in plays]
    beyond = [Standstill(8, by_chance=True).extend(games)[-1] > 3 for games in plays]
    assert (sum(ends) > 10, sum(beyond)) == (True, 0)
    for games in plays[:10]:
        gone = np.append(games, np.full(60, -1.0))
        whole = Standstill(8, by_chance=True).extend(gone)
        assert whole[-1] > 3, "sixty in a row are no chance"
        pieces = Standstill(8, by_chance=True)
        assert np.array_equal(np.concatenate([pieces.extend(one) for one in np.array_split(gone, 11)]), whole, True)


def test_a_value_that_was_rare_stands_for_as_long_as_any() -> None:
    rewards = np.append(np.random.default_rng(2).normal(size=200), np.full(12, -3.0))
    for by_chance in (False, True):
        assert Standstill(8, by_chance).extend(rewards)[-1] == 12


def test_values_that_never_stand_in_a_single_row_are_written_until_the_next_one_comes():
    means = np.repeat([15.3, 15.4, 15.5, 15.4, 15.3, 15.4, 15.2, 15.3, 15.4, 15.4, 15.3], 10)
    assert Standstill(8).extend(means)[100:].max() < 2.5, "two episodes may have the same mean"
    assert Standstill(8).extend(np.append(means, np.full(60, 15.3)))[-1] > 4


def test_a_standstill_that_drifts_by_less_than_counts_is_the_same_in_pieces():
    drifting = np.concatenate(
        [np.full(6, 2.0), 3.0 + 2e-10 * np.arange(9), np.full(5, 1.0), 3.0 + 2e-10 * np.arange(9)]
    )
    pieces, whole = Standstill(4), Standstill(4).extend(drifting)
    assert np.array_equal(np.concatenate([pieces.extend(one) for one in np.array_split(drifting, 7)]), whole, True)


def test_a_batch_whose_reward_is_written_once_for_each_update_is_constant_for_none_of_it() -> None:
    rewards = np.repeat([0.109, 0.125, 0.205, 0.111, 0.125, 0.07, 0.125, 0.125, 0.098, 0.2], 8)
    assert Standstill(8).extend(rewards)[24:].max() < 3
    assert Standstill(8).extend(np.append(rewards, np.full(40, 0.2)))[-1] > 4
    pieces = Standstill(8)
    whole = Standstill(8).extend(rewards)
    assert np.array_equal(np.concatenate([pieces.extend(part) for part in np.split(rewards, [3, 17, 40])]), whole, True)
