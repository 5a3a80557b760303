"""Trackio's runs: what its SQLite database holds is in the run, whoever writes it meanwhile, and nothing beside it
is touched.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.history import Rows
from rlhealth.sources.base.reader import Unreadable
from rlhealth.sources.trackio import sqlite_copy
from rlhealth.sources.trackio.reader import TrackioReader, find
from rlhealth.sources.wandb.file import find as find_wandb
from tests.examples import examples

SHORT = Path(__file__).parents[3] / "fixtures" / "everywhere" / "grpo-short"
DATABASE = SHORT / "trackio" / "tiny-rl.db"
MODEST = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SCHEMA = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL);
CREATE TABLE configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, run_name TEXT NOT NULL, config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_id));
CREATE TABLE alerts (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL, run_name TEXT NOT NULL, title TEXT NOT NULL, text TEXT, level TEXT NOT NULL DEFAULT 'warn', step INTEGER, alert_id TEXT);
"""


def database(path: Path, *, journal: str = "WAL") -> sqlite3.Connection:
    """A writer's connection to a new database of Trackio's, in the mode that Trackio sets."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.executescript(SCHEMA)
    return connection


def log(connection: sqlite3.Connection, rows, *, run: str = "one", first: int = 0) -> None:
    connection.execute("BEGIN")
    for step, row in enumerate(rows, first):
        blob = (json.dumps(row) if isinstance(row, dict) else row).encode()
        values = (f"id of {run}", f"2026-11-20T20:56:{step % 60:02}.5+00:00", run, step, blob)
        connection.execute(
            "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)", values
        )
    connection.execute("COMMIT")


def read(where: Path | str) -> Run:
    (reader,) = find(where)
    reader.poll()
    return reader.run


def points(run: Run) -> dict[str, list[tuple[int, str]]]:
    return {
        tag: list(zip(one.steps.tolist(), map(repr, one.values.tolist()), strict=True))
        for tag, one in run.series.items()
    }


# What is read


def test_trackio_and_wandb_of_one_run_hold_the_same_series_and_settings():
    run = read(DATABASE)
    (reader,) = find_wandb(SHORT / "wandb")
    reader.poll()
    at_the_end = {
        "train/train_runtime",
        "train/train_loss",
        "train/total_flos",
        "train/train_samples_per_second",
        "train/train_steps_per_second",
    }
    assert points(run) == {tag: found for tag, found in points(reader.run).items() if tag not in at_the_end}
    assert run.config == reader.run.config
    assert (run.name, run.step_axis, run.problems, run.notes) == ("grpo-h11-short", "train/global_step", [], [])


def test_a_training_that_ended_leaves_a_row_with_nothing_but_the_epoch():
    assert read(DATABASE).clean is True


def test_a_training_that_goes_on_or_was_killed_shows_no_end(tmp_path):
    connection = database(tmp_path / "p.db")
    log(connection, [{"train/kl": 0.1, "train/epoch": 0.1, "train/global_step": 1}])
    assert read(tmp_path / "p.db").clean is None


def test_the_step_is_the_global_step_in_the_row_not_the_column_that_drifts(tmp_path):
    connection = database(tmp_path / "p.db")
    log(connection, [{"train/kl": float(step), "train/global_step": step} for step in range(1, 49)])
    log(connection, [{"train/kl": -float(step), "train/global_step": step} for step in range(41, 61)], first=49)
    run = read(tmp_path / "p.db")
    assert run.resumed_at == [41]
    assert run.series["train/kl"].steps.tolist() == list(range(1, 61))
    assert run.series["train/kl"].values[-20:].tolist() == [-float(step) for step in range(41, 61)]


def test_where_no_row_names_a_step_the_column_serves(tmp_path):
    connection = database(tmp_path / "p.db")
    log(connection, [{"loss": 1.0}, {"loss": 2.0}, {"loss": 3.0}], first=5)
    run = read(tmp_path / "p.db")
    assert (run.step_axis, points(run)) == ("step", {"loss": [(5, "1.0"), (6, "2.0"), (7, "3.0")]})


def test_nan_infinity_null_and_histograms_are_read(tmp_path):
    connection = database(tmp_path / "p.db")
    histogram = {"_type": "trackio.histogram", "bins": [0.0, 1.0, 2.0], "values": [3, 4]}
    log(
        connection,
        [
            {"kl": value, "ratio": histogram, "table": {"_type": "trackio.table"}, "no": "text"}
            for value in (1.0, "NaN", "Infinity", "-Infinity", None)
        ],
    )
    run = read(tmp_path / "p.db")
    np.testing.assert_array_equal(run.series["kl"].values, [1, math.nan, math.inf, -math.inf, math.nan])
    assert run.histograms["ratio"].steps == [0, 1, 2, 3, 4] and run.histograms["ratio"].counts[0].tolist() == [3, 4]
    assert list(run.series) == ["kl"]


def test_times_are_seconds_since_1970(tmp_path):
    log(database(tmp_path / "p.db"), [{"kl": 1.0}])
    assert read(tmp_path / "p.db").series["kl"].times.tolist() == [1795208160.5]


def test_each_run_of_a_project_is_a_run(tmp_path):
    connection = database(tmp_path / "p.db")
    log(connection, [{"kl": 1.0}], run="one")
    log(connection, [{"kl": 2.0}, {"kl": 3.0}], run="two")
    log(connection, [{"kl": 4.0}], run="one", first=1)
    readers = find(tmp_path / "p.db")
    assert [reader.poll() for reader in readers] == [True, True]
    assert [(reader.run.name, reader.run.series["kl"].values.tolist()) for reader in readers] == [
        ("one", [1, 4]),
        ("two", [2, 3]),
    ]
    assert readers[1].run.place == Place("trackio", str(tmp_path / "p.db"), "two")


def test_a_run_that_has_logged_nothing_yet_is_there_all_the_same(tmp_path):
    connection = database(tmp_path / "p.db")
    connection.execute(
        "INSERT INTO configs (run_id, run_name, config, created_at) VALUES ('x', 'just begun', '{\"beta\": 0.1}', '')"
    )
    run = read(tmp_path / "p.db")
    assert (run.name, run.series, run.config) == ("just begun", {}, {"beta": 0.1})


def test_alerts_of_the_training_script_are_reported(tmp_path):
    connection = database(tmp_path / "p.db")
    log(connection, [{"kl": 1.0}])
    reader = find(tmp_path / "p.db")[0]
    reader.poll()
    statement = (
        "INSERT INTO alerts (run_id, timestamp, run_name, title, text, level, "
        "step) VALUES ('id of one', '', 'one', ?, ?, ?, ?)"
    )
    connection.execute(statement, ("KL is high", "it is 3.2", "error", 12))
    connection.execute(statement, ("done", None, "info", None))
    reader.poll()
    reader.poll()
    assert reader.run.notes == [
        "the training script's alert at step 12 (error): KL is high: it is 3.2",
        "the training script's alert (info): done",
    ]


def test_who_started_the_run_is_not_in_its_settings(tmp_path):
    connection = database(tmp_path / "p.db")
    log(connection, [{"kl": 1.0}])
    config = {
        "_Username": "someone",
        "_Created": "2026",
        "hub_token": "hf_abcdefghijklmnopqrst",
        "beta": 0.1,
        "nested": {"lr": 1},
    }
    connection.execute(
        "INSERT INTO configs (run_id, run_name, config, created_at) VALUES ('id of one', 'one', ?, '')",
        (json.dumps(config).encode(),),
    )
    assert read(tmp_path / "p.db").config == {"beta": 0.1, "nested.lr": 1}


def test_a_database_of_an_older_version_without_run_ids_is_read(tmp_path):
    connection = sqlite3.connect(tmp_path / "p.db")
    connection.execute(
        "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)"
    )
    connection.executemany(
        "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES ('', 'old', ?, ?)",
        [(step, '{"kl": 0.5}') for step in range(3)],
    )
    connection.commit()
    assert points(read(tmp_path / "p.db")) == {"kl": [(0, "0.5"), (1, "0.5"), (2, "0.5")]}


VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**63),
    st.booleans(),
    st.none(),
    st.sampled_from(["NaN", "Infinity", "text", "0.5"]),
    st.lists(st.integers(0, 5), max_size=3),
    st.just({"_type": "trackio.histogram", "bins": [0, 1], "values": [2]}),
    st.just({"inner": 2.5}),
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(st.sampled_from(["kl", "loss", "eval/kl", "x"]), VALUES), max_size=20),
    st.lists(st.integers(-1, 2), min_size=20, max_size=20),
)
def test_rows_read_together_are_the_rows_read_one_by_one(tmp_path, rows, sizes):
    steps = np.maximum(np.cumsum(sizes), 0).tolist()
    rows = [{**row, "train/global_step": int(step)} for row, step in zip(rows, steps, strict=False)] or [{"kl": 1}]
    expected = Run("one", Place("trackio", ""))
    one_by_one = Rows(expected)
    for row in rows:
        one_by_one.take(row)
    one_by_one.flush()
    (tmp_path / "p.db").unlink(missing_ok=True)
    connection = database(tmp_path / "p.db", journal="DELETE")
    log(connection, rows)
    connection.close()
    run = read(tmp_path / "p.db")
    assert points(run) == points(expected) and run.resumed_at == expected.resumed_at
    assert {tag: one.steps for tag, one in run.histograms.items()} == {
        tag: one.steps for tag, one in expected.histograms.items()
    }


# Where it is


def test_a_project_and_a_run_of_it_are_found_by_address(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    connection = database(tmp_path / "my-project.db")
    log(connection, [{"kl": 1.0}], run="one")
    log(connection, [{"kl": 2.0}], run="two/b")
    assert [reader.run.name for reader in find("trackio://my-project")] == ["one", "two/b"]
    assert read("trackio://my-project/two/b").series["kl"].values.tolist() == [2]
    assert read("trackio://my-project/id%20of%20one").name == "one"
    with pytest.raises(RlhealthError, match="no run 'three'") as error:
        find("trackio://my-project/three")
    assert error.value.hint == "there are one, two/b"
    with pytest.raises(RlhealthError, match="no project 'other'") as error:
        find("trackio://other")
    assert error.value.hint == "there are my-project"


def test_an_address_cannot_leave_the_folder_of_the_projects(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "inner"))
    log(database(tmp_path / "outside.db"), [{"kl": 1.0}])
    for address in ("trackio://../outside", "trackio://%2e%2e%2foutside", "trackio:///" + str(tmp_path / "outside")):
        with pytest.raises(RlhealthError):
            find(address)


def test_without_a_setting_the_projects_are_in_the_hugging_face_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("TRACKIO_DIR", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (tmp_path / "trackio").mkdir()
    log(database(tmp_path / "trackio" / "p.db"), [{"kl": 1.0}])
    assert read("trackio://p").name == "one"


def test_in_a_folder_databases_of_other_programs_are_passed_by(tmp_path):
    sqlite3.connect(tmp_path / "mlflow.db").executescript(
        "CREATE TABLE experiments (id INTEGER); CREATE TABLE metrics (key TEXT, value REAL)"
    )
    (tmp_path / "thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0" * 50)
    (tmp_path / "empty.db").touch()
    shutil.copy(DATABASE, tmp_path / "mine.db")
    assert [reader.run.name for reader in find(tmp_path)] == ["grpo-h11-short"]
    with pytest.raises(RlhealthError, match="not a database of Trackio's"):
        find(tmp_path / "mlflow.db")


# Growing, and nothing touched


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_a_finished_database_is_read_where_it_lies_and_nothing_is_created_beside_it(tmp_path, monkeypatch):
    shutil.copy(DATABASE, tmp_path / "p.db")
    before = listing(tmp_path)
    monkeypatch.setattr(sqlite_copy.shutil, "copyfile", lambda *_: pytest.fail("it was copied"))
    read(tmp_path / "p.db")
    assert listing(tmp_path) == before


def test_a_database_in_a_folder_without_write_permission_is_read(tmp_path):
    shutil.copy(DATABASE, tmp_path / "p.db")
    tmp_path.chmod(0o500)
    try:
        assert read(tmp_path / "p.db").last_step == 30
    finally:
        tmp_path.chmod(0o700)


def test_a_live_writer_is_followed_row_by_row_and_its_files_stay_as_they_are(tmp_path):
    connection = database(tmp_path / "p.db")
    log(connection, [{"kl": 0.0}])
    reader = find(tmp_path / "p.db")[0]
    reader.poll()
    for step in range(1, 30):
        log(connection, [{"kl": float(step)}], first=step)
        if step % 7 == 0:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = listing(tmp_path)
        assert reader.poll() is True
        assert reader.poll() is False
        assert listing(tmp_path) == before
        assert reader.run.series["kl"].values.tolist() == list(range(step + 1))
    connection.close()
    reader.poll()
    assert [path.name for path in tmp_path.iterdir()] == ["p.db"]


def test_between_two_checkpoints_only_the_log_is_copied_again(tmp_path, monkeypatch):
    connection = database(tmp_path / "p.db")
    copied = []
    original = shutil.copyfile
    monkeypatch.setattr(
        sqlite_copy.shutil, "copyfile", lambda here, there: copied.append(Path(here).name) or original(here, there)
    )
    log(connection, [{"kl": 0.0}])
    reader = find(tmp_path / "p.db")[0]
    reader.poll()
    for step in range(1, 5):
        log(connection, [{"kl": float(step)}], first=step)
        reader.poll()
    assert copied.count("p.db") == 1 and copied.count("p.db-wal") == 5


def test_a_writer_that_holds_the_lock_does_not_block_us_nor_we_it(tmp_path):
    for journal in ("WAL", "DELETE"):
        path = tmp_path / f"{journal}.db"
        connection = database(path, journal=journal)
        log(connection, [{"kl": 1.0}])
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute(
            "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES "
            "('id of one', '', 'one', 1, '{\"kl\": 2}')"
        )
        reader = find(path)[0]
        reader.poll()
        assert reader.run.series["kl"].values.tolist() == [1]
        connection.execute("COMMIT")
        assert reader.poll() is True
        assert reader.run.series["kl"].values.tolist() == [1, 2]
        connection.close()


def test_the_temporary_copy_goes_with_the_reader(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_copy.tempfile, "tempdir", str(tmp_path))
    connection = database(tmp_path / "p.db")
    log(connection, [{"kl": 1.0}])
    reader = find(tmp_path / "p.db")[0]
    reader.poll()
    assert list(tmp_path.glob("rlhealth-*"))
    del reader
    assert not list(tmp_path.glob("rlhealth-*"))


WRITER = """
import os, sys
os.environ["TRACKIO_DIR"] = sys.argv[1]
import trackio
run = trackio.init(project="live", name="a run", config={"beta": 0.04}, embed=False)
for step in range(1, 201):
    trackio.log({"train/reward": step / 3, "train/kl": float("nan") if step == 7 else 0.1, "train/global_step": step})
