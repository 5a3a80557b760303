"""The tables of a JSON document that somebody's own code wrote: lists of rows, columns, pairs and points by name, each
with an axis of its own, and which of them are one run."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlhealth.sources.base.spelling import AXES, BESIDE, CLOCKS, PROGRESS, number, whole
from rlhealth.sources.rows.json_parts import (
    are_of_rewards,
    are_runs,
    holds_run,
    names_below,
    run_names,
    tag_below,
    unsplit,
)
from rlhealth.sources.rows.row_names import is_learning, is_log_name, words

DEEPEST = 4  # objects within objects in which tables are looked for
FEWEST_NUMBERED = 2  # rows by their steps
_NUMBERED = re.compile(r"\A(?:step|iter|iteration|epoch|episode|checkpoint)[ _-]?", re.IGNORECASE)
#: Last words of a column that counts, and what they count.
_COUNTED = {
    **dict.fromkeys(("step", "steps", "timestep", "timesteps", "frame", "frames"), "step"),
    **dict.fromkeys(("episode", "episodes"), "episode"),
    **dict.fromkeys(("epoch", "epochs"), "epoch"),
    **dict.fromkeys(("iteration", "iterations", "iter", "iters", "update", "updates", "nupdates"), "iteration"),
}
_EVALUATED = re.compile(r"(?:^|_)(?:eval|evals|evaluation|evaluations|validation|val|test|held_?out)(?:_|$)")
_SIDE = re.compile(r"(?:^|_)(?:train|training|eval\w*|validation|val|test|held_?out|agent|player|policy|actor|critic)")
_REWARD = re.compile(r"(?:^|_)(?:rewards?|rew|returns?|scores?)(?:_|$)")
_EPISODES = re.compile(r"(?:^|_)(?:ep|episode|episodes|episodic)(?:_|$)")
_NAMES = ("metric", "metric_name", "name", "tag", "key", "type")
Row = dict[str, Any]


@dataclass
class JsonTable:
    """Rows that stand together in a document.

    Attributes:
        path: the names under which they stand, the outermost first.
        axis: the column that counts them; "" if none does.
        run: the name of the run, where one document holds several.
    """

    path: tuple[str, ...]
    axis: str
    rows: list[Row]
    run: str = ""

    @property
    def scale(self) -> str:
        """What the axis counts: step, episode, epoch, iteration; "" if nothing is said."""
        return _counted(self.axis)

    @property
    def names(self) -> frozenset[str]:
        """The names of the metrics in the first rows."""
        return frozenset(name for row in self.rows[:20] for name in row if name != self.axis)


@dataclass
class JsonRun:
    """The rows of one run of a document, in the order of their axis, and the names of the lists that are left out
    because they count something else."""

    rows: list[Row]
    left: list[str]
    name: str = ""


def runs_of(document: Mapping[str, Any], name: str = "") -> list[JsonRun]:
    """The runs in a JSON object, in their order; empty if it holds no table. `name` is that of its file, without a
    suffix: lists in `rewards.json` whose own names say nothing are rewards.
    """
    by_run: dict[str, list[JsonTable]] = {}
    for table in _tables(document, (), 0, name if are_of_rewards(name) else ""):
        by_run.setdefault(table.run, []).append(table)
    if len(by_run) > 1:
        by_run.pop("", None)  # what stands beside several runs sums them up
    return [replace(_joined(tables), name=name) for name, tables in by_run.items()]


def unpivoted(row: Row, name: str = "") -> Row:
    """A row that is one point, `{"metric": "loss", "step": 1, "value": 0.5}`, with the value under its name; any other
    row as it is."""
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
            for table in _tables(value, (), DEEPEST, ""):
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
    """The keys of which each holds a run: all of the same names, some of which logs have, none one side of a run."""
    names = {key: frozenset[str]().union(*(one.names for one in tables)) for key, tables in inner.items() if tables}
    alike = [key for key, held in names.items() if len(held) > 1 and list(names.values()).count(held) > 1]
    named = [key for key in alike if any(is_log_name(name) for name in names[key])]
    return [] if any(_SIDE.search(words(key)) for key in named) else named


def _of_list(key: str, found: list[Any], path: tuple[str, ...]) -> Iterator[JsonTable]:
    rows = [row for row in found if isinstance(row, dict)]
    if len(rows) == len(found) and (names := run_names(rows)):
        for name, row in zip(names, rows, strict=True):
            for table in _tables(row, (), DEEPEST, ""):
                table.run = name
                yield table
    elif len(rows) > 1 and 2 * len(rows) > len(found):
        rows = [dict(unpivoted(row, key)) for row in rows]
        first = frozenset[str]().union(*rows[:20])
        axes = [one for one in (*AXES, "epoch") if one in first]
        yield JsonTable((*path, key), next((one for one in axes if _rises(rows, one)), ""), rows)
    elif len(found) > 1 and all(_is_pair(one) for one in found) and _rises([{"": one[0]} for one in found], ""):
        yield JsonTable((*path, key), "step", [{"step": one[0], key: one[1]} for one in found])


def _of_columns(columns: Mapping[str, list[Any]], path: tuple[str, ...], holder: str) -> Iterator[JsonTable]:
    """Columns of one length are one table; each is a run where their names are those of seeds, under a name that tells
    what they are."""
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
        counting = [key for key in same if _counted(key) and _rises(rows, key)]
        axis = min(counting, key=lambda one: AXES.index(one) if one in AXES else len(AXES), default="")
        if set(same) != {axis}:
            yield JsonTable((*path, "") if len(same) > 1 else (*path, *same), axis, rows)


def _joined(tables: list[JsonTable]) -> JsonRun:
    """The best of the tables of one run, with those that count the same."""
    _adopt(tables)
    main = max(tables, key=_worth)
    joined = [(main, main.axis, 1)]
    left: list[str] = []
    for one in tables:
        axis = _axis_beside(one, main)
        every, odd = divmod(len(main.rows), len(one.rows))
        if one is main:
            continue
        if main.axis and axis:
            joined.append((one, axis, 1))
        elif not main.axis and not one.axis and not odd:
            joined.append((one, "", every))
        else:
            left += _told(one)
    name = main.axis if main.axis in PROGRESS else main.scale or "step"
    if len(joined) == 1 and name in (main.axis, "step"):
        return JsonRun([*main.rows], left)
    known: set[str] = set()
    rows: list[tuple[float, Row]] = []
    for table, axis, every in joined:
        prefix = _prefix(table, main, known)
        known |= {prefix + one for one in table.names}
        for at, row in enumerate(table.rows, 1):
            counted = number(row.get(axis)) if axis else float(at * every)
            if counted is not None:
                own = {prefix + one: value for one, value in row.items() if one != axis and one not in BESIDE}
                rows.append((counted, {name: counted, **own, **{one: row[one] for one in CLOCKS if one in row}}))
    return JsonRun(_merged(sorted(rows, key=lambda one: one[0]), name), left)


def _merged(rows: list[tuple[float, Row]], axis: str) -> list[Row]:
    """Rows in the order of what they count; those that follow each other with one count and nothing in common else
    are one."""
    found: list[Row] = []
    newest: float | None = None
    for counted, row in rows:
        if counted == newest and found[-1].keys() & row.keys() <= {axis}:
            found[-1] |= row
        else:
            found.append(row)
        newest = counted
    return found


def _worth(table: JsonTable) -> tuple[bool, bool, bool, int]:
    told = any(_REWARD.search(words(one)) and is_log_name(one) for one in table.names)
    return told, not _is_evaluation(table), is_learning(table.names), len(table.rows)


def _adopt(tables: list[JsonTable]) -> None:
    """Gives columns that nobody counts the axis of the rows that are as many, or that of episodes, where their names
    tell of episodes and other rows count no further than they go."""
    counted = [one for one in tables if one.axis]
    episodes = [at for one in counted for row in one.rows if (at := whole(row.get("episode"))) is not None]
    first, last = min(episodes, default=1), max(episodes, default=1)
    for table in tables:
        if table.axis:
            continue
        same = next((one for one in counted if len(one.rows) == len(table.rows)), None)
        if same is not None:
            pairs = zip(same.rows, table.rows, strict=True)
            table.axis, table.rows = same.axis, [{same.axis: row.get(same.axis), **own} for row, own in pairs]
        elif episodes and last < len(table.rows) + min(first, 1) and _are_of_episodes(table.names):
            table.axis = "episode"
            table.rows = [{"episode": at, **row} for at, row in enumerate(table.rows, min(first, 1))]


def _are_of_episodes(names: frozenset[str]) -> bool:
    return any(_EPISODES.search(words(name)) or _REWARD.search(words(name)) for name in names)


def _axis_beside(one: JsonTable, main: JsonTable) -> str:
    """The column of a table that counts what the main one counts; "" if none does."""
    if main.axis and one.scale == main.scale:
        return one.axis
    return next((axis for axis in one.names & PROGRESS if _counted(axis) == main.scale and _rises(one.rows, axis)), "")


def _prefix(table: JsonTable, main: JsonTable, known: set[str]) -> str:
    if table is not main and _is_evaluation(table) and not any(_EVALUATED.search(words(one)) for one in table.names):
        return "eval/"
    key = next((one for one in reversed(table.path) if one), "")
    return f"{key}/" if key and known & (table.names - BESIDE) else ""


def _is_evaluation(table: JsonTable) -> bool:
    return any(_EVALUATED.search(words(one)) for one in (*table.path, table.axis))


def _told(table: JsonTable) -> list[str]:
    """The names of a table that would be a metric's, with how many values there are."""
    return [f"{name} ({len(table.rows):,} values)" for name in sorted(table.names) if is_log_name(name)]


def _counted(name: str) -> str:
    return _COUNTED.get(words(name).replace("/", "_").rpartition("_")[2], "")


def _rises(rows: list[Any], name: str) -> bool:
    """Whether a column counts: whole numbers that never fall and do not stand still."""
    held = [whole(row.get(name)) for row in rows]
    counts = [one for one in held if one is not None]
    return (
        2 * len(counts) > len(held)
        and counts[-1] > counts[0]
        and all(late >= early for early, late in itertools.pairwise(counts))
    )


def _counts(name: str, values: list[Any]) -> bool:
    return bool(_counted(name)) and _rises([{name: one} for one in values], name)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and whole(value[0]) is not None and number(value[1]) is not None


def holds_numbers_by_step(found: Mapping[str, Any]) -> bool:
    """Whether the values of an object are numbers, each under the number of its step."""
    return len(found) > FEWEST_NUMBERED and all(
        _step(key) is not None and number(value) is not None and not isinstance(value, bool)
        for key, value in found.items()
    )


def _step(key: str) -> int | None:
    """The step that a key is: `12`, `step_12`."""
    return whole(_NUMBERED.sub("", key))
