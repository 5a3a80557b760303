"""Items of history, summary and config in a `.wandb` file: a key, or a path of nested keys, and a value as JSON."""

from __future__ import annotations

import json
from typing import Any

from rlhealth.sources.wandb.protowire import fields

_KEY, _NESTED_KEY, _VALUE_JSON = 1, 2, 16


def row_of(history: bytes) -> dict[str, Any]:
    """One serialised `HistoryRecord` as a row; nested keys become nested dicts.

    Raises:
        ValueError: if it is none.
    """
    row: dict[str, Any] = {}
    for field, item in fields(history):
        if field == 1 and isinstance(item, bytes):
            put(row, *item_of(item))
        elif field == 2 and isinstance(item, bytes):
            row.setdefault("_step", next((value for name, value in fields(item) if name == 1), 0))
    return row


def item_of(item: bytes) -> tuple[list[str], Any]:
    """The path and the value of a serialised item of history, summary or config.

    Raises:
        ValueError: if it is none.
    """
    path: list[str] = []
    text = b"null"
    for field, value in fields(item):
        if isinstance(value, bytes):
            if field == _NESTED_KEY or (field == _KEY and value):
                path.append(value.decode("utf-8", "replace"))
            elif field == _VALUE_JSON:
                text = value
    return path, value_of(text)


def value_of(text: bytes) -> Any:
    """A JSON value as wandb writes it, NaN and Infinity included; an empty string where it is not JSON, which no one
    takes for a number.
    """
    if text == b"-0":  # to Python an int, which has no minus zero; Go writes a float so
        return -0.0
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return ""


def put(row: dict[str, Any], path: list[str], value: Any) -> None:
    """Sets a nested value; a path that runs through another's value is left out."""
    for name in path[:-1]:
        inner = row.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        row = inner
    if path:
        row[path[-1]] = value
