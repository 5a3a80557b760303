"""Gains: in units of noise, with the errors of both levels."""

import numpy as np

from rlhealth.engine.gains import GainByThirds, GainSinceStart


def test_a_gain_is_what_lies_above_the_first_window_in_units_of_noise():
    values = np.linspace(0, 1, 100) + np.random.default_rng(3).normal(0, 0.1, 100)
    found = GainSinceStart(10).extend(values)
    assert np.isnan(found.value[:9]).all() and found.value[9] == 0
    assert 6 < found.value[-1] < 12
    assert found.value[-1] > 5 * found.error[-1]


def won_now_and_then(seed: int, count: int) -> np.ndarray:
    """Returns of two kinds, each of which lasts for some episodes."""
    rng = np.random.default_rng(seed)
    return 400.0 * (np.cumsum(rng.random(count) < 0.15) % 2) + rng.normal(0, 40, count)


def test_parts_show_how_little_the_thirds_of_returns_of_two_kinds_differ_by_chance():
    found = [GainByThirds().extend(won_now_and_then(seed, 600)) for seed in range(40)]
    values, errors = (np.array([getattr(one, name)[-1] for one in found]) for name in ("value", "error"))
    assert np.median(errors) < 0.35
    assert np.mean(np.abs(values) < 2 * errors) > 0.9


def missed(seed: int, count: int, share: float) -> np.ndarray:
    """Returns of an arm that misses now and then, and loses by far where it does."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(count) < share, rng.uniform(-300, -100, count), rng.normal(47, 1, count))


def test_the_gain_of_an_arm_that_often_misses_is_counted_by_its_misses():
    found = [GainByThirds().extend(missed(seed, 1500, 0.12)) for seed in range(20)]
    bounds = np.array([one.value[-1] + 1.5 * one.error[-1] for one in found])
    assert np.mean(bounds < 0.5) > 0.9, "such a gain is surely small"


def test_single_outliers_do_not_hide_a_gain():
    risen = np.linspace(0, 5, 300) + missed(1, 300, 0.02)
    assert GainByThirds().extend(risen).value[-1] > 1


def test_a_slow_drift_is_no_noise_of_parts():
    drift = np.cumsum(np.random.default_rng(2).normal(0, 1, 600))
    assert GainByThirds().extend(drift).error[-1] > 0.5


def test_a_gain_by_thirds_of_a_long_run_is_the_same_in_pieces():
    values = won_now_and_then(1, 700)
    whole, one = GainByThirds().extend(values), GainByThirds()
    parts = [one.extend(part) for part in np.array_split(values, 90)]
    np.testing.assert_allclose(np.concatenate([part.value for part in parts]), whole.value, rtol=1e-12)
    np.testing.assert_allclose(np.concatenate([part.error for part in parts]), whole.error, rtol=1e-12)
