"""Files of completions with their rewards: the log of a run that has no other, and what is none."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlhealth.completions.places import find
from rlhealth.errors import RlhealthError
from rlhealth.run import UnreadFile
from rlhealth.sources import find_readers, open_runs
from rlhealth.sources.rows.completion_log import columns_of_texts

Row = dict[str, Any]
STEPS = range(1, 31)


def text(*parts: object) -> str:
    """A text that is longer than any in a row of a log."""
    return " ".join(f"so {part} follows from what was said above," for part in parts * 6)


def completions(name: str = "completion", **more: Any) -> list[Row]:
    """Four a step, whose mean reward is a tenth of the step and two hundredths."""
    return [
        {"step": step, "prompt": f"{step}?", name: text(step, one), "reward": step / 10 + one / 100, **more}
        for step in STEPS
        for one in (0, 1, 3, 4)
    ]


def write(path: Path, rows: list[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["completion", "answer", "what_it_said"])
def test_completions_are_the_log_of_a_run_that_has_no_other(name: str, tmp_path: Path) -> None:
    write(tmp_path / "trace.jsonl", completions(name))
    left: list[UnreadFile] = []
    (reader,) = find_readers(tmp_path, left=left)
    reader.poll()
    assert reader.run.series["reward"].steps.tolist() == list(STEPS)[:-1]  # more may come of the last
    assert reader.run.series["reward"].values.tolist() == pytest.approx([step / 10 + 0.02 for step in STEPS][:-1])
    assert "read from its completions: no other log was found" in reader.run.notes
    assert not left


def test_their_texts_are_measured_where_their_columns_have_known_names(tmp_path: Path) -> None:
    (known,) = open_runs(write(tmp_path / "known.jsonl", completions()))
    (other,) = open_runs(write(tmp_path / "other.jsonl", completions("what_it_said")))
    ((store,), notes) = find(known)
    assert [(one.step, len(one)) for one in store.poll(lambda _: True)][:3] == [(1, 4), (2, 4), (3, 4)]
    assert not notes and find(other) == ([], [])


def test_beside_a_log_they_are_no_run(tmp_path: Path) -> None:
    write(tmp_path / "trace.jsonl", completions())
    write(tmp_path / "log.jsonl", [{"step": step, "loss": 1 / step, "reward": step / 9} for step in STEPS])
    assert [Path(one.run.place.location).name for one in find_readers(tmp_path)] == ["log.jsonl"]


def test_they_are_read_from_a_packed_file(tmp_path: Path) -> None:
    plain = write(tmp_path / "trace.jsonl", completions())
    (tmp_path / "trace.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    (run,) = open_runs(tmp_path)
    assert len(run.series["reward"]) == len(STEPS) - 1


NO_LOGS: dict[str, Callable[[], list[Row]]] = {
    "agents that act at the same step": lambda: [
        row | {"agent": place % 4} for place, row in enumerate(completions("observation"))
    ],
    "steps of episodes": lambda: [row | {"step": row["step"] % 10} for row in completions()],
    "evaluations of few checkpoints": lambda: [row | {"step": row["step"] // 8 * 100} for row in completions()],
    "the same text throughout a step": lambda: [
        row | {"completion": text(row["step"])} for row in completions() if row.pop("prompt")
    ],
    "no rewards": lambda: [{name: cell for name, cell in row.items() if name != "reward"} for row in completions()],
    "no step": lambda: [{name: cell for name, cell in row.items() if name != "step"} for row in completions()],
    "mostly one row a step": lambda: [
        row for place, row in enumerate(completions()) if place % 4 == 0 or row["step"] % 8 == 0
    ],
}


@pytest.mark.parametrize("what", NO_LOGS)
def test_other_rows_with_long_texts_are_no_completions_of_steps(what: str, tmp_path: Path) -> None:
    assert not columns_of_texts(write(tmp_path / "trace.jsonl", NO_LOGS[what]()))


def test_completions_of_an_evaluation_are_no_log(tmp_path: Path) -> None:
    write(tmp_path / "eval_completions.jsonl", completions())
    with pytest.raises(RlhealthError, match="no runs found"):
        find_readers(tmp_path)


def test_what_is_no_json_and_what_is_cut_is_passed_by(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"\xff\n[1]\n" * 1000)
    assert not columns_of_texts(path)
    whole = write(path, completions()).read_bytes()
    path.write_bytes(whole[:-30])
    assert columns_of_texts(path) == {"step", "prompt", "completion", "reward"}
