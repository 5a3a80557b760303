"""Offline wandb runs: what is in the record log is in the run, whatever is torn off it or damaged in it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wandb.proto import wandb_internal_pb2 as pb

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.history import Rows
from rlhealth.sources.wandb import log as wandb_log
from rlhealth.sources.wandb.file import WandbFileReader, find
from tests.examples import examples
from tests.sources.wandb_writing import (
    BLOCK,
    HEADER,
    config,
    exit_record,
    frame,
    history,
    run_record,
    unframe,
    write,
    write_rows,
)

FIXTURES = Path(__file__).parents[3] / "fixtures"
WANDB = FIXTURES / "wandb"
SHORT = next((FIXTURES / "everywhere" / "grpo-short" / "wandb").glob("*/run-*.wandb"))
ALL = [SHORT, *sorted(WANDB.glob("*.wandb"))]
MODEST = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(*paths: Path) -> Run:
    reader = WandbFileReader(*paths)
    reader.poll()
    return reader.run


def points(run: Run) -> dict[str, list[tuple[int, float]]]:
    return {
        tag: list(zip(series.steps.tolist(), [repr(value) for value in series.values.tolist()], strict=True))
        for tag, series in run.series.items()
    }


def rows_by_the_sdk(path: Path) -> list[dict[str, object]]:
    """The history rows as wandb's own messages give them, scalars only."""
    rows = []
    for data in unframe(path.read_bytes()):
        record = pb.Record.FromString(data)
        if record.WhichOneof("record_type") == "history":
            rows.append(
                {
                    item.key or item.nested_key[0]: json.loads(item.value_json)
                    for item in record.history.item
                    if len(item.nested_key) < 2
                }
            )
    return rows


# What is read


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_number_that_the_sdks_messages_hold_is_in_the_run(path):
    run, expected = read(path), defaultdict(dict)
    for row in rows_by_the_sdk(path):
        step = row.get("train/global_step", row["_step"])
        for tag, value in row.items():
            if (
                isinstance(value, (int, float))
                and not tag.startswith(("_", "profiling/"))
                and tag != "train/global_step"
            ):
                expected[tag][step] = value
    found = {
        tag: dict(zip(one.steps.tolist(), one.values.tolist(), strict=True))
        for tag, one in run.series.items()
        if "train/t" not in tag
    }
    assert len(expected) > 5
    for tag, values in expected.items():
        assert list(found[tag]) == list(values)
        np.testing.assert_array_equal(list(found[tag].values()), list(values.values()))


def test_a_grpo_run_is_counted_by_its_global_step_and_profiling_rows_are_no_metrics():
    run = read(SHORT)
    assert run.step_axis == "train/global_step"
    assert run.series["train/reward"].steps.tolist() == list(range(1, 31))
    assert not [tag for tag in run.series if tag.startswith(("profiling/", "_"))]
    assert np.all(np.diff(run.series["train/reward"].times) > 0)


def test_its_settings_versions_and_end_are_reported():
    run = read(SHORT)
    assert (run.exit_code, run.clean, run.problems, run.name) == (0, True, [], "grpo-h11-short")
    assert run.config["beta"] == 0.04 and run.config["max_steps"] == 30 and run.config["trainer_class"] == "GRPOTrainer"
    assert run.versions["transformers"] == "5.23.0"


def test_the_end_of_training_that_only_the_summary_holds_is_one_point_at_the_last_step():
    run = read(SHORT)
    for tag in ("train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos", "train_loss"):
        assert run.series[f"train/{tag}"].steps.tolist() == [30]
    assert "train/train_runtime" not in read(WANDB / "run-grpo-killed.wandb").series


def test_wandb_and_tensorboard_of_one_run_hold_the_same_series():
    from rlhealth.sources.tensorboard import reader as tensorboard

    reader = tensorboard.find(FIXTURES / "everywhere" / "grpo-short" / "runs")[0]
    reader.poll()
    run = read(SHORT)
    assert run.series.keys() == reader.run.series.keys()
    for tag, series in reader.run.series.items():
        np.testing.assert_array_equal(run.series[tag].steps, series.steps)
        np.testing.assert_allclose(run.series[tag].values, series.values, rtol=1e-6)


