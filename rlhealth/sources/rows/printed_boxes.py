"""Tables drawn with bars: boxes of Stable-Baselines3 and OpenAI baselines, grids of rich and tabulate, RLinf's boxes
with titles between their parts, and notebook tables with a line of headings; and the pairs that rllab, rlkit and garage
draw between two lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rlhealth.sources.base.spelling import AXES, number
from rlhealth.sources.rows.printed_line import pairs
from rlhealth.sources.rows.row_names import is_log_name

_BAR = re.compile(r"[|│┃║]")
_RULE = re.compile(r"\s*+[-+=─━┌┐└┘├┤╭╮╰╯┼┬┴┏┓┗┛┡┩┠┨┣┫┳┻╇╒╕╘╛╞╡╪╤╧╔╗╚╝╠╣╬═*]{5,}+\s*+")
_INNER = tuple("├┡┣╞╠┝+")  # rules that begin with one of these can also be inside a table
_UNDERLINE = re.compile(r"[\s|:+-]*+")
#: Open-instruct's panel of groups, which rich draws: a border, a group, pairs.
_PANEL = re.compile(
    r"\s*+[│┃║]\s{1,4}(?:(?P<group>\w{1,60})\s{2,60}|\s{2,80})(?P<pairs>[A-Za-z_][\w/@.-]{0,80}: "
    r"[^│┃║]{1,2000})[│┃║]\s*+"
)
#: RLinf's box: titles in its inner borders, `name=value` in the cells below each, and the step in the first of them.
_TITLE = re.compile(r"\s*+[├┣╠╞][─━═]{3,}+ (?P<title>[A-Za-z][\w /]{0,40}) [─━═]{3,}+[┤┫╣╡]\s*+")
_ASSIGNED = re.compile(r"\s*+(?P<name>[A-Za-z_][\w/.@-]{0,80})=(?P<value>\S{1,24})\s*+")
_STEP_OF = re.compile(r"\s*+Global Step:\s*+(?P<step>\d{1,15})/\d{1,15}\s*+")
#: A count before the first cell of an open table, and its heading: `12:  -170.73 | …` below `Ep:  Reward | …`.
_COUNTED = re.compile(r"\s*+(?P<count>\w{1,20}):\s++(?P<cell>\S.*)")
#: The first heading of Ray Tune's status, which has a row for each of its trials.
TRIAL = "Trial name"
#: The line above and below the pairs of rllab, rlkit and garage, `-----------  ----------`, and such a pair.
_LINES_OF_PAIRS = re.compile(r"-{3,200} {2}-{3,40}\s*")
_PAIR = re.compile(r"(?P<name>[A-Za-z_][^\s|]{0,100}(?: [^\s|]{1,40}){0,8}) {2,200}(?P<value>[^\s|]{1,40})\s*")
_VALUED = re.compile(r"\s[-+]?\d[\d.,]{0,20}(?:%|s|ms)?\Z")
MOST_CELLS = 200


class Boxes:
    """Finds rows in drawn tables, whose lines are passed in order."""

    def __init__(self) -> None:
        self._box: dict[str, Any] = {}
        self._heading = ""
        self._title = ""
        self._is_of_pairs = False
        self._columns: list[str] = []
        self._last: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether a table has begun."""
        return bool(self._box or self._columns)

    @property
    def is_of_log(self) -> bool:
        """Whether the headings of the open table are those of a log."""
        return any(is_log_name(name) for name in self._columns)

    def rows(self, line: str) -> Iterator[dict[str, Any]]:
        """The rows that end with this line."""
        if _LINES_OF_PAIRS.fullmatch(line):
            self._is_of_pairs = not self._box
            yield from self.end()
            return
        if self._is_of_pairs and (pair := _PAIR.fullmatch(line)) is not None:
            yield from self._pair(pair["name"], pair["value"])
            return
        self._is_of_pairs = False
        if _RULE.fullmatch(line):
            is_inner = line.lstrip().startswith(_INNER)
            if self._last and not self._box and (is_inner or _are_headings(self._last)):  # they stand directly above
                self._columns = self._columns or self._last
            elif not is_inner:
                yield from self.end()
                self._columns = []
            return
        titled = _TITLE.fullmatch(line)
        if titled is not None:
            self._title = titled["title"]
            return
        drawn = _BAR.search(line) is not None
        if self._title and drawn:
            self._take_assigned(line)
            return
        if not drawn and "\t" not in line:
            yield from self.end()
            self._columns, self._last = [], []
            return
        if "--" in line and _UNDERLINE.fullmatch(line):
            self._columns = self._last
            return
        panel = _PANEL.fullmatch(line)
        if panel is not None:
            self._group(panel["group"] or self._heading, panel["pairs"])
            return
        closed = drawn and _BAR.match(line.strip()) is not None
        cells = self._cells(line, drawn)
        if drawn and not closed and len(cells) == len(self._columns) - 1 and _BAR.fullmatch(line.rstrip()[-1:]):
            cells.append("")  # the last column has remarks, and this row has none
        if 1 < len(cells) <= MOST_CELLS:
            yield from self._table_row(cells, closed, drawn)
        else:
            yield from self.end()

    def end(self) -> Iterator[dict[str, Any]]:
        """The row of a table that ends here."""
        if len(self._box) > 1:
            yield self._box
        self._box, self._heading, self._title, self._last = {}, "", "", []

    def _take_assigned(self, line: str) -> None:
        for cell in self._cells(line, drawn=True):
            if (step := _STEP_OF.fullmatch(cell)) is not None:
                self._box["global_step"] = step["step"]
            elif (assigned := _ASSIGNED.fullmatch(cell)) is not None and number(assigned["value"]) is not None:
                self._box[f"{self._title}/{assigned['name']}"] = assigned["value"]

    def _group(self, group: str, text: str) -> None:
        """A line of a panel, `objective  kl_avg: 0.1 | scores: 0.2`; a line without a group continues with the one
        before.
        """
        self._heading = group
        for name, value in pairs(text).items():
            self._box[name if group in ("", "other") else f"{group}/{name}"] = value

    def _cells(self, line: str, drawn: bool) -> list[str]:
        if not drawn:
            return line.strip("\n").split("\t")
        text = line.strip()
        cells = _BAR.split(text)
        first, last = int(not cells[0].strip()), len(cells) - int(not cells[-1].strip())
        return _with_count(cells[first:last])

    def _table_row(self, cells: list[str], closed: bool, drawn: bool) -> Iterator[dict[str, Any]]:
        names = [cell.strip() for cell in cells]
        if number(names[0]) is not None and not self._columns and len(names) == len(self._last) > 2 and drawn:
            self._columns = self._last  # OpenAI's PPO1 draws no line below its headings
        is_trial = bool(self._columns) and self._columns[0] == TRIAL
        if self._columns and len(names) == len(self._columns) and (is_trial or number(names[0]) is not None):
            row = {key: value for key, value in zip(self._columns, names, strict=True) if number(value) is not None}
            if len(row) > 1:
                yield row | ({TRIAL: names[0]} if is_trial else {})
            return
        if not drawn and names[0] in AXES:
            self._columns = names
        elif closed and len(names) % 2 == 0 and self._is_pairs(names):
            for key, value in zip(cells[::2], names[1::2], strict=True):
                yield from self._pair(key, value)
        elif closed and len(names) == 3 and number(names[0]) is None and number(names[1]) is not None:
            yield from self._pair(cells[0], names[1])  # a name, its value, and a remark
        self._last = names if number(names[0]) is None else []

    def _is_pairs(self, names: list[str]) -> bool:
        if len(names) == 2:
            return True
        return number(names[0]) is None and all(
            number(value) is not None or not key for key, value in zip(names[::2], names[1::2], strict=True)
        )

    def _pair(self, cell: str, value: str) -> Iterator[dict[str, Any]]:
        key = cell.strip()
        if not key:
            return
        indent = len(cell) - len(cell.lstrip())
        if not value and key.endswith("/"):
            self._heading = key
        elif number(value) is not None:
            name = f"{self._heading}{key}" if indent > 1 else key
            if name in self._box:
                yield from self.end()
            self._box[name] = value


def _are_headings(cells: list[str]) -> bool:
    """Whether the cells of a line are headings, and none is a name with its number, `test accuracy  0.75`."""
    return len(cells) > 2 and not any(map(_VALUED.search, cells))


def _with_count(cells: list[str]) -> list[str]:
    """The cells of a line, with a count before the first of them in a cell of its own."""
    counted = _COUNTED.fullmatch(cells[0]) if len(cells) > 1 else None
    if counted is None or any(":" in cell for cell in cells[1:]):
        return cells
    is_row = counted["count"].isdigit()
    return [counted["count"], counted["cell"], *cells[1:]] if is_row == (number(counted["cell"]) is not None) else cells
