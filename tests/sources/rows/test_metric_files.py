"""CSV files of one metric each, which scripts write from event files, one file a tag."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rlhealth.metrics import translate
from rlhealth.sources import open_runs

VALUES = np.arange(40) / 8


def write(path: Path, *, columns: tuple[str, ...] = ("step", "value"), shift: float = 0.0) -> None:
    """A file with a time, if it has such a column, the step, and a value for each of forty steps."""
    numbers = [1.7e9 + np.arange(40.0), np.arange(40), VALUES + shift][-len(columns) :]
    pd.DataFrame(dict(zip(columns, numbers, strict=True))).to_csv(path, index=False)


@pytest.mark.parametrize("columns", [("step", "value"), ("wall_time", "step", "value"), ("Step", "Value")])
def test_files_of_one_metric_each_are_one_run_with_the_tags_in_their_names(
    columns: tuple[str, ...], tmp_path: Path
) -> None:
    for place, tag in enumerate(("Train__mean_reward", "Loss__value_function", "Loss__surrogate")):
        write(tmp_path / f"2026-07-30_ppo_s1__{tag}.csv", columns=columns, shift=place)
    (run,) = open_runs(tmp_path)
    assert sorted(run.series) == ["Loss/surrogate", "Loss/value_function", "Train/mean_reward"]
    assert run.series["Train/mean_reward"].values.tolist() == VALUES.tolist()
    assert run.series["Loss/value_function"].values.tolist() == (VALUES + 1).tolist()
    assert np.isfinite(run.series["Train/mean_reward"].times).all() == (len(columns) == 3)


def test_a_common_beginning_that_belongs_to_the_names_is_kept(tmp_path: Path) -> None:
    for tag in ("loss_policy", "loss_value"):
        write(tmp_path / f"{tag}.csv")
    (run,) = open_runs(tmp_path)
    assert sorted(run.series) == ["loss_policy", "loss_value"]


def test_files_of_one_metric_of_several_runs_stay_apart(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        write(tmp_path / f"ppo_seed{seed}_reward.csv", shift=seed)
    assert len(open_runs(tmp_path)) == 3


@pytest.mark.parametrize("name", ["run7__Train__mean_reward.csv", "episode_reward.csv", "ppo__reward.csv"])
def test_a_file_of_one_metric_alone_has_the_tag_at_the_end_of_its_name(name: str, tmp_path: Path) -> None:
    write(tmp_path / name)
    for where in (tmp_path, tmp_path / name):
        (run,) = open_runs(where)
        assert translate(run).metrics["reward"].values.tolist() == VALUES.tolist()


def test_a_file_of_one_metric_whose_name_says_nothing_has_values(tmp_path: Path) -> None:
    write(tmp_path / "export7.csv")
    (run,) = open_runs(tmp_path)
    assert list(run.series) == ["value"]
