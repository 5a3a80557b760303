"""`--write-back`: the verdict in the run's own tracker, through real SDKs; logs stay as they are, and the next check says the same."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from rlhealth.publishing.tensorboard import folder_beside
from tests.conftest import FIXTURES, Cli
from tests.sources.conftest import KEY, nobody, server  # noqa: F401 (fixtures)
from tests.sources.wandb_online import rows_of
from tests.wandb_server import HostedRun, WandbServer, status

SICK = FIXTURES / "wandb" / "run-grpo-old-nan.wandb"
EVENTS = FIXTURES / "runs" / "lr-jump"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def test_a_run_on_a_wandb_server_gets_a_summary_a_tag_and_the_page(cli: Cli, server: WandbServer) -> None:
    run = server.host(
        HostedRun(rows=rows_of(SICK), state="finished", summary={"reward": 0.5}, tags=["grpo", "rlhealth:healthy"])
    )
    ours = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY}
    plain = cli("check", "--wandb", "ada/grpo/abc12345", "-f", "json", **ours)
    assert not {"UpsertBucket", "CreateRunFiles"} & set(server.operations())
    done = cli("check", "--wandb", "ada/grpo/abc12345", "-f", "json", "--write-back", **ours)
    assert done.returncode == plain.returncode == 1
    assert "note: written to wandb://ada/grpo/abc12345: summary, tag rlhealth:critical and rlhealth.html" in done.stderr
    [before] = json.loads(done.stdout)["runs"]
    worst = [one["first_step"] for one in before["findings"] if one["severity"] == "critical"]
    assert run.summary["reward"] == 0.5
    assert (run.summary["rlhealth/verdict"], run.summary["rlhealth/first_step"]) == ("critical", min(worst))
    assert run.tags == ["grpo", "rlhealth:critical"]
    assert run.files["rlhealth.html"].startswith(b"<!doctype html>") and KEY.encode() not in run.files["rlhealth.html"]
    again = cli("check", "--wandb", "ada/grpo/abc12345", "-f", "json", **ours)
    [same] = json.loads(again.stdout)["runs"]
    assert (same["findings"], same["unrecognised"]) == (before["findings"], before["unrecognised"])


def test_a_server_that_does_not_take_it_is_one_line_and_no_pass(cli: Cli, server: WandbServer) -> None:
    server.host(HostedRun(rows=rows_of(SICK), state="finished"))
    server.fail(status(403, "permission denied"), operation="UpsertBucket")
    ours = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY}
    done = cli("check", "--wandb", "ada/grpo/abc12345", "--write-back", "--fail-on", "never", **ours)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "error: wandb://ada/grpo/abc12345: " in done.stderr


def test_a_tensorboard_run_gets_a_folder_beside_it_and_its_files_stay(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(EVENTS, tmp_path / "lr-jump")
    before = contents(tmp_path)
    first = cli("check", "lr-jump", "-f", "json", "--write-back", cwd=tmp_path)
    assert first.returncode == 1 and "note: written to " in first.stderr
    after = contents(tmp_path)
    assert {name: after[name] for name in before} == before
    added = sorted({Path(name).name.partition(".tfevents")[0] for name in set(after) - set(before)})
    assert added == ["events.out", "rlhealth.html"]
    second = cli("check", ".", "-f", "json", "--write-back", cwd=tmp_path)  # neither a run nor a second file
    assert json.loads(second.stdout)["runs"][0]["findings"] == json.loads(first.stdout)["runs"][0]["findings"]
    assert len(json.loads(second.stdout)["runs"]) == 1 and len(contents(tmp_path)) == len(after)


def test_tensorboard_itself_reads_the_verdict(cli: Cli, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    shutil.copytree(EVENTS, tmp_path / "exp")
    cli("check", "exp", "--write-back", cwd=tmp_path)
    [folder] = list(tmp_path.rglob("*.rlhealth"))
    read = EventAccumulator(str(folder))
    read.Reload()
    [text] = read.Tensors("rlhealth")
    assert b"critical" in text.tensor_proto.string_val[0] and text.step > 0
    held = read.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    hparams = HParamsPluginData.FromString(held).session_start_info.hparams
    assert hparams["rlhealth/verdict"].string_value == "critical"
    assert hparams["rlhealth/first_step"].number_value == text.step


def test_the_folder_lies_beside_the_run_however_the_run_was_named(tmp_path: Path) -> None:
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "events.out.tfevents.1").write_bytes(b"")
    wanted = tmp_path / "runs" / "a.rlhealth"
    assert folder_beside(str(tmp_path / "runs" / "a")) == wanted
    assert folder_beside(str(tmp_path / "runs" / "a" / "events.out.tfevents.1")) == wanted


@pytest.mark.parametrize("where", [FIXTURES / "reports" / "sort", SICK])
def test_what_no_tracker_shows_is_said_and_does_not_pass(cli: Cli, where: Path) -> None:
    before = contents(where) if where.is_dir() else where.read_bytes()
    done = cli("check", where, "--write-back", "--fail-on", "never")
    assert done.returncode == 2
    assert "nothing was written back" in done.stderr and "hint: --write-back writes into" in done.stderr
    assert (contents(where) if where.is_dir() else where.read_bytes()) == before


def test_a_watch_writes_back_when_it_ends(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(EVENTS, tmp_path / "exp")
    done = cli("watch", "exp", "--write-back", "--interval", "0.1", cwd=tmp_path)
    assert done.returncode == 1 and len(list(tmp_path.rglob("*.rlhealth"))) == 1


def test_a_trackio_project_gets_an_alert_once_and_the_page(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("trackio")
    database = next((FIXTURES / "everywhere").rglob("*.db"))
    copy = tmp_path / "trackio" / database.name
    copy.parent.mkdir()
    copy.write_bytes(database.read_bytes())
    for _ in range(2):
        done = cli("check", copy, "--write-back")
        assert "note: written to " in done.stderr, done.stderr
    with sqlite3.connect(copy) as connection:
        [(run, title)] = connection.execute(
            "SELECT run_name, title FROM alerts WHERE title LIKE 'rlhealth: %'"
        ).fetchall()
        runs = {row[0] for row in connection.execute("SELECT DISTINCT run_name FROM metrics")}
    assert run in runs and title.startswith("rlhealth: ")
    assert list((tmp_path / "trackio").rglob("rlhealth-*.html"))
    assert os.environ.get("TRACKIO_DIR") is None
