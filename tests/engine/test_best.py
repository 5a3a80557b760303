"""Falls from the best: in units of noise, as a part of the gain, and none where a dip was short or the best was luck."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.engine.best import HELD, BelowAllBefore, DropFromBest, HeldLevels, MaxSoFar, ShareOfGainLost
from tests.engine.feeding import extend

NAN, INF = np.nan, np.inf


def test_from_best_is_the_fall_in_units_of_noise_and_with_the_errors_of_both_levels():
    noise = np.random.default_rng(3).normal(0, 0.1, 200)
    fallen = DropFromBest(10, 10).extend(np.where(np.arange(200) < 100, 1.0, 0.5) + noise)
    assert abs(np.nanmedian(fallen.value[20:100])) < 1.5
    assert 3.5 < np.median(fallen.value[110:]) < 8, "5 times the noise, and what the best had by luck"
    assert 0.3 < np.median(fallen.error[110:]) < 1.5


def test_a_fall_is_not_measured_by_the_unrest_that_it_makes_itself():
    values = np.concatenate([np.linspace(0, 1, 60), np.linspace(1, 0, 20)]) + np.tile([0.0, 0.01], 40)
    measured = DropFromBest(10, 5).extend(values)
    assert (measured.value / measured.error)[-1] > 10


def test_a_mean_over_many_points_has_no_best_until_it_is_one():
    values = np.concatenate([[2.0, 1.0, 0.6], np.full(60, 0.2)]) + np.tile([0.0, 0.01, 0.02], 21)
    assert np.nanmax(DropFromBest(5, 3).extend(values).value) > 5
    assert np.nanmax(DropFromBest(5, 3, smoothed=25).extend(values).value) < 2


def test_rising_is_never_below_its_best_and_a_solved_task_stays_there():
    rising = np.concatenate([np.linspace(0, 1, 60), np.ones(40)])
    assert np.nanmax(DropFromBest(5, 3).extend(rising).value) == 0
    assert np.nanmax(extend(ShareOfGainLost(5, 3), rising)) == 0


def test_what_was_given_back_is_a_part_of_the_gain():
    values = [0.2] * 5 + [1.0] * 5 + [0.6] * 5
    np.testing.assert_allclose(extend(ShareOfGainLost(1, 1), values)[[4, 9, 14]], [0, 0, 0.5])
    assert extend(ShareOfGainLost(1, 1), [1.0, 1.0, 1.0, 0.5])[-1] == INF, "a fall from where nothing had been gained"


def test_the_peak_is_the_largest_finite_value_so_far():
    np.testing.assert_array_equal(extend(MaxSoFar(), [NAN, 1, INF, 3, 2]), [NAN, 1, 1, 3, 3])


def test_a_dip_shorter_than_a_fluctuation_or_a_hundredth_of_the_run_is_no_fall():
    noise = np.random.default_rng(5).normal(0, 0.1, 4000)
    dip, fall = (np.where((np.arange(4000) >= 3000) & (np.arange(4000) < end), 0.0, 1.0) for end in (3020, 4000))
    assert np.nanmax(DropFromBest(10, 5).extend(dip + noise).value[3000:]) < 3
    assert DropFromBest(10, 5).extend(fall + noise).value[-1] > 6


def test_a_few_lucky_wins_in_a_row_are_no_best_to_fall_from_and_a_level_that_was_held_is():
    noise = np.random.default_rng(8).normal(0, 0.1, 1000)
    lucky, held = (np.where((np.arange(1000) >= 400) & (np.arange(1000) < end), 5.0, 1.0) for end in (406, 430))
    assert np.nanmax(DropFromBest(10, 5).extend(lucky + noise).value) < 3
    assert DropFromBest(10, 5).extend(held + noise).value[-1] > 6


@given(
    st.lists(st.tuples(st.sampled_from([NAN, 0.0, 1.0, 2.0, 3.0]), st.integers(-1, 5)), min_size=1, max_size=60),
    st.integers(1, 60),
)
def test_the_highest_level_that_was_held_is_that_of_every_stretch_looked_at(
    points: list[tuple[float, int]], cut: int
) -> None:
    levels, long = np.array([level for level, _ in points]), np.exp2([power for _, power in points])
    known, one = np.where(np.isnan(levels), -INF, levels), HeldLevels()
    for end, found in enumerate(np.append(one.extend(levels[:cut], long[:cut]), one.extend(levels[cut:], long[cut:]))):
        wide = int(min(long[end], HELD))
        stretches = [known[start : start + wide].min() for start in range(end + 2 - wide) if wide >= 2]
        assert found == (max(stretches, default=-INF) if wide >= 2 else INF)


def test_the_best_of_many_levels_is_a_lucky_one_so_its_error_grows_with_the_run():
    error = DropFromBest(10, 5).extend(np.random.default_rng(6).normal(0, 1, 2000)).error
    two_levels = np.sqrt(2) * np.sqrt(np.pi / 2 / 10)
    assert error[-1] / two_levels == pytest.approx(np.sqrt(1 + 2 * np.log(200) / 9), rel=0.15)


def test_the_highest_level_of_the_last_points_is_the_same_in_pieces():
    values = np.random.default_rng(7).normal(0, 1, 700).cumsum()
    whole, one = DropFromBest(10, 5).extend(values), DropFromBest(10, 5)
    parts = [one.extend(part) for part in np.array_split(values, 90)]
    np.testing.assert_array_equal(np.concatenate([part.value for part in parts]), whole.value)
    np.testing.assert_array_equal(np.concatenate([part.error for part in parts]), whole.error)


def test_the_points_below_all_before_are_as_many_as_possible_and_none_once_one_is_back():
    measured = BelowAllBefore(3).extend(np.array([5.0, 6.0, 5.5, 4.0, 3.0, 4.5, NAN, 4.9, 5.0, 2.0, 1.0, 2.5]))
    assert np.isnan(measured[:3]).all()
    assert measured[3:].tolist() == [1, 2, 3, 3, 4, 0, 1, 2, 3]


def test_a_fall_before_enough_points_is_no_fall_below_them():
    assert BelowAllBefore(3).extend(np.array([5.0, 1.0, 2.0, 1.5, 1.2])).tolist()[3:] == [0, 0]


def test_a_low_start_of_a_moving_average_hides_no_fall():
    values = np.array([-50.0, -36.0, -35.0, -34.0, -35.0, -36.0, -49.0, -50.0, -49.0])
    assert BelowAllBefore(3).extend(values)[-1] == 0
    assert BelowAllBefore(3, smoothed=3).extend(values).tolist()[5:] == [1, 2, 3, 4]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.integers(1, 30))
def test_points_below_all_before_are_those_of_all_or_of_the_full_averages(values, smoothed):
    points = np.array(values)
    whole, full = BelowAllBefore(3).extend(points), BelowAllBefore(3).extend(points[smoothed - 1 :])
    expected = np.fmax(whole, np.concatenate([np.full(len(whole) - len(full), NAN), full]))
    np.testing.assert_array_equal(BelowAllBefore(3, smoothed).extend(points), expected)


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=60))
def test_points_below_all_before_are_what_a_search_of_every_split_finds(values):
    found = BelowAllBefore(3).extend(np.array(values))
    for end in range(4, len(values) + 1):
        splits = [at for at in range(3, end) if max(values[at:end]) < min(values[:at])]
        assert found[end - 1] == (end - splits[0] if splits else 0)
