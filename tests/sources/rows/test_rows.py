"""Rows: many rows of the same names are put into their columns at once, and make the runs that each by itself makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.run import Place, Run
from rlhealth.sources import open_runs
from rlhealth.sources.rows.rows import Rows
from tests.examples import examples

NAMES = ("step", "loss", "reward", "kl", "epoch", "eval/reward")
SHAPES = st.sampled_from([("step", "loss", "reward"), ("loss", "reward", "epoch"), ("step", "loss"), NAMES, NAMES[1:]])
ROWS = st.lists(st.tuples(SHAPES, st.integers(0, 12), st.floats(-5, 5), st.integers(1, 4)), max_size=30)


def rows_of(said: list[tuple[tuple[str, ...], int, float, int]]) -> list[dict[str, Any]]:
    """Rows of floats, each of them so many times with the step going on."""
    return [
        {name: float(step + more) if name in ("step", "epoch") else value + more for name in names}
        for names, step, value, times in said
        for more in range(times)
    ]


def made_of(rows: list[dict[str, Any]], polls: int) -> list[Any]:
    taken = Rows(lambda number: Run(f"run{number}", Place("jsonl", "here")))
    for start in range(polls):
        taken.take(rows[start * len(rows) // polls : (start + 1) * len(rows) // polls])
        taken.flush()
    return [
        {tag: (one.steps.tolist(), one.values.tolist(), one.times.tolist()) for tag, one in run.series.items()}
        for run in taken.runs
    ] + [taken.placed.repeated, taken.placed.stepless, taken.placed.late, taken.placed.beyond]


@given(ROWS, st.integers(1, 3))
@settings(max_examples=examples(300))
def test_rows_of_floats_make_the_runs_that_the_same_numbers_in_another_spelling_make(
    said: list[tuple[tuple[str, ...], int, float, int]], polls: int
) -> None:
    rows = rows_of(said)
    spelt = [{name: repr(value) for name, value in row.items()} for row in rows]
    assert repr(made_of(rows, polls)) == repr(made_of(spelt, polls))


def _rounds_of(length: int) -> list[Run]:
    """The runs of sixty episodes, that many in each round."""
    rows = Rows(lambda number: Run(f"run{number}", Place("csv", "x")))
    rows.take({"run_id": n // length + 1, "episode": n % length + 1, "reward": float(n)} for n in range(60))
    rows.flush()
    return rows.runs


def test_few_episodes_of_every_rollout_are_counted_on() -> None:
    (run,) = _rounds_of(5)
    assert run.series["reward"].steps.tolist() == list(range(1, 61))
    assert run.notes == ["the steps begin again in every round: they are counted on"]


def test_whole_runs_of_a_table_stay_runs() -> None:
    assert [len(run.series["reward"]) for run in _rounds_of(20)] == [20, 20, 20]


def test_a_file_of_tensorboard_that_somebody_named_holds_the_metric_that_its_name_ends_with(tmp_path: Path) -> None:
    path = tmp_path / "PPO_walker_7_ep_rew_mean.csv"
    path.write_text("Wall time,Step,Value\n" + "".join(f"17000{n}.5,{n * 100},{n / 10}\n" for n in range(3)))
    (run,) = open_runs(str(path))
    assert run.series["ep_rew_mean"].steps.tolist() == [0, 100, 200]


@pytest.mark.parametrize(
    ("name", "header", "tag"),
    [
        ("run-exp1-tag-Environment_Cumulative Reward.csv", "Wall time,Step,Value", "Environment/Cumulative Reward"),
        ("run-exp1-tag-train_loss.csv", "Wall time,Step,Value", "train_loss"),
        ("run-exp1-tag-my_own.csv", "Wall time,Step,Value", "my_own"),
        ("rewards.csv", "Walltime,Step,Value", "rewards"),
    ],
)
def test_a_file_of_tensorboard_holds_the_tag_of_its_name_whose_slash_is_written_otherwise(
    tmp_path: Path, name: str, header: str, tag: str
) -> None:
    (tmp_path / name).write_text(f"{header}\n" + "".join(f"17000{n}.5,{n * 100},{n / 10}\n" for n in range(3)))
    (run,) = open_runs(str(tmp_path / name))
    assert {tag: one.steps.tolist() for tag, one in run.series.items()} == {tag: [0, 100, 200]}


def test_lengths_of_episodes_under_the_name_of_steps_count_nothing(tmp_path: Path) -> None:
    lengths = [max(20, 900 // (n + 1) + n * 37 % 91) for n in range(60)]
    path = tmp_path / "results.csv"
    path.write_text("step,reward\n" + "".join(f"{length},{-length}.5\n" for length in lengths))
    (run,) = open_runs(path)
    assert (run.step_axis, run.series["reward"].values.tolist()) == ("row", [-length - 0.5 for length in lengths])


def test_rows_that_processes_write_beside_one_another_count_their_steps(tmp_path: Path) -> None:
    steps = [step for n in range(30) for step in (n + 4, n)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"step": {step}, "reward": {step % 7}.5}}\n' for step in steps))
    assert open_runs(path)[0].step_axis == "step"


def test_a_column_of_each_algorithm_is_a_reward_in_a_file_that_is_called_after_rewards(tmp_path: Path) -> None:
    path = tmp_path / "training_rewards.csv"
    path.write_text("Episode,DQN,D-PER-DDQN\n" + "".join(f"{n},{n}.5,{n * 2}.5\n" for n in range(20)))
    (run,) = open_runs(path)
    assert [*run.series] == ["rewards/DQN", "rewards/D-PER-DDQN"]


def test_a_run_whose_file_begins_another_one_was_begun_anew(tmp_path: Path) -> None:
    steps = [*range(1, 31), *range(1, 41)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"step": {step}, "reward": {step % 7}.5}}\n' for step in steps))
    assert [run.begun_anew for run in open_runs(path)] == [True, False]
