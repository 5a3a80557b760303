"""Evidence: how far a value lies beyond its limit."""

from __future__ import annotations

import math

import pytest

from rlhealth.verdict.evidence import Evidence


def seen(value: float, limit: float | None, side: str, error: float | None = None) -> Evidence:
    return Evidence(metric="reward", tag="reward", step=1, value=value, limit=limit, side=side, error=error)


@pytest.mark.parametrize(
    ("value", "limit", "side", "beyond"),
    [
        (2.0, 1.0, "above", True),
        (1.0, 1.0, "above", False),
        (0.5, 1.0, "below", True),
        (2.0, 1.0, "below", False),
        (0.0, 0.0, "equals", True),
        (0.1, 0.0, "equals", False),
        (9.0, None, "above", False),
        (math.nan, 1.0, "below", False),
    ],
)
def test_a_value_is_beyond_its_limit_on_the_sick_side(value, limit, side, beyond):
    assert seen(value, limit, side).is_beyond is beyond


def test_errors_are_counted_away_from_the_limit_to_the_sick_side() -> None:
    assert seen(5.0, 1.0, "above", 2.0).errors_beyond == 2.0
    assert seen(-3.0, 1.0, "below", 2.0).errors_beyond == 2.0
    assert seen(3.0, 1.0, "below", 2.0).errors_beyond == -1.0, "within one error of being beyond it"


@pytest.mark.parametrize("one", [seen(5.0, 1.0, "above"), seen(5.0, None, "above", 2.0), seen(5.0, 1.0, "above", 0.0)])
def test_without_an_error_or_a_limit_there_is_nothing_to_count(one):
    assert math.isnan(one.errors_beyond)
