"""Runs online, with the real SDK against a server on loopback: whole history, growth, every way a server can fail."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlhealth.errors import Blind, RlhealthError
from rlhealth.run import Run
from rlhealth.sources.wandb_api import WandbReader, alert, find, stop_run
from rlhealth.sources.wandb_file import WandbFileReader
from rlhealth.sources.wandb_items import row_of
from rlhealth.sources.wandb_log import RecordLog
from rlhealth.sources.wandb_records import sort
from rlhealth.sources.wandb_session import Session
from tests.wandb_server import KEY, HostedRun, WandbServer, drip, half_a_body, html, nothing_at_all, status

ROOT = Path(__file__).parents[2]
GRPO = next((ROOT / "fixtures" / "everywhere" / "grpo-short").rglob("*.wandb"))
LEGACY = ROOT / "fixtures" / "wandb" / "run-legacy-ppo.wandb"
EXPORTED = [ROOT / "fixtures" / "wandb_export" / f"part-{part}.parquet" for part in (0, 1)]
RUN = "wandb://ada/grpo/abc12345"
PATIENCE = 20.0
IMPATIENT = 2.0


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no settings and no folder of whoever runs the tests."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith("WANDB_") and name != "WANDB_SERVICE"] + ["NETRC"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    with WandbServer().serving() as serving:
        monkeypatch.setenv("WANDB_BASE_URL", serving.url)
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        yield serving


@pytest.fixture
def hosted(server: WandbServer) -> HostedRun:
    run = server.host(HostedRun())
    for step in range(1, 6):
        run.log(train__global_step=step, train__reward=step / 10)
    return run


def reader(patience: float = PATIENCE) -> WandbReader:
    return find(RUN, patience=patience)[0]


def blind(one: WandbReader) -> Blind:
    """What a poll tells that fails; it does not try for long."""
    one.patience = IMPATIENT
    with pytest.raises(Blind) as caught:
        one.poll()
    one.patience = PATIENCE
    return caught.value


def count_tries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The places for which the SDK is asked from now on."""
    tries: list[str] = []
    once = Session.once

    def counted(self: Session, ask: Any, place: str) -> Any:
        tries.append(place)
        return once(self, ask, place)

    monkeypatch.setattr(Session, "once", counted)
    return tries


def rewards(run: Run) -> list[tuple[int, float]]:
    series = run.series["train/reward"]
    return list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


