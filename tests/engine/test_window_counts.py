"""How many points a message names: as many as the window held, which are fewer at the start, or where values are
lost.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rlhealth.check import judge
from rlhealth.engine.operands import Operand
from rlhealth.engine.window_counts import points_before_window, points_in_window
from rlhealth.rules.conditions import Condition
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from rlhealth.verdict.findings import Finding
from tests.canonical import translated

NAN = math.nan


def operand_of(said: dict[str, Any], values: list[float], kl: list[float] | None = None) -> Operand:
    run = Run("run", Place("jsonl", "here"))
    run.add("loss", np.arange(1, len(values) + 1), np.asarray(values))
    if kl is not None:
        run.add("kl", np.arange(1, len(kl) + 1), np.asarray(kl))
    metrics = translated(run).metrics
    condition = Condition.model_validate({"metric": "loss", "above": 0} | said)
    return Operand(condition, metrics["loss"], metrics.get("kl"), 1.0)


@pytest.mark.parametrize(
    ("said", "values", "step", "points"),
    [
        ({"last": 4, "measure": "mean"}, [1.0] * 9, 9, 4),
        ({"last": 4, "measure": "mean"}, [1.0] * 9, 3, 3),
        ({"last": 4, "measure": "mean"}, [1.0, 1.0, NAN, 1.0, 1.0], 5, 3),
        ({"last": 4, "measure": "share_nonfinite"}, [1.0, 1.0, NAN, NAN, 1.0], 5, 4),
        ({"last": 4, "measure": "mean"}, [1.0] * 9, 0, 0),
    ],
)
def test_a_window_holds_the_points_that_there_were(
    said: dict[str, Any], values: list[float], step: int, points: int
) -> None:
    operand = operand_of(said, values)
    assert points_in_window(operand, operand.condition, step) == points


def test_what_it_is_divided_by_has_to_be_there_too() -> None:
    operand = operand_of(
        {"last": 5, "measure": "mean", "divided_by": {"metric": "kl"}}, [1.0] * 6, [NAN, NAN, NAN, 1.0, NAN, 1.0]
    )
    assert points_in_window(operand, operand.condition, 6) == 3


@pytest.mark.parametrize(("step", "points"), [(30, 20), (18, 16), (2, 0)])
def test_the_points_before_a_window_are_counted_alone(step: int, points: int) -> None:
    operand = operand_of({"last": 2, "measure": "mean", "versus": {"largest": 20, "as": "ratio"}}, [1.0] * 30)
    assert points_before_window(operand, operand.condition, step) == points


def found_in(**series: np.ndarray) -> dict[str, Finding]:
    run = Run("run", Place("csv", "here"))
    for tag, values in series.items():
        run.add(tag, list(range(1, len(values) + 1)), values)
    return {one.rule: one for one in judge(run, load_rules()).findings}


def test_a_message_names_no_more_points_than_there_were() -> None:
    noise = np.random.default_rng(5).normal(size=40)
    clipped = np.where(np.arange(40) < 6, 0.9, 0.01)
    found = found_in(reward=noise, clip_fraction=clipped, policy_loss=0.1 + 0.01 * noise)
    assert "(mean over 4 points" in found["clip-fraction-high-in-control"].message
    assert "around step 4 " in found["clip-fraction-high-in-control"].message


def test_a_message_names_no_more_points_before_than_there_were() -> None:
    rewards = 0.4 + 0.05 * np.random.default_rng(5).normal(size=60)
    rewards[16] = 50
    found = found_in(reward=rewards, completion_length=200 + 10 * rewards)
    assert "any of the 16 points before it (step 17)" in found["reward-out-of-scale"].message
