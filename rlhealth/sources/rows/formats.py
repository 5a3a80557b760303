"""Formats: detects by name and first bytes whether a file is JSONL, JSON, CSV or a console log."""

from __future__ import annotations

import json
import re
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.candidates import lists_checkpoints
from rlhealth.sources.base.packed import encoding_of, text_of
from rlhealth.sources.base.spelling import number
from rlhealth.sources.base.walk import kind_of
from rlhealth.sources.rows.commented import without_comments
from rlhealth.sources.rows.headerless import is_list, names_of
from rlhealth.sources.rows.json_tables import DEEPEST, holds_numbered, holds_numbers_by_step
from rlhealth.sources.rows.printed_dicts import dict_in
from rlhealth.sources.rows.printed_steps import begins_with_count
from rlhealth.sources.rows.trainer_plan import OPENING
from rlhealth.sources.rows.wrapped_lines import is_wrapped

HEAD = 64 << 10  # bytes by which a format is detected
MOST_LINES = 40  # by which a table is
_DECODER = json.JSONDecoder()


def sniff(head: bytes, name: str) -> str:
    """The format of a file, by its name and its first bytes: one of `table.FORMATS`, or "trainer_state".

    Raises:
        RlhealthError: if it is not text, or certainly no log.
    """
    if b"\0" in head.rstrip(b"\0")[:1024] and encoding_of(head) is None:
        raise RlhealthError(
            f"{name}: no text, and no format that is known by its name",
            hint="name it as its tracker does, such as events.out.tfevents.…",
            location=name,
        )
    suffix = kind_of(name)
    text = text_of(head).lstrip("\0 \t\r\n\ufeff")
    if suffix == "json" and lists_checkpoints(text):
        raise RlhealthError(
            f"{name}: ML-Agents' list of checkpoints, no log",
            hint="its log are the event files beside run_logs/",
            location=name,
        )
    if suffix == "csv" and _is_printed(text):
        return "console"
    if suffix == "csv" or (suffix == "jsonl" and not _IN_LINES.match(text)):
        return suffix
    if is_wrapped(text):
        return "console"
    if suffix != "jsonl" and names_of(name, text):
        return "csv"
    if text.startswith("{") and text[1:].lstrip()[:1] in ('"', "}", ""):
        return "console" if suffix not in ("json", "jsonl") and _is_text_after_object(text) else _json_kind(text)
    if text.startswith("["):
        is_json = text[1:].lstrip()[:1] in ("{", "]") or _POINTS.match(text) or is_list(name, text)
        return "json" if is_json else "console"
    return "csv" if is_table(text) else "console"


#: Points as TensorBoard's page exports them: [[wall time, step, value], …].
_POINTS = re.compile(r"\[\s*\[\s*\d{9,}[\d.]*\s*,\s*-?\d+\s*,")
#: Indented JSON: an object or a list that does not end on its first line.
_IN_LINES = re.compile(r"\[|\{[ \t]*\r?\n")


def _is_printed(text: str) -> bool:
    """Whether a text begins with printed lines of episodes, `Episode 1, Reward: 0.5`, whatever its name says."""
    lines = text.split("\n", 2)[:2]
    return len(lines) > 1 and all(begins_with_count(line) and (":" in line or "=" in line) for line in lines)


def row_in(line: str) -> dict[str, Any] | None:
    """The object on a line, as JSON or as a printed Python dict; None if there is none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = dict_in(line)
    return row if isinstance(row, dict) else None


def _is_text_after_object(text: str) -> bool:
    """Whether lines of another kind follow a first object: a console that begins with its settings as JSON."""
    try:
        _, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return text[end:].lstrip(" ,\r\n\t")[:1] not in ("", "{", "[")


def _json_kind(text: str) -> str:
    line, _, rest = text.partition("\n")
    row = row_in(line)
    if row is not None:
        lists = any(_holds_columns(value) for value in row.values()) or holds_numbered(row)
        return "trainer_state" if '"log_history"' in line else "json" if lists and not rest.strip() else "jsonl"
    if '"log_history"' in text:
        return "trainer_state"
    return (
        "json"
        if OPENING.search(text) or text.lstrip("{").lstrip(" ").startswith(("\n", "\r")) or len(line) >= HEAD // 2
        else "jsonl"
    )


def _holds_columns(value: object, depth: int = 0) -> bool:
    """Whether a value of a JSON object is a column, or an object of columns, so that the object is no row."""
    if isinstance(value, dict):
        return holds_numbers_by_step(value) or (
            depth < DEEPEST and any(_holds_columns(one, depth + 1) for one in value.values())
        )
    return isinstance(value, list) and len(value) > 1


_HEAD_NAME = re.compile(r"[A-Za-z_][^\n{}=]{0,200}|")


def is_table(text: str) -> bool:
    """Whether the first lines have the same number of cells, and the first of them names, or one name more: of a column
    that was added to later rows."""
    lines = [line for line in without_comments(text.splitlines()[:MOST_LINES])[:6] if line and not line.startswith("#")]
    for comma in ",\t;":
        first, *others = [line.count(comma) for line in lines[:5]] or [0]
        others = others[:-1] if len(others) > 1 else others  # the last of them may be cut off
        if any(others) and len(set(others)) == 1 and first - others[0] in (0, 1) and "{" not in lines[0]:
            heads = [cell.strip(' "') for cell in lines[0].split(comma)]
            if not all(_HEAD_NAME.fullmatch(head) for head in heads) and not all(
                number(head) is not None for head in heads
            ):
                continue  # the lines of a console have commas and tabs too
            cells = [cell.strip(' "') for cell in lines[1].split(comma)]
            numbers = sum(number(cell) is not None for cell in cells)
            return numbers > 0 and (numbers + cells.count("")) * 2 >= len(cells)
    return False
