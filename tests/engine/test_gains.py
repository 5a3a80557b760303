"""Gains: in units of noise, with the errors of both levels."""

import numpy as np

from rlhealth.engine.gains import GainSinceStart


def test_a_gain_is_what_lies_above_the_first_window_in_units_of_noise():
    values = np.linspace(0, 1, 100) + np.random.default_rng(3).normal(0, 0.1, 100)
    found = GainSinceStart(10).extend(values)
    assert np.isnan(found.value[:9]).all() and found.value[9] == 0
    assert 6 < found.value[-1] < 12
    assert found.value[-1] > 5 * found.error[-1]
