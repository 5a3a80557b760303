"""Tables of one JSON document that belong to one run: the main table, and the tables with the same axis."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

from rlhealth.sources.base.spelling import BESIDE, CLOCKS, PROGRESS, number, whole
from rlhealth.sources.rows.row_names import is_learning, is_log_name, words

#: Last words of the name of a counting column, and what it counts.
_COUNTED = {
    **dict.fromkeys(("step", "steps", "timestep", "timesteps", "frame", "frames"), "step"),
    **dict.fromkeys(("episode", "episodes"), "episode"),
    **dict.fromkeys(("epoch", "epochs"), "epoch"),
    **dict.fromkeys(("iteration", "iterations", "iter", "iters", "update", "updates", "nupdates"), "iteration"),
}
_EVALUATED = re.compile(r"(?:^|_)(?:eval|evals|evaluation|evaluations|validation|val|test|held_?out)(?:_|$)")
_REWARD = re.compile(r"(?:^|_)(?:rewards?|rew|returns?|scores?)(?:_|$)")
_EPISODES = re.compile(r"(?:^|_)(?:ep|episode|episodes|episodic)(?:_|$)")
Row = dict[str, Any]


@dataclass
class JsonTable:
    """Rows that form one table of a document.

    Attributes:
        path: the keys above the table, the outermost first.
        axis: the column that counts the rows; "" if none does.
        run: the name of the run, where one document holds several.
    """

    path: tuple[str, ...]
    axis: str
    rows: list[Row]
    run: str = ""

    @property
    def scale(self) -> str:
        """What the axis counts: step, episode, epoch, iteration; "" if it is unknown."""
        return counted_by(self.axis)

    @property
    def names(self) -> frozenset[str]:
        """The names of the metrics in the first rows."""
        return frozenset(name for row in self.rows[:20] for name in row if name != self.axis)


@dataclass
class JsonRun:
    """The rows of one run of a document, in the order of their axis, and the names of the lists that are left out
    because they have another axis."""

    rows: list[Row]
    left: list[str]
    name: str = ""


def joined(tables: list[JsonTable]) -> JsonRun:
    """The best table of one run, joined with the tables that have the same axis."""
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
            left += _metric_lengths(one)
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
    """Rows in the order of their axis; consecutive rows with the same count and no other name in common become one."""
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
    has_reward = any(_REWARD.search(words(one)) and is_log_name(one) for one in table.names)
    return has_reward, not _is_evaluation(table), is_learning(table.names), len(table.rows)


def _adopt(tables: list[JsonTable]) -> None:
    """Gives columns without an axis the axis of a table of the same length; or an episode axis, if their names are
    about episodes and no other table counts further than their length."""
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
    """The column of a table that counts the same as the main table; "" if none does."""
    if main.axis and one.scale == main.scale:
        return one.axis
    return next((axis for axis in one.names & PROGRESS if counted_by(axis) == main.scale and rises(one.rows, axis)), "")


def _prefix(table: JsonTable, main: JsonTable, known: set[str]) -> str:
    if table is not main and _is_evaluation(table) and not any(_EVALUATED.search(words(one)) for one in table.names):
        return "eval/"
    key = next((one for one in reversed(table.path) if one), "")
    return f"{key}/" if key and known & (table.names - BESIDE) else ""


def _is_evaluation(table: JsonTable) -> bool:
    return any(_EVALUATED.search(words(one)) for one in (*table.path, table.axis))


def _metric_lengths(table: JsonTable) -> list[str]:
    """The names of a table that look like metrics, with how many values each has."""
    return [f"{name} ({len(table.rows):,} values)" for name in sorted(table.names) if is_log_name(name)]


def counted_by(name: str) -> str:
    """What a column of that name counts: step, episode, epoch, iteration; "" if it does not count."""
    return _COUNTED.get(words(name).replace("/", "_").rpartition("_")[2], "")


def rises(rows: list[Any], name: str) -> bool:
    """Whether a column counts: integers that never fall and are not constant."""
    held = [whole(row.get(name)) for row in rows]
    counts = [one for one in held if one is not None]
    return (
        2 * len(counts) > len(held)
        and counts[-1] > counts[0]
        and all(late >= early for early, late in itertools.pairwise(counts))
    )
