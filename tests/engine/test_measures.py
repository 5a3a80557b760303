"""Measures: they say the same however the points come in, and whatever comes later."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlhealth.engine.apart import GapFromBest
from rlhealth.engine.best import AboveLowest, BelowAllBefore, DropFromBest, MaxSoFar, ShareOfGainLost
from rlhealth.engine.gains import GainByThirds, GainSinceStart
from rlhealth.engine.measures import MAKE
from rlhealth.engine.noise import Noise
from rlhealth.engine.order import OrderScore, RankTrend
from rlhealth.engine.shares import MeanFraction, ShareNonFinite, ShareOfPoints
from rlhealth.engine.shifts import ShiftDown
from rlhealth.engine.streaks import Streak
from rlhealth.engine.trends import Arrival, Climb, Correlation, Count, Plunge, Standstill
from rlhealth.engine.versus import EstimateVersusStart, VersusPast, VersusStart
from rlhealth.engine.windows import ROLLING as REDUCTIONS
from rlhealth.rules.measures import MEASURES
from tests.engine.feeding import extend, rolling
from tests.examples import examples

NAN, INF = np.nan, np.inf


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
    "gap_from_best": lambda: GapFromBest(4, 2),
    "gap_from_best, smoothed": lambda: GapFromBest(10, 5, 5),
    "gain_since_start": lambda: GainSinceStart(3),
    "max_so_far": lambda: MaxSoFar(),
    "above_lowest": lambda: AboveLowest(3, 2),
    "below_all_before": lambda: BelowAllBefore(3, smoothed=5),
    "shift_down": lambda: ShiftDown(6),
    "shift_down, few before": lambda: ShiftDown(2),
    "rank_trend": lambda: RankTrend(3),
    "order_score": lambda: OrderScore(3),
    "standstill": lambda: Standstill(3),
    "standstill_beyond_chance": lambda: Standstill(3, by_chance=True),
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