def test_a_killed_run_has_no_exit_record_and_its_file_is_torn():
    for name in ("run-grpo-killed", "run-ppo-disk-full", "run-legacy-ppo"):
        run = read(WANDB / f"{name}.wandb")
        assert (run.exit_code, run.clean, run.problems) == (None, False, [])
    assert read(WANDB / "run-grpo-killed.wandb").last_step == 16


def test_a_run_that_raised_keeps_its_exit_code_and_its_nan():
    run = read(WANDB / "run-grpo-old-nan.wandb")
    assert (run.exit_code, run.clean, run.step_axis) == (1, True, "train/global_step")
    assert math.isnan(run.series["train/grad_norm"].values[-1])


def test_legacy_ppo_counts_from_zero_and_its_histograms_are_distributions():
    run = read(WANDB / "run-legacy-ppo.wandb")
    ratio = run.histograms["ppo/policy/ratio"]
    assert run.step_axis == "_step" and run.first_step == 0
    assert ratio.steps == run.series["objective/kl"].steps.tolist()
    assert {len(counts) for counts in ratio.counts} == {32} and {len(edges) for edges in ratio.edges} == {33}
    middles = [
        float(np.average((edges[1:] + edges[:-1]) / 2, weights=counts))
        for edges, counts in zip(ratio.edges, ratio.counts, strict=True)
    ]
    assert np.all(np.abs(np.array(middles) - 1) < 0.1)


def test_histograms_hold_what_the_record_holds():
    run = read(WANDB / "run-legacy-ppo.wandb")
    for data in unframe((WANDB / "run-legacy-ppo.wandb").read_bytes()):
        record = pb.Record.FromString(data)
        items = {tuple(item.nested_key): item.value_json for item in record.history.item}
        if ("ppo/policy/advantages", "bins") in items:
            place = run.histograms["ppo/policy/advantages"].steps.index(json.loads(items[("_step",)]))
            assert run.histograms["ppo/policy/advantages"].edges[place].tolist() == json.loads(
                items[("ppo/policy/advantages", "bins")]
            )
            assert run.histograms["ppo/policy/advantages"].counts[place].tolist() == json.loads(
                items[("ppo/policy/advantages", "values")]
            )


def test_a_plain_list_is_a_distribution_and_a_table_is_nothing():
    run = read(WANDB / "run-legacy-ppo.wandb")
    assert {
        "env/reward_dist",
        "objective/kl_dist",
        "tokens/queries_dist",
        "tokens/responses_dist",
    } <= run.histograms.keys()
    kl = run.histograms["objective/kl_dist"]
    for index in range(1, len(kl)):
        middle = np.average((kl.edges[index][1:] + kl.edges[index][:-1]) / 2, weights=kl.counts[index])
        assert abs(middle - run.series["objective/kl"].values[index]) <= np.diff(kl.edges[index]).max()
    assert not [
        tag for tag in [*run.series, *run.histograms] if "game_log" in tag or tag.endswith(("_type", "bins", "values"))
    ]


@pytest.mark.parametrize("flat_keys", [True, False], ids=["flat keys", "nested keys"])
def test_nan_and_the_infinities_are_numbers_in_every_spelling(tmp_path, flat_keys):
    spelt = [1.5, math.nan, "NaN", None, math.inf, "Infinity", -math.inf, "-Infinity"]
    rows = [{"kl": value, "never": None, "text": "hello", "_step": step} for step, value in enumerate(spelt)]
    run = read(write_rows(tmp_path / "run-a.wandb", rows, flat_keys=flat_keys))
    np.testing.assert_array_equal(run.series["kl"].values, [1.5, *[math.nan] * 3, *[math.inf] * 2, *[-math.inf] * 2])
    assert list(run.series) == ["kl"]