def expected(first: int, last: int) -> list[tuple[int, float]]:
    return [(step, step / 10) for step in range(first, last + 1)]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows that the SDK wrote, one by one."""
    rows = []
    for records in RecordLog(path).read():
        found = sort(records)
        rows += [row_of(records.buffer[start:end]) for start, end in zip(found.start.tolist(), found.end.tolist(), strict=True)]
    return rows


def offline(path: Path) -> Run:
    there = WandbFileReader(path)
    there.poll()
    return there.run


def same_points(one: Run, other: Run) -> None:
    mine, theirs = ({tag: run.series[tag] for tag in run.series if tag != "train/train_runtime"} for run in (one, other))
    assert sorted(tag for tag in mine if tag not in theirs) == []
    assert sorted(tag for tag in theirs if tag not in mine and len(theirs[tag]) > 1) == []
    for tag, series in mine.items():
        np.testing.assert_array_equal(series.steps, theirs[tag].steps, tag)
        np.testing.assert_array_equal(series.values, theirs[tag].values, tag)


# --- what is read ---


def test_a_real_run_reads_the_same_online_as_from_its_file(server: WandbServer) -> None:
    server.host(HostedRun(rows=rows_of(GRPO), state="finished"))
    one = reader()
    assert one.poll()
    same_points(one.run, offline(GRPO))
    assert one.run.step_axis == "train/global_step"
    assert one.run.config["trainer_class"] == "GRPOTrainer"


def test_exported_rows_and_live_ones_make_one_history_without_doubles(server: WandbServer) -> None:
    server.host(HostedRun(rows=rows_of(GRPO), state="finished", parquet=[path.read_bytes() for path in reversed(EXPORTED)], parquet_rows=160))
    one = reader()
    one.poll()
    assert server.operations().count("GET parquet") == 2
    same_points(one.run, offline(GRPO))


def test_an_export_that_was_written_while_we_watched_loses_nothing(server: WandbServer) -> None:
    rows = rows_of(GRPO)
    run = server.host(HostedRun(id="growing", rows=rows[:120], parquet=[EXPORTED[0].read_bytes()], parquet_rows=100, live_only=True))
    one = WandbReader("ada", "grpo", "growing", patience=PATIENCE)
    one.poll()
    run.rows, run.parquet, run.parquet_rows = rows, [path.read_bytes() for path in EXPORTED], 160
    one.poll()
    same_points(one.run, offline(GRPO))
    assert [given["path"][-1] for name, given, _ in server.asked if name == "GET parquet"] == ["0", "1"], "each file is fetched once"


def test_an_exported_file_that_was_written_anew_under_its_old_name_loses_nothing(server: WandbServer) -> None:
    rows = rows_of(GRPO)
    run = server.host(HostedRun(id="renewed", rows=rows[:120], parquet=[EXPORTED[0].read_bytes()], parquet_rows=100, live_only=True))
    one = WandbReader("ada", "grpo", "renewed", patience=PATIENCE)
    one.poll()
    run.rows, run.parquet, run.parquet_rows = rows, [EXPORTED[1].read_bytes(), EXPORTED[0].read_bytes()], 160
    one.poll()
    assert len(one.run.series["train/reward"]) < len(offline(GRPO).series["train/reward"]), "the SDK takes the file that it has"
    one.poll()
    same_points(one.run, offline(GRPO))


def test_the_histograms_of_a_real_run_read_the_same_online_as_from_its_file(server: WandbServer) -> None:
    server.host(HostedRun(rows=rows_of(LEGACY)))
    one = reader()
    one.poll()
    there = offline(LEGACY)
    assert one.run.histograms.keys() == there.histograms.keys() != set()
    for tag, mine in one.run.histograms.items():
        assert mine.steps == there.histograms[tag].steps
        np.testing.assert_array_equal(np.array(mine.counts[-1]), np.array(there.histograms[tag].counts[-1]))


def test_a_histogram_with_packed_bins_and_every_spelling_of_nan_arrive(hosted: HostedRun) -> None:
    packed = {"_type": "histogram", "values": [1, 2, 1], "packedBins": {"min": 0.5, "size": 0.25, "count": 3}}
    hosted.log(train__global_step=6, train__reward="NaN", train__kl="Infinity", train__loss=math.nan, train__ratio=packed)
    hosted.log(train__global_step=7, train__reward=0.7, train__kl="-Infinity", train__loss=-math.inf, train__ratio=packed)
    one = reader()
    one.poll()
    assert math.isnan(one.run.series["train/reward"].values[5])
    assert one.run.series["train/kl"].values.tolist() == [math.inf, -math.inf]
    assert math.isnan(one.run.series["train/loss"].values[0]) and one.run.series["train/loss"].values[1] == -math.inf
    assert one.run.histograms["train/ratio"].edges[0].tolist() == [0.5, 0.75, 1.0, 1.25]


def test_settings_versions_name_and_end_are_read(server: WandbServer) -> None:
    config = {"beta": 0.04, "learning_rate": 1e-6, "_wandb": {"cli_version": "0.31.0", "huggingface_version": "5.23.0"}, "hub_token": "hf_abcdefghijklmnopq"}
    summary = {"train_runtime": 12.5, "train_loss": "NaN"}
    run = server.host(HostedRun(name="brave-sun-3", state="finished", config=config, summary=summary, requirements="trl==1.16.0\ntorch==2.9.1\n"))
    run.log(train__global_step=1, train__reward=0.5)
    one = reader()
    one.poll()
    assert one.run.name == "brave-sun-3"
    assert one.run.config == {"beta": 0.04, "learning_rate": 1e-6}
    assert one.run.versions == {"wandb": "0.31.0", "transformers": "5.23.0", "trl": "1.16.0", "torch": "2.9.1"}
    assert one.run.series["train/train_runtime"].values.tolist() == [12.5]
    assert (one.run.exit_code, one.run.clean) == (0, True)
    assert one.run.place.location == RUN


@pytest.mark.parametrize(("state", "code"), [("failed", 1), ("crashed", 1), ("killed", 137), ("running", None), ("pending", None)])
def test_the_state_says_how_a_run_ended(hosted: HostedRun, state: str, code: int | None) -> None:
    hosted.state = state
    one = reader()
    one.poll()
    assert one.run.exit_code == code
    assert bool(one.run.notes) == (code is not None)


def test_many_rows_come_in_pages_each_row_once(server: WandbServer) -> None:
    run = server.host(HostedRun())
    for step in range(1, 2501):
        run.log(train__global_step=step, train__reward=step / 10)
    one = reader()
    one.poll()
    assert rewards(one.run) == expected(1, 2500)
    assert server.operations().count("HistoryPage") == 3
    assert server.rows_sent == 2500


def test_steps_far_apart_do_not_cost_a_request_for_every_thousand(server: WandbServer) -> None:
    run = server.host(HostedRun())
    run.rows = [{"_step": 2048 * step, "rollout/ep_rew_mean": float(step)} for step in range(1, 3001)]
    one = reader()
    one.poll()
    assert len(one.run.series["rollout/ep_rew_mean"]) == 3000
    assert server.operations().count("HistoryPage") <= 4


@pytest.mark.parametrize("first", [0, 1, 5000])
def test_a_run_may_begin_at_any_step(server: WandbServer, first: int) -> None:
    run = server.host(HostedRun())
    run.rows = [{"_step": first + step, "loss": float(step)} for step in range(10)]
    one = reader()
    one.poll()
    assert one.run.series["loss"].steps.tolist() == list(range(first, first + 10))


def test_keys_that_were_logged_in_different_rows_are_all_there(hosted: HostedRun) -> None:
    hosted.log(train__global_step=5, eval__reward=0.9)
    one = reader()
    one.poll()
    assert rewards(one.run) == expected(1, 5)
    assert one.run.series["eval/reward"].steps.tolist() == [5]


@pytest.mark.parametrize("counted_right", [True, False])
def test_of_thousands_of_keys_only_the_needed_are_asked_for_and_no_row_is_lost(server: WandbServer, counted_right: bool) -> None:
    run = server.host(HostedRun())
    layers = {f"gradients/layer.{layer}": {"_type": "histogram", "values": [1], "bins": [0, 1]} for layer in range(1100)}
    for step in range(1, 41):
        run.log(train__global_step=step, train__reward=step / 10, **layers)
        if step % 10 == 0:
            run.log(train__global_step=step, eval__reward=1.0)
        if not counted_right and step in (3, 5):  # logged equally often as another key, but in other rows
            run.rows[-1].pop("train/reward")
            run.rows[-1]["train/other"] = 1.0
    if not counted_right:
        run.log(train__global_step=41, train__other=1.0)
        for step in range(42, 77):
            run.log(train__global_step=step, train__other=1.0)
    one = reader()
    one.poll()
    asked = {key for name, given, _ in server.asked if name == "SampledHistoryPage" for key in given["spec"].split('"')}
    assert "train/reward" in asked and not any("gradients" in key for key in asked)
    assert ("HistoryPage" in server.operations()) == (not counted_right), "whole rows only where the short way did not bring all"
    assert len(one.run.series["train/reward"]) == (40 if counted_right else 38)
    assert one.run.series["eval/reward"].steps.tolist() == [10, 20, 30, 40]
    assert not any(tag.startswith("gradients") for tag in (*one.run.series, *one.run.histograms))


@pytest.mark.slow
def test_fifty_thousand_rows_arrive_whole(server: WandbServer) -> None:
    run = server.host(HostedRun())
    for step in range(1, 50_001):
        run.log(train__global_step=step, train__reward=step / 10, train__kl=0.01, train__entropy=1.0, train__grad_norm=0.5)
    one = reader(60)
    one.poll()
    assert all(len(series) == 50_000 for series in one.run.series.values())
    assert rewards(one.run)[::10_000] == expected(1, 50_000)[::10_000]
    assert server.rows_sent == 50_000


# --- a run that grows ---


def test_each_poll_reads_what_is_new_and_nothing_twice(server: WandbServer, hosted: HostedRun) -> None:
    one = reader()
    assert one.poll()
    assert not one.poll()
    sent = server.rows_sent
    for step in range(6, 16):
        hosted.log(train__global_step=step, train__reward=step / 10)
        assert one.poll()
    assert rewards(one.run) == expected(1, 15)
    assert server.rows_sent - sent == 20, "the new row and the one before it, which may have grown"
    assert one.run.series["train/reward"].revision == 0


def test_a_poll_with_nothing_new_is_one_request(server: WandbServer, hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    before = len(server.asked)
    one.poll()
    assert server.operations()[before:] == ["Run"]


def test_the_newest_row_may_gain_metrics_after_it_was_read(hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    hosted.rows[-1]["eval/reward"] = 0.8
    hosted.heartbeat = "2026-01-02T04:00:00Z"
    assert one.poll()
    assert one.run.series["eval/reward"].steps.tolist() == [5]
    assert rewards(one.run) == expected(1, 5)


def test_rows_that_arrive_late_are_put_where_they_belong(hosted: HostedRun) -> None:
    late = hosted.rows.pop(2)
    one = reader()
    one.poll()
    hosted.rows.insert(2, late)
    for beat in range(2):
        hosted.heartbeat = f"2026-01-02T04:00:0{beat}Z"
        one.poll()
    assert rewards(one.run) == expected(1, 5)
    assert one.run.resumed_at == []


def test_a_run_that_was_rewound_is_read_again(hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    del hosted.rows[3:]
    hosted.rows.append({**hosted.rows[-1], "_step": 3, "train/global_step": 4, "train/reward": 9.0})
    one.poll()
    one.poll()
    assert rewards(one.run) == [*expected(1, 3), (4, 9.0)]


def test_rows_that_the_server_counts_and_does_not_show_are_told(hosted: HostedRun) -> None:
    hosted.more_counted = 7
    one = reader()
    one.poll()
    assert one.run.problems == ["wandb counts 12 rows in this run's history, of which 5 could be read"]


def test_the_end_is_seen_when_it_comes(hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    assert one.run.exit_code is None
    hosted.state, hosted.summary = "finished", {"train_runtime": 3.0}
    assert one.poll()
    assert one.run.exit_code == 0
    assert "train/train_runtime" in one.run.series
    assert not one.poll()


# --- which runs ---


@pytest.mark.parametrize(
    "address", [RUN, "ada/grpo/abc12345", "ada/grpo/runs/abc12345", "{url}/ada/grpo/runs/abc12345", "{url}/ada/grpo/runs/abc12345/workspace?nw=x#y"]
)
def test_a_run_is_found_by_each_form_of_its_address(server: WandbServer, hosted: HostedRun, address: str) -> None:
    [one] = find(address.format(url=server.url), patience=PATIENCE)
    one.poll()
    assert rewards(one.run) == expected(1, 5)


def test_a_project_gives_its_runs_the_newest_first(server: WandbServer) -> None:
    for number in range(70):
        server.host(
            HostedRun(
                id=f"run{number:02d}",
                name=f"sun-{number}",
                state="running" if number % 2 else "finished",
                created=f"2026-01-02T03:{number % 60:02d}:{number // 60:02d}Z",
            )
        )
    assert len(find("ada/grpo", patience=PATIENCE)) == 70
    assert [one.run.name for one in find("wandb://ada/grpo", last=2, patience=PATIENCE)] == ["sun-59", "sun-58"]
    assert {one.state for one in find("ada/grpo", state="running", patience=PATIENCE)} == {"running"}
    with pytest.raises(RlhealthError, match="no run that is killed"):
        find("ada/grpo", state="killed", patience=PATIENCE)


@pytest.mark.parametrize(
    "address", ["wandb://ada", "wandb://", "ada/grpo/a/b", "https://wandb.ai/ada/grpo/sweeps/x1", "https://wandb.ai/ada/grpo/reports/R--1"]
)
def test_an_address_of_something_else_is_told_with_the_forms_that_are_read(address: str) -> None:
    with pytest.raises(RlhealthError) as caught:
        find(address)
    assert "wandb://entity/project/run" in caught.value.hint


def test_a_misspelt_run_is_told_with_the_one_that_may_be_meant(hosted: HostedRun) -> None:
    one = find("ada/grpo/abc12354", patience=PATIENCE)[0]
    with pytest.raises(RlhealthError, match="the project has no such run") as caught:
        one.poll()
    assert caught.value.hint == f"did you mean {RUN} (brisk-river-7)?"
    assert not isinstance(caught.value, Blind)


def test_a_project_that_is_not_there_is_told(hosted: HostedRun) -> None:
    with pytest.raises(RlhealthError, match="no such project"):
        find("ada/ppo/abc12345", patience=PATIENCE)[0].poll()
    with pytest.raises(RlhealthError, match="no such entity, project or run"):
        find("ada/ppo", patience=PATIENCE)


def test_a_misspelt_state_is_told() -> None:
    with pytest.raises(RlhealthError) as caught:
        find("ada/grpo", state="runing")
    assert caught.value.hint == "did you mean running?"


# --- the key ---


def test_without_a_key_it_says_how_to_log_in_and_asks_nothing(server: WandbServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_API_KEY")
    with pytest.raises(RlhealthError, match="no key of wandb is configured") as caught:
        reader().poll()
    assert "wandb login" in caught.value.hint and "WANDB_API_KEY" in caught.value.hint
    assert server.asked == []


def test_the_key_is_read_from_netrc(server: WandbServer, hosted: HostedRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WANDB_API_KEY")
    netrc = tmp_path / "home" / ".netrc"
    netrc.write_text(f"machine {server.url.removeprefix('http://')} login user password {KEY}\n")
    netrc.chmod(0o600)
    one = reader()
    one.poll()
    assert rewards(one.run) == expected(1, 5)


def test_the_key_goes_to_no_other_server_than_the_one_that_is_set(server: WandbServer) -> None:
    with pytest.raises(RlhealthError, match="not on the server") as caught:
        find("https://example.org/ada/grpo/runs/abc12345")
    assert "WANDB_BASE_URL=https://example.org" in caught.value.hint


@pytest.mark.parametrize("answer", [status(401, f"invalid api key {KEY}"), status(500, f"cannot use {KEY}"), status(418, f"odd: {KEY}")])
def test_the_key_is_in_no_message(server: WandbServer, hosted: HostedRun, answer: Any, capfd: pytest.CaptureFixture[str]) -> None:
    server.fail(answer)
    with pytest.raises(RlhealthError) as caught:
        reader(IMPATIENT).poll()
    error = caught.value
    assert KEY not in f"{error.message} {error.hint} {error.location} {error!r} {error.__cause__} {getattr(error, 'reason', '')}"
    assert error.__suppress_context__
    out, err = capfd.readouterr()
    assert KEY not in out + err


def test_nothing_is_printed_or_left_behind(hosted: HostedRun, tmp_path: Path) -> None:
    code = f"from rlhealth.sources.wandb_api import find; one = find({RUN!r})[0]; print(one.poll(), len(one.run.series['train/reward']))"
    folder = tmp_path / "work"
    folder.mkdir()
    given = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"} | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=given, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert (done.stdout, done.stderr, done.returncode) == ("True 5\n", "", 0)
    assert [path.name for path in (*folder.rglob("*"), *(tmp_path / "home").rglob("*"))] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "work"]


def test_the_environment_is_as_before(hosted: HostedRun) -> None:
    before = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
    reader().poll()
    assert {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"} == before


# --- a server that fails ---

PASSING = {
    "429": (status(429), "limits the rate"),
    "500": (status(500), "in trouble"),
    "503 page": (html(503), "in trouble"),
    "half a body": (half_a_body, "connection was cut"),
    "no answer": (nothing_at_all, "connection was cut"),
    "html": (html(), "does not answer as wandb does"),
    "drip": (drip(8), "no answer in time"),
}


@pytest.mark.parametrize(
    ("name", "operation"), [*((name, "HistoryPage") for name in PASSING), ("500", "Run"), ("html", "Run"), ("no answer", "RunParquetHistory")]
)
def test_a_watch_is_blind_while_the_server_fails_and_then_misses_nothing(server: WandbServer, hosted: HostedRun, name: str, operation: str) -> None:
    one = reader()
    one.poll()
    answer, reason = PASSING[name]
    hosted.log(train__global_step=6, train__reward=0.6)
    server.fail(answer, operation=operation)
    begun = time.time()
    told = blind(one)
    assert reason in told.reason
    assert begun <= told.since <= time.time()
    server.recover()
    hosted.log(train__global_step=7, train__reward=0.7)
    assert one.poll()
    assert rewards(one.run) == expected(1, 7)
    assert one.run.series["train/reward"].revision == 0


def test_a_server_that_fails_for_a_moment_is_not_noticed(server: WandbServer, hosted: HostedRun) -> None:
    for operation, answer in {
        "Viewer": status(500),
        "Run": half_a_body,
        "RunHistoryKeys": nothing_at_all,
        "RunParquetHistory": html(),
        "HistoryPage": half_a_body,
    }.items():
        server.fail(answer, operation=operation, times=1)
    one = reader()
    one.poll()
    assert rewards(one.run) == expected(1, 5)


def test_a_connection_cut_between_two_pages_neither_loses_nor_doubles(server: WandbServer) -> None:
    run = server.host(HostedRun())
    for step in range(1, 3501):
        run.log(train__global_step=step, train__reward=step / 10)

    def third_page(exchange: Any) -> None:
        pages = [given for name, given, _ in server.asked if name == "HistoryPage"]
        if pages[-1]["minStep"] >= 2000 and len(pages) == 3:
            return half_a_body(exchange)
        exchange.reply(200, json.dumps({"data": server.answer("HistoryPage", pages[-1])}))

    server.fail(third_page, operation="HistoryPage")
    one = reader()
    one.poll()
    assert rewards(one.run) == expected(1, 3500)
    assert server.rows_sent == 3501, "it went on from the last row"


def test_retry_after_is_waited_for(server: WandbServer, hosted: HostedRun) -> None:
    server.fail(status(429, headers={"Retry-After": "2"}), operation="HistoryPage", times=1)
    one = reader()
    one.poll()
    asked = [moment for name, _, moment in server.asked if name == "HistoryPage"]
    assert asked[1] - asked[0] >= 2.0
    assert rewards(one.run) == expected(1, 5)


def test_a_retry_after_of_an_hour_is_not_waited_for(server: WandbServer, hosted: HostedRun) -> None:
    server.fail(status(429, headers={"Retry-After": "3600"}), operation="HistoryPage")
    one = reader()
    blind(one)
    server.recover()
    one.poll()
    assert rewards(one.run) == expected(1, 5)


def test_since_when_it_is_blind_is_kept_until_it_sees_again(server: WandbServer, hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    server.fail(status(403))
    first, second = blind(one), blind(one)
    assert first.since == second.since
    server.recover()
    one.poll()
    server.fail(status(403))
    assert blind(one).since > first.since


@pytest.mark.parametrize(("code", "reason"), [(401, "not accepted"), (403, "no access")])
def test_a_key_that_is_refused_is_told_at_once_but_only_blinds_a_watch(server: WandbServer, hosted: HostedRun, code: int, reason: str) -> None:
    one = reader()
    one.poll()
    server.fail(status(code, "permission denied"))
    assert reason in blind(one).reason
    other = reader(IMPATIENT)
    with pytest.raises(RlhealthError, match=reason) as caught:
        other.poll()
    assert not isinstance(caught.value, Blind)
    server.recover()
    one.poll()


def test_a_run_that_is_deleted_while_watched_is_told(server: WandbServer, hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    server.projects["ada", "grpo"].clear()
    with pytest.raises(RlhealthError, match="no longer there") as caught:
        one.poll()
    assert not isinstance(caught.value, Blind)
    assert rewards(one.run) == expected(1, 5), "what was read stays"


def test_a_certificate_that_is_not_trusted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "made.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(made),
        "-out",
        str(tmp_path / "cert.pem"),
        "-days",
        "2",
        "-subj",
        "/CN=127.0.0.1",
    ]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    made.write_text(made.read_text() + (tmp_path / "cert.pem").read_text())
    with WandbServer(made).serving() as serving:
        monkeypatch.setenv("WANDB_BASE_URL", serving.url)
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        with pytest.raises(RlhealthError, match="certificate") as caught:
            reader().poll()
    assert "SSL_CERT_FILE" in caught.value.hint


@pytest.mark.parametrize(("host", "reason"), [("127.0.0.1:{port}", "connection refused"), ("no-such-host.invalid", "name is not known")])
def test_without_a_network_it_says_so_soon(monkeypatch: pytest.MonkeyPatch, host: str, reason: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    monkeypatch.setenv("WANDB_BASE_URL", f"http://{host.format(port=port)}")
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    assert reason in blind(reader()).message


def test_many_runs_do_not_wait_one_after_another_for_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with WandbServer().serving() as serving:
        monkeypatch.setenv("WANDB_BASE_URL", serving.url)
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        for number in range(20):
            serving.host(HostedRun(id=f"run{number}"))
        readers = find("ada/grpo", patience=IMPATIENT)
    tries = count_tries(monkeypatch)
    for one in readers:
        with pytest.raises(Blind, match="connection refused"):
            one.poll()
    assert len(tries) <= 8, "the first one tried; the others asked whether it has been tried just now"


def test_a_look_that_was_given_up_does_not_hold_the_program_when_it_ends(server: WandbServer, hosted: HostedRun) -> None:
    server.fail(status(429, headers={"Retry-After": "3600"}), operation="HistoryPage")
    code = f"""
