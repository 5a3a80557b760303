"""The trainer's class, from the arguments that lie beside its state: read, never unpickled."""

from __future__ import annotations

import io
import pickle
import shutil
import zipfile
from pathlib import Path

import pytest

from rlhealth.metrics.recognise import recognise
from rlhealth.run import Run
from rlhealth.sources.rows.saved_arguments import NAME, saved_trainer
from rlhealth.sources.rows.trainer_state import TrainerState

CHECKPOINT = Path(__file__).parents[3] / "fixtures" / "trainer_state" / "rloo" / "checkpoint-8"


def read(path: Path) -> Run:
    reader = TrainerState(path)
    reader.poll()
    return reader.run


def zipped(content: bytes, name: str = "training_args/data.pkl") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as saved:
        saved.writestr(name, content)
    return file.getvalue()


def test_rloo_is_distinguished_from_grpo_by_the_arguments_beside_its_state() -> None:
    found = recognise(read(CHECKPOINT / "trainer_state.json"))
    assert found.entry["id"] == "trl-rloo"
    assert not found.assumed


def test_without_them_the_names_alone_are_taken_for_grpo_and_the_report_says_so(tmp_path: Path) -> None:
    shutil.copy(CHECKPOINT / "trainer_state.json", tmp_path)
    found = recognise(read(tmp_path / "trainer_state.json"))
    assert found.entry["id"] == "trl-grpo"
    assert found.assumed


def test_the_arguments_of_the_output_folder_serve_a_checkpoint_that_has_none(tmp_path: Path) -> None:
    shutil.copy(CHECKPOINT / NAME, tmp_path)
    (tmp_path / "checkpoint-8").mkdir()
    shutil.copy(CHECKPOINT / "trainer_state.json", tmp_path / "checkpoint-8")
    assert read(tmp_path / "checkpoint-8" / "trainer_state.json").trainer == "RLOOTrainer"


@pytest.mark.parametrize("length", [0, 1, 30, 300, 3000, 6000, 6600])
def test_a_file_that_was_cut_names_nothing(tmp_path: Path, length: int) -> None:
    (tmp_path / NAME).write_bytes((CHECKPOINT / NAME).read_bytes()[:length])
    assert saved_trainer(tmp_path) == ""


class Planted:
    """What a hostile file would run if it were unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("planted"),)


def test_nothing_in_it_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).write_bytes(zipped(pickle.dumps(Planted(), protocol=2)))
    assert saved_trainer(tmp_path) == ""
    assert not (tmp_path / "planted").exists()


def test_plain_training_arguments_and_archives_of_other_things_name_nothing(tmp_path: Path) -> None:
    for content in (
        zipped(b"\x80\x02ctransformers.training_args\nTrainingArguments\nq\x00)"),
        zipped(b"\x80\x02ctrl.trainer.rloo_config\nRLOOConfig\n", name="elsewhere.txt"),
        zipped(b""),
    ):
        (tmp_path / NAME).write_bytes(content)
        assert saved_trainer(tmp_path) == ""
