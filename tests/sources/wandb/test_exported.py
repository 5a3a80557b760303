"""History that wandb's server exported as Parquet: the same numbers as the run's own file, whatever the parts are
called; what cannot be read is named with what to do.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from rlhealth.check import check
from rlhealth.errors import RlhealthError
from rlhealth.sources import find_readers, open_runs
from rlhealth.sources.base.candidates import is_wandb_export
from rlhealth.sources.wandb.exported import ExportReader
from tests.examples import examples
from tests.sources.wandb_online import EXPORTED, GRPO, offline


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The parts under names that say nothing of their order."""
    (tmp_path / "run").mkdir()
    for path, name in zip(EXPORTED, ("b.parquet", "a.parquet"), strict=True):
        shutil.copy(path, tmp_path / "run" / name)
    return tmp_path / "run"


def written(path: Path, rows: dict[str, Any]) -> Path:
    parquet.write_table(pyarrow.table(rows), path)
    return path


def test_the_parts_of_a_run_are_one_run_with_the_numbers_of_its_own_file(folder: Path) -> None:
    (run,) = open_runs(str(folder))
    there = offline(GRPO)
    assert run.last_step == 20 and len(run.series) > 20, "the later rows were not exported"
    for tag, one in run.series.items():
        np.testing.assert_array_equal(one.steps, there.series[tag].steps[: len(one)], tag)
        np.testing.assert_array_equal(one.values, there.series[tag].values[: len(one)], tag)
    assert (run.name, run.place.kind, run.step_axis) == ("run", "wandb_export", "train/global_step")


def test_a_part_that_is_named_is_read_and_so_is_one_that_comes_later(folder: Path) -> None:
    (first,) = open_runs(str(folder / "b.parquet"))
    assert 0 < first.last_step < 20
    later = folder / "a.parquet"
    kept = later.read_bytes()
    later.write_bytes((folder / "b.parquet").read_bytes())
    (reader,) = find_readers(str(folder))
    assert reader.poll() and not reader.poll() and reader.run.last_step == first.last_step
    later.write_bytes(kept)
    assert reader.poll() and reader.run.last_step == 20


def test_null_is_absent_and_what_is_no_number_is_what_the_sdk_logged(tmp_path: Path) -> None:
    histogram = {"_type": "histogram", "values": [1, 2], "bins": [0.0, 1.0, 2.0]}
    path = written(
        tmp_path / "x.parquet",
        {
            "_step": [0, 1, 2],
            "_timestamp": [1.0, 2.0, 3.0],
            "kl": [0.5, None, float("inf")],
            "loss": ["NaN", "0.1 or so", None],
            "ratio": [None, histogram, None],
            "gradients/layer": [1.0, 1.0, 1.0],
        },
    )
    (run,) = open_runs(str(path))
    assert (run.series["kl"].steps.tolist(), run.series["kl"].values.tolist()) == ([0, 2], [0.5, np.inf])
    assert run.series["loss"].steps.tolist() == [0] and np.isnan(run.series["loss"].values[0])
    assert run.histograms["ratio"].steps == [1] and "gradients/layer" not in run.series


def test_without_pyarrow_it_is_an_error_that_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = check(folder)
    assert found.exit_code == 2 and [one.hint for one in found.errors] == ["pip install 'rlhealth[parquet]'"]


def test_another_table_in_parquet_is_no_run_and_says_so_where_it_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "metrics.parquet", {"step": [1, 2], "reward": [0.1, 0.2]})
    assert not is_wandb_export(path)
    verdict = check(tmp_path)
    assert verdict.exit_code == 2 and [one.location for one in verdict.left_out] == [str(path)]
    with pytest.raises(RlhealthError):
        open_runs(str(path))


def test_a_damaged_part_hides_no_other(folder: Path) -> None:
    path = folder / "a.parquet"
    whole = path.read_bytes()
    path.write_bytes(bytes(2000) + whole[2000:])
    (run,) = open_runs(str(folder))
    assert run.series["train/reward"].steps[0] == 1
    assert run.problems and all(one.startswith("a.parquet: damaged") for one in run.problems)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 60_000), flipped=st.integers(0, 60_000), value=st.integers(0, 255))
def test_a_torn_or_damaged_file_never_ends_in_a_traceback(tmp_path: Path, cut: int, flipped: int, value: int) -> None:
    content = bytearray(EXPORTED[0].read_bytes())
    content[flipped % len(content)] = value
    path = tmp_path / "part.parquet"
    path.write_bytes(content if cut % 3 else content[: cut % len(content)])
    verdict = check(path)
    assert verdict.runs or all("internal error" not in one.message for one in verdict.errors)


def test_a_cell_that_python_has_no_value_for_costs_only_itself(tmp_path: Path) -> None:
    far = pyarrow.array([2_147_483_647, 1, None], pyarrow.date32())
    nowhere = pyarrow.array([1, 2, 3], pyarrow.timestamp("s", "Mars/Olympus"))
    torn = pyarrow.Array.from_buffers(pyarrow.string(), 3, pyarrow.array([b"\xff", b"NaN", b"1"]).buffers())
    own = {"_step": [0, 1, 2], "_timestamp": [1.0, 2.0, 3.0], "kl": [0.5, 0.6, 0.7]}
    path = written(tmp_path / "x.parquet", {**own, "day": far, "moment": nowhere, "loss": torn})
    (run,) = open_runs(str(path))
    assert run.series["kl"].values.tolist() == [0.5, 0.6, 0.7] and not run.problems
    assert run.series["loss"].steps.tolist() == [1]


def test_two_parts_without_a_step_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        written(tmp_path / f"{name}.parquet", {"x_step": [1], "_timestamp": [1.0], "_step.": [2], "kl": [0.5]})
    reader = ExportReader(sorted(tmp_path.iterdir()))
    assert reader.poll() and reader.run.series["kl"].values.tolist() == [0.5, 0.5]
