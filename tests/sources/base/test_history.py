"""Rows as wandb and Trackio keep them: a late row erases nothing, whatever pieces the rows come in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.check import check
from rlhealth.run import Place, Run
from rlhealth.sources import open_runs
from rlhealth.sources.base.history import Rows
from tests.examples import examples
from tests.sources.sick_shapes import sick_rows
from tests.sources.wandb_writing import write_rows

AXIS = "train/global_step"
SICK = [
    {AXIS: step, **{f"train/{name}": value for name, value in row.items() if name not in ("step", "epoch")}}
    for step, row in enumerate(sick_rows(), 1)
]
LATE = "1 row came out of order: it is kept at its own step, and nothing was replaced"


def taken(rows: list[dict[str, Any]]) -> Run:
    run = Run("one", Place("wandb", ""))
    into = Rows(run)
    for row in rows:
        into.take(row)
    into.flush()
    return run


def row(step: int, value: float = 0.5) -> dict[str, Any]:
    return {"kl": value, AXIS: step}


def rising(first: int, last: int, sign: int = 1) -> list[dict[str, Any]]:
    return [row(step, sign * float(step)) for step in range(first, last + 1)]


@pytest.mark.parametrize("late", [1, 2, len(SICK) // 2, len(SICK) - 1])
def test_a_lone_late_row_in_a_wandb_file_erases_no_finding(tmp_path: Path, late: int) -> None:
    alone = check(write_rows(tmp_path / "a" / "run-a.wandb", SICK))
    lone = {AXIS: late, "train/loss": 0.1, "train/reward": 1.0}
    after = check(write_rows(tmp_path / "b" / "run-a.wandb", [*SICK, lone]))
    assert [one.key for one in after.runs[0].findings] == [one.key for one in alone.runs[0].findings] != []
    assert after.exit_code == alone.exit_code == 1
    (run,) = open_runs(tmp_path / "b")
    assert (run.last_step, run.resumed_at) == (len(SICK), [])


def test_a_late_row_stands_at_its_own_step_and_is_reported() -> None:
    run = taken([*rising(1, 20), row(6, -6.0), *rising(21, 30)])
    assert run.resumed_at == [] and run.notes == [LATE]
    assert run.series["kl"].values.tolist() == [float(step) if step != 6 else -6.0 for step in range(1, 31)]
    assert [points[1].tolist() for points in run.series["kl"].overwritten] == [[6.0]]


def test_a_row_that_goes_back_waits_for_the_next_one_and_the_report_says_so() -> None:
    run = taken([*rising(1, 20), row(6)])
    assert run.series["kl"].values.tolist() == [float(step) for step in range(1, 21)]
    (note,) = run.notes
    assert note.startswith("the last row goes back to step 6")


def test_a_run_that_goes_on_from_an_earlier_step_was_resumed_and_what_it_replaced_is_kept() -> None:
    run = taken([*rising(1, 20), *rising(6, 8, -1)])
    assert (run.resumed_at, run.notes) == ([6], [])
    assert run.series["kl"].values.tolist() == [1, 2, 3, 4, 5, -6, -7, -8]
    assert [one.step for one in run.replaced] == [6]


def test_a_resume_of_one_step_is_distinguished_from_a_late_row_by_what_it_says_again() -> None:
    assert taken([*rising(1, 20), row(19), row(20), row(21)]).resumed_at == [19]
    other = taken([*rising(1, 20), row(19), {"eval/kl": 1.0, AXIS: 20}, row(21)])
    assert other.resumed_at == [] and len(other.series["kl"]) == 21


def test_descending_rows_are_one_run() -> None:
    run = taken(rising(1, 50)[::-1])
    assert run.resumed_at == [] and run.series["kl"].values.tolist() == [float(step) for step in range(1, 51)]


def test_the_first_row_of_another_part_ends_the_wait() -> None:
    run = Run("one", Place("wandb", ""))
    into = Rows(run)
    for one in [*rising(1, 20), row(6, -6.0)]:
        into.take(one)
    into.begin_part()
    into.take(row(21, 21.0))
    into.flush()
    assert run.resumed_at == [21] and run.series["kl"].values[5] == -6.0 and len(run.series["kl"]) == 21


@settings(max_examples=examples(100), deadline=None)
@given(
    moves=st.lists(st.integers(-3, 3), min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=5),
)
def test_no_point_is_dropped_whatever_order_rows_come_in_nor_do_pieces_matter(
    moves: list[int], cuts: list[int]
) -> None:
    rows, step = [], 5
    for index, move in enumerate(moves):
        step = max(0, step + move)
        rows.append(row(step, float(index)))
    rows.append(row(1000, -1.0))  # what waits has to wait no longer
    whole = taken(rows)
    run = Run("one", Place("wandb", ""))
    into = Rows(run)
    for index, one in enumerate(rows):
        if index in cuts:
            into.flush()
        into.take(one)
    into.flush()
    for said in (whole, run):
        kept = [values for _, values, _ in said.series["kl"].overwritten] + [said.series["kl"].values]
        kept += [one.points["kl"][1] for one in said.replaced if "kl" in one.points]
        assert {value for values in kept for value in values.tolist()} == {one["kl"] for one in rows}
    assert run.resumed_at == whole.resumed_at
    assert run.series["kl"].values.tolist() == whole.series["kl"].values.tolist()
