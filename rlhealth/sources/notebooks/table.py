"""One table of rows with steps, found in a notebook: its cell, its contents, and which tables show the same run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from statistics import median

from rlhealth.metrics.recognise import spaced

#: Places behind the point to which numbers are rounded where a run is shown: pandas and tables print six, old trainers
#: log four.
_PLACES = 6
_OLD_PLACES = 4
#: Significant digits in which two tables must agree to show the same run: by chance it happens once in 10^8.
_SAME_DIGITS = 8


@dataclass
class Table:
    """Rows that one output printed, or several outputs of one cell.

    Attributes:
        cell: the number of the cell, from 1.
        axis: the column that counts the steps; "" where the rows have none.
        rows: numbers by tag, the axis among them.
        done, total: of the progress bar above it.
        is_cut: whether rows of it were left out or lost.
        is_table: whether it was printed as a table, not as rows among other text.
        warned: the metrics that it holds by a trainer's warnings alone.
        covered: of metrics that not all of the tables show that were joined to this one: the steps of those that do.
    """

    cell: int
    axis: str
    rows: list[dict[str, float]]
    done: int | None = None
    total: int | None = None
    is_cut: bool = False
    is_table: bool = True
    notes: list[str] = field(default_factory=list)
    warned: set[str] = field(default_factory=set)
    covered: dict[str, set[int]] = field(default_factory=dict)

    @property
    def steps(self) -> list[int]:
        """The steps of its rows, in their order."""
        return [int(row[self.axis]) for row in self.rows] if self.axis else []

    @property
    def tags(self) -> set[str]:
        """The names of its metrics, as they would be logged elsewhere."""
        return {plain(tag) for row in self.rows for tag in row if tag != self.axis}

    @property
    def interval(self) -> float:
        """The usual distance of two rows, in steps."""
        steps = sorted(set(self.steps))
        gaps = [after - before for before, after in pairwise(steps)]
        return median(gaps) if gaps else float(steps[0]) if steps else math.nan

    @property
    def begins(self) -> bool:
        """Whether its first row is where a new run logs first."""
        return not self.steps or self.steps[0] <= max(1.0, self.interval)

    @property
    def excerpted(self) -> set[str]:
        """The metrics that are shown at only some of the steps: their own table has no row at the others."""
        steps = set(self.steps)
        return {tag for tag, known in self.covered.items() if not steps <= known}

    @property
    def points(self) -> int:
        """How many numbers it holds."""
        return sum(len(row) for row in self.rows)


@lru_cache(4096)
def plain(tag: str) -> str:
    """The name under which a trainer logs what a notebook shows as `tag`."""
    return "loss" if tag == "Training Loss" else spaced(tag)


def is_same(one: Table, other: Table) -> bool:
    """Whether two tables show the same run: at shared steps they hold the same numbers, with enough digits."""
    if (one.axis == "Epoch") != (other.axis == "Epoch"):
        return False
    if not one.axis or not other.axis:
        if len(one.rows) != len(other.rows):
            return False
        mine, theirs = _by_row(one), _by_row(other)
    else:
        mine, theirs = _by_step(one), _by_step(other)
    shared = mine.keys() & theirs.keys()
    pairs = [
        (value, theirs[step][tag])
        for step in shared
        for tag, value in mine[step].items()
        if tag in theirs[step] and tag not in ("epoch", "learning_rate")
    ]
    if not pairs or not all(_agree(*pair) for pair in pairs):
        return False
    digits = sum(min(_digits(first), _digits(second)) for first, second in pairs)
    return digits >= _SAME_DIGITS or (one.cell == other.cell and one.total == other.total)


def goes_on(before: Table, after: Table) -> bool:
    """Whether a table continues the run of an earlier one: training was resumed, or the table is printed in pages."""
    if not before.axis or before.axis != after.axis or not before.rows or not after.rows or before.total != after.total:
        return False
    if after.begins or not before.tags & after.tags:
        return False
    first, last = after.steps[0], before.steps[-1]
    return before.steps[0] < first <= last + 3 * max(before.interval, after.interval)


def joined(one: Table, other: Table) -> Table:
    """The longer of two tables of one run, plus the values at its steps that only the other one shows."""
    longer, shorter = (one, other) if _worth(one) >= _worth(other) else (other, one)
    numbered = not (longer.axis and shorter.axis)
    more = _by_row(shorter) if numbered else _by_step(shorter)
    rows = [
        _filled(row, more.get(index, {}))
        for index, row in (enumerate(longer.rows) if numbered else zip(longer.steps, longer.rows, strict=True))
    ]
    done = max((table.done for table in (one, other) if table.done is not None), default=None)
    total = longer.total or shorter.total
    notes = list(dict.fromkeys([*one.notes, *other.notes]))
    return Table(
        cell=longer.cell,
        axis=longer.axis,
        rows=rows,
        done=done,
        total=total,
        is_cut=longer.is_cut,
        is_table=longer.is_table,
        notes=notes,
        warned=longer.warned | (shorter.warned - longer.tags),
        covered={} if numbered else _covered(one, other),
    )


def _filled(row: dict[str, float], more: dict[str, float]) -> dict[str, float]:
    """The row, with the values that it lacks."""
    known = {plain(tag) for tag in row}
    return row | {tag: value for tag, value in more.items() if tag not in known}


def _covered(one: Table, other: Table) -> dict[str, set[int]]:
    """The steps of the tables that show a metric, for each metric that one of the two shows."""
    found: dict[str, set[int]] = {}
    for table in (one, other):
        steps = set(table.steps)
        for tag in table.tags:
            found[tag] = found.get(tag, set()) | table.covered.get(tag, steps)
    return found


def _worth(table: Table) -> tuple[bool, int, int]:
    return bool(table.axis), len(table.rows), table.points


def _by_row(table: Table) -> dict[int, dict[str, float]]:
    return {
        index: {plain(tag): value for tag, value in row.items() if tag != table.axis}
        for index, row in enumerate(table.rows)
    }


def _by_step(table: Table) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for row in table.rows:
        of_step = found.setdefault(int(row[table.axis]), {})
        of_step.update((plain(tag), value) for tag, value in row.items() if tag != table.axis)
    return found


def _agree(one: float, other: float) -> bool:
    """Whether two numbers may be one, which was rounded here or there."""
    if math.isnan(one) or math.isnan(other) or one == other:
        return one == other or (math.isnan(one) and math.isnan(other))
    places = _OLD_PLACES if _OLD_PLACES in (_places(one), _places(other)) else _PLACES
    return math.isclose(one, other, rel_tol=1e-5, abs_tol=0.51 * 10.0**-places)


def _places(value: float) -> int:
    """How many decimal places of a number to compare: `_OLD_PLACES` if it has no more, else `_PLACES`."""
    return _OLD_PLACES if math.isfinite(value) and value == round(value, _OLD_PLACES) else _PLACES


def _digits(value: float) -> int:
    """The significant digits of a number as it is printed; none of a whole one, which many runs share."""
    if not math.isfinite(value) or value == round(value):
        return 0
    return len(f"{abs(value):.{_PLACES}f}".replace(".", "").strip("0"))
