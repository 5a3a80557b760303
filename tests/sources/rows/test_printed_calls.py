"""Rewards of single completions that a reward function writes, with one time for a call, are rows of whole calls."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rlhealth.metrics import translate
from rlhealth.sources import find_readers, open_runs
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
    means = [sum(one) / size for one in paid]
    assert translate(run).metrics["reward"].values.tolist() == pytest.approx(means[:-1])  # of the newest, more may come


def test_it_is_the_same_where_the_file_is_read_as_it_grows_and_texts_are_long(tmp_path: Path) -> None:
    text = "".join(call(number, [float(number % 3 == 0)] * 8) for number in range(30))
    text = text.replace("> 30 <", ">" + "think\n" * 90 + "<")
    path = tmp_path / "debug_log_2b.txt"
    path.write_text(text[: len(text) // 7])
    (reader,) = find_readers(path)
    for part in range(1, 8):
        path.write_text(text[: len(text) * part // 7])
        reader.poll()
        reader.poll()
    assert reader.run.series["Accuracy reward/mean"].values.tolist() == [float(number % 3 == 0) for number in range(29)]


def test_calls_of_few_completions_are_averaged_together(tmp_path: Path) -> None:
    path = tmp_path / "debug_log_2b.txt"
    path.write_text("".join(call(number, [float(number % 2)]) for number in range(80)))
    (run,) = open_runs(str(path))
    assert translate(run).metrics["reward"].values.tolist() == [0.5] * 9


def test_another_reward_begins_another_row() -> None:
    printed = Printed()
    text = call(1, [1.0, 0.0]) + call(2, [0.5], "Format reward") + "done\n"
    rows = [dict(row) for line in text.splitlines() for row in printed.rows(line)]
    assert rows == [{"Accuracy reward/mean": 0.5, "Accuracy reward/std": 0.5}]


@pytest.mark.parametrize(
    "line", ["---------- 22-21-00-29-161451 Accuracy reward: high ----------", "------ 1.0 ------"]
)
def test_other_lines_between_rules_are_no_rewards(line: str) -> None:
    printed = Printed()
    assert [*printed.rows(line), *printed.end()] == []
