"""The cells of a CSV: quotes that are never closed, rows of another width than the header, and how little memory any
of it takes.
"""

from __future__ import annotations

import csv
import io
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlhealth.run import Run
from rlhealth.sources import open_runs
from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.csv_cells import Table
from rlhealth.sources.rows.csv_columns import columns

HEADER = "step,loss,note\n"
NOTES = st.text(st.sampled_from("a1 ,.\"\n'#;|-"), max_size=12) | st.text(max_size=5)


def rows(first: int, last: int, note: str = "") -> str:
    return "".join(f"{step},{step / 8},{note}\n" for step in range(first, last))


def read(folder: Path, text: str) -> Run:
    """The run in a table that nobody writes any more."""
    path = folder / "t.csv"
    path.write_bytes(text.encode())
    os.utime(path, (1e9, 1e9))
    (run,) = open_runs(str(path))
    return run


def assert_all(run: Run, last: int) -> None:
    assert run.series["loss"].steps.tolist() == list(range(last))
    assert run.series["loss"].values.tolist() == [step / 8 for step in range(last)]


@pytest.mark.parametrize("many", [50, 80_000], ids=["few lines", "more than a cell may have"])
def test_behind_a_quote_that_is_never_closed_every_row_is_read_and_the_line_is_reported(
    tmp_path: Path, many: int
) -> None:
    run = read(tmp_path, HEADER + rows(0, 10) + '10,1.25,"killed\n' + rows(11, many, "ok"))
    assert_all(run, many)
    assert run.problems == ["t.csv: 1 line read without a quote that is never closed, the first is line 12"]


@pytest.mark.parametrize("many", [50, 5000, 80_000])
def test_rows_between_such_a_quote_and_the_next_are_no_text(tmp_path: Path, many: int) -> None:
    for note in ("went on", "went on, from 10", "went on, from 10, at night"):
        run = read(
            tmp_path, HEADER + rows(0, 10) + '10,1.25,"killed\n' + rows(11, many) + f'{many},{many / 8},"{note}"\n'
        )
        assert_all(run, many + 1)
        assert run.problems == ["t.csv: 1 line read without a quote that is never closed, the first is line 12"]


def test_numbers_in_quotes_that_are_never_closed_are_numbers(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss\n" + "".join(f'{step},"{step / 8}\n' for step in range(20)))
    assert_all(run, 20)
    assert run.problems == ["t.csv: 20 lines read without a quote that is never closed, the first is line 2"]


@pytest.mark.parametrize(
    "text", ["one\n\ntwo", "1, 2, because\nno", "so:\n1, two, three\n- 2", 'he said ""1\n2""', "a\r\nb", "\n\n"]
)
def test_text_of_several_lines_is_text(tmp_path: Path, text: str) -> None:
    run = read(tmp_path, HEADER + rows(0, 10) + f'10,1.25,"{text}"\n' + rows(11, 30, '"a, b"'))
    assert_all(run, 30)
    assert run.problems == []


def test_a_comma_may_stand_at_the_end_of_some_lines_or_of_all(tmp_path: Path) -> None:
    for ends in ([","] * 20, ["", ","] * 10, [","] + [""] * 19):
        run = read(tmp_path, "step,loss\n" + "".join(f"{step},{step / 8}{end}\n" for step, end in enumerate(ends)))
        assert_all(run, 20)
        assert run.problems == []


@pytest.mark.parametrize("place", [0, 7, 19])
@pytest.mark.parametrize("more", [",1", "7,0.5", ",1,2,3,4,5,6"])
def test_a_row_with_a_cell_too_many_is_passed_over_wherever_it_stands(tmp_path: Path, place: int, more: str) -> None:
    """Two lines that a crash has joined are such a row: its numbers are those of neither."""
    lines = [f"{step},{step / 8}" for step in range(20)]
    lines[place] += more
    run = read(tmp_path, "step,loss\n" + "\n".join(lines) + "\n")
    assert run.series["loss"].steps.tolist() == [step for step in range(20) if step != place]
    assert run.problems == [f"t.csv: 1 line skipped that could not be read, the first is line {place + 2}"]


def test_rows_of_a_table_that_has_grown_wider_are_read(tmp_path: Path) -> None:
    wide = ",".join(f"m{one}" for one in range(40))
    run = read(
        tmp_path,
        f"step,loss,{wide}\n"
        + "".join(f"{step},{step / 8}\n" for step in range(30))
        + f"30,3.75,{wide.replace('m', '')}\n",
    )
    assert_all(run, 31)
    assert run.series["m39"].values.tolist() == [39.0]


@given(
    st.lists(st.tuples(st.integers(0, 1 << 53), st.floats(allow_nan=False), NOTES), max_size=30),
    st.sampled_from(",\t;|"),
)
@example([(0, 0.0, "\rtold")], ",")
def test_what_a_writer_of_csv_writes_is_read_and_nothing_is_missed(
    written: list[tuple[int, float, str]], comma: str
) -> None:
    text = io.StringIO()
    quoting = (
        csv.QUOTE_ALL if any("\r" in note for *_, note in written) else csv.QUOTE_MINIMAL
    )  # older Pythons forget to quote a bare \r
    csv.writer(text, delimiter=comma, lineterminator="\n", quoting=quoting).writerows(written)
    cells = Table(["step", "loss", "note"], 3, comma).read(text.getvalue().encode("utf-8", "replace"))
    found: dict[str, Any] = columns(cells.frame) if cells.frame is not None and len(cells.frame) else {}
    if cells.torn or any("#" in note or "\0" in note or number(note.strip()) is not None for *_, note in written):
        # such a note looks as if it held rows, is taken for a comment, or is a number with a line's end before it,
        # which nobody logs
        return
    assert np.ma.filled(found.get("step", np.empty(0)), np.nan).tolist() == [float(step) for step, *_ in written]
    assert np.ma.filled(found.get("loss", np.empty(0)), np.nan).tolist() == [loss for _, loss, _ in written]
    assert (cells.lost, cells.lines) == (
        0,
        text.getvalue().count("\n") + text.getvalue().replace("\r\n", "\n").count("\r"),
    )


@pytest.mark.parametrize(
    "text",
    [
        b"1" + b"," * 50_000 + b"\n" + b"1,2\n" * 10_000,
        b'"a\nb"' + b"," * 50_000 + b"\n" + b"1,2\n" * 10_000,
        b"1\r" * 200_000 + b"\n",
        b'"1\n"\n' * 20_000,
    ],
    ids=["a wide row first", "a wide row in quotes first", "carriage returns", "quotes"],
)
@pytest.mark.parametrize("width", [2, 4_000])
def test_memory_stays_in_proportion_to_the_text(width: int, text: bytes) -> None:
    """Filled up to the widest row, or to the header, it would be gigabytes."""
    table = Table([f"m{one}" for one in range(width)], width, ",")
    table.read(b"1,2\n")  # what pandas imports is not counted
    tracemalloc.start()
    try:
        table.read(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 150 << 20
