"""History is never dropped: a late row changes nothing, what a resume replaced is judged, writers of the same steps
are all judged.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlhealth.check import check
from rlhealth.sources import open_runs
from tests.sources.sick_shapes import FIXTURES, Rows, in_state, lines, sick_rows


def healthy_rows() -> Rows:
    """The rows of a real healthy run of the same kind, at the sick run's steps."""
    text = (FIXTURES / "compare" / "good-tight-kl" / "trainer_state.json").read_text()
    rows = [row for row in json.loads(text)["log_history"] if "loss" in row]
    return [row | {"step": step} for step, row in enumerate(rows, 1)]


SICK = [row | {"step": step} for step, row in enumerate(sick_rows(), 1)]
HEALTHY = healthy_rows()


def judged(path: Path, rows: Rows) -> Any:
    """The verdict on the rows, written as JSONL."""
    path.write_text(lines(rows))
    return check(path)


def rules(verdict: Any) -> set[str]:
    """Rule ids found in any run."""
    return {one.rule for run in verdict.runs for one in run.findings}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.jsonl"


def test_the_two_runs_are_sick_and_healthy_by_themselves(log: Path) -> None:
    assert judged(log, SICK).exit_code == 1
    assert judged(log, HEALTHY).exit_code == 0


@pytest.mark.parametrize("late", [1, 2, len(SICK) // 2, len(SICK) - 1])
def test_a_lone_late_row_erases_nothing(log: Path, late: int) -> None:
    alone = judged(log, SICK)
    after = judged(log, [*SICK, {"step": late, "loss": 0.1, "reward": 1.0}])
    assert (rules(after), after.exit_code) == (rules(alone), 1)
    (run,) = open_runs(log)
    assert (run.last_step, run.resumed_at) == (len(SICK), [])


def test_a_final_step_one_in_a_saved_state_erases_nothing(tmp_path: Path) -> None:
    state = tmp_path / "trainer_state.json"
    state.write_text(in_state([*SICK, {"step": 1, "loss": 0.1, "reward": 1.0}]))
    verdict = check(state)
    assert verdict.exit_code == 1 and verdict.runs[0].run.last_step == len(SICK)


def test_a_late_row_in_the_middle_is_out_of_order_and_said_to_be(log: Path) -> None:
    log.write_text(lines([*SICK[:30], SICK[9], *SICK[30:]]))
    (run,) = open_runs(log)
    assert run.resumed_at == [] and len(run.series["loss"]) == len(SICK)
    assert "1 row came out of order: it is kept at its own step, and nothing was replaced" in run.notes


def test_what_a_resume_replaced_is_judged_and_its_findings_stand(log: Path) -> None:
    verdict = judged(log, [*SICK, *HEALTHY[9:]])
    (run,) = verdict.runs
    assert run.run.resumed_at == [10] and run.run.series["loss"].values[20] == HEALTHY[20]["loss"]
    assert verdict.exit_code == 1
    found = [one for one in run.findings if one.replaced_at is not None]
    assert found and all(one.replaced_at == 10 and one.raised_step >= 10 for one in found)
    assert all(one.message.startswith("before the run was resumed at step 10: ") for one in found)


def test_a_healthy_run_that_was_resumed_stays_healthy(log: Path) -> None:
    verdict = judged(log, [*HEALTHY[:40], *HEALTHY[30:]])
    assert (verdict.exit_code, rules(verdict)) == (0, set())
    assert verdict.runs[0].run.resumed_at == [31]


def test_several_resumes_are_judged_each_as_the_run_then_stood(log: Path) -> None:
    log.write_text(lines([*HEALTHY[:40], *SICK[19:], *HEALTHY[9:20], *HEALTHY[14:]]))
    (run,) = open_runs(log)
    assert run.resumed_at == [20, 10, 15]
    told = [one.run.series["loss"] for one in run.before()]
    first = [row["loss"] for row in HEALTHY]
    sick = [row["loss"] for row in SICK]
    assert told[0].values.tolist() == first[:20]
    assert told[1].values.tolist() == first[:19] + sick[19:]
    assert told[2].values.tolist() == first[:40]
    assert check(log).exit_code == 1


def test_two_ranks_that_write_the_same_steps_are_both_judged_and_said(log: Path) -> None:
    for rows in (
        [row for pair in zip(SICK, HEALTHY, strict=False) for row in pair],
        [row for pair in zip(HEALTHY, SICK, strict=False) for row in pair],
    ):
        verdict = judged(log, rows)
        assert verdict.exit_code == 1
        assert any(
            "were logged again with other values: both were judged" in note for note in verdict.runs[0].run.notes
        )


def test_a_writer_that_lags_behind_is_judged(log: Path) -> None:
    count = min(len(SICK), len(HEALTHY))
    rows = [row for step in range(count) for row in (HEALTHY[step], SICK[max(0, step - 3)])]
    assert judged(log, rows).exit_code == 1
    rows = [row for step in range(count) for row in (SICK[step], HEALTHY[max(0, step - 3)])]
    assert judged(log, rows).exit_code == 1


def test_blocks_of_two_writers_are_judged(log: Path) -> None:
    rows = [row for at in range(0, len(SICK), 20) for writer in (SICK, HEALTHY) for row in writer[at : at + 20]]
    assert judged(log, rows).exit_code == 1


def test_rows_in_descending_order_are_one_run(log: Path) -> None:
    verdict = judged(log, SICK[::-1])
    (run,) = verdict.runs
    assert (run.run.first_step, run.run.last_step, verdict.exit_code) == (1, len(SICK), 1)
    assert rules(verdict) == rules(judged(log, SICK))


def test_more_runs_in_one_file_than_are_read_are_reported_and_do_not_pass(log: Path) -> None:
    rows = [{"step": step, "loss": 0.5, "reward": 1.0} for _ in range(250) for step in (1, 2, 3)]
    verdict = judged(log, rows)
    assert len(verdict.runs) == 200 and verdict.exit_code == 2
    assert any("more than 200 runs in one file" in one for run in verdict.runs for one in run.run.problems)


def test_a_last_evaluation_at_step_zero_changes_no_verdict(log: Path) -> None:
    evaluation = {"step": 0, "eval_reward": 1.0, "eval_loss": 0.1, "eval_runtime": 3.0}
    assert judged(log, [*HEALTHY, evaluation]).exit_code == 0
    assert judged(log, [*SICK, evaluation]).exit_code == 1


def test_runs_that_count_from_zero_by_larger_steps_replace_nothing(log: Path) -> None:
    """As a trainer does whose later phases use more environments."""
    strides = [10, 20, 30]
    phases = [[row | {"step": stride * row["step"]} for row in HEALTHY[:40]] for stride in strides]
    log.write_text(lines([row for phase in phases for row in phase]))
    runs = open_runs(log)
    assert [one.series["loss"].steps.tolist() for one in runs] == [[n * one for n in range(1, 41)] for one in strides]
    assert all(one.resumed_at == [] for one in runs)


def test_a_late_row_at_a_step_that_nothing_reported_stands_there(log: Path) -> None:
    rows = [row | {"step": 2 * row["step"]} for row in HEALTHY[:40]]
    log.write_text(lines([*rows[:30], {"step": 5, "loss": 0.1, "reward": 0.5}, *rows[30:]]))
    (run,) = open_runs(log)
    assert run.resumed_at == [] and run.series["loss"].steps.tolist() == sorted([5, *range(2, 82, 2)])
