"""Curves of several runs in one array or table: each is a run, in a file that is called after rewards or was named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import Run
from rlhealth.sources import open_runs
from rlhealth.sources.arrays.curves import LONGER, MOST, curves_in, curves_of

SEEDS = np.arange(120).reshape(3, 40) / 8  # three runs of forty episodes


def rewards(run: Run) -> list[float]:
    return translate(run).metrics["reward"].values.tolist()


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("seeds", [SEEDS, SEEDS.T])
def test_the_rows_or_columns_of_a_table_that_pandas_saved_are_runs(
    seeds: np.ndarray, has_index: bool, tmp_path: Path
) -> None:
    pd.DataFrame(seeds).to_csv(tmp_path / "maze_rewards.csv", index=has_index)
    for where in (tmp_path, tmp_path / "maze_rewards.csv"):
        assert [rewards(run) for run in open_runs(where)] == SEEDS.tolist()


@pytest.mark.parametrize("seeds", [SEEDS, SEEDS.T])
def test_the_rows_or_columns_of_an_array_are_runs_with_names_and_places_of_their_own(
    seeds: np.ndarray, tmp_path: Path
) -> None:
    np.save(tmp_path / "returns.npy", seeds)
    runs = open_runs(tmp_path / "returns.npy")
    assert [rewards(run) for run in runs] == SEEDS.tolist()
    assert [run.name for run in runs] == ["returns", "returns#2", "returns#3"]
    assert [Path(run.place.location).name for run in runs] == ["returns.npy", "returns.npy#2", "returns.npy#3"]
    assert runs[1].notes[0] == "curve 2 of the 3 in returns.npy: rows or columns, whichever are fewer, are read as runs"


def test_lists_in_json_are_runs_however_long_each_is(tmp_path: Path) -> None:
    lists = [[0.5] * 40, [1.5] * 55]
    (tmp_path / "scores.json").write_text(json.dumps(lists))
    assert [rewards(run) for run in open_runs(tmp_path)] == lists


def test_shorter_curves_that_a_table_fills_up_end_with_their_last_number(tmp_path: Path) -> None:
    filled = np.where(np.arange(40) < 30, SEEDS, np.nan)
    filled[0] = SEEDS[0]
    pd.DataFrame(filled).to_csv(tmp_path / "rewards.csv")
    assert [len(rewards(run)) for run in open_runs(tmp_path)] == [40, 30, 30]


def test_a_table_that_is_asked_for_as_csv_is_reported_as_one(tmp_path: Path) -> None:
    pd.DataFrame(SEEDS.T).to_csv(tmp_path / "rewards.csv")
    with pytest.raises(RlhealthError, match="columns are numbered"):
        open_runs(tmp_path / "rewards.csv", source="csv")
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path, source="csv")


@pytest.mark.parametrize("name", ["results.csv", "losses.csv"])
def test_a_table_that_is_not_called_after_rewards_is_read_where_the_user_names_it(name: str, tmp_path: Path) -> None:
    pd.DataFrame(SEEDS.T).to_csv(tmp_path / name)
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path)
    runs = open_runs(tmp_path / name)
    assert [list(run.series) for run in runs] == [[name.removesuffix(".csv")]] * 3


def test_an_array_that_is_not_called_after_rewards_is_told_where_nothing_else_lies(tmp_path: Path) -> None:
    np.save(tmp_path / "full_report.npy", SEEDS)
    with pytest.raises(RlhealthError, match="no runs found") as error:
        open_runs(tmp_path)
    assert error.value.hint.endswith("full_report.npy is not called after rewards: name the file itself to read it")


@pytest.mark.parametrize("shape", [(20, 20), (3, 3 * LONGER - 1), (MOST + 1, 40 * LONGER), (2, 3, 40), (0, 40)])
def test_arrays_whose_steps_may_lie_either_way_hold_no_curves(shape: tuple[int, ...]) -> None:
    assert curves_of(np.zeros(shape)) == []


def test_what_is_cut_off_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "rewards.json").write_text(json.dumps([[0.5] * 40, [1.5] * 40])[:-30])
    with pytest.raises(RlhealthError, match=r"rewards\.json: no curve that can be read"):
        open_runs(tmp_path / "rewards.json")


def test_a_short_table_of_numbered_columns_is_reported_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "rewards.csv").write_text(",0,1,2\n0,21,39,13\n1,19,13,9\n")
    with pytest.raises(RlhealthError, match="no few rows or columns that are long") as error:
        open_runs(tmp_path / "rewards.csv")
    assert "step,reward,kl" in error.value.hint


def test_lists_within_lists_are_no_curves(tmp_path: Path) -> None:
    (tmp_path / "rewards.json").write_text(json.dumps([[0.5] * 40, [[1.5]] * 40]))
    with (tmp_path / "rewards.json").open("rb") as file:
        assert curves_in(file, ".json") == []
