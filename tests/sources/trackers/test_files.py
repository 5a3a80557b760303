"""Files of MLflow, DVCLive, SwanLab and Lightning, written by their own SDKs: whole, growing, torn and damaged."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from pathlib import Path

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import Run
from rlhealth.sources import find_readers, open_runs
from rlhealth.sources.base.settings_file import yaml_mapping
from rlhealth.sources.mlflow.folder import parse_line
from rlhealth.sources.mlflow.reader import find as find_mlflow
from rlhealth.sources.swanlab.reader import find as find_swanlab

TRACKERS = Path(__file__).parents[3] / "fixtures" / "trackers"
#: The rows that were logged through each SDK.
ROWS = [
    row
    for row in json.loads((TRACKERS.parent / "everywhere" / "grpo-short" / "trainer_state.json").read_text())[
        "log_history"
    ]
    if "reward" in row
]
KINDS = {
    "mlflow": TRACKERS / "mlruns",
    "mlflow-db": TRACKERS / "mlflow.db",
    "dvclive": TRACKERS / "dvclive",
    "swanlab": TRACKERS / "swanlab",
}


def copied(kind: str, folder: Path) -> Path:
    """A copy of a fixture that a test may change."""
    source = KINDS[kind]
    if source.is_dir():
        return Path(shutil.copytree(source, folder / source.name))
    return Path(shutil.copy(source, folder / source.name))


def logged(run: Run, tag: str) -> list[tuple[int, float]]:
    return list(zip(run.series[tag].steps.tolist(), run.series[tag].values.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_logged_is_in_the_run(kind: str) -> None:
    (run,) = open_runs(str(KINDS[kind]))
    for tag in ROWS[0]:
        if tag != "step":
            assert logged(run, tag) == [(row["step"], pytest.approx(row[tag], abs=0)) for row in ROWS], tag
    assert run.place.kind == kind.removesuffix("-db")
    known = translate(run)
    assert (known.framework, known.unrecognised) == ("trl-grpo", ())
    assert known.config["max_completion_length"] == 16
    assert "hf_a" not in repr(run)


@pytest.mark.parametrize("kind", ["mlflow", "mlflow-db", "swanlab"])
def test_a_run_that_its_tracker_calls_finished_is_finished(kind: str) -> None:
    (run,) = open_runs(str(KINDS[kind]))
    assert (run.name, run.exit_code) == ("grpo-short", 0)
    assert math.isfinite(run.last_time)


def test_lightnings_table_is_read_with_its_settings() -> None:
    (run,) = open_runs(str(TRACKERS / "lightning"))
    assert [value for _, value in logged(run, "train/reward")] == [pytest.approx(row["reward"]) for row in ROWS]
    assert run.config == {"learning_rate": 0.0003, "beta": 0.04}


def test_hydras_settings_are_read_beside_a_table(tmp_path: Path) -> None:
    folder = tmp_path / "2026-01-31" / "csv" / "version_0"
    folder.mkdir(parents=True)
    shutil.copy(TRACKERS / "lightning" / "metrics.csv", folder)
    (tmp_path / "2026-01-31" / ".hydra").mkdir()
    (tmp_path / "2026-01-31" / ".hydra" / "config.yaml").write_text("trainer:\n  beta: 0.1\napi_key: secret\n")
    (run,) = open_runs(str(tmp_path))
    assert run.config == {"trainer.beta": 0.1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_reading_finds_nothing_new(kind: str) -> None:
    (reader,) = find_readers(str(KINDS[kind]))
    reader.poll()
    assert not reader.poll()


def test_several_runs_of_a_folder_of_mlflow_keep_their_names(tmp_path: Path) -> None:
    copied("mlflow", tmp_path)
    (experiment,) = {path.parent.parent for path in (tmp_path / "mlruns").rglob("metrics")}
    (first,) = [path.parent for path in experiment.glob("*/metrics")]
    shutil.copytree(first, experiment / "b")
    text = (experiment / "b" / "meta.yaml").read_text().replace("run_name: grpo-short", "run_name: other")
    (experiment / "b" / "meta.yaml").write_text(text.replace("status: 3", "status: 4"))
    found = {run.name: run.exit_code for run in open_runs(str(tmp_path / "mlruns"))}
    assert found == {"grpo-short": 0, "other": 1}


@pytest.mark.parametrize("named", ["", "metrics", "metrics/train/reward"])
def test_a_folder_of_metrics_that_was_copied_without_its_run_is_read(tmp_path: Path, named: str) -> None:
    (metrics,) = KINDS["mlflow"].rglob("metrics")
    shutil.copytree(metrics, tmp_path / "exp" / "metrics")
    (tmp_path / "exp" / "metrics" / "train").mkdir()
    (tmp_path / "exp" / "metrics" / "reward").rename(tmp_path / "exp" / "metrics" / "train" / "reward")
    (run,) = open_runs(str(tmp_path / "exp" / named))
    assert (run.name, run.place.kind) == ("exp", "mlflow")
    assert logged(run, "train/reward") == [(row["step"], pytest.approx(row["reward"], abs=0)) for row in ROWS]
    assert logged(run, "loss") == [(row["step"], pytest.approx(row["loss"], abs=0)) for row in ROWS]


@pytest.mark.parametrize("named", ["metrics", "metrics/reward", "meta.yaml"])
def test_each_part_of_a_run_of_mlflow_gives_the_whole_run(named: str) -> None:
    (metrics,) = KINDS["mlflow"].rglob("metrics")
    (run,) = open_runs(str(metrics.parent / named))
    assert (run.name, run.exit_code) == ("grpo-short", 0)
    assert translate(run).config["max_completion_length"] == 16


def test_the_new_lines_of_a_growing_run_of_mlflow_are_read(tmp_path: Path) -> None:
    copied("mlflow", tmp_path)
    (reader,) = find_readers(str(tmp_path / "mlruns"))
    reader.poll()
    (file,) = (tmp_path / "mlruns").rglob("metrics/reward")
    with file.open("a") as more:
        more.write("1795287021865 0.75 31\n1795287021866 nan 32\n1795287021867 0.")
    assert reader.poll()
    assert logged(reader.run, "reward")[-2][0] == 31 and math.isnan(reader.run.series["reward"].values[-1])
    with file.open("a") as more:
        more.write("5 33\n")
    reader.poll()
    assert logged(reader.run, "reward")[-1] == (33, 0.5)


def test_the_new_rows_of_a_growing_database_are_read(tmp_path: Path) -> None:
    path = copied("mlflow-db", tmp_path)
    (reader,) = find_mlflow(path)
    reader.poll()
    before = sorted(tmp_path.iterdir())
    writer = sqlite3.connect(path)
    (run,) = writer.execute("SELECT run_uuid FROM runs").fetchone()
    rows = [
        ("reward", 0.5, 1, run, 31, 0),
        ("reward", 0.0, 1, run, 32, 1),
        ("reward", 1.7976931348623157e308, 1, run, 33, 0),
    ]
    writer.executemany(
        "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, ?)", rows
    )
    writer.commit()
    writer.close()
    assert reader.poll()
    last = reader.run.series["reward"].values[-3:]
    assert last[0] == 0.5 and math.isnan(last[1]) and math.isinf(last[2])
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("kind", ["mlflow-db", "swanlab"])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.95])
def test_a_torn_file_gives_what_is_whole_or_says_why_not(tmp_path: Path, kind: str, share: float) -> None:
    place = copied(kind, tmp_path)
    (file,) = [place] if place.is_file() else place.glob("*.swanlab")
    raw = file.read_bytes()
    file.write_bytes(raw[: int(len(raw) * share)])
    try:
        (run,) = open_runs(str(file))
    except RlhealthError as error:
        assert "\n" not in str(error)
        assert kind == "mlflow-db" or share < 0.3
        return
    assert all(step <= 30 for series in run.series.values() for step in series.steps)
    assert kind == "mlflow-db" or run.clean is False


def test_a_damaged_file_of_swanlab_loses_only_what_is_damaged(tmp_path: Path) -> None:
    place = copied("swanlab", tmp_path)
    (file,) = place.glob("*.swanlab")
    raw = bytearray(file.read_bytes())
    raw[20_000:20_040] = b"\xff" * 40
    file.write_bytes(raw)
    (reader,) = find_swanlab(file)
    assert any("damaged at byte" in problem for problem in reader.run.problems)
    assert sum(len(series) for series in reader.run.series.values()) > 0.9 * sum(len(row) - 1 for row in ROWS) * 0.5


@pytest.mark.parametrize(
    ("line", "point"),
    [
        ("1795287021865 0.5 3", (3, 0.5, 1795287021.865)),
        ("1795287021865 0.5", (0, 0.5, 1795287021.865)),
        ("1 inf -2", (-2, math.inf, 0.001)),
        ("x 0.5 3", None),
        ("1 0.5 3.5", None),
        ("1 0.5 nan", None),
        ("1 0.5 99999999999999999999", None),
        ("1 a 2", None),
        ("1", None),
        ("9" * 400 + " 1 2", (2, 1.0, pytest.approx(999999999999999.9))),
    ],
)
def test_a_line_of_mlflow_is_a_point_or_none(line: str, point: object) -> None:
    assert parse_line(line.split()) == point


def test_lines_that_hold_no_point_are_reported(tmp_path: Path) -> None:
    place = copied("dvclive", tmp_path)
    file = place / "plots" / "metrics" / "reward.tsv"
    file.write_text(file.read_text() + "\x00\xff broken\n31\t0.5\n")
    (run,) = open_runs(str(place))
    assert logged(run, "reward")[-1] == (31, 0.5)
    assert any("1 line passed over" in problem for problem in run.problems)


def test_a_database_of_nobody_is_left_to_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    sqlite3.connect(path).execute("CREATE TABLE metrics (a)").connection.close()
    with pytest.raises(RlhealthError):
        open_runs(str(path))


@pytest.mark.parametrize(
    "text", ["a: &x [1]\nb: *x", "[" * 5_000, "- 1", "a: !!python/object/apply:os.system [x]", "\x00", "a: [", ""]
)
def test_hostile_settings_are_none(text: str) -> None:
    assert yaml_mapping(text) == {}
