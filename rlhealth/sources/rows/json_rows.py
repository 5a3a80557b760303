"""Reads rows from JSON text of any size, one object after the other: damaged or truncated objects are counted and
skipped, and intact ones are kept.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import orjson

from rlhealth.sources.rows.json_columns import Row, RowBlock, stretches

BLOCK = 8 << 20  # bytes read at a time
WINDOW = 1 << 20  # characters parsed at once
MOST_ENDS = 64  # closing braces, from the end of a window, among which the end of a row is searched
ONE_BY_ONE = 1000  # rows read one by one after a window that could not be parsed at once
LONGEST_ROW = 64 << 20  # characters; a longer object counts as damaged
LONGEST_WORD = 64  # characters of a value that may be cut by the end of the text: a number, NaN, true
TOO_DEEP = 400  # levels; Python's parser fails at about 1,000
MOST_LEVELS = 16  # objects around one fault that are tried as a separate row: each is parsed up to the fault
_NESTING = re.compile(r"[\[{]")
_BETWEEN = re.compile(r"[\s,\x00]*")
_ROW_FOLLOWS = re.compile(r"\}\s*,\s*(?=\{)")
_NEXT_ROW = re.compile(r"\{(?=\s*+[\"}])")
_decode = json.JSONDecoder().raw_decode


class ByteSource(Protocol):
    """A source of bytes."""

    def read(self, size: int) -> bytes:
        """The next bytes; empty at the end."""
        ...


class JsonRows:
    """Reads the objects of a JSON list (`[{…}, {…}]`) from a binary file, from a position anywhere before them.

    Attributes:
        found: whether there is such a list.
        head: the text before the list's bracket, once the iteration has begun.
        tail: the text after the list, once it has ended (at most one block).
        lost: how many damaged stretches were skipped.
        cut: whether the text ended inside the list.
    """

    def __init__(self, file: ByteSource, opening: re.Pattern[str]) -> None:
        self._file = file
        self._opening = opening
        self._text = ""
        self._at = 0
        self._ended = False
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self.found = False
        self.head = ""
        self.tail = ""
        self.lost = 0
        self.cut = False
        self._one_by_one = 0
        self._dropped = 0  # characters before the text
        self._fault = -1
        self._tried = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, one by one. Yields nothing if the list does not begin within the first block."""
        if not self._open():
            return
        while self._find_row():
            row = self._row()
            if row is not None:
                yield row

    def pieces(self) -> Iterator[Sequence[Row] | RowBlock]:
        """The same rows, parsed in batches; rows with the same keys are yielded as columns."""
        if not self._open():
            return
        while self._find_row():
            if len(self._text) - self._at < WINDOW:
                self._more()
            rows = self._window() if not self._one_by_one else None
            if rows is not None:
                yield from stretches(rows)
                continue
            row = self._row()
            if row is not None:
                yield (row,)

    def _window(self) -> list[dict[str, Any]] | None:
        """The rows in the next stretch of text; None if it cannot be parsed at once and rows must be read one by
        one.
        """
        end = self._end_of_rows()
        if end is None:
            return None
        text = f"[{self._text[self._at : end]}]"
        try:
            rows = orjson.loads(text)
        except ValueError:
            rows = _with_nan(text)
        if not isinstance(rows, list) or not all(type(row) is dict for row in rows):
            self._one_by_one = ONE_BY_ONE
            return None
        self._at = end
        return rows

    def _end_of_rows(self) -> int | None:
        """The end of the last row that is complete within the next window and followed by another row."""
        end = self._at + WINDOW
        for _ in range(MOST_ENDS):
            end = self._text.rfind("}", self._at, end)
            if end < 0:
                return None
            if _ROW_FOLLOWS.match(self._text, end):
                return end + 1
        return None

    def _open(self) -> bool:
        self._more()
        opening = self._opening.search(self._text)
        if opening is None:
            self.head = self._text
            return False
        self.found = True
        self.head, self._at = self._text[: opening.end()], opening.end()
        return True

    def _more(self) -> bool:
        """Reads more text and drops the used text. False at the end of the file."""
        block = self._file.read(BLOCK) if not self._ended else b""
        self._ended = not block
        text = self._decoder.decode(block, final=not block)
        self._text = self._text[self._at :] + text
        self._dropped += self._at
        self._at = 0
        return bool(text)

    def _find_row(self) -> bool:
        """Goes to the next row; False at the end of the list or of the text."""
        while True:
            between = _BETWEEN.match(self._text, self._at)
            self._at = between.end() if between else self._at
            if self._at < len(self._text):
                break
            if not self._more():
                self.cut = True
                return False
        if self._text[self._at] == "{":
            return True
        if self._text[self._at] == "]":
            self._more()
            self.tail = self._text[self._at + 1 :]
            return False
        self.lost += 1
        return self._resume(self._at)

    def _row(self) -> dict[str, Any] | None:
        self._one_by_one = max(0, self._one_by_one - 1)
        while True:
            try:
                row, end = _decode(self._text, self._at)
            except RecursionError:
                self._damaged(self._inside())
                return None
            except ValueError as error:
                if self._is_too_deep(error):  # older Pythons try a thousand levels, and newer ones more
                    self._damaged(self._inside())
                    return None
                if self._is_damage(error):
                    self._damaged(self._behind(error))
                    return None
                if not self._more():
                    self._ended_inside()
                    return None
                continue
            self._at = end
            return row if isinstance(row, dict) else None

    def _behind(self, error: ValueError) -> int | None:
        """The place of a fault around which many objects were tried; None if the next object may be tried."""
        if not isinstance(error, json.JSONDecodeError):
            return None
        fault = self._dropped + error.pos
        self._tried = self._tried + 1 if fault == self._fault else 1
        self._fault = fault
        return max(error.pos, self._at + 1) if self._tried > MOST_LEVELS else None

    def _is_too_deep(self, error: ValueError) -> bool:
        """Whether the fault lies inside more objects and lists than any log has."""
        if not isinstance(error, json.JSONDecodeError) or error.pos - self._at < TOO_DEEP:
            return False
        part = self._text[self._at : error.pos]
        return part.count("{") + part.count("[") - part.count("}") - part.count("]") >= TOO_DEEP

    def _is_damage(self, error: ValueError) -> bool:
        """Whether more text cannot resolve the fault, because it lies well before the end of the text read so far."""
        unread = len(self._text) - self._at
        if not isinstance(error, json.JSONDecodeError) or unread > LONGEST_ROW:
            return True
        return len(self._text) - error.pos > LONGEST_WORD and not error.msg.startswith("Unterminated string")

    def _ended_inside(self) -> None:
        """The text ends inside a row: the row was truncated; or, if rows follow, it is damaged."""
        if self._resume(self._at + 1):
            self.lost += 1

    def _damaged(self, start: int | None = None) -> None:
        self.lost += 1
        self._resume(self._at + 1 if start is None else start)

    def _inside(self) -> int:
        """A place deep inside an object that is nested too deeply to be read: trying every level of it would take too
        long.
        """
        openings = islice(_NESTING.finditer(self._text, self._at), TOO_DEEP)
        return max(one.end() for one in openings)

    def _resume(self, start: int) -> bool:
        """Finds the start of the next row after damage: an object at the start of a line, empty or with a quoted
        key.
        """
        while True:
            found = _NEXT_ROW.search(self._text, start)
            if found:
                self._at = found.start()
                return True
            self._at = max(start, len(self._text) - LONGEST_WORD)
            if not self._more():
                self._at = len(self._text)
                self.cut = True
                return False
            start = 0


def _with_nan(text: str) -> Any:
    """Python's own parser, which is slower and reads NaN and Infinity; None if the text is damaged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
