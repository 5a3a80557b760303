"""Numbers without a line of names, in a file that is called after them: `rewards.txt`, as numpy saves a list, and the
three columns of d3rlpy's `environment.csv`: epoch, step, value."""

from __future__ import annotations

import re
from itertools import pairwise

from rlhealth.sources.base.spelling import number, whole
from rlhealth.sources.rows.row_names import is_log_name

FEWEST = 3  # lines
LOOKED_AT = 50  # lines
#: What d3rlpy calls a file whose name is no metric's elsewhere.
_FILES = frozenset({"environment", "td_error"})
_NUMBERED = re.compile(r"[_-]?\d+$")


def names_of(name: str, text: str) -> list[str]:
    """What the columns of a file are, by its name and its first lines; empty for any other file."""
    stem = _NUMBERED.sub("", name.rpartition("/")[2].partition(".")[0])
    if not is_log_name(stem) and stem.lower() not in _FILES:
        return []
    lines = text.splitlines()[: LOOKED_AT + 1]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines[:LOOKED_AT] if line.strip()]
    if len(rows) < FEWEST or any(number(cell) is None for row in rows[:-1] for cell in row):
        return []
    if all(len(row) == 1 for row in rows):
        return [stem]
    counts = [(whole(row[0]), whole(row[1])) for row in rows[:-1] if len(row) == 3]
    rises = all(
        None not in (*early, *late) and early[0] <= late[0] and early[1] < late[1]  # type: ignore[operator]
        for early, late in pairwise(counts)
    )
    return ["epoch", "step", stem] if len(counts) == len(rows) - 1 and rises else []


def is_long(names: list[str]) -> bool:
    """Whether these are the columns of one metric of several, each in a file of its own."""
    return len(names) == 3
