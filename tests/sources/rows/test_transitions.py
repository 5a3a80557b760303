"""A table of single steps in an environment is no log of training; a log whose rows name an action beside a loss is
one."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import rlhealth

STEPS = [
    {"step": at, "action": at % 3, "observation": f"room {at}", "reward": 0.01, "done": at == 59} for at in range(60)
]


def verdict(path: Path, rows: list[dict[str, Any]]) -> tuple[str, bool | None]:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    (run,) = rlhealth.check(path).runs
    return str(run.verdict), run.translation.is_rl


@pytest.mark.parametrize("name", ["raw.jsonl", "trace.csv"])
@pytest.mark.parametrize("without", ["", "observation", "done"])
def test_single_steps_in_an_environment_are_not_judged(tmp_path: Path, name: str, without: str) -> None:
    rows = [{key: value for key, value in row.items() if key != without} for row in STEPS]
    assert verdict(tmp_path / name, rows) == ("unknown", False)


def test_actions_and_observations_in_objects_of_their_own_are_known(tmp_path: Path) -> None:
    rows = [row | {"action": {"action_type": "read"}, "observation": {"message": "none"}} for row in STEPS]
    assert verdict(tmp_path / "raw.jsonl", rows) == ("unknown", False)


@pytest.mark.parametrize("learned", [{"loss": 0.5}, {"epsilon": 0.1}, {"policy_loss": 0.2}])
def test_rows_about_learning_are_a_training_whatever_else_they_hold(tmp_path: Path, learned: dict[str, float]) -> None:
    rows = [row | learned for row in STEPS]
    assert verdict(tmp_path / "log.jsonl", rows)[1] is True


def test_an_action_alone_makes_no_step_of_a_row(tmp_path: Path) -> None:
    rows = [{"episode": row["step"], "reward": row["reward"], "action": row["action"]} for row in STEPS]
    assert verdict(tmp_path / "log.csv", rows)[1] is True
