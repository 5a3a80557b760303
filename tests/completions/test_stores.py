"""The places in which texts lie: read once each, as they appear; what is damaged or half written is reported or waited for."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from rlhealth.completions import stores, tables
from rlhealth.completions.places import PARQUET, find, named
from rlhealth.completions.stores import CompletionFile, CompletionFolder
from rlhealth.completions.texts import is_measured, read_texts, texts_of
from rlhealth.errors import RlhealthError
from rlhealth.sources.discovery.find import find_readers
from tests.conftest import FIXTURES

REAL = FIXTURES / "completions"
pytest.importorskip("pyarrow")


def everything(_: int) -> bool:
    return True


def read(place: Path, source: str | None = None):
    reader = find_readers(place, source=source)[0]
    reader.poll()
    read_texts(reader)
    return reader.run


def series(run) -> dict[str, list[float]]:
    return {tag: one.values.tolist() for tag, one in run.series.items() if tag.startswith("text/")}


def test_parquet_wandb_and_trackio_give_the_same_measures(tmp_path):
    lone = {}
    for kind in ("wandb", "trackio"):
        shutil.copytree(REAL / "short" / kind, tmp_path / kind / kind)
        lone[kind] = series(read(tmp_path / kind))
    beside = series(read(REAL / "short", "wandb"))
    assert len(beside) > 15 and len(beside["text/length"]) == 12
    assert lone["wandb"] == lone["trackio"] == beside


def test_texts_that_were_written_by_verl_are_read_step_by_step():
    store = named(str(REAL / "verl" / "rollouts"))
    found = list(store.poll(everything))
    assert [one.step for one in found] == list(range(1, 40, 2)) and {len(one) for one in found} == {32}
    assert list(found[0].functions) == ["acc"] and found[0].total[0] == 0.75
    assert store.at(39).prompts == found[-1].prompts and store.at(40) is None


def test_rollouts_beside_a_run_are_its_texts_and_no_runs(tmp_path):
    shutil.copytree(REAL / "sort" / "runs", tmp_path / "run" / "runs")
    shutil.copytree(REAL / "verl" / "rollouts", tmp_path / "run" / "rollouts")
    readers = find_readers(tmp_path)
    assert len(readers) == 1
    run = read(tmp_path)
    assert len(run.series["text/length"]) == 20


def test_a_file_of_many_steps_is_read_as_it_grows(tmp_path, monkeypatch):
    path = tmp_path / "rollouts.jsonl"
    row = {"prompt": "p", "completion": "one two", "reward": 1.0}
    path.write_text("".join(json.dumps({**row, "step": step}) + "\n" for step in (1, 1, 2, 2, 3)))
    store = CompletionFile(path)
    assert [(one.step, len(one)) for one in store.poll(everything)] == [(1, 2), (2, 2)]  # of step 3 more may come
    with path.open("a") as file:
        file.write(json.dumps({**row, "step": 3}) + "\n" + json.dumps({**row, "step": 4})[:20])
    assert [one.step for one in store.poll(everything)] == []
    monkeypatch.setattr(stores, "SETTLED", -1.0)
    assert [(one.step, len(one)) for one in store.poll(everything)] == [(3, 2)]
    assert store.steps() == [1, 2, 3] and len(store.at(3)) == 2


def test_damaged_parquet_is_one_line_and_the_others_are_read(tmp_path):
    shutil.copytree(REAL / "sort", tmp_path / "sort")
    damaged = sorted((tmp_path / "sort" / "completions").iterdir())
    for path in damaged[3:8]:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    damaged[9].write_bytes(os.urandom(3000))
    run = read(tmp_path / "sort")
    assert len(run.series["text/length"]) == 34
    problems = [one for one in run.problems if one.startswith("completions: ")]
    assert len(problems) == 4 and "completions_00004.parquet: damaged" in problems[0] and "3 more files" in problems[-1]
    assert all("\n" not in one for one in problems)


def test_a_file_that_is_being_written_is_waited_for(tmp_path):
    shutil.copytree(REAL / "sort" / "completions", tmp_path / "completions")
    newest = tmp_path / "completions" / "completions_00040.parquet"
    whole = newest.read_bytes()
    newest.write_bytes(whole[:1000])
    store = CompletionFolder(tmp_path / "completions", PARQUET)
    assert len(list(store.poll(everything))) == 39 and not store.problems
    newest.write_bytes(whole)
    assert [one.step for one in store.poll(everything)] == [40]
    assert list(store.poll(everything)) == []


def test_without_pyarrow_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    run = read(REAL / "one-word", "tensorboard")
    assert not series(run)
    assert [one for one in run.notes if "pip install 'rlhealth[completions]'" in one]
    with pytest.raises(RlhealthError, match="needs pyarrow"):
        named(str(REAL / "one-word" / "completions"))


@pytest.mark.parametrize("place", ["nowhere", "empty", "log.jsonl", "tensor.parquet"])
def test_a_place_without_texts_says_so(tmp_path, place):
    (tmp_path / "empty").mkdir()
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
    (tmp_path / "tensor.parquet").write_bytes(b"PAR1 not really PAR1")
    try:
        store = named(str(tmp_path / place))
    except RlhealthError as error:
        assert place in error.message and error.hint
        return
    assert list(store.poll(everything)) == [] and len(store.problems) == 1 and place in store.problems[0]


def test_texts_of_another_run_in_the_same_folder_are_not_taken_for_this_ones(tmp_path):
    shutil.copytree(REAL / "sort" / "runs", tmp_path / "runs")
    other = tmp_path / "completions"
    other.mkdir()
    import pandas as pd

    for path in sorted((REAL / "sort" / "completions").iterdir()):
        table = pd.read_parquet(path)
        table["partial"] = table["partial"] * 0.5 + 0.3
        table["acc"] = 1 - table["acc"]
        table.to_parquet(other / path.name)
    run = read(tmp_path)
    assert not series(run) and [one for one in run.notes if "another run" in one]


def test_texts_beyond_the_last_step_of_the_run_wait_for_it(tmp_path):
    shutil.copytree(REAL / "sort", tmp_path / "sort")
    reader = find_readers(tmp_path / "sort", source="tensorboard")[0]
    reader.poll()
    for one in reader.run.series.values():
        one.rewind(20)
    texts = texts_of(reader)
    texts.poll()
    assert int(reader.run.series["text/length"].steps[-1]) == 19


def test_a_long_run_is_measured_at_fewer_and_fewer_steps_whatever_follows():
    taken = [number for number in range(8000) if is_measured(number)]
    assert taken[:250] == list(range(250)) and taken[250:253] == [250, 252, 254] and len(taken) < 1000
    assert 7936 in taken and 7937 not in taken


def test_a_damaged_database_of_trackio_gives_no_texts_and_no_error(tmp_path):
    path = tmp_path / "trackio" / "tiny-rl.db"
    path.parent.mkdir()
    shutil.copy(REAL / "short" / "trackio" / "tiny-rl.db", path)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(os.urandom(20_000))
    reader = find_readers(path)[0]
    try:
        reader.poll()
    except (RlhealthError, sqlite3.Error):
        return
    read_texts(reader)


def test_a_look_at_a_run_whose_texts_did_not_change_does_not_read_them(tmp_path):
    shutil.copytree(REAL / "sort", tmp_path / "sort")
    reader = find_readers(tmp_path / "sort", source="tensorboard")[0]
    reader.poll()
    texts = texts_of(reader)
    assert texts.poll()
    for path in (tmp_path / "sort").rglob("*.parquet"):
        here = path.stat()
        path.write_bytes(bytes(here.st_size))  # a problem of the run, if it were read
        os.utime(path, ns=(here.st_atime_ns, here.st_mtime_ns))
    (tmp_path / "sort" / "completions" / "note.txt").touch()  # the folder is looked through again
    assert not texts.poll() and not reader.run.problems


def test_a_run_on_a_server_or_without_texts_has_none():
    reader = find_readers(FIXTURES / "trainer_state" / "grpo-old")[0]
    reader.poll()
    assert find(reader.run) == ([], [])


def test_of_columns_that_share_a_name_the_first_counts_and_a_date_beyond_all_calendars_costs_nothing(tmp_path):
    import pyarrow
    from pyarrow import parquet

    far = pyarrow.array([2_147_483_647, 1], pyarrow.date32())
    names = ["step", "prompt", "completion", "reward", "reward", "day"]
    table = pyarrow.table([[1, 1], ["a", "a"], ["b", "c"], [0.5, 1.0], [7.0, 7.0], far], names=names)
    parquet.write_table(table, tmp_path / "x.parquet")
    (batch,) = tables.read(tmp_path / "x.parquet")
    assert (batch.step, batch.completions, batch.total.tolist()) == (1, ["b", "c"], [0.5, 1.0])