def test_null_before_the_first_number_is_nan_too(tmp_path):
    run = read(
        write_rows(
            tmp_path / "run-a.wandb", [{"kl": None, "_step": 0}, {"kl": None, "_step": 1}, {"kl": 2, "_step": 2}]
        )
    )
    np.testing.assert_array_equal(run.series["kl"].values, [math.nan, math.nan, 2])


def test_histograms_in_the_servers_packed_form_and_in_the_older_flat_form_are_read(tmp_path):
    packed = {"_type": "histogram", "values": [1, 2, 3], "packedBins": {"min": 0.5, "size": 0.25, "count": 3}}
    run = read(write_rows(tmp_path / "run-a.wandb", [{"ratio": packed, "_step": 0}], flat_keys=True))
    assert run.histograms["ratio"].edges[0].tolist() == [0.5, 0.75, 1.0, 1.25]
    assert run.histograms["ratio"].counts[0].tolist() == [1, 2, 3]


def test_a_group_of_metrics_keeps_its_numbers_and_media_do_not_become_metrics(tmp_path):
    row = {"eval": {"loss": 2.0}, "completions": {"_type": "table-file", "size": 17, "nrows": 4}, "_step": 0}
    assert list(read(write_rows(tmp_path / "run-a.wandb", [row])).series) == ["eval.loss"]


def test_a_metric_that_is_a_list_with_nan_says_what_was_left_out(tmp_path):
    run = read(write_rows(tmp_path / "run-a.wandb", [{"dist": [1.0, math.nan, 3.0], "_step": 0}]))
    assert run.histograms["dist"].counts[0].sum() == 2
    assert run.notes == ["dist: numbers that are not finite were left out of its distribution"]


# Steps


def test_rows_before_the_axis_shows_itself_stand_at_its_first_step(tmp_path):
    rows = [
        {"setup": 1.0, "_step": 0},
        {"setup": 2.0, "_step": 1},
        {"kl": 0.1, "train/global_step": 5, "_step": 2},
        {"kl": 0.2, "train/global_step": 6, "_step": 3},
    ]
    run = read(write_rows(tmp_path / "run-a.wandb", rows))
    assert points(run) == {"setup": [(5, "2.0")], "kl": [(5, "0.1"), (6, "0.2")]}
    assert run.step_axis == "train/global_step" and "2 rows were logged before" in run.notes[0]


def test_a_metric_called_global_step_that_comes_late_is_not_the_axis(tmp_path):
    rows = [{"kl": float(step), "_step": step} for step in range(300)] + [{"kl": 0.0, "global_step": 7, "_step": 300}]
    run = read(write_rows(tmp_path / "run-a.wandb", rows))
    assert run.step_axis == "_step" and run.last_step == 300


def test_a_training_resumed_inside_one_file_replaces_what_it_repeats(tmp_path):
    rows = [{"kl": float(step), "train/global_step": step} for step in range(1, 11)] + [
        {"kl": -float(step), "train/global_step": step} for step in range(7, 9)
    ]
    run = read(write_rows(tmp_path / "run-a.wandb", rows))
    assert run.resumed_at == [7]
    assert run.series["kl"].values.tolist() == [1, 2, 3, 4, 5, 6, -7, -8]


def test_an_evaluation_that_comes_late_is_no_resume(tmp_path):
    rows = [{"kl": float(step), "train/global_step": step} for step in range(1, 11)] + [
        {"eval/reward": 1.0, "train/global_step": step} for step in (4, 8, 6)
    ]
    run = read(write_rows(tmp_path / "run-a.wandb", rows))
    assert (
        run.resumed_at == []
        and run.series["kl"].steps[-1] == 10
        and run.series["eval/reward"].steps.tolist() == [4, 6, 8]
    )


