"""Strict JSON: numbers that it does not know become words."""

from __future__ import annotations

from typing import Any


def strict(value: Any) -> Any:
    """A value for strict JSON: a non-finite number becomes the string "NaN", "Infinity" or "-Infinity"."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: strict(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [strict(one) for one in value]
    return value
