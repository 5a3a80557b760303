"""Several trackers of one run: the one that reaches furthest is judged, both where they disagree, and different runs
are never one.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rlhealth.check import check
from rlhealth.sources import find_readers, open_runs
from tests.sources.sick_shapes import FIXTURES, lines

EVERYWHERE = FIXTURES / "everywhere" / "grpo-short"
ROWS = json.loads((EVERYWHERE / "trainer_state.json").read_text())["log_history"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run's event files where a trainer puts them."""
    folder = tmp_path / "run"
    shutil.copytree(EVERYWHERE / "runs", folder / "runs")
    return folder


def state(folder: Path, rows: list[dict[str, object]]) -> None:
    """Saves rows as the trainer's state."""
    state = {"global_step": rows[-1]["step"], "max_steps": 60, "log_history": rows}
    (folder / "trainer_state.json").write_text(json.dumps(state))


def test_the_tracker_that_reaches_furthest_is_judged(root: Path) -> None:
    more = [{**row, "step": row["step"] + 30} for row in ROWS if "reward" in row]
    state(root, [*ROWS, *more])
    (run,) = open_runs(str(root))
    assert (run.place.kind, run.last_step) == ("trainer_state", 60)
    assert any(note.startswith("read from trainer_state; the same run is also in tensorboard") for note in run.notes)


def test_of_equals_the_preferred_one_is_judged(root: Path) -> None:
    state(root, ROWS)
    (run,) = open_runs(str(root))
    assert run.place.kind == "tensorboard"


def test_where_they_disagree_both_are_judged(root: Path) -> None:
    sick = [
        {**row, "kl": 1e6, "reward": -1e6, "loss": 1e6} if row.get("step", 0) > 18 and "kl" in row else row
        for row in ROWS
    ]
    state(root, sick)
    runs = open_runs(str(root))
    assert sorted(run.place.kind for run in runs) == ["tensorboard", "trainer_state"]
    assert check(root).exit_code == 1


def test_another_seed_or_learning_rate_is_another_run(root: Path) -> None:
    rows = [{**row, "seed": 1} for row in ROWS]
    (root / "logs").mkdir()
    (root / "logs" / "other.jsonl").write_text(lines(rows))
    assert len(open_runs(str(root))) == 1
    different = [
        {
            key: value if key in ("step", "epoch") or not isinstance(value, float) else value * 1.7 + 0.013
            for key, value in row.items()
        }
        for row in ROWS
    ]
    (root / "logs" / "other.jsonl").write_text(lines(different))
    assert len(open_runs(str(root))) == 2


TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nRuntimeError: CUDA error\n'


def console(folder: Path, rows: list[dict[str, object]], end: str) -> Path:
    """The console that the trainer printed its rows to."""
    path = folder / "train.log"
    path.write_text("".join(f"{row}\n" for row in rows if "reward" in row) + end)
    return path


def test_how_a_run_ended_is_taken_from_whoever_tells_it(root: Path) -> None:
    console(root, ROWS, TRACEBACK)
    (run,) = open_runs(str(root))
    assert (run.place.kind, run.raised) == ("tensorboard", "RuntimeError: CUDA error")


def test_how_an_earlier_attempt_ended_says_nothing_of_a_run_that_went_on(root: Path) -> None:
    console(root, ROWS[: len(ROWS) // 2], TRACEBACK)
    (run,) = open_runs(str(root))
    assert (run.place.kind, run.raised) == ("tensorboard", "")


def test_a_run_that_dies_while_it_is_followed_has_its_end_from_the_other_log(root: Path) -> None:
    path = console(root, ROWS, "")
    (reader,) = find_readers(str(root))
    reader.poll()
    assert reader.run.raised == ""
    with path.open("a") as file:
        file.write(TRACEBACK)
    reader.poll()
    assert reader.run.raised == "RuntimeError: CUDA error"
