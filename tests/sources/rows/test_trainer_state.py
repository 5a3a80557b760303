"""trainer_state.json: whole, renamed, cut, damaged, growing."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.errors import RlhealthError
from rlhealth.run import Run
from rlhealth.sources import open_runs
from rlhealth.sources.rows.trainer_plan import Plan
from rlhealth.sources.rows.trainer_state import TrainerState, find
from tests.examples import examples

FIXTURES = Path(__file__).parents[3] / "fixtures"
GRPO = FIXTURES / "everywhere" / "grpo-short" / "trainer_state.json"
PPO_NAN = FIXTURES / "trainer_state" / "ppo-nan" / "trainer_state.json"
GRPO_INF = FIXTURES / "trainer_state" / "grpo-inf" / "trainer_state.json"
RESUMED = FIXTURES / "trainer_state" / "grpo-resumed"


def read(path: Path) -> Run:
    reader = TrainerState(path)
    reader.poll()
    return reader.run


def points(run: Run) -> dict[str, dict[int, float]]:
    return {tag: dict(zip(one.steps.tolist(), one.values.tolist(), strict=True)) for tag, one in run.series.items()}


def expected(path: Path) -> dict[str, dict[int, float]]:
    """The points by the standard library, the slow and obvious way."""
    found: dict[str, dict[int, float]] = {}
    for row in json.loads(path.read_text())["log_history"]:
        for tag, value in row.items():
            if tag != "step" and isinstance(value, int | float):
                found.setdefault(tag, {})[row["step"]] = float(value)
    return found


def same(one: dict[str, dict[int, float]], other: dict[str, dict[int, float]]) -> bool:
    return str(one) == str(other) or (
        one.keys() == other.keys()
        and all(
            one[tag].keys() == other[tag].keys() and all(str(one[tag][s]) == str(other[tag][s]) for s in one[tag])
            for tag in one
        )
    )


@pytest.mark.parametrize(
    "path", sorted(FIXTURES.rglob("trainer_state.json")), ids=lambda path: str(path.relative_to(FIXTURES))
)
def test_every_number_of_a_real_state_arrives(path: Path) -> None:
    assert same(points(read(path)), expected(path))


def test_the_end_of_training_repeats_the_last_step_and_replaces_nothing() -> None:
    run = read(GRPO)
    assert run.series["train_runtime"].steps.tolist() == [30]
    assert run.series["reward"].steps.tolist() == list(range(1, 31))


def test_bare_nan_and_infinity_are_kept() -> None:
    assert math.isnan(read(PPO_NAN).series["loss/policy_avg"].values[-1])
    assert np.isinf(read(GRPO_INF).series["reward_std"].values).any()


def test_null_is_nan_where_the_metric_is_a_number_elsewhere_and_nothing_where_it_never_is(tmp_path: Path) -> None:
    rows = [
        {"step": 1, "reward": None, "eval_loss": None},
        {"step": 2, "reward": 0.5, "eval_loss": None},
        {"step": 3, "reward": None, "eval_loss": None},
    ]
    run = read(written(tmp_path, rows))
    assert run.series["reward"].steps.tolist() == [1, 2, 3]
    assert np.isnan(run.series["reward"].values).tolist() == [True, False, True]
    assert "eval_loss" not in run.series


def test_null_adds_nothing_to_a_step_that_has_its_number(tmp_path: Path) -> None:
    """LLaMA-Factory sums a training up in a row of nulls with the number of its last step."""
    rows = [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}, {"step": 2, "loss": None, "runtime": 9.0}]
    run = read(written(tmp_path, rows))
    assert (run.series["loss"].steps.tolist(), run.series["loss"].values.tolist()) == ([1, 2], [0.5, 0.25])


def test_evaluations_share_the_step_of_training_and_stay_apart(tmp_path: Path) -> None:
    rows = [
        {"step": 1, "reward": 0.1},
        {"step": 2, "reward": 0.2},
        {"step": 2, "eval_reward": 0.9, "eval_runtime": 3.0},
        {"step": 3, "reward": 0.3},
    ]
    run = read(written(tmp_path, rows))
    assert run.series["reward"].values.tolist() == [0.1, 0.2, 0.3]
    assert run.series["eval_reward"].steps.tolist() == [2]


def test_the_state_tells_how_many_steps_were_planned() -> None:
    assert read(GRPO).planned_steps == 30


def test_ppo_of_trl_0_13_counts_optimiser_steps_in_max_steps_and_updates_in_the_rows(tmp_path: Path) -> None:
    """With four minibatches its max_steps is four times the updates that are planned: a finished run would look like a quarter of one."""
    state = json.loads(PPO_NAN.read_text())
    assert state["max_steps"] == 140
    state["max_steps"] *= 4
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps(state, indent=2, sort_keys=True))
    run = read(path)
    assert run.planned_steps == 140
    assert Plan(path).steps(run) == 140


@pytest.mark.parametrize("epoch", ["Infinity", "1e-320", "NaN", "0", "-1", '"x"'])
def test_a_plan_that_makes_no_sense_is_no_plan(tmp_path: Path, epoch: str) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text(
        f'{{"episode": 32, "epoch": {epoch}, "global_step": 5, "log_history": [{{"step": 5, "reward": 1.0}}], "num_train_epochs": 1e300}}'
    )
    assert read(path).planned_steps is None


def test_a_plan_is_not_taken_from_the_state_of_another_run() -> None:
    assert Plan(GRPO).steps(read(GRPO)) == 30
    assert Plan(GRPO).steps(read(GRPO_INF)) is None


def test_the_newest_checkpoint_is_read_by_its_number_and_not_by_its_spelling() -> None:
    (reader,) = find(RESUMED)
    reader.poll()
    assert reader.run.last_step == 100
    assert reader.run.name == "grpo-resumed"
    assert reader.run.notes == ["the newest of 2 saved states was read"]


def test_a_state_that_was_written_anew_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    shutil.copy(RESUMED / "checkpoint-20" / "trainer_state.json", path)
    reader = TrainerState(path)
    assert reader.poll()
    revisions = {tag: one.revision for tag, one in reader.run.series.items()}
    assert not reader.poll()
    shutil.copy(RESUMED / "checkpoint-100" / "trainer_state.json", path)
    assert reader.poll()
    assert same(points(reader.run), expected(path))
    assert {tag: one.revision for tag, one in reader.run.series.items() if tag in revisions} == revisions, (
        "old points were touched"
    )


def test_a_newer_checkpoint_is_followed_also_when_the_old_one_is_deleted(tmp_path: Path) -> None:
    shutil.copytree(RESUMED / "checkpoint-20", tmp_path / "checkpoint-20")
    (reader,) = find(tmp_path)
    reader.poll()
    assert reader.run.last_step == 20
    (tmp_path / "checkpoint-100").mkdir()
    assert not reader.poll(), "the checkpoint is there and its state is not yet"
    shutil.copy(RESUMED / "checkpoint-100" / "trainer_state.json", tmp_path / "checkpoint-100")
    shutil.rmtree(tmp_path / "checkpoint-20")
    assert reader.poll()
    assert same(points(reader.run), expected(RESUMED / "checkpoint-100" / "trainer_state.json"))
    assert not reader.run.resumed_at


def test_a_history_that_a_resume_cut_back_is_followed(tmp_path: Path) -> None:
    rows = [{"step": step, "reward": step / 10} for step in range(1, 11)]
    reader = TrainerState(written(tmp_path, rows))
    reader.poll()
    written(tmp_path, [*rows[:6], *({"step": step, "reward": -step / 10} for step in range(7, 14))])
    reader.poll()
    assert reader.run.series["reward"].values.tolist() == [step / 10 for step in range(1, 7)] + [
        -step / 10 for step in range(7, 14)
    ]
    assert reader.run.resumed_at == [7]


def test_a_renamed_state_and_a_bare_list_of_rows_are_read(tmp_path: Path) -> None:
    shutil.copy(GRPO, tmp_path / "training_logs.json")
    assert same(points(open_runs(str(tmp_path / "training_logs.json"))[0]), expected(GRPO))
    rows = json.loads(GRPO.read_text())["log_history"]
    (tmp_path / "trajectory.json").write_text(json.dumps(rows))
    assert same(points(open_runs(str(tmp_path / "trajectory.json"))[0]), expected(GRPO))


def test_rows_without_a_step_are_numbered_and_the_run_says_so(tmp_path: Path) -> None:
    rows = [{"epoch": step / 10, "reward": step / 10} for step in range(1, 11)]
    run = read(written(tmp_path, [*rows, {"epoch": 1.0, "train_runtime": 9.0}]))
    assert run.series["reward"].steps.tolist() == list(range(1, 11))
    assert run.series["train_runtime"].steps.tolist() == [10]
    assert run.step_axis == "row"
    assert any("numbered" in note for note in run.notes)


def test_others_spellings_of_numbers_and_steps_are_understood(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "global_step/max_steps": "1/547",
            "loss": "No Log",
            "kl": "1,568,987.96",
            "lr": "np.float64(1e-06)",
            "percentage": "0.18%",
            "elapsed_time": "6m 50s",
        },
        {
            "global_step/max_steps": "2/547",
            "loss": "0.25",
            "kl": "nan",
            "lr": "tensor(2e-06, device='cuda:0')",
            "percentage": "0.37%",
            "elapsed_time": "7m",
        },
    ]
    run = read(written(tmp_path, rows))
    assert points(run)["loss"] == {2: 0.25}
    assert run.series["kl"].values[0] == 1568987.96 and math.isnan(run.series["kl"].values[1])
    assert points(run)["lr"] == {1: 1e-6, 2: 2e-6}
    assert run.planned_steps == 547
    assert set(run.series) == {"loss", "kl", "lr"}


def test_a_state_that_was_cut_gives_what_is_whole(tmp_path: Path) -> None:
    text = GRPO.read_bytes()
    path = tmp_path / "trainer_state.json"
    path.write_bytes(text[: len(text) // 2])
    run = read(path)
    whole = expected(GRPO)
    assert 10 < len(run.series["reward"]) < 20
    assert all(whole[tag][step] == value for tag, found in points(run).items() for step, value in found.items())
    assert run.clean is False
    assert run.problems == ["trainer_state.json: the file ends inside log_history, after 15 entries"]


def test_damage_in_the_middle_loses_the_damaged_entry_only(tmp_path: Path) -> None:
    text = GRPO.read_text().replace('"step": 12,', '"step": 1\x002,')
    path = tmp_path / "trainer_state.json"
    path.write_text(text)
    run = read(path)
    assert run.series["reward"].steps.tolist() == [step for step in range(1, 31) if step != 12]
    assert run.problems == ["trainer_state.json: 1 damaged entry of log_history skipped"]


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_no_cut_and_no_flipped_bit_makes_a_number_that_was_not_there_far_off(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A flipped bit may change a digit; it cannot end the reading, or lose more than the entries it hits."""
    text = bytearray(PPO_NAN.read_bytes())
    hits = data.draw(st.lists(st.tuples(st.integers(0, len(text) - 1), st.integers(0, 7)), min_size=1, max_size=3))
    for at, bit in hits:
        text[at] ^= 1 << bit
    path = tmp_path_factory.mktemp("flipped") / "trainer_state.json"
    path.write_bytes(text)
    try:
        run = read(path)
    except RlhealthError as error:
        assert "no log_history" in error.message
        return
    assert len(run.series.get("objective/kl", ())) >= 38 - 2 * len(hits)


