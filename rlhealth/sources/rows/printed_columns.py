"""Tables with spaces between their columns, as pandas and printf print them: a line of names, perhaps a line below it,
then rows of as many numbers. Other lines may stand between rows that begin with a rising count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rlhealth.sources.base.spelling import BLANKS, PROGRESS, number
from rlhealth.sources.rows.row_names import is_log_name

MOST_COLUMNS = 200
LONGEST_HEADING = 4000  # characters
MOST_BETWEEN = 64  # lines between two rows of a table
_RULE = re.compile(r"\s*+[-=─━═](?:[-=─━═ ]){4,}+\s*+")
_ASIDE = re.compile(r"\s\[[^\[\]]{1,20}\]\s*\Z")  # behind a row, `[12s]`
_UNIT = re.compile(r"(?<=\d)(?:ms|[smh])\Z")  # of a time; a factor, `1.2k`, is no unit


class Columns:
    """Finds the rows of such tables in lines that are passed in order."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._since = 0  # other lines since the names, or since the newest row
        self._count = -1.0  # that the newest row began with; -1 where that is no count

    @property
    def is_open(self) -> bool:
        """Whether the names of a table were read, so that rows may follow."""
        return bool(self._names) and not self._since

    @property
    def may_go_on(self) -> bool:
        """Whether rows of a table that another line interrupted may follow."""
        return bool(self._names) and self._since > 0

    def rows(self, line: str) -> Iterator[dict[str, Any]]:
        """The row on this line, if there is one. Afterwards `is_open` is true if the line belongs to a table."""
        cells = _ASIDE.sub("", line).split() if len(line) <= LONGEST_HEADING else []
        if self.is_open and _RULE.fullmatch(line):
            return
        names = self._names if self.is_open or self._goes_on(cells) else []
        cells = [_UNIT.sub("", cell) for cell in cells] if names else cells
        if names and len(cells) in (len(names), len(names) + 1) and all(_is_cell(cell) for cell in cells):
            found = zip(names, cells[-len(names) :], strict=True)
            yield {name: cell for name, cell in found if number(cell) is not None}
            self._since, self._count = 0, float(cells[0]) if cells[0].isdecimal() else -1.0
        elif _are_names(cells):
            self._names, self._since, self._count = cells, 0, -1.0
        else:
            self._since += 1
            self._names = self._names if self._since <= MOST_BETWEEN else []

    def _goes_on(self, cells: list[str]) -> bool:
        """Whether these cells continue a table that was interrupted: as many as its names, with the next count."""
        is_whole = len(cells) == len(self._names) > 0
        return is_whole and cells[0].isdecimal() and float(cells[0]) > self._count >= 0


def _are_names(cells: list[str]) -> bool:
    """Whether these words are the column names of a log: with a step, and a name that is about learning."""
    return (
        1 < len(cells) <= MOST_COLUMNS
        and not PROGRESS.isdisjoint(cells)
        and any(is_log_name(cell) for cell in cells)
        and len(set(cells)) == len(cells)
        and all(number(cell) is None and cell[0].isalpha() for cell in cells)
    )


def _is_cell(cell: str) -> bool:
    return number(cell) is not None or cell.lower() in BLANKS
