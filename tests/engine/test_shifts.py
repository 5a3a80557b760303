"""Shifts of a level: newest points that leave what came before by more than its span."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.engine.shifts import ShiftDown

LEVEL = np.array([0.98, 0.99, 1.0, 0.97, 0.99, 1.0])


def test_points_that_leave_a_level_and_stay_away_have_shifted_by_so_many_of_its_spans():
    fallen = np.array([0.1, 0.12, 0.09, 0.1, 0.11])
    measured = ShiftDown(6).extend(np.concatenate([LEVEL, fallen]))
    assert np.isnan(measured[:10]).all()
    np.testing.assert_allclose(measured[10], (0.97 - 0.12) / 0.03)


def test_one_point_that_is_back_ends_a_shift():
    back = np.concatenate([LEVEL, [0.1, 0.12, 0.98, 0.1, 0.11]])
    assert ShiftDown(6).extend(back)[-1] == 0


def test_values_that_are_repeated_in_many_rows_are_no_level():
    repeated = np.repeat([1.9938, 1.9875, 1.8688], 10)
    assert ShiftDown(20).extend(repeated)[-1] == 0


def test_a_missing_point_changes_nothing():
    values = np.concatenate([LEVEL, [0.1, np.nan, 0.12, 0.09, 0.1, 0.11]])
    measured = ShiftDown(6).extend(values)
    assert measured[-1] == ShiftDown(6).extend(values[np.isfinite(values)])[-1] > 20


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=60), st.integers(5, 12))
def test_a_shift_is_the_largest_that_a_search_of_every_width_finds(values, before):
    found = ShiftDown(before).extend(np.array(values))
    for end in range(before + 5, len(values) + 1):
        sizes = [0.0]
        for width in range(5, min(before, end - before) + 1):
            newest, earlier = values[end - width : end], values[end - width - before : end - width]
            low, high = min(earlier), max(earlier)
            span = max(high - low, 1e-3 * max(abs(low), abs(high)))
            is_level = np.count_nonzero(np.diff(values[end - width - before : end])) >= 5
            if is_level and max(newest) < low:
                sizes.append((low / 2 - max(newest) / 2) / (span / 2) if span else np.inf)
        np.testing.assert_allclose(found[end - 1], max(sizes))
