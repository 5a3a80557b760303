"""Sparklines keep every spike, mark what is not finite, and share one time line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.reports.sparkline import cell_of, cells, sparkline
from tests.examples import examples


def test_one_stray_point_in_a_million_is_seen() -> None:
    values = np.zeros(1_000_000)
    values[777_777] = -5.0
    drawn = sparkline(np.arange(1_000_000), values, 20)
    assert drawn == "███████████████▁████"


def test_a_rise_climbs_all_eight_blocks() -> None:
    assert sparkline(np.arange(8), np.arange(8.0), 8) == "▁▂▃▄▅▆▇█"
    assert sparkline(np.arange(8), np.arange(8.0), 8, ascii=True) == "_.-=+*%#"


def test_a_point_that_is_not_finite_is_a_dot_of_its_own() -> None:
    values = np.array([1.0, 2.0, np.nan, np.inf, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0])
    assert sparkline(np.arange(10), values, 10) == "▁█··▁█▁█▁█"
    assert sparkline(np.arange(3), np.full(3, np.nan), 3) == "···"


def test_a_metric_that_is_mostly_absent_shows_what_it_has() -> None:
    values = np.where(np.arange(100) % 2, np.nan, np.arange(100.0))
    assert "·" not in sparkline(np.arange(100), values, 10)


def test_a_constant_is_flat_and_zero_is_at_the_floor() -> None:
    assert sparkline(np.arange(9), np.full(9, 0.5), 4) == "▄▄▄▄"
    assert sparkline(np.arange(9), np.zeros(9), 4) == "▁▁▁▁"


def test_few_points_are_held_until_the_next_one_and_nothing_is_drawn_before_or_after() -> None:
    assert sparkline(np.array([20, 50]), np.array([1.0, 2.0]), 10, span=(0, 99)) == "  ▁▁▁█    "


def test_a_log_scale_shows_decades() -> None:
    assert sparkline(np.arange(3), np.array([1.0, 10.0, 100.0]), 3, log=True) == "▁▅█"
    assert sparkline(np.arange(3), np.array([0.0, 10.0, 1000.0]), 3, log=True) == "▁▁█", (
        "zero is drawn as the least that is not"
    )
    assert sparkline(np.arange(6), np.array([1e-30, 1.0, 2.0, 4.0, 8.0, 16.0]), 6, log=True) == "▁▆▇▇██", (
        "four decades below the median is the floor"
    )
    assert sparkline(np.arange(3), np.array([-1.0, 10.0, 100.0]), 3, log=True) == "▁▁█", (
        "below zero there is no logarithm: linear"
    )


def test_the_largest_and_smallest_numbers_there_are_do_no_harm() -> None:
    assert sparkline(np.arange(2), np.array([-1.7e308, 1.7e308]), 2) == "▁█"


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=60), st.integers(1, 40))
def test_a_sparkline_is_always_as_wide_as_asked(values: list[float], width: int) -> None:
    assert len(sparkline(np.arange(len(values)) * 3, np.array(values), width)) == width


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80), st.integers(1, 20))
def test_the_value_furthest_from_the_median_is_always_drawn(values: list[float], width: int) -> None:
    series = np.array(values)
    furthest = np.max(np.abs(series - np.median(series)))
    kept = cells(np.arange(len(series)), series, width)
    assert np.max(np.abs(kept[np.isfinite(kept)] - np.median(series))) == pytest.approx(furthest)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 10_000), st.integers(1, 60))
def test_the_marker_stands_below_the_cell_that_holds_the_step(first: int, length: int, width: int) -> None:
    step = first + length // 2
    drawn = cells(np.array([step]), np.array([1.0]), width, span=(first, first + length))
    assert np.flatnonzero(np.isfinite(drawn)).tolist() == [cell_of(step, (first, first + length), width)]