print("logged", flush=True)
sys.stdin.readline()
trackio.finish()
"""


def test_a_run_of_the_real_trackio_is_read_while_it_is_written(tmp_path):
    pytest.importorskip("trackio")
    environment = os.environ | {"TRACKIO_DIR": str(tmp_path), "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    try:
        while (line := writer.stdout.readline().strip()) != "logged":
            assert writer.poll() is None or line
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                (reader,) = find(tmp_path / "live.db")
                break
            except RlhealthError:
                time.sleep(0.1)
        reader.poll()
        writer.stdin.write("\n")
        writer.stdin.flush()
        assert writer.wait(60) == 0
    finally:
        writer.kill()
        writer.stdin.close()
        writer.stdout.close()
    reader.poll()
    run = reader.run
    assert (run.name, run.config, run.problems) == ("a run", {"beta": 0.04}, [])
    assert run.series["train/reward"].values.tolist() == [step / 3 for step in range(1, 201)]
    assert math.isnan(run.series["train/kl"].values[6])


# Damage


def test_tables_without_a_row_are_an_error_that_says_so(tmp_path):
    database(tmp_path / "p.db")
    with pytest.raises(RlhealthError, match="its tables are empty"):
        find(tmp_path / "p.db")
    (reader,) = find(tmp_path)
    assert isinstance(reader, Unreadable)


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + bytes(50)])
def test_what_is_no_database_is_an_error_with_a_hint(tmp_path, content):
    (tmp_path / "p.db").write_bytes(content)
    with pytest.raises(RlhealthError) as error:
        find(tmp_path / "p.db")
    assert error.value.hint


def test_a_database_that_is_gone_is_an_error(tmp_path):
    shutil.copy(DATABASE, tmp_path / "p.db")
    (reader,) = find(tmp_path / "p.db")
    (tmp_path / "p.db").unlink()
    with pytest.raises(RlhealthError):
        reader.poll()


def test_a_row_that_is_not_json_is_left_out_and_counted(tmp_path):
    connection = database(tmp_path / "p.db")
    log(connection, [{"kl": 1.0}, "{not json", {"kl": 3.0}, "[1, 2]", '{"kl": NaN}'])
    run = read(tmp_path / "p.db")
    assert points(run) == {"kl": [(0, "1.0"), (2, "3.0"), (4, "nan")]}
    assert run.problems == ["2 rows left out: not JSON"]


def test_one_overwritten_page_costs_its_rows_and_the_rest_is_read(tmp_path):
    connection = database(tmp_path / "p.db", journal="DELETE")
    log(connection, [{"kl": float(step), "padding": "x" * 200} for step in range(2000)])
    connection.close()
    whole = bytearray((tmp_path / "p.db").read_bytes())
    whole[50 * 4096 : 51 * 4096] = bytes(4096)
    (tmp_path / "p.db").write_bytes(bytes(whole))
    run = read(tmp_path / "p.db")
    assert 1900 < len(run.series["kl"]) < 2000
    assert "damaged" in run.problems[0]
    assert all(int(step) == value for step, value in zip(run.series["kl"].steps, run.series["kl"].values, strict=True))


def test_a_database_that_is_cut_short_gives_the_rows_that_are_left(tmp_path):
    whole = DATABASE.read_bytes()
    found = []
    for share in (0.6, 0.8, 0.9, 0.99):
        (tmp_path / "p.db").write_bytes(whole[: int(share * len(whole))])
        run = read(tmp_path / "p.db")
        assert run.name == "grpo-h11-short" and run.problems
        found.append(len(run.series["train/kl"]))
    assert 0 < found[0] < found[1] < found[2] < found[3] < 30


def test_a_broken_index_costs_no_row(tmp_path):
    whole = DATABASE.read_bytes()
    name = b"CREATE INDEX idx_metrics_run_step"
    (tmp_path / "p.db").write_bytes(whole.replace(name, name.replace(b"INDEX", b"INDEKS"[:5])))
    run = read(tmp_path / "p.db")
    assert points(run) == points(read(DATABASE)) and run.problems


def test_a_million_names_in_one_table_take_no_more_room_than_they_are(tmp_path):
    connection = database(tmp_path / "p.db")
    log(connection, [{f"metric/{row}/{index}": 1.0 for index in range(100)} for row in range(400)])
    assert len(read(tmp_path / "p.db").series) == 40_000


@MODEST
@given(st.lists(st.tuples(st.integers(0, 348_159), st.integers(0, 255)), max_size=4), st.integers(0, 348_160))
def test_bytes_changed_anywhere_or_cut_off_never_end_in_a_traceback(tmp_path, places, size):
    whole = bytearray(DATABASE.read_bytes())
    for place, byte in places:
        whole[place] = byte
    (tmp_path / "p.db").write_bytes(bytes(whole[: size if size % 3 == 0 else None]))
    try:
        for reader in find(tmp_path / "p.db"):
            reader.poll()
    except RlhealthError as error:
        assert error.hint


def test_a_reader_of_one_run_holds_its_place_by_the_id_of_its_last_row():
    (reader,) = find(DATABASE)
    assert isinstance(reader, TrackioReader)
    assert [reader.poll(), reader.poll()] == [True, False]
