"""Parts: measures that share what they are made of say what each would say alone, in whatever pieces points come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.engine.best import DropFromBest, ShareOfGainLost
from rlhealth.engine.estimate import Estimate, Measure, WithoutError
from rlhealth.engine.gains import GainByThirds, GainSinceStart
from rlhealth.engine.parts import Parts
from rlhealth.engine.shares import MeanFraction
from rlhealth.engine.trends import Climb, Plunge
from rlhealth.engine.windows import Rolling, median
from tests.examples import examples


def measures(parts: Parts | None) -> list[Measure]:
    """Measures that have parts in common: levels, the noise at several windows, the grain of a share."""
    return [
        DropFromBest(10, 5, parts=parts),
        DropFromBest(5, 5, parts=parts),
        GainSinceStart(10, parts=parts),
        Climb(20, parts=parts),
        Plunge(20, parts=parts),
        GainByThirds(parts=parts),
        WithoutError(ShareOfGainLost(10, 5, parts=parts)),
        WithoutError(Rolling(median, 10, 10, parts)),
        WithoutError(Rolling(median, 10, 3, parts)),
        MeanFraction(10, 5, 20, parts),
        MeanFraction(5, 3, 40, parts),
    ]


def exactly(one: Estimate, other: Estimate) -> None:
    np.testing.assert_array_equal(one.value, other.value)
    np.testing.assert_array_equal(*(np.nan if e.error is None else e.error for e in (one, other)))


@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.0, 0.1, 0.9]), cut=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_measures_that_share_their_parts_say_what_each_says_alone(seed: int, share: float, cut: bool) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(0, 9, 300) / 8 if seed % 2 else random.normal(size=300).cumsum()
    values[random.random(300) < share] = np.nan
    shared, parts = measures(made := Parts()), made
    alone = measures(None)
    found: list[list[Estimate]] = [[] for _ in shared]
    seen = [0] * len(shared)
    while min(seen) < len(values):  # each takes as many points as it likes, whenever it likes
        place = int(random.integers(len(shared)))
        end = min(len(values), seen[place] + int(random.integers(1, 90 if cut else 400)))
        if end > seen[place]:
            found[place].append(shared[place].extend(values[seen[place] : end]))
            seen[place] = end
    for pieces, one in zip(found, alone, strict=True):
        whole = pieces[0]
        for piece in pieces[1:]:
            whole = whole.then(piece)
        exactly(whole, one.extend(values))
    assert all(one.kept is None for one in parts._made.values())  # nothing is kept once all have taken it


def test_what_one_measure_is_given_no_other_can_change() -> None:
    parts = Parts()
    levels = [Rolling(median, 3, 3, parts) for _ in range(2)]
    first = levels[0].extend(np.arange(9.0))
    first[:] = -1
    assert levels[1].extend(np.arange(9.0))[-1] == pytest.approx(7)


def test_a_measure_that_is_gone_is_not_waited_for() -> None:
    parts = Parts()
    kept, gone = Rolling(median, 3, 3, parts), Rolling(median, 3, 3, parts)
    gone.extend(np.arange(2.0))
    del gone
    kept.extend(np.arange(9.0))
    assert [one.kept for one in parts._made.values()] == [None]