VALUES = st.one_of(
    st.floats(),
    st.integers(-(10**18), 10**18),
    st.booleans(),
    st.none(),
    st.sampled_from(["NaN", "Infinity", "-Infinity", "text", ""]),
    st.lists(st.floats(-10, 10), max_size=4),
    st.just({"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2]}),
    st.just({"_type": "table", "size": 3}),
    st.dictionaries(st.sampled_from(["x", "y"]), st.floats(-1, 1), min_size=1, max_size=2),
)
KEYS = st.one_of(
    st.sampled_from(
        [
            "kl",
            "train/reward",
            "train/a_rather_long_name_of_a_metric/mean",
            "train/a_rather_long_name_of_b_metric/mean",
            "train/loss",
            "loss",
            "é",
        ]
    ),
    st.text(min_size=1, max_size=12).filter(lambda text: text < "\ud800" or text.isprintable()),
    st.text("abc/", min_size=120, max_size=140),
)
ROWS = st.lists(st.dictionaries(KEYS, VALUES, max_size=6), max_size=30)


@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    rows=ROWS,
    axis=st.sampled_from(["_step", "train/global_step"]),
    start=st.integers(0, 3),
    flat_keys=st.booleans(),
    step_sizes=st.lists(st.integers(-1, 2), min_size=30, max_size=30),
)
def test_rows_read_abreast_are_the_rows_read_one_by_one(tmp_path, rows, axis, start, flat_keys, step_sizes):
    steps = (
        np.maximum(start + np.cumsum(step_sizes[: len(rows)]), 0).tolist()
        if axis != "_step"
        else list(range(len(rows)))
    )
    rows = [{**row, "_step": index, axis: int(step)} for index, (row, step) in enumerate(zip(rows, steps, strict=True))]
    expected = Run("made", Place("wandb", ""))
    one_by_one = Rows(expected)
    for row in rows:
        one_by_one.take(json.loads(json.dumps(row)))
    one_by_one.flush()
    run = read(write_rows(tmp_path / "run-a.wandb", rows, flat_keys=flat_keys))
    assert points(run) == points(expected)
    assert {tag: one.steps for tag, one in run.histograms.items()} == {
        tag: one.steps for tag, one in expected.histograms.items()
    }
    assert (run.resumed_at, run.step_axis) == (expected.resumed_at, expected.step_axis)


# Growing


def test_each_byte_is_read_once_however_often_it_is_polled(tmp_path, monkeypatch):
    counted = []

    def counting(path):
        file = original(path)
        read_bytes = file.read
        file_read = lambda size=-1: counted.append(got := read_bytes(size)) or got  # noqa: E731
        return _Counting(file, file_read)

    original = wandb_log.open_regular
    monkeypatch.setattr(wandb_log, "open_regular", counting)
    whole, path = SHORT.read_bytes(), tmp_path / "run-live.wandb"
    path.touch()
    reader = WandbFileReader(path)
    with path.open("ab") as file:
        for at in range(0, len(whole), 1777):
            file.write(whole[at : at + 1777])
            file.flush()
            assert reader.poll() is True
            assert reader.poll() is False
    assert b"".join(counted) == whole
    assert points(reader.run) == points(read(SHORT))


class _Counting:
    def __init__(self, file, read_bytes):
        self._file, self.read = file, read_bytes

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self._file.close()


@MODEST
@given(cuts=st.lists(st.integers(0, 1 << 20), max_size=8), name=st.sampled_from([path.name for path in ALL]))
def test_a_file_read_in_any_pieces_gives_the_run_that_reading_it_whole_gives(tmp_path, cuts, name):
    path = next(one for one in ALL if one.name == name)
    whole = path.read_bytes()
    live = tmp_path / "run-live.wandb"
    live.write_bytes(b"")
    reader = WandbFileReader(live)
    for cut in [*sorted(cut % len(whole) for cut in cuts), len(whole)]:
        with live.open("r+b") as file:
            file.seek(0, 2)
            file.write(whole[file.tell() : cut])
        reader.poll()
    expected = read(path)
    assert points(reader.run) == points(expected)
    assert {tag: one.steps for tag, one in reader.run.histograms.items()} == {
        tag: one.steps for tag, one in expected.histograms.items()
    }
    assert (reader.run.problems, reader.run.clean, reader.run.exit_code, reader.run.config) == (
        [],
        expected.clean,
        expected.exit_code,
        expected.config,
    )


def test_a_torn_tail_is_waited_for_not_reported(tmp_path):
    records = [run_record("made"), *(history({"kl": float(step), "_step": step}, 10 + step) for step in range(50))]
    whole = HEADER + frame(records)
    complete = 0
    for cut in range(len(whole) + 1):
        path = tmp_path / "run-cut.wandb"
        path.write_bytes(whole[:cut])
        run = read(path)
        assert run.problems == []
        found = len(run.series["kl"]) if "kl" in run.series else 0
        assert found in (complete, complete + 1)
        complete = found
        path.unlink()
    assert complete == 50


def test_a_run_that_ends_while_it_is_watched_says_how(tmp_path):
    path = write(tmp_path / "run-a.wandb", [run_record("made"), history({"kl": 1.0, "_step": 0}, 10)])
    reader = WandbFileReader(path)
    reader.poll()
    assert (reader.run.exit_code, reader.run.clean) == (None, None)
    with path.open("ab") as file:
        file.write(frame([exit_record(255, 11)], path.stat().st_size))
    assert reader.poll() is True
    assert (reader.run.exit_code, reader.run.clean) == (255, True)


def test_a_file_that_is_replaced_is_read_again_from_its_beginning(tmp_path):
    path = write_rows(tmp_path / "run-a.wandb", [{"kl": float(step), "_step": step} for step in range(100)])
    reader = WandbFileReader(path)
    reader.poll()
    path.unlink()
    write_rows(path, [{"kl": 7.0, "_step": 0}])
    reader.poll()
    assert points(reader.run) == {"kl": [(0, "7.0")]}
    assert "replaced" in reader.run.notes[-1]


# Damage


def damaged(tmp_path, change) -> tuple[Run, Run]:
    whole = bytearray(SHORT.read_bytes())
    path = tmp_path / "run-damaged.wandb"
    path.write_bytes(bytes(change(whole)))
    return read(SHORT), read(path)


def test_one_flipped_bit_loses_one_record_and_says_so(tmp_path):
    def flip(whole):
        whole[100_000] ^= 4
        return whole

    intact, run = damaged(tmp_path, flip)
    assert len(run.problems) == 1 and "1 record lost" in run.problems[0]
    assert run.exit_code == 0
    lost = sum(len(one) for one in intact.series.values()) - sum(len(one) for one in run.series.values())
    assert 0 <= lost <= 26


def test_a_zeroed_block_is_skipped_and_what_follows_is_read(tmp_path):
    def zero(whole):
        whole[2 * BLOCK : 3 * BLOCK] = bytes(BLOCK)
        return whole

    intact, run = damaged(tmp_path, zero)
    assert len(run.problems) == 1 and run.exit_code == 0
    assert run.series["train/reward"].steps[-1] == intact.series["train/reward"].steps[-1]
    assert len(intact.series["train/reward"]) - len(run.series["train/reward"]) <= 7


def test_a_block_that_comes_twice_changes_nothing(tmp_path):
    intact, run = damaged(tmp_path, lambda whole: whole[: 2 * BLOCK] + whole[BLOCK : 2 * BLOCK] + whole[2 * BLOCK :])
    assert run.resumed_at == [] and run.problems
    assert_subset(run, intact, most_lost=60)


def test_blocks_that_are_swapped_are_no_resume(tmp_path):
    swapped = lambda whole: whole[:BLOCK] + whole[2 * BLOCK : 3 * BLOCK] + whole[BLOCK : 2 * BLOCK] + whole[3 * BLOCK :]  # noqa: E731
    intact, run = damaged(tmp_path, swapped)
    assert run.resumed_at == [] and run.problems
    assert_subset(run, intact, most_lost=100)


def test_a_damaged_header_of_the_file_costs_nothing_but_a_word(tmp_path):
    intact, run = damaged(tmp_path, lambda whole: b"XXXX" + whole[4:])
    assert points(run) == points(intact) and "header" in run.problems[0]


def test_a_first_block_of_zeros_costs_that_block(tmp_path):
    def zero(whole):
        whole[:BLOCK] = bytes(BLOCK)
        return whole

    intact, run = damaged(tmp_path, zero)
    assert len(run.problems) == 2 and run.exit_code == 0
    assert_subset(run, intact, most_lost=200)
    assert len(run.series["train/reward"]) > 20


def test_a_wrong_length_in_the_last_block_does_not_hide_what_follows(tmp_path):
    records = [run_record("made"), *(history({"kl": float(step), "_step": step}, 10 + step) for step in range(20))]
    whole = bytearray(HEADER + frame(records))
    at = len(HEADER) + len(frame(records[:10], len(HEADER)))
    whole[at + 5] = 0x70
    path = tmp_path / "run-a.wandb"
    path.write_bytes(bytes(whole))
    run = read(path)
    assert len(run.series["kl"]) == 19 and "1 record lost" in run.problems[0]


def assert_subset(run: Run, intact: Run, most_lost: int) -> None:
    whole = points(intact)
    for tag, found in points(run).items():
        assert set(found) <= set(whole[tag])
    assert sum(map(len, whole.values())) - sum(map(len, points(run).values())) <= most_lost


@MODEST
@given(st.lists(st.tuples(st.integers(7, 172_843), st.integers(0, 255)), min_size=1, max_size=6))
def test_damage_anywhere_never_invents_a_number_and_costs_only_the_rows_it_touches(tmp_path, places):
    def spoil(whole):
        for place, byte in places:
            whole[place] = byte
        return whole

    intact, run = damaged(tmp_path, spoil)
    run.series = {
        tag: one
        for tag, one in run.series.items()
        if tag.removeprefix("train/")
        not in ("train_runtime", "train_loss", "total_flos", "train_samples_per_second", "train_steps_per_second")
    }
    assert_subset(run, intact, most_lost=5 + len(places) * 52)


@MODEST
@given(st.binary(max_size=3000))
def test_bytes_that_are_no_log_are_an_error_or_nothing_but_never_a_traceback(tmp_path, content):
    path = tmp_path / "run-a.wandb"
    path.write_bytes(content)
    try:
        assert read(path).series == {}
    except RlhealthError as error:
        assert error.hint


@MODEST
@given(st.lists(st.binary(max_size=300), max_size=8))
def test_records_that_hold_anything_at_all_are_left_out(tmp_path, contents):
    good = history({"kl": 1.0, "_step": 3}, 99)
    run = read(
        write(
            tmp_path / "run-a.wandb",
            [run_record("made"), *contents, *(b"\x12" + bytes([len(one) % 128]) + one[:127] for one in contents), good],
        )
    )
    assert "kl" in run.series


def test_a_declared_length_allocates_nothing(tmp_path):
    huge = b"\x08\x05\x12" + b"\xff" * 9 + b"\x01"
    run = read(write(tmp_path / "run-a.wandb", [run_record("made"), huge, history({"kl": 1.0, "_step": 0}, 7)]))
    assert len(run.series["kl"]) == 1 and "1 record" in run.problems[0]


def test_a_sparse_file_of_a_hundred_gigabytes_is_not_read_through(tmp_path):
    path = write_rows(tmp_path / "run-a.wandb", [{"kl": 1.0, "_step": 0}])
    try:
        os.truncate(path, 100 << 30)
    except OSError:
        pytest.skip("this file system has no sparse files")
    run = read(path)
    assert len(run.series["kl"]) == 1 and run.problems


def test_many_metric_names_are_taken_as_they_are_and_a_name_of_a_megabyte_is_left_out_and_reported(tmp_path):
    rows = [{f"metric/{row}/{index}": 1.0 for index in range(2000)} | {"_step": row} for row in range(10)] + [
        {"x" * 1_000_000: 1.0, "_step": 10}
    ]
    run = read(write_rows(tmp_path / "run-a.wandb", rows))
    assert len(run.series) == 20_000
    assert "names longer than 4,096 characters" in run.problems[0]


def test_json_that_is_nested_a_hundred_thousand_deep_is_left_out(tmp_path):
    record = pb.Record(num=10)
    record.history.item.add(nested_key=["deep"], value_json="[" * 100_000)
    record.history.item.add(nested_key=["kl"], value_json="1")
    assert list(read(write(tmp_path / "run-a.wandb", [record.SerializeToString()])).series) == ["kl"]


@pytest.mark.parametrize("content", [b"not a run at all", b"\x89PNG\r\n\x1a\n" + bytes(100)])
def test_another_kind_of_file_is_an_error_that_says_so(tmp_path, content):
    path = tmp_path / "run-a.wandb"
    path.write_bytes(content)
    with pytest.raises(RlhealthError, match="not a wandb record log"):
        read(path)


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "run-a.wandb")
    with pytest.raises(RlhealthError):
        find(tmp_path / "run-a.wandb")
    with pytest.raises(RlhealthError):
        read(tmp_path / "run-a.wandb")


