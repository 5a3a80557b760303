"""Noise: how far points and levels stray, whether or not points resemble their neighbours."""

import numpy as np
import pytest

from rlhealth.authoring.shorthand import correlated
from rlhealth.engine.noise import FLOOR, Noise
from rlhealth.engine.variogram import effective, remembered

WINDOW = 10


def series(seed, length, correlation):
    return correlated(np.random.default_rng(seed).normal(size=length), correlation)


def noise(values):
    """Spread and error of a level at the last point."""
    return Noise((WINDOW,)).extend(np.asarray(values, np.float64))[[0, 4], -1]


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8, 0.9])
def test_the_error_of_a_level_is_how_far_levels_stray_however_points_depend_on_each_other(correlation):
    estimated = np.median([noise(series(seed, 500, correlation)) for seed in range(40)], axis=0)
    levels = [np.median(series(1000 + seed, WINDOW, correlation)) for seed in range(800)]
    assert estimated[0] == pytest.approx(1.0, rel=0.15)
    assert 0.9 < estimated[1] / np.std(levels) < 1.5, "a little too large rather than too small"


def test_a_value_that_is_written_in_every_row_until_the_next_one_counts_once():
    once = series(3, 60, 0.0)
    spread, error = noise(np.repeat(once, 8))
    assert spread == pytest.approx(noise(once)[0], rel=0.05)
    assert spread <= error < 1.5 * spread, "ten rows hold one value or two: their level strays as far as a value"


def test_a_mean_that_stands_until_the_next_episode_ends_counts_once_though_it_comes_back():
    rounded = np.round(series(3, 60, 0.0), 1)
    assert len(np.unique(rounded)) < 40
    spread, error = noise(np.repeat(rounded, 8))
    assert spread <= error < 1.5 * spread


def test_a_reward_of_two_values_repeats_itself_by_chance_and_every_row_counts():
    won = (np.random.default_rng(4).random(400) < 0.2).astype(float)
    assert noise(won)[1] < 0.6 * noise(won)[0]


def test_a_trend_is_no_noise():
    jitter = np.random.default_rng(1).normal(0, 0.1, 200)
    assert noise(jitter + np.linspace(0, 5, 200))[0] == pytest.approx(noise(jitter)[0], rel=0.05)
    risen = np.minimum(np.linspace(0, 10, 200), 5)
    assert noise(jitter + risen)[0] < 2 * noise(jitter)[0], "nor is a bend"


def test_heavy_tails_count_for_little():
    heavy = np.random.default_rng(2).standard_t(1.5, 500)
    assert noise(heavy)[0] < 3


def test_the_widest_spread_is_that_of_the_points_where_they_are_normal_and_knows_one_in_nine_that_lies_far_off():
    points = series(5, 500, 0.0)
    far = np.where(np.random.default_rng(1).random(500) < 0.11, 40.0, points)
    plain, wide = remembered(points), remembered(far)
    assert plain.widest == plain.spread
    assert wide.spread < 2 < 8 < wide.widest < 20


def test_few_points_are_taken_for_correlated_and_their_errors_are_widened():
    few, many = (np.median([noise(series(seed, n, 0.0))[1] for seed in range(60)]) for n in (15, 400))
    assert few > 2 * many


def test_a_run_that_stands_still_keeps_the_noise_that_it_had():
    jitter = np.random.default_rng(1).normal(0, 0.2, 100)
    assert noise(np.concatenate([jitter, np.zeros(3000)]))[0] == pytest.approx(noise(jitter)[0], rel=0.5)


def test_a_known_average_makes_the_noise_larger_than_its_points_show():
    jitter = np.random.default_rng(1).normal(0, 1, 160)
    averaged = np.convolve(jitter, np.ones(25) / 25, "valid")
    plain, known = remembered(averaged), remembered(averaged, smoothed=25)
    assert known.spread >= plain.spread
    assert known.level(WINDOW) > 0.8 * known.spread


def test_an_average_over_many_rows_that_the_rows_do_not_show_is_one_over_few():
    def error(width, seed):
        points = np.random.default_rng(seed).normal(0, 1, 159 + width)
        found = remembered(np.convolve(points, np.ones(width), "valid") / np.sqrt(width), smoothed=25)
        return found.level(WINDOW)

    independent, averaged = ([error(width, seed) for seed in range(40)] for width in (1, 25))
    assert np.mean(np.array(independent) < 0.8) > 0.8
    assert np.mean(np.array(averaged) > 0.8) > 0.8


def test_a_constant_has_a_thousandth_of_itself_for_noise():
    assert noise([4.0] * 10)[0] == pytest.approx(4 * FLOOR)
    assert np.isnan(noise([0.0] * 10)).all()


def test_points_of_full_correlation_are_one_and_independent_ones_count_each():
    assert effective(0.0, 10) == 10
    assert effective(0.99, 10) < 1.1
    assert 2 < effective(0.5, 5) < 3
