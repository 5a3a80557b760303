"""Operands: a measure is unknown before the points that it needs, in whatever pieces they come."""

import numpy as np
import pytest

from rlhealth.engine.operands import Operand
from rlhealth.rules.conditions import Condition
from rlhealth.rules.measures import COUNTS, MEASURES
from tests.engine.test_reach import run_of

HELD = np.repeat([3.0, -5.0, -9.0, -2.0], [7, 8, 8, 9])


def condition(measure: str, **more: object) -> Condition:
    where = {"where": {"below": 0}} if measure in ("share_of_points", *COUNTS) else {}
    window = {} if measure == "value" else {"last": 8}
    return Condition.model_validate({"metric": "kl", "measure": measure, "above": 0, **window, **where, **more})


def measured(one: Condition, pieces: int = 1) -> np.ndarray:
    metric = run_of([HELD.tolist()])[1].metrics["kl"]
    operand = Operand(one, metric, None, 1.0)
    return np.concatenate([operand.advance(until)[1].value for until in range(len(HELD) // pieces, 33, 32 // pieces)])


@pytest.mark.parametrize("measure", [one for one in MEASURES if one != "correlation"])
def test_a_measure_is_unknown_before_the_points_that_it_needs(measure: str) -> None:
    one = condition(measure)
    assert np.isnan(measured(one)[: one.known_from - 1]).all()
    np.testing.assert_array_equal(measured(one), measured(one, pieces=32))


def test_a_standstill_is_known_from_its_window_on() -> None:
    found = measured(condition("standstill"))
    assert np.isnan(found[:7]).all()
    assert (found[7:] < 1.5).all()


def test_a_window_of_which_a_part_is_enough_is_known_from_that_part_on() -> None:
    assert np.flatnonzero(~np.isnan(measured(condition("mean", at_least=2))))[0] == 1
    assert np.flatnonzero(~np.isnan(measured(condition("mean"))))[0] == 7
