"""One JSON file a step: the files of a folder that count are one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlhealth.metrics import translate
from rlhealth.sources import open_runs
from rlhealth.sources.rows.json_steps import apart

REWARDS = [n / 8 for n in range(1, 13)]


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    for at, row in enumerate(rows, 1):
        (folder / f"{name}{at}.json").write_text(json.dumps(row, indent=1))


def test_the_files_of_the_steps_are_one_run(tmp_path: Path) -> None:
    write(tmp_path / "logs", "step_", [{"step": at, "mean_reward": one} for at, one in enumerate(REWARDS, 1)])
    (run,) = open_runs(tmp_path)
    known = translate(run).metrics["reward"]
    assert (known.steps.tolist(), known.values.tolist()) == (list(range(1, 13)), REWARDS)


def test_what_happened_within_an_episode_is_left_out(tmp_path: Path) -> None:
    taken = [{"step": 1, "reward": 0.5}, {"step": 2, "reward": 1.0}]
    rows = [{"episode": at, "total_reward": one, "steps": taken} for at, one in enumerate(REWARDS)]
    write(tmp_path / "episodes", "episode_", rows)
    (run,) = open_runs(tmp_path)
    assert translate(run).metrics["reward"].values.tolist() == REWARDS


def test_files_that_come_are_read_and_none_twice(tmp_path: Path) -> None:
    rows = [{"step": at, "reward": one, "loss": 0.1} for at, one in enumerate(REWARDS, 1)]
    write(tmp_path, "step_", rows[:8])
    ((reader,), others) = apart(sorted(tmp_path.iterdir()))
    assert (others, reader.poll()) == ([], False)
    write(tmp_path, "step_", rows)
    assert reader.poll()
    assert reader.run.series["reward"].values.tolist() == REWARDS


@pytest.mark.parametrize(
    "row",
    [
        {"step": 3, "prompt": "p", "reward": 0.5},  # samples
        {"reward": 0.5, "loss": 0.1},  # counts nothing
        {"step": 3, "reward": 0.5},  # all the same step
        {"step": 3, "name": "x"},  # no metric
    ],
)
def test_other_numbered_files_are_no_steps(tmp_path: Path, row: dict[str, Any]) -> None:
    write(tmp_path, "record_", [row] * 8)
    found, others = apart(sorted(tmp_path.iterdir()))
    assert (found, len(others)) == ([], 8)
