"""Healthy runs of noise raise nothing: a reward that rises and stays, whatever kind of noise lies on it."""

import numpy as np
import pytest

from benchmarks.alarms import QUIET, alarms, rise
from rlhealth.rules.loading import load_rules

RULES = load_rules()


@pytest.mark.parametrize("series", QUIET.values(), ids=QUIET)
def test_a_reward_that_rises_and_stays_raises_nothing_however_noisy_it_is(series):
    assert not alarms(series, RULES, runs=4, seed=77_000)


def test_a_reward_that_rises_and_falls_back_is_raised_through_the_same_noise():
    fallen = np.where(np.arange(300) < 200, rise(300), 1.0)
    found = alarms(lambda random: {"train/reward": fallen + random.normal(0, 1, 300)}, RULES, runs=4, seed=78_000)
    assert found["reward-decline"] == 4
