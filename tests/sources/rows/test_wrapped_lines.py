"""Console lines that a platform keeps as JSON records read as the lines that were printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rlhealth.sources import open_runs
from rlhealth.sources.rows.wrapped_lines import Unwrapping, is_wrapped

LINES = [f"{{'loss': {0.5 / n:.4f}, 'reward': {n / 64}, 'kl': 0.01, 'epoch': {n / 40}}}\n" for n in range(1, 41)]

WRAPPED: dict[str, Callable[[list[str]], str]] = {
    "docker": lambda lines: "".join(
        json.dumps({"log": line, "stream": "stdout", "time": "2026-01-01T00:00:00.123456789Z"}) + "\n" for line in lines
    ),
    "kaggle": lambda lines: (
        "["
        + "\n,".join(json.dumps({"stream_name": "stderr", "time": 1.5 * n, "data": one}) for n, one in enumerate(lines))
        + "\n]"
    ),
    "kaggle, in pieces": lambda lines: (
        "["
        + "\n,".join(
            json.dumps({"stream_name": "stdout", "time": 2.5, "data": part})
            for one in lines
            for part in (one[:9], one[9:])
        )
        + "\n]"
    ),
    "a logger that writes JSON": lambda lines: "".join(
        json.dumps({"levelname": "INFO", "lineno": 88, "created": 1.7e9, "message": line.rstrip()}) + "\n"
        for line in lines
    ),
}


@pytest.mark.parametrize("form", WRAPPED)
def test_the_rows_are_those_that_were_printed(form: str, tmp_path: Path) -> None:
    (tmp_path / "printed.log").write_text("".join(LINES))
    (tmp_path / "wrapped.log").write_text(WRAPPED[form](LINES))
    (printed,), (wrapped,) = (open_runs(tmp_path / name) for name in ("printed.log", "wrapped.log"))
    assert {tag: one.values.tolist() for tag, one in wrapped.series.items()} == {
        tag: one.values.tolist() for tag, one in printed.series.items()
    }
    (tmp_path / "printed.log").unlink()
    assert [run.place.location for run in open_runs(tmp_path)] == [str(tmp_path / "wrapped.log")]


@pytest.mark.parametrize("form", WRAPPED)
def test_a_cut_file_says_nothing_that_nobody_printed(form: str, tmp_path: Path) -> None:
    text = WRAPPED[form](LINES)
    for cut in range(len(text) // 2, len(text), 37):
        (tmp_path / "cut.log").write_text(text[:cut])
        (run,) = open_runs(tmp_path / "cut.log")
        values = run.series["reward"].values.tolist()
        assert values == [n / 64 for n in range(1, len(values) + 1)]


def test_rows_of_numbers_are_no_wrapped_text() -> None:
    assert not is_wrapped('{"step": 1, "reward": 0.5, "message": "saved"}\n{"step": 2, "reward": 0.5, "message": ""}\n')
    assert not is_wrapped("step 1 reward 0.5\nstep 2 reward 0.25\n")
    assert not is_wrapped("")


def test_a_line_in_two_blocks_is_one_line() -> None:
    wrapping = Unwrapping()
    assert wrapping.text(b'{"stream": "stdout", "log": "rew"}\n') == b""
    assert wrapping.text(b'{"stream": "stdout", "log": "ard: 1\\n"}\n') == b"reward: 1\n"
