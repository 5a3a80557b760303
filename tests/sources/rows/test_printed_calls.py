"""Rewards of single completions that a reward function writes, with one time for a call, are rows of whole calls."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rlhealth.metrics import translate
from rlhealth.sources import open_runs
from rlhealth.sources.rows.printed import Printed


def call(number: int, rewards: list[float], name: str = "Accuracy reward") -> str:
    """What accuracy_reward of R1-V writes to LOG_PATH."""
    current_time = (datetime(2025, 2, 22, 21) + timedelta(seconds=2 * number)).strftime("%d-%H-%M-%S-%f")
    return "".join(
        f"------------- {current_time} {name}: {reward} -------------\n"
        f"Content: <answer> {number} </answer>\nSolution: <answer> 30 </answer>\n"
        for reward in rewards
    )


@pytest.mark.parametrize("size", [8, 12])
def test_a_call_is_a_row_of_its_mean(tmp_path: Path, size: int) -> None:
    paid = [[float(one < number) for one in range(size)] for number in range(12)]
    path = tmp_path / "debug_log_2b.txt"
    path.write_text("".join(call(number, rewards) for number, rewards in enumerate(paid)))
    (run,) = open_runs(str(path))
    assert translate(run).metrics["reward"].values.tolist() == pytest.approx([sum(one) / size for one in paid])


def test_calls_of_few_completions_are_averaged_together(tmp_path: Path) -> None:
    path = tmp_path / "debug_log_2b.txt"
    path.write_text("".join(call(number, [float(number % 2)]) for number in range(80)))
    (run,) = open_runs(str(path))
    assert translate(run).metrics["reward"].values.tolist() == [0.5] * 10


def test_another_reward_begins_another_row() -> None:
    printed = Printed()
    text = call(1, [1.0, 0.0]) + call(2, [0.5], "Format reward") + "done\n"
    rows = [dict(row) for line in text.splitlines() for row in printed.rows(line)] + [
        dict(row) for row in printed.end()
    ]
    assert rows == [{"Accuracy reward": 0.5}, {"Format reward": 0.5}]


@pytest.mark.parametrize(
    "line", ["---------- 22-21-00-29-161451 Accuracy reward: high ----------", "------ 1.0 ------"]
)
def test_other_lines_between_rules_are_no_rewards(line: str) -> None:
    printed = Printed()
    assert [*printed.rows(line), *printed.end()] == []
