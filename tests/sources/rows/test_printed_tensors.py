"""Rewards of a batch that are printed as a tensor are one row, on one line or on several."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlhealth.metrics import translate
from rlhealth.sources import open_runs
from rlhealth.sources.rows.printed import Printed
from rlhealth.sources.rows.printed_tensors import BrokenTensors, rewards_in

BATCHES = np.random.default_rng(1).normal(0, 1, (20, 24)).round(4)


def printed(batch: np.ndarray, each: int, end: str = "") -> str:
    """A batch as PyTorch prints it, with so many numbers on a line."""
    numbers = [f"{one: .4f}" for one in batch]
    lines = [", ".join(numbers[start : start + each]) for start in range(0, len(numbers), each)]
    return "tensor([" + ",\n        ".join(lines) + f"]{end})"


@pytest.mark.parametrize("each", [24, 8, 5])
@pytest.mark.parametrize("end", ["", ", device='cuda:0'", ", device='cuda:0', dtype=torch.float64"])
def test_each_batch_is_a_row_with_its_mean_and_spread(tmp_path: Path, each: int, end: str) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"time: 7.18s     rewards: {printed(one, each, end)}\nanswers: (5)\n" for one in BATCHES))
    (run,) = open_runs(str(path))
    found = translate(run).metrics
    np.testing.assert_allclose(found["reward"].values, BATCHES.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(found["reward_std"].values, BATCHES.std(axis=1), atol=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "rewards: tensor([0.0, 1.0])",  # alone: the rewards of an environment's copies are printed so
        "time: 1.0s rewards: tensor([0.5, x])",
        "time: 1.0s lengths: tensor([12., 14.])",
        "time: 1.0s rewards: tensor([[0.5, 1.0], [0.5, 1.0]])",
        "time: 1.0s rewards: tensor([0.5, 1.0",
    ],
)
def test_other_tensors_are_no_rewards(text: str) -> None:
    rows = [row for row in Printed().rows(text) if any("reward" in name for name in row)]
    assert rows == []


def test_a_tensor_that_never_ends_hides_no_line_after_it() -> None:
    lines = BrokenTensors()
    assert lines.joined("time: 1.0s rewards: tensor([0.5, 1.0,") is None
    assert lines.joined("        0.5, 1.0,") is None
    assert lines.joined("step 3 loss 0.5") == "step 3 loss 0.5"
    assert not lines.is_open


def test_a_reward_that_is_not_finite_leaves_no_spread() -> None:
    found = rewards_in("time: 1.0s rewards: tensor([nan, 1.0])")
    assert np.isnan(found["rewards/mean"]) and np.isnan(found["rewards/std"])
