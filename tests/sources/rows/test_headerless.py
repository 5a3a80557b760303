"""Tables without a line of names, in files that are called after what they hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.sources import open_runs
from rlhealth.sources.rows.headerless import names_of

RETURNS = np.arange(40) / 8


@pytest.mark.parametrize("name", ["rewards.txt", "episode_rewards.csv", "scores_2.dat", "returns"])
def test_a_list_that_numpy_saved_is_under_the_name_of_its_file(name: str, tmp_path: Path) -> None:
    np.savetxt(tmp_path / name, RETURNS)
    (run,) = open_runs(tmp_path / name)
    (tag,) = run.series
    assert tag == name.partition(".")[0].removesuffix("_2")
    assert run.series[tag].values.tolist() == RETURNS.tolist()


def test_the_files_of_one_folder_of_d3rlpy_are_one_run(tmp_path: Path) -> None:
    for name, values in (("environment", RETURNS), ("loss", 1 / (1 + RETURNS)), ("time_step", RETURNS)):
        rows = [f"{n},{1000 * n},{value}" for n, value in enumerate(values.tolist(), 1)]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    (run,) = open_runs(tmp_path)
    assert run.series["environment"].steps.tolist() == [1000 * n for n in range(1, 41)]
    assert translate(run).metrics["eval/reward"].values.tolist() == RETURNS.tolist()
    assert "loss" in run.series


def test_numbers_in_a_file_of_another_name_are_no_log(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "weights.txt", RETURNS)
    assert not names_of("weights.txt", (tmp_path / "weights.txt").read_text())
    with pytest.raises(RlhealthError):
        open_runs(tmp_path / "weights.txt")


def test_a_table_with_names_or_other_columns_is_left_to_others() -> None:
    assert not names_of("rewards.csv", "step,reward\n1,0.5\n2,0.5\n3,0.5\n")
    assert not names_of("rewards.csv", "0.5,0.25\n0.5,0.25\n0.5,0.25\n0.5,0.25\n")
    assert not names_of("rewards.csv", "2,5,0.5\n1,4,0.5\n3,3,0.5\n4,4,0.5\n")
