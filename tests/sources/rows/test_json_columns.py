"""Rows of JSON that are parsed many at a time give what they give one by one, whatever is between them."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.run import Place, Run
from rlhealth.sources.rows.json_columns import RowBlock, stretches
from rlhealth.sources.rows.json_log import JsonLines
from rlhealth.sources.rows.json_rows import JsonRows
from rlhealth.sources.rows.rows import Rows
from rlhealth.sources.rows.trainer_plan import OPENING
from tests.examples import examples

FIXTURES = Path(__file__).parents[3] / "fixtures"
STATES = sorted(FIXTURES.rglob("trainer_state.json"))


def by_stretches(text: bytes) -> tuple[Run, int]:
    """The run in a list of rows, and how many of them were read in stretches."""
    run, rows = Run("run", Place("json", "")), JsonRows(io.BytesIO(text), OPENING)
    into, many = Rows(lambda _: run), 0
    for piece in rows.pieces():
        if isinstance(piece, RowBlock):
            into.take_columns(piece.table)
            many += piece.rows
        else:
            into.take(piece)
    into.flush()
    return run, many


def one_by_one(text: bytes) -> Run:
    run = Run("run", Place("json", ""))
    into = Rows(lambda _: run)
    into.take(JsonRows(io.BytesIO(text), OPENING))
    into.flush()
    return run


def said(run: Run) -> dict[str, Any]:
    """All that a run says; -0, which JSON's parser takes for an integer, is 0."""
    series = {
        tag: (
            one.steps.tolist(),
            [str(value + 0.0) for value in one.values.tolist()],
            [str(time) for time in one.times.tolist()],
        )
        for tag, one in run.series.items()
        if len(one)
    }
    return {
        "series": series,
        "axis": run.step_axis,
        "planned": run.planned_steps,
        "resumed": run.resumed_at,
        "notes": run.notes,
        "problems": run.problems,
    }


def rows_of(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"loss": math.sin(step) / 7, "kl": step * 1e-7, "clipped, of all": step % 3, "step": step, **more}
        for step in range(1, count + 1)
    ]


@pytest.mark.parametrize("path", STATES, ids=lambda path: path.parent.name)
def test_real_states_are_read_alike(path: Path) -> None:
    text = path.read_bytes()
    assert said(by_stretches(text)[0]) == said(one_by_one(text))


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_rows_that_repeat_are_read_in_stretches(indent: int | str | None) -> None:
    text = json.dumps({"log_history": rows_of(2000), "max_steps": 2000}, indent=indent).encode()
    run, many = by_stretches(text)
    assert many > 1900
    assert said(run) == said(one_by_one(text))
    assert run.series["loss"].values.tolist() == [math.sin(step) / 7 for step in range(1, 2001)]


def test_evaluations_between_them_cost_no_more_than_themselves() -> None:
    rows = [
        row
        for one in rows_of(3000)
        for row in ([one, {"eval_loss": 0.5, "step": one["step"]}] if not one["step"] % 100 else [one])
    ]
    run, many = by_stretches(json.dumps(rows, indent=2).encode())
    assert run.series["eval_loss"].steps.tolist() == list(range(100, 3001, 100))
    assert many > 2000


ODD = (
    "NaN",
    "-Infinity",
    "null",
    "true",
    '"1e-05"',
    "1E5",
    "-0",
    "007",
    "1.",
    "1e400",
    "9" * 30,
    "0." + "1" * 40,
    "[1]",
    '{"a": 1}',
    '"text"',
    "-",
    "1 ",
)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("every", [1, 97])
def test_an_odd_number_is_what_it_is_row_by_row(odd: str, every: int) -> None:
    text = json.dumps(rows_of(1500)).encode()
    parts = text.split(b'"kl": ')
    text = parts[0] + b"".join(
        b'"kl": ' + (part if index % every else odd.encode() + part[part.index(b",") :])
        for index, part in enumerate(parts[1:])
    )
    assert said(by_stretches(text)[0]) == said(one_by_one(text))


ROW = st.fixed_dictionaries(
    {"step": st.integers(0, 60)},
    optional={
        name: st.one_of(st.floats(), st.integers(), st.none(), st.text(max_size=3), st.booleans())
        for name in ("a", "b, c", "total_steps", "timestamp")
    },
)


@settings(max_examples=examples(150))
@given(
    rows=st.lists(ROW, min_size=1, max_size=6),
    repeats=st.integers(1, 300),
    indent=st.sampled_from([None, 1]),
    damage=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=3),
    cut=st.floats(0, 1),
)
def test_any_rows_with_any_damage_are_read_alike(
    rows: list[dict[str, Any]], repeats: int, indent: int | None, damage: list[tuple[float, int]], cut: float
) -> None:
    long = [{**row, "step": number // 3} for number, row in enumerate(rows * repeats)] + rows
    text = bytearray(json.dumps(long, indent=indent).encode())
    for place, byte in damage:
        text[int(place * (len(text) - 1))] = byte
    del text[int(len(text) * (0.2 + 0.8 * cut)) :]
    assert said(by_stretches(bytes(text))[0]) == said(one_by_one(bytes(text)))


@settings(max_examples=examples(100))
@given(
    rows=st.lists(ROW, min_size=1, max_size=6),
    repeats=st.integers(1, 300),
    damage=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=3),
    halt=st.floats(0, 1),
)
def test_lines_are_read_alike_however_often_one_looks(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    repeats: int,
    damage: list[tuple[float, int]],
    halt: float,
) -> None:
    text = bytearray(
        b"".join(json.dumps({**row, "step": number // 3}).encode() + b"\n" for number, row in enumerate(rows * repeats))
    )
    for place, byte in damage:
        text[int(place * (len(text) - 1))] = byte
    path = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    many = JsonLines(path)
    for end in (int(halt * len(text)), len(text)):
        path.write_bytes(text[:end])
        many.read()
    many.rows.flush()
    single = JsonLines(path)
    lost = 0
    for number, line in single.text.lines():
        row = single._row(line.rstrip())
        if row is not None:
            single.rows.take((row,))
        elif line.rstrip():
            lost += 1
            single.is_bad(number)
    single.rows.flush()
    assert [said(run) for run in many.runs] == [said(run) for run in single.runs]
    assert (many.bad, many.first_bad, many.text.line) == (lost, single.first_bad, single.text.line)


def test_lines_that_repeat_are_read_in_stretches(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\r\n" for row in rows_of(3000)), newline="")
    log = JsonLines(path)
    taken: list[int] = []
    by_row = log.rows.take
    log.rows.take = lambda rows: taken.append(len(rows)) or by_row(rows)  # type: ignore[method-assign, func-returns-value, arg-type]
    log.poll()
    assert log.runs[0].series["loss"].values.tolist() == [math.sin(step) / 7 for step in range(1, 3001)]
    assert sum(taken) <= 1100, "the rows by which the column of the steps is chosen, and the first of each block"


def test_rows_whose_keys_change_come_as_they_are() -> None:
    rows = [{f"{name}{step % 3}": 0.5 for name in "abc"} | {"step": step} for step in range(100)]
    pieces = list(stretches(rows))
    assert not any(isinstance(piece, RowBlock) for piece in pieces)
    assert [row for piece in pieces for row in piece] == rows


def test_a_damaged_row_costs_no_other_row() -> None:
    text = json.dumps(rows_of(5000))
    at = text.index('"step": 2500}')
    run, many = by_stretches((text[:at] + '"step: 2500}' + text[at + 13 :]).encode())
    assert len(run.series["loss"]) == 4999 and 2500 not in run.series["loss"].steps
    assert many > 1900, "the rows far from the damage are still read together"
