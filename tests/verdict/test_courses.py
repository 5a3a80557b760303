"""Courses: a constant is steady whatever rounding does, and a word never contradicts the two numbers it stands beside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlhealth.verdict.courses import before, course, end_of, start_of, trend_of
from rlhealth.verdict.rises import rose_somewhat, surely_rose
from tests.examples import examples

RNG = np.random.default_rng(7)
NOISE = RNG.normal(0, 1, 400)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False), st.integers(min_value=24, max_value=3000)
)
@example(0.05, 120)
@example(0.3, 100)
def test_a_constant_is_steady_whatever_its_value_and_length(value: float, length: int) -> None:
    values = np.full(length, value)
    assert trend_of(values) == ("steady", False)
    assert course(values) == ("steady", False)
    if abs(value) < 1e150:  # squares of larger ones overflow
        assert not any(rose(one) for rose in (surely_rose, rose_somewhat) for one in (values, -values))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=24, max_size=300))
def test_a_word_never_contradicts_the_ends(values: list[float]) -> None:
    points = np.array(values)
    start, end = start_of(points), end_of(points)
    word, moving = trend_of(points)
    assert word in ("rose", "fell", "steady", "", "rose, then fell", "fell, then rose")
    if word == "rose":
        assert end > start
    if word == "fell":
        assert end < start
    assert not moving or word in ("rose", "fell")


def test_the_ends_are_medians_of_a_tenth_so_noise_at_the_ends_moves_neither() -> None:
    values = np.linspace(-6, 2, 100)
    values[:10] = [-4.0, 2.5, 2.5, -6.0, 2.0, -7.0, -7.0, -3.0, -7.0, -7.0]
    assert start_of(values) == -5.0
    assert end_of(values) == pytest.approx(2, abs=1)
    assert trend_of(values)[0] == "rose"


def test_what_changed_at_once_began_where_it_was() -> None:
    loss = np.concatenate([[5.7, 5.4, 2.6], 0.1 + 0.01 * NOISE[:397]])
    assert start_of(loss) == 5.4
    assert trend_of(loss)[0] == "fell"


def test_the_ends_of_a_series_of_neighbours_that_err_alike_are_no_jump() -> None:
    values = NOISE.copy()
    for place in range(1, len(values)):
        values[place] = 0.8 * values[place - 1] + 0.6 * NOISE[place]
    assert start_of(values) == np.median(values[:40])


def test_a_rise_in_the_last_fifth_alone_is_no_steadiness() -> None:
    share = np.clip(np.concatenate([0.1 + 0.1 * NOISE[:240], np.linspace(0.4, 0.9, 60) + 0.1 * NOISE[240:300]]), 0, 1)
    assert course(share)[0] == "steady"  # the last third rises so steeply that it takes that for noise
    assert trend_of(share)[0] == "rose"


def test_what_rose_and_came_back_a_good_part_says_both() -> None:
    values = np.concatenate([np.linspace(0, 1, 95), np.full(45, 0.5)]) + 0.03 * NOISE[:140]
    assert trend_of(values) == ("rose, then fell", False)
    assert trend_of(-values) == ("fell, then rose", False)


def test_what_jumped_at_once_and_then_fell_slowly_says_both() -> None:
    values = np.concatenate([[0, 0, 0], 4 - np.linspace(0, 2, 297) + 0.1 * NOISE[:297]])
    assert trend_of(values)[0] == "rose, then fell"


def test_what_came_back_a_little_is_still_a_rise() -> None:
    values = np.concatenate([np.linspace(0, 0.53, 80), np.full(60, 0.5)]) + 0.01 * NOISE[:140]
    assert trend_of(values)[0] == "rose"


def test_ends_that_look_apart_are_never_called_steady() -> None:
    values = np.abs(NOISE[:30]) + 0.5
    assert trend_of(values, start=0.01)[0] != "steady"


def test_a_metric_was_before_its_finding_where_its_points_before_it_are() -> None:
    values = np.array([0.0, np.nan, 0.1, 1.0, 1.0, 1.0])
    assert before(values, 3).tolist() == [0.0, 0.1]
    assert before(values, 0).tolist() == [0.0, 0.1, 1.0]


def test_what_was_learned_in_the_first_points_is_a_rise_and_not_steady() -> None:
    learned = -80 - 380 * np.exp(-np.arange(120) / 8) + np.random.default_rng(3).normal(0, 3, 120)
    assert course(learned)[0] == "steady"  # within the first third it rose, which the thirds take for noise
    assert trend_of(learned) == ("rose", False)
    assert trend_of(-learned) == ("fell", False)


def test_what_moved_somewhat_and_not_surely_gets_no_word() -> None:
    noise = np.random.default_rng(1).normal(0, 1, 60)
    assert trend_of(noise)[0] == "steady"
    assert trend_of(noise + np.linspace(0, 1.6, 60))[0] == ""


def test_the_largest_numbers_there_are_have_a_course_too() -> None:
    with np.errstate(all="raise"):
        assert trend_of(np.tile([1.7e308, -1.7e308], 40))[0] == "steady"
        assert trend_of(np.full(40, 1.7e308))[0] == "steady"