from rlhealth.sources.wandb_api import find
from rlhealth.errors import Blind
try: find({RUN!r}, patience=2)[0].poll()
except Blind as error: print(error.reason)
"""
    given = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=40)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no answer in time" in done.stdout


# --- what is done to a run, only when asked ---


def test_reading_changes_nothing_on_the_server(server: WandbServer, hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    assert {"Run", "HistoryPage"} <= set(server.operations()) <= {
        "Viewer", "GetViewer", "GetDefaultEntity", "Run", "RunFiles", "RunHistoryKeys", "RunParquetHistory", "HistoryPage",
    }  # fmt: skip


def test_a_run_is_asked_to_stop(hosted: HostedRun) -> None:
    stop_run(RUN, patience=PATIENCE)
    assert hosted.stopped


def test_an_alert_is_sent_in_the_name_of_the_run(hosted: HostedRun) -> None:
    alert(RUN, "grpo is ill", "reward has collapsed at step 120", "ERROR", patience=PATIENCE)
    [sent] = hosted.alerts
    assert (sent["runName"], sent["title"], sent["severity"]) == ("abc12345", "grpo is ill", "ERROR")


def test_a_whole_project_is_not_stopped(hosted: HostedRun) -> None:
    with pytest.raises(RlhealthError, match="a project, not a run"):
        stop_run("ada/grpo")
    assert not hosted.stopped
