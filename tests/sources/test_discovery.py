"""Discovery: what is found at a place, what belongs together, what is left alone, what is said where nothing is."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.sources import find_readers, open_all, open_runs
from rlhealth.sources.base.walk import DEEPEST, walk
from rlhealth.sources.discovery.registry import SOURCES

FIXTURES = Path(__file__).parents[2] / "fixtures"
EVERYWHERE = FIXTURES / "everywhere" / "grpo-short"
STATES = FIXTURES / "trainer_state"
PROGRESS = FIXTURES / "tables" / "progress.csv"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "runs-of-mine"
    folder.mkdir()
    return folder


def names(where: Path) -> list[str]:
    return [reader.run.name for reader in find_readers(str(where))]


def test_one_run_that_four_trackers_wrote_is_one_run_and_says_where_else_it_is() -> None:
    (run,) = open_runs(str(EVERYWHERE))
    assert run.place.kind == "tensorboard"
    assert run.name == "grpo-short"
    assert "read from tensorboard; the same run is also in wandb, trackio, trainer_state: --source chooses" in run.notes


@pytest.mark.parametrize("source", ["tensorboard", "wandb", "trackio", "trainer_state"])
def test_source_chooses_and_every_source_tells_the_same(source: str) -> None:
    (run,) = open_runs(str(EVERYWHERE), source=source)
    assert run.place.kind == source
    (reward,) = (one for tag, one in run.series.items() if tag.removeprefix("train/") == "reward")
    assert reward.steps.tolist() == list(range(1, 31))
    (state,) = open_runs(str(EVERYWHERE / "trainer_state.json"))
    assert reward.values.tolist() == pytest.approx(state.series["reward"].values.tolist(), rel=1e-6)


def test_what_wandb_kept_of_the_console_is_no_second_run(root: Path) -> None:
    shutil.copytree(EVERYWHERE / "wandb", root / "wandb")
    (offline,) = (root / "wandb").iterdir()
    (offline / "files").mkdir()
    rows = json.loads((EVERYWHERE / "trainer_state.json").read_text())["log_history"]
    (offline / "files" / "output.log").write_text("".join(f"{row}\n" for row in rows))
    assert [run.place.kind for run in open_runs(str(root))] == ["wandb"]


def test_the_state_beside_tells_how_many_steps_were_planned(root: Path) -> None:
    shutil.copytree(EVERYWHERE / "runs", root / "runs")
    (alone,) = open_runs(str(root))
    assert alone.planned_steps is None
    shutil.copy(EVERYWHERE / "trainer_state.json", root)
    (run,) = open_runs(str(root))
    assert (run.place.kind, run.planned_steps) == ("tensorboard", 30)


def test_a_single_file_is_read_and_nothing_beside_it() -> None:
    (run,) = open_runs(str(EVERYWHERE / "trainer_state.json"))
    assert run.place.kind == "trainer_state" and not run.notes
    (event,) = (EVERYWHERE / "runs").rglob("events*")
    (run,) = open_runs(str(event))
    assert (run.place.kind, run.planned_steps, run.notes) == ("tensorboard", None, [])


def test_another_runs_state_beside_an_event_file_is_a_run_of_its_own(root: Path) -> None:
    shutil.copytree(EVERYWHERE / "runs", root / "runs")
    shutil.copy(STATES / "grpo-inf" / "trainer_state.json", root)
    runs = open_runs(str(root))
    assert sorted(run.place.kind for run in runs) == ["tensorboard", "trainer_state"]
    assert next(run for run in runs if run.place.kind == "tensorboard").planned_steps is None


def test_logs_that_lie_loose_in_a_folder_are_one_run_only_if_they_tell_the_same(root: Path) -> None:
    (event,) = (EVERYWHERE / "runs").rglob("events*")
    shutil.copy(event, root)
    rows = json.loads((EVERYWHERE / "trainer_state.json").read_text())["log_history"]
    (root / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [run.place.kind for run in open_runs(str(root))] == ["tensorboard"]
    shutil.copy(PROGRESS, root)
    assert sorted(run.place.kind for run in open_runs(str(root))) == ["csv", "tensorboard"]


def test_many_runs_below_a_folder_are_named_by_their_folders_and_none_is_counted_twice(root: Path) -> None:
    shutil.copytree(EVERYWHERE, root / "a")
    shutil.copytree(STATES / "grpo-resumed", root / "sweep" / "b")
    shutil.copytree(STATES / "ppo-nan", root / "sweep" / "c")
    (root / "d").mkdir()
    shutil.copy(PROGRESS, root / "d")
    assert names(root) == ["a", "d", "sweep/b", "sweep/c"]


def test_versions_are_read_from_the_model_card_that_a_trainer_leaves(root: Path) -> None:
    shutil.copy(EVERYWHERE / "trainer_state.json", root)
    (root / "README.md").write_text(
        "# Model\n\n### Framework versions\n\n- TRL: 0.15.2\n- Transformers: 4.49.0\n- Pytorch: 2.5.1\n"
    )
    (run,) = open_runs(str(root))
    assert run.versions == {"trl": "0.15.2", "transformers": "4.49.0", "pytorch": "2.5.1"}


def test_what_is_no_log_is_left_alone(root: Path) -> None:
    shutil.copytree(EVERYWHERE / "runs", root / "runs")
    (root / "train.jsonl").write_text('{"prompt": "hello", "answer": "world", "id": 1}\n' * 5)
    (root / "tokenizer.json").write_text('{"version": "1.0", "vocab": [{"id": 1, "score": 2.0, "x": 3}]}')
    (root / "data.csv").write_text("prompt,answer\na,b\n")
    (root / "notes.txt").write_text("learning rate 0.1, then 0.2\n{'config': 1, 'lr': 2}\n")
    sqlite3.connect(root / "mlflow.db").execute("CREATE TABLE experiments (id INTEGER)").connection.commit()
    runs, errors = open_all(str(root))
    assert [run.place.kind for run in runs] == ["tensorboard"]
    assert not errors


def test_links_in_a_circle_pipes_and_sockets_hang_nothing(root: Path) -> None:
    shutil.copytree(EVERYWHERE, root / "run")
    (root / "run" / "wandb" / "latest-run").symlink_to(next((root / "run" / "wandb").glob("offline-run-*")))
    (root / "run" / "up").symlink_to(root)
    (root / "nowhere.jsonl").symlink_to(root / "gone")
    os.mkfifo(root / "events.out.tfevents.1")
    os.mkfifo(root / "history.jsonl")
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX) as one:
        os.chdir(root)
        try:
            one.bind("run.wandb")
        finally:
            os.chdir(here)
        runs, errors = open_all(str(root))
    assert len(runs) == 1 and not errors


def test_a_pipe_that_is_named_is_refused_with_what_to_do(root: Path) -> None:
    os.mkfifo(root / "train.log")
    with pytest.raises(RlhealthError, match="is a pipe") as refused:
        find_readers(str(root / "train.log"))
    assert "check -" in refused.value.hint
    with pytest.raises(RlhealthError, match="a device"):
        find_readers("/dev/zero")


def test_an_unreadable_run_does_not_hide_the_others(root: Path) -> None:
    for number in range(29):
        shutil.copytree(STATES / "ppo-nan", root / f"run-{number:02}")
    (root / "broken").mkdir()
    (root / "broken" / "trainer_state.json").write_text("{}")
    runs, errors = open_all(str(root))
    assert len(runs) == 29
    assert [error.location for error in errors] == [str(root / "broken" / "trainer_state.json")]


def test_a_database_that_is_cut_short_does_not_hide_the_run_beside_it(root: Path) -> None:
    shutil.copytree(STATES / "ppo-nan", root / "run")
    (root / "project.db").write_bytes((EVERYWHERE / "trackio" / "tiny-rl.db").read_bytes()[:5000])
    runs, errors = open_all(str(root))
    assert len(runs) == 1
    assert [error.location for error in errors] == [str(root / "project.db")]


def test_a_folder_without_permission_is_named_and_the_rest_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's answer is made up here, because root may read everything."""
    shutil.copytree(STATES / "ppo-nan", root / "run")
    shutil.copytree(STATES / "ppo-nan", root / "closed")
    scandir = os.scandir

    def guarded(folder: Path) -> object:
        if Path(folder).name == "closed":
            raise PermissionError(13, "Permission denied", str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", guarded)
    runs, errors = open_all(str(root))
    assert len(runs) == 1
    assert [error.message for error in errors] == [f"{root / 'closed'}: permission denied"]


@pytest.mark.parametrize("there", ["", "events.out.tfevents.1", "notes.md"])
def test_a_folder_without_runs_says_what_was_looked_for(root: Path, there: str) -> None:
    if there:
        (root / there).touch()
    if there.startswith("events"):
        runs, errors = open_all(str(root))
        assert [run.last_step for run in runs] == [None] or errors
        return
    with pytest.raises(RlhealthError) as refused:
        find_readers(str(root))
    assert ("no runs found" if there else "is empty") in refused.value.message
    assert "trainer" in refused.value.hint


def test_a_path_that_does_not_exist_suggests_its_neighbour(root: Path) -> None:
    (root / "experiment-1").mkdir()
    with pytest.raises(RlhealthError, match="no such file or folder") as refused:
        find_readers(str(root / "experiment1"))
    assert refused.value.hint == f"did you mean {root / 'experiment-1'}?"


@pytest.mark.parametrize(("where", "source"), [("ftp://x/y", None), (".", "wandbb")])
def test_an_address_or_source_that_is_not_known_is_reported_with_those_that_are(where: str, source: str | None) -> None:
    with pytest.raises(RlhealthError) as refused:
        find_readers(where, source=source)
    assert "wandb" in refused.value.hint


def test_a_tracker_is_known_by_its_bytes_where_its_name_says_nothing(root: Path) -> None:
    (event,) = (EVERYWHERE / "runs").rglob("events*")
    shutil.copy(event, root / "some.bin")
    (run,) = open_runs(str(root / "some.bin"))
    assert run.place.kind == "tensorboard" and run.last_step == 30


def test_file_names_that_are_rude_are_files_like_any_other(root: Path) -> None:
    rude = root / "a\nb; c, (d): 'e' \x1b[31m é"
    shutil.copytree(STATES / "ppo-nan", rude)
    (run,) = open_runs(str(root))
    assert run.name.endswith(rude.name)


def test_the_walk_looks_at_each_file_once_and_not_below_its_depth(root: Path) -> None:
    shutil.copy(PROGRESS, root / "a.csv")
    os.link(root / "a.csv", root / "b.csv")
    (root / "c.csv").symlink_to(root / "a.csv")
    deep = root
    for _ in range(DEEPEST + 2):
        deep /= "d"
    deep.mkdir(parents=True)
    shutil.copy(PROGRESS, deep)
    (root / ".git").mkdir()
    shutil.copy(PROGRESS, root / ".git")
    assert len(walk(root).files["csv"]) == 1


def test_only_the_trackers_that_are_there_are_imported() -> None:
    code = (
        "import sys; from rlhealth.sources import open_runs; open_runs(sys.argv[1]); print(*(n for n in "
        "('pandas', 'wandb', 'tensorboard', 'tbparse') if n in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(STATES / "ppo-nan")],
        capture_output=True,
        text=True,
        cwd=FIXTURES.parent,
        check=True,
    )
    assert done.stdout.strip() == ""


def test_every_source_of_the_registry_can_be_imported() -> None:
    import importlib

    for module in set(SOURCES.values()):
        assert hasattr(importlib.import_module(module), "find")


def test_an_aim_repository_is_named_and_what_to_export_is_said(root: Path) -> None:
    (root / ".aim").mkdir()
    (root / ".aim" / "VERSION").write_text("3.29\n")
    with pytest.raises(RlhealthError, match="an Aim repository") as raised:
        find_readers(str(root))
    assert "CSV" in raised.value.hint


def test_a_second_file_of_the_kind_that_is_read_is_named_for_source_cannot_choose_it(root: Path) -> None:
    rows = "".join(f'{{"step": {step}, "reward": {step / 7:.6f}, "kl": {step / 90:.6f}}}\n' for step in range(1, 31))
    (root / "history.jsonl").write_text(rows)
    (root / "copied.txt").write_text(rows)
    [run] = open_runs(str(root))
    [note] = [one for one in run.notes if "is also in" in one]
    assert "--source" not in note and "history.jsonl" in note and "copied.txt" in note
