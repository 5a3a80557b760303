"""Runs online, with the real SDK against a server on loopback: what of their history, settings and end is read."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.sources.wandb.actions import alert, stop_run
from rlhealth.sources.wandb.api import WandbReader
from tests.sources.wandb_online import (
    EXPORTED,
    GRPO,
    LEGACY,
    PATIENCE,
    RUN,
    expected,
    offline,
    reader,
    rewards,
    rows_of,
    same_points,
)
from tests.wandb_server import HostedRun, WandbServer


def test_a_real_run_reads_the_same_online_as_from_its_file(server: WandbServer) -> None:
    server.host(HostedRun(rows=rows_of(GRPO), state="finished"))
    one = reader()
    assert one.poll()
    same_points(one.run, offline(GRPO))
    assert one.run.step_axis == "train/global_step"
    assert one.run.config["trainer_class"] == "GRPOTrainer"


def test_exported_rows_and_live_ones_make_one_history_without_doubles(server: WandbServer) -> None:
    server.host(
        HostedRun(
            rows=rows_of(GRPO),
            state="finished",
            parquet=[path.read_bytes() for path in reversed(EXPORTED)],
            parquet_rows=160,
        )
    )
    one = reader()
    one.poll()
    assert server.operations().count("GET parquet") == 2
    same_points(one.run, offline(GRPO))


def test_an_export_that_was_written_while_we_watched_loses_nothing(server: WandbServer) -> None:
    rows = rows_of(GRPO)
    run = server.host(
        HostedRun(id="growing", rows=rows[:120], parquet=[EXPORTED[0].read_bytes()], parquet_rows=100, live_only=True)
    )
    one = WandbReader("ada", "grpo", "growing", patience=PATIENCE)
    one.poll()
    run.rows, run.parquet, run.parquet_rows = rows, [path.read_bytes() for path in EXPORTED], 160
    one.poll()
    same_points(one.run, offline(GRPO))
    assert [given["path"][-1] for name, given, _ in server.asked if name == "GET parquet"] == ["0", "1"], (
        "each file is fetched once"
    )


def test_an_exported_file_that_was_written_anew_under_its_old_name_loses_nothing(server: WandbServer) -> None:
    rows = rows_of(GRPO)
    run = server.host(
        HostedRun(id="renewed", rows=rows[:120], parquet=[EXPORTED[0].read_bytes()], parquet_rows=100, live_only=True)
    )
    one = WandbReader("ada", "grpo", "renewed", patience=PATIENCE)
    one.poll()
    run.rows, run.parquet, run.parquet_rows = rows, [EXPORTED[1].read_bytes(), EXPORTED[0].read_bytes()], 160
    one.poll()
    assert len(one.run.series["train/reward"]) < len(offline(GRPO).series["train/reward"]), (
        "the SDK takes the file that it has"
    )
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
    hosted.log(
        train__global_step=6, train__reward="NaN", train__kl="Infinity", train__loss=math.nan, train__ratio=packed
    )
    hosted.log(
        train__global_step=7, train__reward=0.7, train__kl="-Infinity", train__loss=-math.inf, train__ratio=packed
    )
    one = reader()
    one.poll()
    assert math.isnan(one.run.series["train/reward"].values[5])
    assert one.run.series["train/kl"].values.tolist() == [math.inf, -math.inf]
    assert math.isnan(one.run.series["train/loss"].values[0]) and one.run.series["train/loss"].values[1] == -math.inf
    assert one.run.histograms["train/ratio"].edges[0].tolist() == [0.5, 0.75, 1.0, 1.25]


def test_settings_versions_name_and_end_are_read(server: WandbServer) -> None:
    config = {
        "beta": 0.04,
        "learning_rate": 1e-6,
        "_wandb": {"cli_version": "0.31.0", "huggingface_version": "5.23.0"},
        "hub_token": "hf_abcdefghijklmnopq",
    }
    summary = {"train_runtime": 12.5, "train_loss": "NaN"}
    run = server.host(
        HostedRun(
            name="brave-sun-3",
            state="finished",
            config=config,
            summary=summary,
            requirements="trl==1.16.0\ntorch==2.9.1\n",
        )
    )
    run.log(train__global_step=1, train__reward=0.5)
    one = reader()
    one.poll()
    assert one.run.name == "brave-sun-3"
    assert one.run.config == {"beta": 0.04, "learning_rate": 1e-6}
    assert one.run.versions == {"wandb": "0.31.0", "transformers": "5.23.0", "trl": "1.16.0", "torch": "2.9.1"}
    assert one.run.series["train/train_runtime"].values.tolist() == [12.5]
    assert (one.run.exit_code, one.run.clean) == (0, True)
    assert one.run.place.location == RUN


@pytest.mark.parametrize(
    ("state", "code"), [("failed", 1), ("crashed", 1), ("killed", 137), ("running", None), ("pending", None)]
)
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
def test_of_thousands_of_keys_only_the_needed_are_asked_for_and_no_row_is_lost(
    server: WandbServer, counted_right: bool
) -> None:
    run = server.host(HostedRun())
    layers = {
        f"gradients/layer.{layer}": {"_type": "histogram", "values": [1], "bins": [0, 1]} for layer in range(1100)
    }
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
    assert ("HistoryPage" in server.operations()) == (not counted_right), (
        "whole rows only where the short way did not bring all"
    )
    assert len(one.run.series["train/reward"]) == (40 if counted_right else 38)
    assert one.run.series["eval/reward"].steps.tolist() == [10, 20, 30, 40]
    assert not any(tag.startswith("gradients") for tag in (*one.run.series, *one.run.histograms))


@pytest.mark.slow
def test_fifty_thousand_rows_arrive_whole(server: WandbServer) -> None:
    run = server.host(HostedRun())
    for step in range(1, 50_001):
        run.log(
            train__global_step=step, train__reward=step / 10, train__kl=0.01, train__entropy=1.0, train__grad_norm=0.5
        )
    one = reader(60)
    one.poll()
    assert all(len(series) == 50_000 for series in one.run.series.values())
    assert rewards(one.run)[::10_000] == expected(1, 50_000)[::10_000]
    assert server.rows_sent == 50_000


def test_reading_changes_nothing_on_the_server(server: WandbServer, hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    assert (
        {"Run", "HistoryPage"}
        <= set(server.operations())
        <= {
            "Viewer",
            "GetViewer",
            "Run",
            "RunFirstLook",
            "HistoryPage",
        }
    )


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
