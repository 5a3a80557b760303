"""Windows: the quick ways of measuring them say what the plain definitions say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.engine.windows import BLOCK, ROLLING, WIDEST, Rolling
from tests.engine.feeding import extend, rolling
from tests.examples import examples

NAN, INF = np.nan, np.inf
PLAIN = {
    "value": np.mean,
    "mean": np.mean,
    "median": np.median,
    "std": np.std,
    "min": np.min,
    "max": np.max,
    "range": np.ptp,
}


def plain(reduce, values, window, least):
    """One window after the other, as a person would."""
    found = []
    for end in range(1, len(values) + 1):
        points = values[max(0, end - window) : end]
        points = points[np.isfinite(points)]
        found.append(reduce(points) if len(points) >= least else NAN)
    return found


def noisy(seed, length, missing):
    random = np.random.default_rng(seed)
    values = random.choice(
        [random.normal(size=length), random.integers(0, 4, length).astype(float), random.normal(size=length).cumsum()]
    )
    values[random.random(length) < missing] = random.choice([NAN, np.inf])
    return values


@pytest.mark.parametrize("name", list(ROLLING))
@settings(max_examples=examples(25), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    length=st.integers(0, 400),
    window=st.integers(1, WIDEST + 4),
    missing=st.sampled_from([0, 0, 0.02, 0.5]),
    share=st.floats(0, 1),
)
def test_windows_measure_as_their_definition_says(name, seed, length, window, missing, share):
    values, least = noisy(seed, length, missing), max(1, round(share * window))
    exact = (
        np.testing.assert_array_equal
        if name in ("min", "max", "range") or (name == "median" and window % 2 and not missing)
        else np.testing.assert_allclose
    )
    kwargs = {} if exact is np.testing.assert_array_equal else {"atol": 1e-12}
    exact(Rolling(ROLLING[name], window, least).extend(values), plain(PLAIN[name], values, window, least), **kwargs)


@pytest.mark.parametrize("length", [BLOCK - 1, BLOCK, 2 * BLOCK + 1])
def test_a_window_that_reaches_across_blocks_is_like_any_other(length):
    values = noisy(3, length, 0.01)
    np.testing.assert_allclose(Rolling(ROLLING["median"], 5, 3).extend(values), plain(np.median, values, 5, 3))


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("mean", [1, 2, 3, 4], [NAN, NAN, 2, 3]),
        ("median", [1, 9, 2, 4], [NAN, NAN, 2, 4]),
        ("median", [1, NAN, 2, 4], [NAN, NAN, NAN, NAN]),
        ("std", [1, 1, 1, 4], [NAN, NAN, 0, np.sqrt(2)]),
        ("min", [3, 1, 2, 5], [NAN, NAN, 1, 1]),
        ("max", [3, 1, 2, 5], [NAN, NAN, 3, 5]),
        ("range", [3, 1, 2, 5], [NAN, NAN, 2, 4]),
    ],
)
def test_rolling_measures_look_at_the_last_points(name, values, found):
    np.testing.assert_allclose(extend(rolling(name, 3), values), found)


def test_a_window_may_begin_with_fewer_points():
    np.testing.assert_allclose(extend(rolling("median", 5, 2), [4, 2, NAN, 3, 1]), [NAN, 3, 3, 3, 2.5])


def test_a_value_is_the_point_itself_and_what_is_not_finite_is_missing():
    np.testing.assert_array_equal(extend(rolling("value", 1), [1, INF, NAN, -2]), [1, NAN, NAN, -2])
