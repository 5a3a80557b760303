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
