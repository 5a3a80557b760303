"""The tables of a JSON document that user code wrote: lists of rows, columns, pairs and points by name, each with its
axis, and which of them belong to one run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rlhealth.sources.base.spelling import AXES, BESIDE, number, whole
from rlhealth.sources.rows.json_joining import JsonRun, JsonTable, Row, counted_by, joined, rises
from rlhealth.sources.rows.json_parts import (
    are_of_rewards,
    are_runs,
    holds_run,
    names_below,
    run_names,
    tag_below,
    unsplit,
)
from rlhealth.sources.rows.row_names import is_log_name, words

DEEPEST = 4  # levels of nested objects that are searched for tables
FEWEST_NUMBERED = 2  # rows under the numbers of their steps
_NUMBERED = re.compile(r"\A(?:step|iter|iteration|epoch|episode|checkpoint)[ _-]?", re.IGNORECASE)
_SIDE = re.compile(r"(?:^|_)(?:train|training|eval\w*|validation|val|test|held_?out|agent|player|policy|actor|critic)")
_NAMES = ("metric", "metric_name", "name", "tag", "key", "type")


def runs_of(document: Mapping[str, Any], name: str = "") -> list[JsonRun]:
    """The runs in a JSON object, in order; empty if it has no table. `name` is that of its file without the suffix:
    lists in `rewards.json` whose names are not recognised are rewards.
    """
    by_run: dict[str, list[JsonTable]] = {}
    for table in _tables(document, (), 0, name if are_of_rewards(name) else ""):
        by_run.setdefault(table.run, []).append(table)
    if len(by_run) > 1:
        by_run.pop("", None)  # tables beside several runs summarise them
    return [replace(joined(tables), name=name) for name, tables in by_run.items()]


def unpivoted(row: Row, name: str = "") -> Row:
    """A row that is one point, `{"metric": "loss", "step": 1, "value": 0.5}`, with the value under its metric; any
    other row unchanged."""
    if "value" not in row or number(row["value"]) is None:
        return row
    said = next((row[one] for one in _NAMES if isinstance(row.get(one), str)), "") or name
    others = [one for one, value in row.items() if one not in BESIDE and one != "value" and number(value) is not None]
    if not said or others:
        return row
    return {said: row["value"], **{one: value for one, value in row.items() if one in BESIDE}}


def holds_numbered(found: Mapping[str, Any]) -> bool:
    """Whether the values of an object are rows, each under the number of its step."""
    numbered = sum(isinstance(row, dict) and _step(key) is not None for key, row in found.items())
    return numbered > FEWEST_NUMBERED and 2 * numbered > len(found)


def _is_column(value: object) -> bool:
    """Whether a value is a list of numbers, some of which may be missing."""
    return (
        isinstance(value, list)
        and len(value) > 1
        and sum(number(one) is not None for one in value[:100]) * 2 > min(len(value), 100)
    )


def _tables(found: Mapping[str, Any], path: tuple[str, ...], depth: int, holder: str) -> Iterator[JsonTable]:
    found = unsplit(found)
    runs = {key: value for key, value in found.items() if isinstance(value, dict)}
    if are_runs([*runs]) and all(map(holds_run, runs.values())):  # by seed; a step holds no whole curve
        for key, value in runs.items():
            for table in _tables(value, (), DEEPEST - 1, ""):
                table.run = key
                yield table
        return
    if holds_numbered(found):
        rows = [{"step": _step(key)} | row for key, row in found.items() if isinstance(row, dict)]
        yield JsonTable(path, "step", rows)
        return
    yield from _of_columns({key: value for key, value in found.items() if _is_column(value)}, path, holder)
    inner: dict[str, list[JsonTable]] = {}
    for key, value in found.items():
        if isinstance(value, list):
            inner[key] = list(_of_list(key, value, path))
        elif isinstance(value, dict) and _is_curve(value):
            rows = [{"step": at, key: one} for at, one in zip(value["steps"], value["values"], strict=True)]
            inner[key] = [JsonTable((*path, key), "step", rows)]
        elif isinstance(value, dict) and holds_numbers_by_step(value):
            inner[key] = [JsonTable((*path, key), "step", [{"step": _step(at), key: one} for at, one in value.items()])]
        elif isinstance(value, dict) and depth < DEEPEST:
            inner[key] = list(_tables(value, (*path, key), depth + 1, key))
    for key in _that_are_runs(inner):
        for table in inner[key]:
            table.run = table.run or key
    for tables in inner.values():
        yield from tables


def _that_are_runs(inner: Mapping[str, list[JsonTable]]) -> list[str]:
    """The keys that each hold a run: all with the same names, some of them log names, and none one split of a run."""
    names = {key: frozenset[str]().union(*(one.names for one in tables)) for key, tables in inner.items() if tables}
    alike = [key for key, held in names.items() if len(held) > 1 and list(names.values()).count(held) > 1]
    named = [key for key in alike if any(is_log_name(name) for name in names[key])]
    return [] if any(_SIDE.search(words(key)) for key in named) else named


def _of_list(key: str, found: list[Any], path: tuple[str, ...]) -> Iterator[JsonTable]:
    rows = [row for row in found if isinstance(row, dict)]
    if len(rows) == len(found) and (names := run_names(rows)):
        for name, row in zip(names, rows, strict=True):
            for table in _tables(row, (), DEEPEST - 1, ""):
                table.run = name
                yield table
    elif len(rows) > 1 and 2 * len(rows) > len(found):
        rows = [dict(unpivoted(row, key)) for row in rows]
        first = frozenset[str]().union(*rows[:20])
        axes = [one for one in (*AXES, "epoch") if one in first]
        yield JsonTable((*path, key), next((one for one in axes if rises(rows, one)), ""), rows)
    elif len(found) > 1 and all(_is_pair(one) for one in found) and rises([{"": one[0]} for one in found], ""):
        yield JsonTable((*path, key), "step", [{"step": one[0], key: one[1]} for one in found])


def _of_columns(columns: Mapping[str, list[Any]], path: tuple[str, ...], holder: str) -> Iterator[JsonTable]:
    """Columns of equal length are one table. Each is a run if their names are seeds, under a key that names their
    metric."""
    counted = {key for key, value in columns.items() if _counts(key, value)}
    below = names_below(holder, [key for key in columns if key not in counted])
    if below and are_runs([*below]):
        tag = tag_below(holder)
        for key in below:
            yield JsonTable((*path, key), "", [{tag: one} for one in columns[key]], key)
        return
    by_length: dict[int, dict[str, list[Any]]] = {}
    for key, value in columns.items():
        by_length.setdefault(len(value), {})[below.get(key, key)] = value
    for length, same in by_length.items():
        rows = [{key: value[at] for key, value in same.items()} for at in range(length)]
        counting = [key for key in same if counted_by(key) and rises(rows, key)]
        axis = min(counting, key=lambda one: AXES.index(one) if one in AXES else len(AXES), default="")
        if set(same) != {axis}:
            yield JsonTable((*path, "") if len(same) > 1 else (*path, *same), axis, rows)


def _counts(name: str, values: list[Any]) -> bool:
    return bool(counted_by(name)) and rises([{name: one} for one in values], name)


def _is_curve(found: Mapping[str, Any]) -> bool:
    """Whether an object is a metric in Sacred's format: `{"steps": […], "timestamps": […], "values": […]}`."""
    steps, values = found.get("steps"), found.get("values")
    return (
        found.keys() <= {"steps", "timestamps", "values"}
        and isinstance(steps, list)
        and isinstance(values, list)
        and len(steps) == len(values) > 1
    )


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and whole(value[0]) is not None and number(value[1]) is not None


def holds_numbers_by_step(found: Mapping[str, Any]) -> bool:
    """Whether the values of an object are numbers, each under the number of its step."""
    return len(found) > FEWEST_NUMBERED and all(
        _step(key) is not None and number(value) is not None and not isinstance(value, bool)
        for key, value in found.items()
    )


def _step(key: str) -> int | None:
    """The step in a key: `12`, `step_12`."""
    return whole(_NUMBERED.sub("", key))
