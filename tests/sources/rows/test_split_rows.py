"""Rows of training and evaluation under one name, and several rows of one step."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rlhealth.metrics import translate
from rlhealth.run import Run
from rlhealth.sources import find_readers, open_runs

STEPS = range(1, 31)


def rows_of_two_sides(name: str, training: object, evaluation: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for step in STEPS:
        rows.append({"step": step, name: training, "reward": step / 8, "loss": 0.5})
        if step % 10 == 0:
            rows.append({"step": step, name: evaluation, "reward": -step / 8, "loss": None})
    return rows


def read(path: Path, rows: list[dict[str, Any]]) -> Run:
    if path.suffix == ".csv":
        names = list(rows[0])
        lines = [",".join("" if row[name] is None else str(row[name]) for name in names) for row in rows]
        path.write_text("\n".join([",".join(names), *lines]) + "\n")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = open_runs(path)
    return run


@pytest.mark.parametrize("side", [("split", "train", "eval"), ("eval", False, True), ("is_test", None, True)])
@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.json"])
def test_an_evaluation_overwrites_no_training(name: str, side: tuple[str, object, object], tmp_path: Path) -> None:
    metrics = translate(read(tmp_path / name, rows_of_two_sides(*side))).metrics
    assert metrics["reward"].values.tolist() == [step / 8 for step in STEPS]
    assert metrics["eval/reward"].steps.tolist() == [10, 20, 30]
    assert metrics["eval/reward"].values.tolist() == [-10 / 8, -20 / 8, -30 / 8]


def test_evaluations_one_after_the_other_are_known_by_their_flag(tmp_path: Path) -> None:
    rows = [{"step": step, "reward": 0.5} for step in STEPS] + [
        {"step": step, "eval": True, "reward": 0.25} for step in STEPS
    ]
    metrics = translate(read(tmp_path / "log.jsonl", rows)).metrics
    assert set(metrics["reward"].values) == {0.5}
    assert set(metrics["eval/reward"].values) == {0.25}


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.json"])
def test_the_samples_of_a_step_are_read_as_their_mean(name: str, tmp_path: Path) -> None:
    rows = [{"step": step, "reward": step + sample, "length": 9} for step in STEPS for sample in (0, 1, 2, 5)]
    run = read(tmp_path / name, rows)
    told = list(STEPS)[: None if name == "log.json" else -1]  # the last step of a file that grows may have more samples
    assert run.series["reward"].steps.tolist() == told
    assert run.series["reward"].values.tolist() == [step + 2.0 for step in told]
    assert "120 rows were read as the mean of their step" in run.notes


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv"])
def test_the_last_step_is_whole_once_nobody_has_written_for_long(name: str, tmp_path: Path) -> None:
    rows = [{"step": step, "reward": step + sample} for step in STEPS for sample in (0, 1, 2, 5)]
    read(tmp_path / name, rows)
    os.utime(tmp_path / name, (1e9, 1e9))
    (run,) = open_runs(tmp_path / name)
    assert run.series["reward"].values.tolist() == [step + 2.0 for step in STEPS]
    [reader] = find_readers(str(tmp_path / name))
    reader.poll()
    with (tmp_path / name).open("a") as file:  # a writer that paused for longer than anyone would wait
        file.write(
            '{"step": 30, "reward": 900}\n{"step": 31, "reward": 7}\n' if name.endswith("l") else "30,900\n31,7\n"
        )
    os.utime(tmp_path / name, (1e9 + 9, 1e9 + 9))
    reader.poll()
    assert reader.run.series["reward"].values.tolist() == [*(step + 2.0 for step in STEPS), 7.0]


def test_a_step_that_two_rows_say_is_no_sample(tmp_path: Path) -> None:
    rows = [{"step": step, "reward": float(part)} for step in STEPS for part in (0, 1)]
    assert set(read(tmp_path / "log.jsonl", rows).series["reward"].values.tolist()) == {1.0}


def test_steps_that_count_within_an_episode_do_not_count_training(tmp_path: Path) -> None:
    rows = [{"episode": episode, "step": step, "reward": float(episode)} for episode in range(20) for step in range(8)]
    run = read(tmp_path / "log.csv", rows)
    assert run.step_axis == "episode"
    assert run.series["reward"].values.tolist() == [float(episode) for episode in range(19)]


def test_runs_one_after_the_other_are_reported_by_their_steps(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps({"step": step, "reward": 0.5}) + "\n" for _ in range(5) for step in range(9)))
    runs = open_runs(path)
    assert [len(run.series["reward"]) for run in runs] == [9] * 5
    assert not any("mean of their step" in note for run in runs for note in run.notes)


def _between_each_other(path: Path, key: str, names: list[Any], count: int = 40) -> list[list[float]]:
    curves = [[float(at * (place + 1)) for at in range(count)] for place in range(len(names))]
    rows = [
        {"episode": at, key: name, "reward": one[at]}
        for at in range(count)
        for name, one in zip(names, curves, strict=True)
    ]
    pd.DataFrame(rows).to_csv(path / "results.csv", index=False)
    (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return curves


@pytest.mark.parametrize("file", ["results.csv", "rows.jsonl"])
@pytest.mark.parametrize(("key", "names"), [("seed", [7, 8, 9]), ("agent", ["agent_0", "agent_1"]), ("run_id", [0, 1])])
def test_runs_whose_rows_stand_between_each_other_are_distinguished(
    tmp_path: Path, file: str, key: str, names: list[Any]
) -> None:
    curves = _between_each_other(tmp_path, key, names)
    runs = open_runs(tmp_path / file)
    assert [run.series["reward"].values.tolist() for run in runs] == curves
    assert all(run.series["reward"].steps.tolist() == list(range(40)) for run in runs)


def test_many_runs_between_each_other_are_read_in_blocks(tmp_path: Path) -> None:
    curves = _between_each_other(tmp_path, "seed", list(range(4)), 3000)
    runs = open_runs(tmp_path / "rows.jsonl")
    assert [run.series["reward"].values.tolist() for run in runs] == curves
    assert [run.name for run in runs[1:]] == [f"{runs[0].name}#seed {n}" for n in range(1, 4)]


def test_a_seed_that_every_episode_has_its_own_of_is_no_run(tmp_path: Path) -> None:
    rows = [{"episode": at, "seed": 100 + at, "reward": float(at)} for at in range(40)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = open_runs(tmp_path)
    assert len(run.series["reward"]) == 40


def test_the_means_of_a_step_have_their_names_in_the_order_of_its_rows(tmp_path: Path) -> None:
    names = ["reward", "took", "game", "kl", "entropy", "alpha", "loss", "beta"]
    rows = [{"step": step, **dict.fromkeys(names, step / 7)} for step in range(1, 20) for _ in range(4)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = open_runs(tmp_path)
    assert list(run.series) == names
