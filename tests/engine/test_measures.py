"""Measures: what they say of plain series, and that they say the same however the points come in."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlhealth.engine.estimate import Estimate
from rlhealth.engine.measures import (
    MAKE,
    DropFromBest,
    EstimateVersusStart,
    GainByThirds,
    GainSinceStart,
    MaxSoFar,
    ShareNonFinite,
    ShareOfGainLost,
    ShareOfPoints,
    VersusPast,
    VersusStart,
)
from rlhealth.engine.noise import Noise
from rlhealth.engine.order import RankTrend
from rlhealth.engine.shares import MeanFraction
from rlhealth.engine.streaks import Streak
from rlhealth.engine.trends import Arrival, Climb, Correlation, Count, Plunge, Standstill
from rlhealth.engine.windows import ROLLING as REDUCTIONS
from rlhealth.engine.windows import Rolling
from rlhealth.rules.measures import MEASURES
from tests.examples import examples

NAN, INF = np.nan, np.inf


def rolling(name, window, least=None):
    return Rolling(REDUCTIONS[name], window, least or window)


# name -> how it is made; every measure that a rule can name is here, and each way of setting one against another
MADE = {
    **{
        f"{name}/{window}/{least}": (lambda name=name, window=window, least=least: rolling(name, window, least))
        for name in REDUCTIONS
        for window, least in ((1, 1), (2, 2), (5, 3), (8, 1))
    },
    "share_nonfinite/1": lambda: ShareNonFinite(1),
    "share_nonfinite/6": lambda: ShareNonFinite(6),
    "share_of_points/above": lambda: ShareOfPoints(4, 2, 0.5, None),
    "share_of_points/between": lambda: ShareOfPoints(3, 3, -1.0, 1.0),
    "drop_from_best": lambda: DropFromBest(4, 2),
    "share_of_gain_lost": lambda: ShareOfGainLost(4, 2),
    "gain_since_start": lambda: GainSinceStart(3),
    "max_so_far": lambda: MaxSoFar(),
    "rank_trend": lambda: RankTrend(3),
    "standstill": lambda: Standstill(3),
    "mean_fraction": lambda: MeanFraction(3, 2, 10),
    "mean_fraction, less the start": lambda: EstimateVersusStart(MeanFraction(2, 1, 6), MeanFraction(4, 4, 6)),
    "drop_from_best, smoothed": lambda: DropFromBest(4, 2, 5),
    "gain_by_thirds": lambda: GainByThirds(),
    "noise": lambda: Noise((4, 3)),
    "noise, smoothed": lambda: Noise((4,), 25),
    "ratio to the start": lambda: VersusStart(rolling("median", 3, 2), 4, difference=False),
    "less the start": lambda: VersusStart(rolling("value", 1), 1, difference=True),
    "less the start, noisy": lambda: VersusStart(ShareNonFinite(3), 2, difference=True),
    "ratio to the past": lambda: VersusPast(rolling("value", 1), 1, 6, difference=False),
    "less the past": lambda: VersusPast(rolling("max", 3), 3, 4, difference=True),
    "ratio to the largest of the past": lambda: VersusPast(rolling("mean", 1), 1, 5, False, REDUCTIONS["max"], 4),
    "ratio to the smallest of the past": lambda: VersusPast(rolling("median", 3), 3, 5, False, REDUCTIONS["min"], 4),
    "count/above": lambda: Count(rolling("mean", 1), 4, 0.5, None),
    "count/leaps": lambda: Count(VersusPast(rolling("mean", 1), 1, 4, False, REDUCTIONS["max"]), 6, 2.0, None),
    "streak/below": lambda: Streak(rolling("mean", 1), 3, None, 0.1),
    "streak/same": lambda: Streak(VersusPast(rolling("mean", 1), 1, 3, True), 2, -1e-9, 1e-9),
    "climb": lambda: Climb(4),
    "climb, smoothed": lambda: Climb(3, 5),
    "plunge": lambda: Plunge(4),
    "plunge, smoothed": lambda: Plunge(3, 5),
    "arrival": lambda: Arrival(6),
    "correlation": lambda: WithItself(5, 4),
}


class WithItself(Correlation):
    """The correlation of a series with its own values put in another order: one series is enough to hold it to the laws."""

    def extend(self, values):
        return self.extend_with(values, np.where(np.isfinite(values), np.sin(values), NAN))


AWKWARD = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, NAN, INF, -INF, 1e308, -1e308, 1.7e308, 5e-324, -5e-324, 1e-300, 1e16]
SERIES = st.one_of(
    st.lists(st.sampled_from(AWKWARD), max_size=60),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60),
    st.lists(st.floats(-100, 100), max_size=150),
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 9.0, NAN]), min_size=8, max_size=60),
    st.lists(st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.375, 0.333, 0.7, NAN, 2.0]), max_size=80),
    st.builds(lambda value, count: [value] * count, st.sampled_from(AWKWARD), st.integers(0, 80)),
)


def extend(measure, values):
    """What a measure says: shape (n,), or (n, 2) with its errors."""
    with np.errstate(all="ignore"):  # as the engine does: what overflows is infinite, and no news
        found = measure.extend(np.asarray(values, np.float64))
    if not isinstance(found, Estimate):
        return found.T
    return found.value if found.error is None else np.column_stack([found.value, found.error])


def test_every_measure_that_a_rule_can_name_is_held_to_the_laws_below():
    assert {name.partition("/")[0] for name in MADE} >= set(MEASURES)
    assert {*MAKE, "correlation"} == set(MEASURES)  # a correlation takes two series, and is made where both are known


@pytest.mark.parametrize("made", MADE)
@settings(max_examples=examples(40), deadline=None)
@given(values=SERIES, cuts=st.lists(st.integers(0, 150), max_size=6))
@example(values=[0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 3.0, 3.0, 1.0], cuts=[8])
def test_points_fed_in_pieces_measure_as_points_fed_at_once(made, values, cuts):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = extend(MADE[made](), values)
        assert len(whole) == len(values)
        in_pieces = MADE[made]()
        edges = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
        pieces = [extend(in_pieces, values[start:end]) for start, end in pairwise(edges)]
        one_by_one = MADE[made]()
        points = [extend(one_by_one, [value]) for value in values]
    np.testing.assert_array_equal(np.concatenate([*pieces, whole[:0]]), whole)
    np.testing.assert_array_equal(np.concatenate([*points, whole[:0]]), whole)


@pytest.mark.parametrize("made", MADE)
@settings(max_examples=examples(25), deadline=None)
@given(values=SERIES, other=SERIES)
def test_what_comes_later_changes_nothing(made, values, other):
    np.testing.assert_array_equal(extend(MADE[made](), values + other)[: len(values)], extend(MADE[made](), values))


@pytest.mark.parametrize(
    "made", [name for name in MADE if not name.startswith(("share_nonfinite", "less the start, noisy"))]
)
@settings(max_examples=examples(25), deadline=None)
@given(values=SERIES)
def test_an_infinity_counts_as_a_missing_point(made, values):
    without = [value if np.isfinite(value) else NAN for value in values]
    np.testing.assert_array_equal(extend(MADE[made](), values), extend(MADE[made](), without))


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("mean", [1, 2, 3, 4], [NAN, NAN, 2, 3]),
        ("median", [1, 9, 2, 4], [NAN, NAN, 2, 4]),
        ("median", [1, NAN, 2, 4], [NAN, NAN, NAN, NAN]),
        ("std", [1, 1, 1, 4], [NAN, NAN, 0, np.sqrt(2)]),
        ("min", [3, 1, 2, 5], [NAN, NAN, 1, 1]),
        ("max", [3, 1, 2, 5], [NAN, NAN, 3, 5]),
        ("range", [3, 1, 2, 5], [NAN, NAN, 2, 4]),
    ],
)
def test_rolling_measures_look_at_the_last_points(name, values, found):
    np.testing.assert_allclose(extend(rolling(name, 3), values), found)


def test_a_window_may_begin_with_fewer_points():
    np.testing.assert_allclose(extend(rolling("median", 5, 2), [4, 2, NAN, 3, 1]), [NAN, 3, 3, 3, 2.5])


def test_a_value_is_the_point_itself_and_what_is_not_finite_is_missing():
    np.testing.assert_array_equal(extend(rolling("value", 1), [1, INF, NAN, -2]), [1, NAN, NAN, -2])


def test_nonfinite_counts_what_is_not_a_number():
    np.testing.assert_allclose(extend(ShareNonFinite(1), [1, NAN, INF, 2]), [0, 1, 1, 0])
    np.testing.assert_allclose(extend(ShareNonFinite(4), [NAN, 1, 1, 1, 1]), [1, 0.5, 1 / 3, 0.25, 0])


def test_a_share_counts_the_finite_points_beyond_a_level():
    np.testing.assert_allclose(
        extend(ShareOfPoints(4, 2, 1.0, None), [2, 0, 3, NAN, 1]), [NAN, 0.5, 2 / 3, 2 / 3, 1 / 3]
    )
    np.testing.assert_allclose(extend(ShareOfPoints(2, 1, -0.5, 0.5), [0, 1, 1]), [1, 0.5, 0])


def test_against_the_start_says_nothing_while_the_start_is_written():
    ratio = VersusStart(rolling("value", 1), 3, difference=False)
    np.testing.assert_allclose(extend(ratio, [2, 1, NAN, 3, 4, 8]), [NAN, NAN, NAN, NAN, 2, 4])
    less = VersusStart(rolling("value", 1), 1, difference=True)
    np.testing.assert_allclose(extend(less, [0.8, 0.9, 2.8]), [NAN, 0.1, 2.0])


@pytest.mark.parametrize("start", [0.0, -3.0])
def test_a_ratio_to_a_start_that_is_not_above_zero_says_nothing(start):
    assert np.isnan(extend(VersusStart(rolling("value", 1), 1, difference=False), [start, 1, 2])).all()


def test_against_the_past_leaves_its_own_window_out():
    spike = VersusPast(rolling("value", 1), 1, 4, difference=False)
    np.testing.assert_allclose(extend(spike, [1, 1, 1, 1, 50, 50, 1]), [NAN, NAN, NAN, 1, 50, 50, 1 / 25.5])
    level = VersusPast(rolling("median", 2), 2, 3, difference=True)
    np.testing.assert_allclose(extend(level, [1, 1, 1, 1, 5, 5])[-2:], [2, 4])


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


def test_a_gain_is_what_lies_above_the_first_window_in_units_of_noise():
    values = np.linspace(0, 1, 100) + np.random.default_rng(3).normal(0, 0.1, 100)
    found = GainSinceStart(10).extend(values)
    assert np.isnan(found.value[:9]).all() and found.value[9] == 0
    assert 6 < found.value[-1] < 12
    assert found.value[-1] > 5 * found.error[-1]


def test_the_peak_is_the_largest_finite_value_so_far():
    np.testing.assert_array_equal(extend(MaxSoFar(), [NAN, 1, INF, 3, 2]), [NAN, 1, 1, 3, 3])


def test_a_dip_shorter_than_a_fluctuation_or_a_hundredth_of_the_run_is_no_fall():
    noise = np.random.default_rng(5).normal(0, 0.1, 4000)
    dip, fall = (np.where((np.arange(4000) >= 3000) & (np.arange(4000) < end), 0.0, 1.0) for end in (3020, 4000))
    assert np.nanmax(DropFromBest(10, 5).extend(dip + noise).value[3000:]) < 3
    assert DropFromBest(10, 5).extend(fall + noise).value[-1] > 6


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


def test_a_standstill_is_measured_by_how_long_values_usually_stand():
    held = np.repeat([3.0, -5.0, -9.0, -2.0], [7, 8, 8, 9])
    assert Standstill(8).extend(held).max() < 1.5
    assert Standstill(8).extend(np.append(held, np.full(40, -7.0)))[-1] > 4


def test_a_value_that_comes_back_is_no_longer_written_but_chance():
    coins = np.append(np.tile([0.0, 0.0, 0.0, 0.5, 0.5], 8), np.zeros(12))
    assert Standstill(8).extend(coins)[-1] == 12


def test_a_standstill_that_drifts_by_less_than_counts_is_the_same_in_pieces():
    drifting = np.concatenate(
        [np.full(6, 2.0), 3.0 + 2e-10 * np.arange(9), np.full(5, 1.0), 3.0 + 2e-10 * np.arange(9)]
    )
    pieces, whole = Standstill(4), Standstill(4).extend(drifting)
    assert np.array_equal(np.concatenate([pieces.extend(one) for one in np.array_split(drifting, 7)]), whole)


def test_the_rank_trend_says_which_way_all_parts_go_and_nothing_of_noise():
    noise = 0.05 * np.random.default_rng(7).normal(size=240)
    assert RankTrend(100).extend(np.linspace(0, 1, 240))[-1] == 1
    assert RankTrend(100).extend(np.linspace(1, 0, 240) + noise)[-1] < -0.7
    assert abs(RankTrend(100).extend(noise)[-1]) < 0.2
    assert RankTrend(100).extend(np.full(240, 0.1))[-1] == 0  # sums of a tenth round, which is no trend
    assert np.isnan(RankTrend(100).extend(noise)[:99]).all()
