"""evaluations.npz: read where it lies alone, left beside other logs, and never unpickled."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import UnreadFile
from rlhealth.sources import open_runs
from rlhealth.sources.base import arrays
from rlhealth.sources.discovery.find import find_readers
from rlhealth.sources.evaluations.reader import Evaluations
from tests.conftest import ROOT

FIXTURE = ROOT / "fixtures" / "evaluations" / "evaluations.npz"


def saved(path: Path, count: int, **more: object) -> Path:
    """A file as EvalCallback saves it, with so many evaluations of three episodes."""
    steps = np.arange(1, count + 1) * 100
    results = np.add.outer(steps / 100.0, [-1.0, 0.0, 1.0])
    np.savez(path, **{"timesteps": steps, "results": results, "ep_lengths": results.astype(int)} | more)  # type: ignore[arg-type]
    return path


def test_the_means_of_each_evaluation_are_the_reward_and_the_length_of_its_step() -> None:
    (run,) = open_runs(FIXTURE)
    kept = np.load(FIXTURE)
    known = translate(run)
    assert (known.framework, known.metrics["reward"].tag) == ("sb3", "evaluations/results")
    assert known.metrics["reward"].steps.tolist() == kept["timesteps"].tolist()
    assert known.metrics["reward"].values.tolist() == kept["results"].mean(axis=1).tolist()
    assert known.metrics["episodes/mean_length"].values.tolist() == kept["ep_lengths"].mean(axis=1).tolist()


def test_the_spread_of_its_episodes_is_the_error_of_an_evaluation(tmp_path: Path) -> None:
    (run,) = open_runs(str(saved(tmp_path / "evaluations.npz", 4)))
    assert translate(run).metrics["reward/error"].values.tolist() == [pytest.approx(1 / 3**0.5)] * 4
    (single,) = open_runs(str(saved(tmp_path / "evaluations.npz", 4, results=np.arange(4.0))))
    assert "reward/error" not in translate(single).metrics


def test_it_is_left_beside_a_log_of_training_and_said_to_be(tmp_path: Path) -> None:
    shutil.copy(FIXTURE, tmp_path)
    (tmp_path / "progress.csv").write_bytes((ROOT / "fixtures" / "tables" / "progress.csv").read_bytes())
    left: list[UnreadFile] = []
    (one,) = find_readers(tmp_path, left=left)
    assert one.run.place.kind == "csv"
    assert [Path(file.location).name for file in left] == ["evaluations.npz"]


def test_it_grows_when_it_is_saved_anew_and_a_file_that_is_being_saved_is_waited_for(tmp_path: Path) -> None:
    path = saved(tmp_path / "evaluations.npz", 3)
    one = Evaluations(path)
    assert one.poll() and not one.poll()
    saved(path, 5)
    assert one.poll()
    assert one.run.series["evaluations/results"].values.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    path.write_bytes(path.read_bytes()[:-40])
    assert not one.poll()
    assert len(one.run.series["evaluations/results"]) == 5


@pytest.mark.parametrize(
    "more",
    [
        {"results": np.array([[1.0], [1.0, 2.0], [3.0]], dtype=object)},  # would have to be unpickled
        {"results": np.ones((4, 2))},  # of other steps
        {"results": np.array(["a", "b", "c"])},
        {"timesteps": np.array([1.0, np.nan, 3.0])},
        {"results": np.ones((3, 0))},
        {"results": np.ones((3, 2, 2))},
    ],
)
def test_what_is_no_evaluation_is_refused_in_one_line(tmp_path: Path, more: dict[str, object]) -> None:
    with pytest.raises(RlhealthError, match="no evaluations that can be read"):
        open_runs(saved(tmp_path / "evaluations.npz", 3, **more))


def test_a_header_that_claims_more_than_there_is_takes_no_memory(tmp_path: Path) -> None:
    text = io.BytesIO()
    np.lib.format.write_array_header_1_0(text, {"descr": "<f8", "fortran_order": False, "shape": (10**14,)})
    path = tmp_path / "evaluations.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("timesteps.npy", text.getvalue() + bytes(64))
    with pytest.raises(RlhealthError, match="shorter than it says"):
        open_runs(path)


@pytest.mark.parametrize(
    "header", [b"(\n", b"{'descr': '<f8', 'fortran_order': False, 'shape': 3}\n", b"{'descr': '\n", b"[" * 3000 + b"\n"]
)
def test_a_damaged_header_is_refused_in_one_line(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "evaluations.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("timesteps.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64))
    with pytest.raises(RlhealthError, match="no evaluations that can be read"):
        open_runs(path)


def test_an_array_that_unpacks_to_more_than_its_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "LARGEST", 1000)
    with pytest.raises(RlhealthError, match="is larger than"):
        open_runs(saved(tmp_path / "evaluations.npz", 200))


@pytest.mark.parametrize("cut", [0, 1, 100, 500, 1000, 1500, -1])
def test_a_file_that_is_cut_anywhere_is_refused_in_one_line(tmp_path: Path, cut: int) -> None:
    (tmp_path / "evaluations.npz").write_bytes(FIXTURE.read_bytes()[:cut])
    with pytest.raises(RlhealthError):
        open_runs(tmp_path / "evaluations.npz")


def test_evaluations_that_somebody_saved_under_another_name_are_read(tmp_path: Path) -> None:
    episodes = np.arange(60.0).reshape(20, 3)
    np.savez(tmp_path / "evaluations.npz", timesteps=np.arange(1, 21) * 1000, rewards=episodes)
    (run,) = open_runs(tmp_path)
    assert run.series["evaluations/results"].values.tolist() == episodes.mean(axis=1).tolist()
