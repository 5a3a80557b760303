"""Streaks: what chance makes of rows in a row is none, what ends is found soon."""

from __future__ import annotations

import numpy as np
import pytest

from rlhealth.engine.streaks import Streak
from rlhealth.engine.windows import Rolling, mean


def streak(window: int = 5) -> Streak:
    return Streak(Rolling(mean, 1, 1), window, None, 1e-12)


@pytest.mark.parametrize("often", [0.2, 0.5, 0.8, 0.9])
def test_rows_that_are_zero_by_chance_are_seldom_a_streak(often: float) -> None:
    random = np.random.default_rng(7)
    runs = (random.random((400, 300)) >= often).astype(np.float64)
    runs[:, 0] = 1.0  # a series that began with zeros is another story
    raised = np.mean([bool((streak().extend(run) > 1).any()) for run in runs])
    assert raised <= 0.1


@pytest.mark.parametrize(("often", "soon"), [(0.0, 5), (0.5, 30), (0.8, 90)])
def test_a_series_that_stays_at_zero_is_found_within_a_few_streaks_of_chance(often: float, soon: int) -> None:
    random = np.random.default_rng(8)
    before = (random.random(100) >= often).astype(np.float64)
    before[-1] = 1.0
    found = streak().extend(np.append(before, np.zeros(100)))
    assert (found[100:] > 1).any()
    assert int(np.argmax(found[100:] > 1)) + 1 <= soon


def test_a_series_that_never_was_elsewhere_is_believed_after_five_points() -> None:
    assert np.flatnonzero(streak().extend(np.zeros(40)) > 1)[0] == 4


def test_missing_points_neither_end_a_streak_nor_count() -> None:
    values = np.where(np.arange(30) % 3 == 1, np.nan, 0.0)
    assert np.nanmax(streak().extend(values)) == streak().extend(np.zeros(20)).max()
