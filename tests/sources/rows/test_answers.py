"""A table of answers without steps is an evaluation, in whatever file it stands; what counts steps, or asks nothing, is
none."""

import csv
import json
from pathlib import Path

import pytest

import rlhealth

ROWS = [
    {"index": at, "question": f"What is {at} and {at}?", "completion": f"it is {at * 2}", "reward": float(at % 3 == 0)}
    for at in range(120)
]


def write(path: Path, rows: list[dict[str, object]]) -> None:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        path.write_text(json.dumps({"model": "small", "results": rows}))


@pytest.mark.parametrize("name", ["answers.csv", "answers.jsonl", "answers.json"])
def test_answers_without_steps_are_no_training_in_any_file(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, [dict(row) for row in ROWS])
    (run,) = rlhealth.check(tmp_path / name).runs
    assert (run.verdict, run.findings, run.translation.framework) == ("unknown", [], "answers")
    assert "table of answers" in run.no_answer


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.json"])
@pytest.mark.parametrize("counted", ["step", "episode", "epoch"])
def test_what_counts_on_is_a_log_of_training_even_where_each_row_shows_an_answer(
    tmp_path: Path, name: str, counted: str
) -> None:
    write(tmp_path / name, [{counted: at, **row} for at, row in enumerate(ROWS)])
    (run,) = rlhealth.check(tmp_path / name).runs
    assert run.translation.is_rl


def test_a_log_without_steps_that_only_names_its_task_is_one_of_training(tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", [{"task": "a sum", "reward": row["reward"]} for row in ROWS])
    (run,) = rlhealth.check(tmp_path / "log.jsonl").runs
    assert run.translation.is_rl
