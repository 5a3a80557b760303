"""Measures against the start and the past: what they leave out, and when they say nothing."""

import numpy as np
import pytest

from rlhealth.engine.versus import VersusPast, VersusStart
from tests.engine.feeding import extend, rolling

NAN, INF = np.nan, np.inf


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


def test_against_the_largest_of_the_start():
    found = extend(VersusStart(rolling("value", 1), 3, difference=False, by="largest"), [4, 1, 2, 8, 2])
    assert found[3:].tolist() == [2.0, 0.5] and np.isnan(found[:3]).all()
