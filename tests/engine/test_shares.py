"""Shares: which points they count, what their grain is, and how sure one may be of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.engine.estimate import Bound
from rlhealth.engine.shares import FINEST, Grain, MeanFraction, ShareNonFinite, ShareOfPoints
from tests.engine.feeding import extend
from tests.examples import examples

NAN, INF = np.nan, np.inf


def grain(values):
    return Grain().extend(np.asarray(values, np.float64)).tolist()


def test_zeros_and_ones_count_as_one_item_a_point():
    assert grain([0, 1, 1, 0]) == [1, 1, 1, 1]


def test_the_grain_is_the_smallest_that_fits_all_values_so_far():
    assert grain([0, 0.5, 0.25, 1, 0.375]) == [1, 2, 4, 4, 8]
    assert grain([0.333, 0.5])[-1] == 6, "as printed with three digits"


def test_a_share_that_is_no_fraction_of_few_has_many_items():
    assert grain(np.random.default_rng(3).random(60))[-1] == FINEST


@settings(max_examples=examples(60), deadline=None)
@given(items=st.integers(1, 40), seed=st.integers(0, 2**32), share=st.floats(0, 1))
def test_a_share_is_never_thought_to_be_counted_over_more_items_than_it_was(items, seed, share):
    counted = np.random.default_rng(seed).binomial(items, share, 80) / items
    assert max(grain(counted)) <= items


def proportion(values, window=5, least=5, items=20):
    return MeanFraction(window, least, items).extend(np.asarray(values, np.float64))


def test_nothing_is_said_of_a_share_before_enough_items_were_seen():
    found = proportion([1.0] * 25)
    assert np.isnan(found.value[:19]).all() and found.value[19] == 1.0
    assert not np.isnan(proportion([0.5, 0.125, 1, 1, 1]).value[4]), "of eight items a point, five points are enough"


def test_the_missing_items_are_reported():
    waiting = MeanFraction(5, 5, 20)
    waiting.extend(np.ones(8))
    assert waiting.lacking.startswith("8 of the 20 items")
    waiting.extend(np.ones(12))
    assert waiting.lacking == ""


@pytest.mark.parametrize("share", [0.1, 0.4, 0.7, 0.95])
def test_the_error_is_what_the_mean_of_so_many_items_has(share):
    random = np.random.default_rng(11)
    made = [proportion(random.binomial(1, share, 20)) for _ in range(600)]
    means, errors = (np.array([getattr(one, part)[-1] for one in made]) for part in ("value", "error"))
    assert 0.9 < np.mean(errors) / np.std(means) < 1.6, "near 0 and 1 it errs on the careful side"
    assert np.mean(np.abs(means - share) < 2 * errors) > 0.9


def test_twenty_of_twenty_do_not_prove_that_all_agree():
    error = proportion([1.0] * 20).error[-1]
    assert 0.04 < error < 0.1


def test_a_coin_that_falls_four_in_ten_times_is_never_surely_above_seven():
    random = np.random.default_rng(5)
    bound = Bound("above", 0.7, sure=2)
    assert not any(bound.holds(proportion(random.binomial(1, 0.4, 100))).any() for _ in range(300))
    assert bound.holds(proportion(random.binomial(1, 0.97, 100))).any()


def test_nonfinite_counts_what_is_not_a_number():
    np.testing.assert_allclose(extend(ShareNonFinite(1), [1, NAN, INF, 2]), [0, 1, 1, 0])
    np.testing.assert_allclose(extend(ShareNonFinite(4), [NAN, 1, 1, 1, 1]), [1, 0.5, 1 / 3, 0.25, 0])


def test_a_share_counts_the_finite_points_beyond_a_level():
    np.testing.assert_allclose(
        extend(ShareOfPoints(4, 2, 1.0, None), [2, 0, 3, NAN, 1]), [NAN, 0.5, 2 / 3, 2 / 3, 1 / 3]
    )
    np.testing.assert_allclose(extend(ShareOfPoints(2, 1, -0.5, 0.5), [0, 1, 1]), [1, 0.5, 0])
