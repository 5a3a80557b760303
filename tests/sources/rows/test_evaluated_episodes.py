"""A table of the episodes of an evaluation is no log of training; a training whose file speaks of evaluations is one."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import rlhealth

EPISODES = [
    {"policy": policy, "episode": at, "reward": 0.0 if policy == "random" else 5.0 + at % 3}
    for policy in ("learned", "random")
    for at in range(30)
]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)


def verdicts(path: Path, rows: list[dict[str, Any]]) -> set[tuple[str, bool]]:
    write(path, rows)
    return {(str(run.verdict), bool(run.translation.is_rl)) for run in rlhealth.check(path).runs}


@pytest.mark.parametrize(
    "name", ["eval_results.csv", "evaluation_log.csv", "ppo-benchmark.csv", "rl_test_performance.csv"]
)
def test_episodes_of_an_evaluation_are_not_judged(tmp_path: Path, name: str) -> None:
    assert verdicts(tmp_path / name, EPISODES) == {("unknown", False)}


def test_a_column_that_counts_evaluated_episodes_says_so_whatever_the_file_is_called(tmp_path: Path) -> None:
    rows = [{"evaluation_episode": row["episode"], "reward": row["reward"]} for row in EPISODES]
    assert verdicts(tmp_path / "lunar.csv", rows) == {("unknown", False)}


def test_the_run_says_what_it_is(tmp_path: Path) -> None:
    verdicts(tmp_path / "eval.csv", EPISODES)
    (run, _) = rlhealth.check(tmp_path / "eval.csv").runs
    assert "the episodes of an evaluation" in run.no_answer


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("results.csv", EPISODES),
        (
            "eval_results.csv",
            [{**row, "episode": 50 * row["episode"]} for row in EPISODES],
        ),  # between those of a training
        ("eval_results.csv", [{**row, "epsilon": 0.5} for row in EPISODES]),
        ("eval_results.csv", [{**row, "loss": 0.5} for row in EPISODES]),
        ("evaluator.csv", EPISODES),
        ("test.csv", EPISODES),
        ("eval_results.csv", [{"step": row["episode"], "reward": row["reward"]} for row in EPISODES]),
    ],
)
def test_what_may_be_a_training_is_judged(tmp_path: Path, name: str, rows: list[dict[str, Any]]) -> None:
    assert all(is_rl for _, is_rl in verdicts(tmp_path / name, rows))


def test_beside_a_log_of_training_they_are_left_out_and_said_to_be(tmp_path: Path) -> None:
    write(tmp_path / "eval_results.csv", EPISODES)
    assert len(rlhealth.check(tmp_path).runs) == 2
    write(tmp_path / "progress.csv", [{"step": n, "reward": n / 30, "loss": 0.5} for n in range(40)])
    found = rlhealth.check(tmp_path)
    assert [Path(run.run.place.location).name for run in found.runs] == ["progress.csv"]
    (one,) = found.left_out
    assert one.location.endswith("eval_results.csv") and "the episodes of an evaluation" in one.reason