# Privacy


def test_nothing_private_that_the_records_carry_reaches_the_run(tmp_path):
    environment = pb.Record(
        num=3,
        environment=pb.EnvironmentRecord(
            email="someone@example.org", host="secret-host", username="someone", args=["--password=hunter2"]
        ),
    )
    settings_ = {
        "learning_rate": 1e-5,
        "hub_token": "hf_abcdefghijklmnopqrstuv",
        "wandb_api_key": "a" * 40,
        "vllm_server_host": "secret-host",
        "contact": "someone@example.org",
        "nested": {"password": "hunter2", "beta": 0.1},
        "command": "train.py --password=hunter2",
        "eos_token_id": 3,
    }
    records = [
        run_record("made", host="secret-host", name="the run"),
        environment.SerializeToString(),
        config(settings_),
        history({"kl": 1.0, "_step": 0}, 9),
    ]
    run = read(write(tmp_path / "run-a.wandb", records))
    assert run.config == {"learning_rate": 1e-5, "nested.beta": 0.1, "eos_token_id": 3}
    for private in ("example.org", "secret-host", "hunter2", "hf_", "aaaa"):
        assert private not in repr((run.config, run.notes, run.problems, run.versions, run.name))


# Which files are one run


def resumed(folder: Path, *, beta: float = 0.1, out: str = "out", begins: int = 41, name: str = "b") -> list[Path]:
    def part(run_id: str, started: int, steps: range, settings_: dict) -> Path:
        rows = (history({"kl": float(step), "train/global_step": step}, 10 + step) for step in steps)
        path = folder / "wandb" / f"offline-run-{started}-{run_id}" / f"run-{run_id}.wandb"
        return write(path, [run_record(run_id, started), config(settings_), *rows])

    first = part("a", 1000, range(1, 53), {"beta": 0.1, "output_dir": "out", "run_name": "first", "max_steps": 100})
    return [
        first,
        part(
            name,
            2000,
            range(begins, 101),
            {
                "beta": beta,
                "output_dir": out,
                "run_name": "again",
                "max_steps": 100,
                "resume_from_checkpoint": "x/checkpoint-40",
            },
        ),
    ]


