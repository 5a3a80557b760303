"""When a series has risen."""

from __future__ import annotations

import numpy as np

from rlhealth.verdict.rises import rose_early, rose_somewhat, surely_rose


def test_a_rise_far_beyond_the_noise_is_sure_and_noise_alone_is_none() -> None:
    noise = np.random.default_rng(0).normal(0, 1, 200)
    assert surely_rose(noise + np.linspace(0, 8, 200))
    assert not surely_rose(noise)
    assert not rose_somewhat(noise - np.linspace(0, 8, 200))


def test_few_points_that_share_their_samples_prove_no_rise() -> None:
    """The first of DQN's rows are means of the same first episodes."""
    shared = np.array([0.0] * 4 + [1.2] + [1.2 * 5 / n for n in range(6, 26)])
    assert rose_early(shared)
    assert not rose_early(shared, smoothed=25)
    assert not surely_rose(shared, smoothed=25)


def test_thirds_that_do_not_overlap_are_a_rise_however_much_noisier_the_last_one_is() -> None:
    """An agent that has learned fails in many ways; one that falls at once always does."""
    level = np.repeat([80.0, 90.0, 80.0, 200.0, 300.0, 400.0, 1500.0, 300.0], [8, 9, 8, 8, 9, 8, 12, 13])
    values = level * np.random.default_rng(1).uniform(0.9, 1.1, len(level))
    assert not rose_early(values)
    assert surely_rose(values)
    assert not surely_rose(values[::2])
    assert not surely_rose(values[::-1])


def test_noise_that_resembles_its_neighbours_seldom_comes_apart() -> None:
    random = np.random.default_rng(2)
    walks = np.zeros((400, 300))
    for step in range(1, 300):
        walks[:, step] = 0.8 * walks[:, step - 1] + random.normal(0, 1, 400)
    assert sum(surely_rose(walk[-80:]) for walk in walks) < 0.07 * len(walks)
