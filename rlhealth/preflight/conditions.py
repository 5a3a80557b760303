"""Conditions on settings: which of them is known, what it measures, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rlhealth.preflight.model import Asked, Check
from rlhealth.rules.conditions import Limit

#: Numbers of processes to assume if not given: what machines have, with or without one that only samples.
_DEVICES = (*range(1, 17), 24, 32, 48, 64, 96, 128, 256, 512, 1024)


def missing(check: Check, values: Mapping[str, Any]) -> str:
    """The first setting that a check needs and that is not set; empty if there is none."""
    for asked in check.conditions:
        for name in asked.names:
            if name != "devices" and pick(name, values) is None:
                return name.split("|")[0]
        for limit in (asked.above, asked.below):
            if isinstance(limit, Limit) and limit.default is None and values.get(limit.setting) is None:
                return limit.setting
        if asked.not_divisible_by is not None and values.get(asked.not_divisible_by) is None:
            return asked.not_divisible_by
    return ""


def pick(name: str, values: Mapping[str, Any]) -> str | None:
    """The first of `a|b` that is known; None if none is."""
    return next((one for one in name.split("|") if values.get(one) is not None), None)


def measured(asked: Asked, values: Mapping[str, Any], devices: int = 1) -> Any:
    """The value of a setting, or of a sum or a product of some; None if one of these is no number."""
    parts = [
        values.get("devices", devices) if name == "devices" else values[pick(name, values) or name]
        for name in asked.names
    ]
    if asked.setting:
        return parts[0]
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in parts):
        return None
    return math.fsum(parts) if asked.sum else math.prod(parts)


def _limit(limit: float | Limit, values: Mapping[str, Any]) -> float | None:
    if not isinstance(limit, Limit):
        return float(limit)
    base = values.get(limit.setting)
    if isinstance(base, bool) or not isinstance(base, int | float):
        return None if limit.default is None else float(limit.default)
    found = float(base * limit.times + limit.plus)
    return found if limit.at_most is None else min(found, float(limit.at_most))


def holds(asked: Asked, values: Mapping[str, Any]) -> bool:
    """Whether a condition holds; for a value that is no number, only `equals` can hold."""
    value = measured(asked, values)
    if asked.equals is not None:
        return bool(value == asked.equals and isinstance(value, bool) == isinstance(asked.equals, bool))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    if asked.not_divisible_by is not None:
        left = _remainders(asked, values)
        return bool(left) and all(left)
    for limit, sign in ((asked.above, 1), (asked.below, -1)):
        if limit is not None:
            bound = _limit(limit, values)
            return bound is not None and sign * (value - bound) > 0
    return False


def _remainders(asked: Asked, values: Mapping[str, Any]) -> list[float]:
    """The remainder for each possible number of processes."""
    by = values.get(asked.not_divisible_by or "")
    if isinstance(by, bool) or not isinstance(by, int) or by < 1:
        return []
    counts = _DEVICES if "devices" in asked.names and "devices" not in values else (1,)
    return [(measured(asked, values, count) or 0) % by for count in counts]


def depends(asked: Asked, values: Mapping[str, Any]) -> bool:
    """Whether the answer depends on the number of processes, and that is not given."""
    left = _remainders(asked, values) if asked.not_divisible_by is not None else []
    return any(left) and not all(left)