def test_every_cut_of_a_state_is_answered(tmp_path: Path) -> None:
    text = PPO_NAN.read_bytes()[:6000]
    path = tmp_path / "trainer_state.json"
    rows = 0
    for end in range(0, len(text), 7):
        path.write_bytes(text[:end])
        try:
            run = read(path)
        except RlhealthError:
            assert b'"log_history": [' not in text[:end]
            continue
        assert len(run.series.get("objective/kl", ())) >= rows
        rows = len(run.series.get("objective/kl", ()))
    assert rows == text.count(b"\n    }")


def test_what_is_no_state_is_named_and_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text('{"model_type": "llama"}')
    with pytest.raises(RlhealthError, match="no log_history") as told:
        read(path)
    assert told.value.location == str(path)


def test_deep_nesting_and_endless_names_are_bounded(tmp_path: Path) -> None:
    deep = '{"a":' * 100_000
    long = "x" * (1 << 20)
    path = tmp_path / "trainer_state.json"
    path.write_text(
        f'{{"log_history": [{{"step": 1, "reward": 1.0, "{long}": 2.0}}, {deep}, {{"step": 2, "reward": 2.0}}], "max_steps": 9}}'
    )
    run = read(path)
    assert set(run.series) == {"reward"}
    assert run.series["reward"].values.tolist() == [1.0, 2.0]
    assert any("a name of" in problem for problem in run.problems) and any(
        "damaged" in problem for problem in run.problems
    )


def test_a_sparse_file_of_a_hundred_gigabytes_is_answered_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    shutil.copy(GRPO, path)
    with path.open("r+b") as file:
        file.truncate(100 << 30)
    assert len(read(path).series["reward"]) == 30
    empty = tmp_path / "sparse" / "trainer_state.json"
    empty.parent.mkdir()
    with empty.open("wb") as file:
        file.truncate(100 << 30)
    with pytest.raises(RlhealthError, match="no log_history"):
        read(empty)


def written(folder: Path, rows: list[Any]) -> Path:
    path = folder / "trainer_state.json"
    path.write_text(json.dumps({"epoch": 1.0, "log_history": rows, "max_steps": 0}, indent=2, sort_keys=True))
    return path
