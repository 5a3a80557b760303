"""Tables of a search over settings, which are no history of a run."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.sources import open_runs

TRIED = pd.DataFrame(product((0.9, 0.99), (1e-4, 3e-4), (32, 64, 128)), columns=["gamma", "lr", "batch_size"])


def test_a_table_of_settings_that_were_tried_is_no_run(tmp_path: Path) -> None:
    TRIED.assign(n_steps=[128] * 12, reward_mean=range(12), eval_return=range(12)).to_csv(
        tmp_path / "grid.csv", index=False
    )
    with pytest.raises(RlhealthError, match="settings that were tried, one row a run"):
        open_runs(tmp_path / "grid.csv")
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path)


def test_settings_that_are_numbers_of_steps_count_none(tmp_path: Path) -> None:
    counts = {"warmup_steps": [50, 20, 30, 30] * 3, "steps_per_epoch": [100, 500] * 6, "return_mean": range(12, 0, -1)}
    TRIED.assign(**counts).to_csv(tmp_path / "ranked.csv", index=False)
    with pytest.raises(RlhealthError, match="settings that were tried, one row a run"):
        open_runs(tmp_path / "ranked.csv")


def test_settings_beside_a_count_of_steps_are_those_of_a_history(tmp_path: Path) -> None:
    TRIED.assign(episode=range(12), reward_mean=range(12)).to_csv(tmp_path / "log.csv", index=False)
    (run,) = open_runs(tmp_path / "log.csv")
    assert run.series["reward_mean"].values.tolist() == list(range(12))


def test_settings_that_a_controller_moves_up_and_down_are_those_of_a_history(tmp_path: Path) -> None:
    rows = range(12)
    table = {"lr": [1e-3, 5e-4] * 6, "beta": [0.1, 0.2, 0.4] * 4, "loss": rows, "mean_reward": rows}
    pd.DataFrame(table).to_csv(tmp_path / "log.csv", index=False)
    assert len(open_runs(tmp_path / "log.csv")) == 1


def test_settings_that_follow_a_schedule_are_those_of_a_history(tmp_path: Path) -> None:
    rows = range(12)
    table = {"lr": [1e-3 - 1e-5 * row for row in rows], "batch_size": [32] * 12, "loss": rows, "mean_reward": rows}
    pd.DataFrame(table).to_csv(tmp_path / "log.csv", index=False)
    assert len(open_runs(tmp_path / "log.csv")) == 1
