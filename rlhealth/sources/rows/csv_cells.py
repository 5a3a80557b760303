"""Reads the cells of CSV lines through pandas, with memory in proportion to the size of the lines, whatever they
contain.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rlhealth.sources.base.spelling import number

if TYPE_CHECKING:
    import pandas as pd

#: pandas fills short rows up: a megabyte of digits, one per line, below a header of 100,000 names would become
#: 50,000,000,000 cells.
MOST_CELLS = 4 << 20
_QUOTED = re.compile(rb'"[^"]*"')
_SPARE = "\0spare"  # the column of a surplus cell


@dataclass(frozen=True, slots=True)
class Cells:
    """The result of reading some lines.

    Attributes:
        frame: a row for each line that can be read; None if none can.
        lines: how many lines there were.
        lost: how many of them were skipped.
        first_lost: the first skipped line, counted from 1.
        torn: how many lines have a quote that is never closed; they were read without it.
        first_torn: the first of those, counted from 1.
    """

    frame: pd.DataFrame | None
    lines: int
    lost: int = 0
    first_lost: int = 0
    torn: int = 0
    first_torn: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """The layout of a table, from its header.

    Attributes:
        names: the names of the columns that are read, the first of the table.
        columns: how many columns it has.
        comma: the separator between two cells.
    """

    names: Sequence[str]
    columns: int
    comma: str

    def read(self, block: bytes) -> Cells:
        """The rows in whole lines, which end with a newline."""
        text = block.replace(b"\0", b"").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        frame = self._frame(text)
        torn: list[int] = []
        if b'"' in text and (frame is None or self._swallows(frame, text)):
            text, torn = _without_torn_quotes(text)
            frame = self._frame(text)
            frame = self._frame(text, csv.QUOTE_NONE) if frame is None else frame
        lost = _missing(frame, text)
        return Cells(
            frame, text.count(b"\n"), lost, self._first_lost(text) if lost else 0, len(torn), torn[0] if torn else 0
        )

    def _frame(self, text: bytes, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL) -> pd.DataFrame | None:
        """The rows without surplus cells."""
        if text.count(b"\n") * self.columns > MOST_CELLS:
            text = b"".join(line + b"\n" for line in text.split(b"\n")[:-1] if not self._is_short(line))
        frame = self._read(text, quoting) if text else None
        if frame is None or _SPARE not in frame.columns:
            return frame
        wide = frame[_SPARE].notna()
        return (frame[~wide] if wide.any() else frame).iloc[:, :-1]

    def _read(self, text: bytes, quoting: Literal[0, 3]) -> pd.DataFrame | None:
        """The rows with at most one surplus cell (every line may end with a comma); None if pandas
        fails.
        """
        import pandas as pd  # late: half a second

        # pandas fills all rows up to the width of the first, so the first row is added here.
        first = self.comma.join("0" * (self.columns + 1)).encode() + b"\n"
        whole = len(self.names) == self.columns
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns beyond those that are named
            try:
                return pd.read_csv(
                    io.BytesIO(first + text),
                    sep=self.comma,
                    header=None,
                    names=[*self.names, _SPARE] if whole else list(self.names),
                    usecols=None if whole else range(len(self.names)),
                    index_col=False,
                    keep_default_na=False,
                    na_values=[""],
                    on_bad_lines="skip",
                    float_precision=None if pd.__version__ >= "3" else "round_trip",
                    encoding_errors="replace",
                    quoting=quoting,
                    comment="#" if text.startswith(b"#") else None,
                    low_memory=False,
                ).iloc[1:]
            except (ValueError, OverflowError, pd.errors.ParserError):
                return None

    def _is_short(self, line: bytes) -> bool:
        """Whether a line has less than a quarter of the commas of a row: in any other line, each byte makes at most
        four cells.
        """
        return 4 * (len(line) + 1) < self.columns

    def _swallows(self, frame: pd.DataFrame, text: bytes) -> bool:
        """Whether rows were read as text, between a quote that is never closed and the next quote."""
        if any(self._holds_rows(cell) for cell in _with_newlines(frame)):
            return True
        return _missing(frame, text) > 0 and sum(map(self._is_row, text.decode("utf-8", "replace").split("\n"))) > len(
            frame
        )

    def _holds_rows(self, cell: str) -> bool:
        """Whether a cell of several lines consists of rows rather than text."""
        first, *inner, last = cell.split("\n")
        rows = sum(self._is_row(line) for line in inner)
        if (
            number(first.strip('" ')) is not None
            and number(last.partition(self.comma)[0]) is not None
            and self.comma in last
        ):
            return True
        return rows > 0 and 2 * rows >= len(inner)

    def _is_row(self, line: str) -> bool:
        cells = line.split(self.comma) if line.count(self.comma) == self.columns - 1 else []
        return sum(number(cell) is not None for cell in cells) > 1

    def _first_lost(self, text: bytes) -> int:
        """The number of the first line that has too many cells or far too few; 1 if there is none."""
        comma, lines = self.comma.encode(), enumerate(text.split(b"\n")[:-1], 1)
        return next(
            (at for at, line in lines if _QUOTED.sub(b"", line).count(comma) >= self.columns or self._is_short(line)), 1
        )


def without_summaries(block: bytes, newest: bytes, columns: int, comma: str) -> tuple[bytes, int]:
    """The lines without those that sum up a training in columns of their own, and how many these are.

    transformers ends a training with a row of other names (`train_runtime`, `total_flos`). A writer that wrote its
    header before puts it below the first columns: less than half of a row's cells, of which the first says the step of
    the whole row before it again (`newest` before the first line).
    """
    between = comma.encode()
    if block.count(between) >= block.count(b"\n") * (columns - 1):
        return block, 0
    kept = []
    lines = block.splitlines(keepends=True)
    for line in lines:
        is_short = 2 * (line.count(between) + 1) < columns and newest.count(between) + 1 == columns
        if not (is_short and line.partition(between)[0].strip() == newest.partition(between)[0].strip()):
            kept.append(line)
            newest = line
    return b"".join(kept), len(lines) - len(kept)


def _missing(frame: pd.DataFrame | None, text: bytes) -> int:
    """How many lines are neither blank nor in the frame."""
    found = 0 if frame is None else len(frame)
    inside = sum(cell.count("\n") for cell in _with_newlines(frame)) if b'"' in text else 0
    return max(sum(bool(line.strip()) for line in text.split(b"\n")) - found - inside, 0)


def _with_newlines(frame: pd.DataFrame | None) -> list[str]:
    """The cells of several lines."""
    if frame is None:
        return []
    texts = (frame[name] for name in frame.columns if frame[name].dtype.kind not in "iufb")
    return [cell for column in texts for cell in column if isinstance(cell, str) and "\n" in cell]


def _without_torn_quotes(text: bytes) -> tuple[bytes, list[int]]:
    """The text without the quotes of lines in which one is open at the end; and the numbers of these lines, from 1."""
    lines = text.split(b"\n")
    torn = [at for at, line in enumerate(lines) if line.count(b'"') % 2]
    for at in torn:
        lines[at] = lines[at].replace(b'"', b"")
    return b"\n".join(lines), [at + 1 for at in torn]
