"""Medians by comparisons: those of a sort, for windows of every width, of numbers of every size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.engine.medians import medians
from rlhealth.engine.windows import WIDEST, sorted_median
from tests.examples import examples

NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 5e-324, 1.7e308, -1.7e308, np.inf, -np.inf]) | st.floats(-9, 9)


def by_sorting(points: np.ndarray, width: int) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(points, len(points) - width + 1)
    return sorted_median(windows, np.full(windows.shape[1], width))


@pytest.mark.parametrize("width", range(1, WIDEST + 1))
def test_the_middle_of_windows_of_every_width_is_that_of_a_sort(width: int) -> None:
    random = np.random.default_rng(width)
    for points in (random.normal(size=150), random.integers(0, 4, 150).astype(float), np.arange(150.0)[::-1]):
        np.testing.assert_array_equal(medians(points, width), by_sorting(points, width))


@given(points=st.lists(NUMBERS, min_size=1, max_size=60), width=st.integers(1, 60))
@settings(max_examples=examples(200), deadline=None)
def test_giants_and_infinities_have_a_middle_too(points: list[float], width: int) -> None:
    width, values = min(width, len(points)), np.asarray(points)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(medians(values, width), by_sorting(values, width))
