"""Curves that numpy and pickle saved: read in a file that is called after them, never a data set's; nothing is run."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import UnreadFile
from rlhealth.sources import open_runs
from rlhealth.sources.arrays.reader import Curve
from rlhealth.sources.base import arrays
from rlhealth.sources.discovery.find import find_readers

RETURNS = np.arange(40) / 8


@pytest.mark.parametrize("name", ["rewards", "episode_rewards", "dqn_rewards", "scores_2", "returns"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_an_array_of_one_dimension_is_the_reward_of_a_run(name: str, kind: type, tmp_path: Path) -> None:
    np.save(tmp_path / f"{name}.npy", RETURNS.astype(kind))
    for where in (tmp_path, tmp_path / f"{name}.npy"):
        (run,) = open_runs(where)
        assert translate(run).metrics["reward"].values.tolist() == RETURNS.tolist()
        assert run.place.kind == "numpy"


def test_a_column_of_one_cell_a_row_is_a_list_too(tmp_path: Path) -> None:
    np.save(tmp_path / "rewards.npy", RETURNS.reshape(40, 1))
    (run,) = open_runs(tmp_path)
    assert run.series["rewards"].values.tolist() == RETURNS.tolist()


def test_the_arrays_of_an_archive_have_their_names_and_their_steps(tmp_path: Path) -> None:
    np.savez(tmp_path / "scores.npz", scores=RETURNS, lengths=RETURNS + 1, steps=np.arange(40) * 100, seeds=["a", "b"])
    (run,) = open_runs(tmp_path)
    known = translate(run).metrics
    assert known["reward"].steps.tolist() == [100 * n for n in range(40)]
    assert known["episodes/mean_length"].values.tolist() == (RETURNS + 1).tolist()


def test_the_only_array_of_an_archive_is_called_after_the_file(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "returns.npz", RETURNS)
    (run,) = open_runs(tmp_path)
    assert translate(run).metrics["reward"].values.tolist() == RETURNS.tolist()


@pytest.mark.parametrize("name", ["rewards.pkl", "pong_rewards.pickle", "scores_200.pkl"])
@pytest.mark.parametrize("held", [RETURNS, RETURNS.tolist(), [*RETURNS], tuple(RETURNS)])
def test_a_list_that_was_pickled_is_the_reward_of_a_run(name: str, held: object, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(held))
    (run,) = open_runs(tmp_path)
    assert translate(run).metrics["reward"].values.tolist() == RETURNS.tolist()


@pytest.mark.parametrize("name", ["history.pkl", "training_stats.pickle", "rewards.pkl"])
def test_the_lists_of_a_dict_that_was_pickled_are_one_run(name: str, tmp_path: Path) -> None:
    held = {"episode_rewards": RETURNS.tolist(), "losses": (1 / (1 + RETURNS)).tolist(), "seed": 3}
    (tmp_path / name).write_bytes(pickle.dumps(held))
    (run,) = open_runs(tmp_path)
    assert {"episode_rewards", "losses"} == run.series.keys()


def test_other_pickles_are_no_run_and_are_named_where_they_are_called_logs(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(RETURNS))
    (tmp_path / "training_state.pkl").write_bytes(pickle.dumps({"weights": RETURNS}))
    (tmp_path / "q_train.pkl").write_bytes(gzip.compress(pickle.dumps(RETURNS)))
    (tmp_path / "scores.pkl").write_bytes(pickle.dumps([pytest.Item]))
    (tmp_path / "rewards.pkl").write_bytes(pickle.dumps({"rewards": RETURNS, "actions": RETURNS}))
    left: list[UnreadFile] = []
    with pytest.raises(RlhealthError, match="no runs found"):
        find_readers(tmp_path, left=left)
    assert {Path(one.location).name: one.reason.partition(": ")[2] for one in left} == {
        "q_train.pkl": "damaged: at position 0, opcode b'\\x1f' unknown",
        "training_state.pkl": "none of its lists is called a reward",
        "scores.pkl": "it holds _pytest.nodes.Item, which is not read",
        "rewards.pkl": "transitions of a data set",
    }


def test_a_value_that_is_nan_stays_one(tmp_path: Path) -> None:
    np.save(tmp_path / "rewards.npy", np.where(RETURNS == 1, np.nan, RETURNS))
    (run,) = open_runs(tmp_path)
    assert np.isnan(run.series["rewards"].values).sum() == 1
    assert len(run.series["rewards"]) == 40


def left_in(folder: Path) -> dict[str, str]:
    """What is said of each file of a folder that is not read, beside a table that is."""
    (folder / "progress.csv").write_text("step,reward,loss\n" + "".join(f"{n},{n / 8},{1 / n}\n" for n in range(1, 40)))
    left: list[UnreadFile] = []
    (one,) = find_readers(folder, left=left)
    assert one.run.place.kind == "csv"
    return {Path(file.location).name: file.reason for file in left}


def test_it_is_left_beside_a_log_of_training_and_said_to_be(tmp_path: Path) -> None:
    np.save(tmp_path / "rewards.npy", RETURNS)
    assert "beside a log of training" in left_in(tmp_path)["rewards.npy"]


def test_a_pickle_is_left_beside_a_log_of_training_and_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "training_model.pkl").write_bytes(pickle.dumps(RETURNS))
    assert left_in(tmp_path)["training_model.pkl"].startswith("a pickle beside a log of training")


@pytest.mark.parametrize("beside", ["actions", "observations", "next_states", "dones"])
def test_the_rewards_of_a_data_set_are_no_run(beside: str, tmp_path: Path) -> None:
    np.save(tmp_path / "rewards.npy", RETURNS)
    np.save(tmp_path / f"{beside}.npy", RETURNS)
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path)
    with pytest.raises(RlhealthError, match="data set"):
        np.savez(tmp_path / "rewards.npz", **{"rewards": RETURNS, beside: RETURNS})
        open_runs(tmp_path / "rewards.npz")


def test_few_numbers_several_dimensions_and_other_names_are_no_run_of_a_folder(tmp_path: Path) -> None:
    np.save(tmp_path / "rewards.npy", RETURNS[:9])
    np.save(tmp_path / "scores.npy", RETURNS.reshape(4, 10))
    np.save(tmp_path / "weights.npy", RETURNS)
    np.savez(tmp_path / "returns.npz", a=RETURNS, b=RETURNS)
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path)
    (run,) = open_runs(tmp_path / "rewards.npy")
    assert len(run.series["rewards"]) == 9
    with pytest.raises(RlhealthError, match="no array of one dimension"):
        open_runs(tmp_path / "scores.npy")


@pytest.mark.parametrize("suffix", ["npy", "NPY", "npz"])
def test_an_array_with_another_name_is_read_where_the_user_names_it(suffix: str, tmp_path: Path) -> None:
    named = tmp_path / f"ddpg2022.{suffix}"
    with named.open("wb") as file:
        np.savez(file, RETURNS) if suffix == "npz" else np.save(file, RETURNS)
    (run,) = open_runs(named)
    assert translate(run, {"ddpg": "reward"}).metrics["reward"].values.tolist() == RETURNS.tolist()


def test_it_grows_when_it_is_saved_anew_and_a_file_that_is_being_saved_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "rewards.npy"
    np.save(path, RETURNS[:20])
    one = Curve(path)
    assert one.poll() and not one.poll()
    np.save(path, RETURNS)
    assert one.poll()
    assert one.run.series["rewards"].values.tolist() == RETURNS.tolist()
    path.write_bytes(path.read_bytes()[:-40])
    assert not one.poll()
    assert len(one.run.series["rewards"]) == 40


@pytest.mark.parametrize("suffix", ["npy", "npz", "pkl"])
@pytest.mark.parametrize("cut", [0, 1, 8, 60, 130, 200, -1])
def test_a_file_that_is_cut_anywhere_is_refused_in_one_line(suffix: str, cut: int, tmp_path: Path) -> None:
    path = tmp_path / f"rewards.{suffix}"
    write = {"npy": np.save, "npz": np.savez, "pkl": lambda path, held: path.write_bytes(pickle.dumps(held))}
    write[suffix](path, RETURNS)
    path.write_bytes(path.read_bytes()[:cut])
    for where in (path, tmp_path):
        with pytest.raises(RlhealthError, match="no curve that can be read"):
            open_runs(where)


@pytest.mark.parametrize("held", [np.array([1.0, None, {}], dtype=object), np.array(["a", "b"]), np.array(1j)])
def test_what_is_no_number_is_refused_and_never_unpickled(held: object, tmp_path: Path) -> None:
    np.save(tmp_path / "rewards.npy", held, allow_pickle=True)  # type: ignore[arg-type]
    with pytest.raises(RlhealthError, match="no plain numbers"):
        open_runs(tmp_path / "rewards.npy")


def test_an_array_larger_than_its_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "LARGEST", 100)
    np.save(tmp_path / "rewards.npy", RETURNS)
    with pytest.raises(RlhealthError, match="is larger than"):
        open_runs(tmp_path / "rewards.npy")


@pytest.mark.parametrize("name", ["history.npz", "training_curves.npz", "results_seed0.npz"])
def test_an_archive_that_is_called_a_log_is_known_by_the_rewards_in_it(name: str, tmp_path: Path) -> None:
    np.savez(tmp_path / name, episode_rewards=RETURNS, episode_lengths=RETURNS + 1)
    (run,) = open_runs(tmp_path)
    assert translate(run).metrics["reward"].values.tolist() == RETURNS.tolist()


def test_an_archive_that_is_called_a_log_and_holds_no_reward_is_named_and_left(tmp_path: Path) -> None:
    np.savez(tmp_path / "training_data.npz", x=RETURNS, labels=RETURNS)
    left: list[UnreadFile] = []
    with pytest.raises(RlhealthError, match="no runs found"):
        find_readers(tmp_path, left=left)


def test_the_rewards_of_states_beside_trajectories_are_no_run(tmp_path: Path) -> None:
    np.save(tmp_path / "rewards.npy", RETURNS)
    np.save(tmp_path / "trajectories.npy", np.zeros((4, 10, 2)))
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path)
