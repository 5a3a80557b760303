"""Limits: those of a rule as numbers, and as levels of a metric."""

from __future__ import annotations

import numpy as np
import pytest

from rlhealth.engine.cannot_run import CannotRun
from rlhealth.engine.limits import level_of, limit_of, unit_of
from rlhealth.metrics import Metric, translate
from rlhealth.rules.conditions import Condition, Limit
from rlhealth.run import Place, Run


def lengths() -> Metric:
    run = Run("run", Place("tensorboard", "here"))
    steps = list(range(1, 21))
    for tag, value in (("reward", 1.0), ("reward_std", 0.1), ("completions/mean_length", 8.0)):
        run.add(f"train/{tag}", steps, [value + step % 2 for step in steps])
    return translate(run).metrics["completions/mean_length"]


@pytest.mark.parametrize(
    ("condition", "limit", "level", "unit"),
    [
        ({"measure": "median", "last": 5, "above": 2.5}, 2.5, 2.5, "value"),
        (
            {"measure": "median", "last": 5, "versus": {"start": 3, "as": "ratio"}, "below": 0.5},
            0.5,
            0.5 * 9.0,
            "ratio",
        ),
        ({"versus": {"start": 3, "as": "difference"}, "above": 1.0}, 1.0, 1.0 + 9.0, "value"),
        ({"measure": "gain_since_start", "last": 5, "above": 2.0}, 2.0, None, "noise"),
        ({"versus": {"before": 9, "as": "ratio"}, "below": 0.5}, 0.5, None, "ratio"),
        ({"measure": "share_of_points", "last": 9, "where": {"above": 1}, "above": 0.5}, 0.5, None, "share"),
        ({"divided_by": {"setting": "max_completion_length"}, "above": 0.9}, 0.9, None, "ratio"),
        ({"above": 1.0}, float("nan"), None, "value"),
    ],
)
def test_a_limit_is_a_level_only_where_the_measure_is_one(
    condition: dict[str, object], limit: float, level: float | None, unit: str
) -> None:
    made = Condition.model_validate({"metric": "completions/mean_length"} | condition)
    assert level_of(made, limit, lengths()) == level
    assert unit_of(made) == unit


def test_a_limit_follows_a_setting_or_its_default() -> None:
    said = Limit(setting="clip_range", plus=1, default=1.2)
    assert limit_of(said, {"clip_range": 0.3}) == 1.3
    assert limit_of(said, {}) == 1.2
    with pytest.raises(CannotRun, match="clip_range"):
        limit_of(Limit(setting="clip_range"), {"clip_range": None})


def test_a_start_that_is_not_finite_for_long_is_still_the_start() -> None:
    run = Run("run", Place("tensorboard", "here"))
    values = [np.nan] * 99 + [4.0, 6.0, 8.0]
    run.add("train/reward", range(1, 103), np.ones(102))
    run.add("train/completions/mean_length", range(1, 103), values)
    run.add("train/reward_std", range(1, 103), np.ones(102))
    metric = translate(run).metrics["completions/mean_length"]
    made = Condition.model_validate(
        {"metric": "completions/mean_length", "versus": {"start": 3, "as": "ratio"}, "above": 2}
    )
    assert level_of(made, 2.0, metric) == 12.0