def test_a_training_resumed_in_a_second_file_is_one_run(tmp_path):
    resumed(tmp_path)
    readers = find(tmp_path)
    assert len(readers) == 1
    assert readers[0].poll() is True and readers[0].poll() is False
    run = readers[0].run
    assert run.resumed_at == [41] and run.series["kl"].steps.tolist() == list(range(1, 101))


@pytest.mark.parametrize("other", [{"beta": 0.2}, {"out": "elsewhere"}, {"begins": 1}], ids=str)
def test_other_settings_another_folder_or_a_fresh_start_are_another_run(tmp_path, other):
    resumed(tmp_path, **other)
    readers = find(tmp_path)
    for reader in readers:
        reader.poll()
    assert len(readers) == 2
    assert sum(len(reader.run.series["kl"]) for reader in readers) == 52 + (100 if other.get("begins") == 1 else 60)


def test_a_resume_that_begins_while_the_run_is_watched_is_taken_up(tmp_path):
    _, second = resumed(tmp_path)
    later = second.read_bytes()
    second.unlink()
    (reader,) = find(tmp_path)
    assert [reader.poll(), reader.poll(), reader.run.last_step] == [True, False, 52]
    second.write_bytes(later[:200])
    assert reader.poll() is False
    second.write_bytes(later)
    assert [reader.poll(), reader.poll()] == [False, True]
    assert reader.run.resumed_at == [41] and reader.run.series["kl"].steps.tolist() == list(range(1, 101))


