"""Strict JSON: what it does not know is said in words."""

from __future__ import annotations

from rlhealth.reports.strict_json import strict


def test_numbers_that_json_does_not_know_become_words() -> None:
    assert strict({"a": [float("nan"), float("inf"), float("-inf"), 1.5]}) == {
        "a": ["NaN", "Infinity", "-Infinity", 1.5]
    }