def test_a_run_of_another_training_that_begins_meanwhile_is_not(tmp_path):
    _, second = resumed(tmp_path, beta=0.2)
    later = second.read_bytes()
    second.unlink()
    (reader,) = find(tmp_path)
    reader.poll()
    second.write_bytes(later)
    assert not any(reader.poll() for _ in range(4)) and reader.run.last_step == 52


def test_the_link_to_the_latest_run_is_not_another_run(tmp_path):
    first, _ = resumed(tmp_path, beta=0.2)
    (tmp_path / "wandb" / "latest-run").symlink_to(first.parent.name)
    assert len(find(tmp_path)) == 2


def test_versions_come_from_the_requirements_beside_the_run(tmp_path):
    path = write(tmp_path / "offline-run-1" / "run-a.wandb", [run_record("a"), history({"kl": 1.0, "_step": 0}, 9)])
    (path.parent / "files").mkdir()
    (path.parent / "files" / "requirements.txt").write_text(
        "trl==1.16.0\ntorch==2.13.0+cpu\n-e git+https://token@example.org/x\n"
    )
    assert read(path).versions == {"trl": "1.16.0", "torch": "2.13.0+cpu"}


# The real SDK


LIVE = """
import math, sys, wandb
run = wandb.init(project="p", dir=sys.argv[1], name="live", config={"beta": 0.04, "nested": {"lr": 1e-5}}, settings=wandb.Settings(console="off", x_disable_stats=True))
for step in range(1, 301):
    run.log({"train/reward": step / 3, "train/kl": math.nan if step == 7 else 0.1, "ratio": wandb.Histogram([0.9, 1.0, 1.1] * 20), "train/global_step": step})
print("logged", flush=True)
sys.stdin.readline()
run.finish(exit_code=3)
"""


def test_a_run_of_the_real_sdk_is_read_while_it_is_written(tmp_path):
    environment = os.environ | {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}
    script = subprocess.Popen(
        [sys.executable, "-c", LIVE, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert script.stdout.readline().strip() == "logged"
        deadline = time.monotonic() + 60
        while not (readers := find(tmp_path)) and time.monotonic() < deadline:
            time.sleep(0.05)
        reader = readers[0]
        reader.poll()
        live = points(reader.run)
        assert reader.run.exit_code is None
        script.stdin.write("\n")
        script.stdin.flush()
        assert script.wait(60) == 0
    finally:
        script.kill()
        script.stdin.close()
        script.stdout.close()
    reader.poll()
    run = reader.run
    assert (run.exit_code, run.clean, run.name, run.problems) == (3, True, "live", [])
    assert run.series["train/reward"].values.tolist() == [step / 3 for step in range(1, 301)]
    assert math.isnan(run.series["train/kl"].values[6])
    assert run.config == {"beta": 0.04, "nested.lr": 1e-5} and len(run.histograms["ratio"]) == 300
    assert all(live[tag] == points(run)[tag][: len(live[tag])] for tag in live)


def test_reading_imports_neither_wandb_nor_protobuf_nor_pandas():
    code = (
        "import sys; from pathlib import Path; from rlhealth.sources.wandb.file "
        "import find; find(Path(sys.argv[1]))[0].poll()"
    )
    code += "; print([name for name in ('wandb', 'google.protobuf', 'pandas', 'tensorboard') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(SHORT)], capture_output=True, text=True, cwd=FIXTURES.parent, check=True
    )
    assert done.stdout.strip() == "[]"
