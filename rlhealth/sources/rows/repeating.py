"""Rows of JSON text that have the same keys in the same order as the row before, as nearly all rows of a trainer have, read many at a time with numpy.

Such rows are the same text with other numbers in it. A comma stands after each number, so the commas of a stretch, so many a row, tell where
everything lies; every byte between two numbers is then compared, and the stretch ends before the first row in which one differs.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import numpy as np

from rlhealth.run import Floats, Ints
from rlhealth.sources.base.decimals import MARGIN, Bytes, Words, decimals, words_of
from rlhealth.sources.base.spelling import AXES, CLOCKS, number
from rlhealth.sources.rows.row_shapes import Cells

LONGEST_TEXT = 255  # bytes between two numbers, and
LONGEST_NUMBER = 64  # bytes of a number: both are looked at within the margin
MOST_NUMBERS = 4096  # in a row
SMALLEST, LARGEST = 1 << 14, 1 << 20  # bytes looked at in one go: more while it goes well
WORTH_IT = 16  # rows; where stretches are shorter, looking for them costs more than reading row by row
LONGEST_PAUSE = 1024  # rows
KINDS = 4  # of rows that are remembered: a trainer's own, its evaluations', …
_PAD = bytes(MARGIN)
_COMMA, _NEWLINE, _ZERO, _NINE, _MINUS = b",\n09-"
_QUOTED = rf'"(?:[^"\\]|\\.){{0,{LONGEST_TEXT}}}"'  # without a bound it takes a hundred bytes of memory for each of a long one
_MEMBER = re.compile(
    rf"\s*({_QUOTED})\s*:\s*(?:(?P<number>-?[0-9][-+.0-9eE]*|NaN|-?Infinity|true|false)|(?P<text>{_QUOTED}))(?P<after>\s*[,}}])"
)
_AFTER = {
    False: re.compile(r"\s*,\s*(?=\{)"),
    True: re.compile(r"\r?\n(?=\{)"),
}  # what stands between two rows of a list, and of lines


class Stretch(NamedTuple):
    """Rows that were read at once: how many, their numbers by tag (masked arrays of shape (rows,)), and where in the text the row after them begins."""

    rows: int
    table: dict[str, Cells]
    end: int


class Repeating:
    """Reads on from a row as long as the rows repeat it.

    Args:
        lines: whether each row is a line, not an entry of a list.
    """

    def __init__(self, lines: bool = False) -> None:
        self._lines = lines
        self._kinds: list[_Kind] = []
        self._window = SMALLEST
        self._pause = 0  # how many rows a failure costs
        self._rest = 0  # how many of them are still to come

    def learn(self, text: str, start: int, end: int) -> None:
        """A row was read at `text[start:end]`, and the next ones may be like it."""
        if self._rest:
            self._rest -= 1
            return
        try:
            kind = _kind(text, start, end, self._lines)
        except ValueError:  # a row that was read though it is no JSON, as a printed dict
            return
        if kind is not None:
            self._kinds = [kind, *(one for one in self._kinds if one.texts != kind.texts)][:KINDS]

    def read(self, text: str, start: int) -> Stretch | None:
        """The rows from `start` on that are like one seen before; None where it is not worth it, and the next one has to be read by itself."""
        if self._rest or not self._kinds:
            return None
        part = text[start : start + self._window]
        found = next((one for kind in self._kinds if (one := kind.read(part)) is not None), None)
        if found is not None and found.rows >= WORTH_IT:
            self._pause = 0
        elif len(part) == self._window:
            self._pause = self._rest = min(2 * self._pause + 1, LONGEST_PAUSE)
        whole = found is not None and 4 * found.end > 3 * len(part)
        self._window = min(4 * self._window, LARGEST) if whole else SMALLEST
        return None if found is None else found._replace(end=start + found.end)


class _Kind:
    """What the text of a row is without its numbers.

    Args:
        tags: N names, one a number.
        texts: N+1 stretches of text, before, between and after the numbers, up to where the next row begins.
        lines: whether the rows are lines: what ends them is a line's end then, and no comma.
    """

    def __init__(self, tags: list[str], texts: list[bytes], lines: bool) -> None:
        self.tags = tags
        self.texts = texts
        self._opening = texts[0].decode()
        self._lines = lines
        counts = [_commas(one, lines) for one in texts]
        self._commas = sum(map(len, counts))
        self._first = np.cumsum([0, *map(len, counts)])[
            1:-1
        ]  # the first comma of each text but that before the numbers
        self._before = np.array([one[0] for one in counts[1:]])  # bytes of the text before it
        self._length = np.array([len(one) for one in texts])
        wanted = [(which, *one) for which, stretch in enumerate(texts) for one in _words(stretch)]
        self._which, self._offset = (np.array([one[part] for one in wanted]) for part in (0, 1))
        self._word, self._mask = (np.array([one[part] for one in wanted], np.uint64) for part in (2, 3))

    def read(self, part: str) -> Stretch | None:
        """The rows at the beginning of a piece of text that are of this kind, or None."""
        if not part.startswith(self._opening) or not part.isascii():
            return None
        buffer = b"".join((_PAD, part.encode("ascii"), _PAD))
        octets = np.frombuffer(buffer, np.uint8)
        words = words_of(octets)
        comma = np.flatnonzero((octets == _COMMA) | (octets == _NEWLINE) if self._lines else octets == _COMMA)
        rows = len(comma) // self._commas
        if not rows:
            return None
        begin = np.empty((rows, len(self.texts)), np.int64)  # where each text begins
        np.subtract(comma[: rows * self._commas].reshape(rows, -1)[:, self._first], self._before, out=begin[:, 1:])
        after = begin[:, -1] + self._length[-1]  # where the next row does
        begin[0, 0], begin[1:, 0] = MARGIN, after[:-1]
        start = (begin + self._length)[:, :-1]
        size = begin[:, 1:] - start
        same = (words[begin[:, self._which] + self._offset] & self._mask) == self._word
        rows = _leading(
            same.all(axis=1) & ((size > 0) & (size <= LONGEST_NUMBER)).all(axis=1) & (after <= len(buffer) - MARGIN)
        )
        if not rows:
            return None
        values, rows = _numbers(buffer, octets, words, start[:rows], size[:rows])
        if not rows:
            return None
        table = {tag: np.ma.masked_array(column) for tag, column in zip(self.tags, values.T.copy(), strict=True)}
        return Stretch(rows, table, int(after[rows - 1]) - MARGIN)


def _numbers(buffer: bytes, octets: Bytes, words: Words, start: Ints, size: Ints) -> tuple[Floats, int]:
    """The numbers of the rows, shape (rows, N), and in how many of the rows all are numbers: NaN and Infinity are, null is not."""
    values, read = decimals(octets, words, start.ravel(), size.ravel())
    first = start.ravel() + (octets[start.ravel()] == _MINUS)
    read &= ~(
        (octets[first] == _ZERO) & (octets[first + 1] >= _ZERO) & (octets[first + 1] <= _NINE)
    )  # JSON knows no 007
    width = start.shape[1]
    rows = len(start)
    for index in np.flatnonzero(~read).tolist():
        row, column = divmod(index, width)
        begin = int(start[row, column])
        found = _number(buffer[begin : begin + int(size[row, column])])
        if found is None:
            rows = row
            break
        values[index] = found
    return values.reshape(-1, width)[:rows], rows


def _number(text: bytes) -> float | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return None if isinstance(value, str) else number(value)


def _kind(text: str, start: int, end: int, lines: bool) -> _Kind | None:
    """The kind of the row at `text[start:end]`; None where it has no numbers, holds more than numbers and plain text, or no row follows."""
    tags, texts = [], []
    at, done = start + 1, start
    while at < end:
        member = _MEMBER.match(text, at, end)
        if member is None:
            return None
        tag = json.loads(member[1])
        if member["number"]:
            tags.append(tag)
            texts.append(text[done : member.start("number")])
            done = member.end("number")
        elif tag in CLOCKS or tag in AXES or "/" in member["text"] or number(json.loads(member["text"])) is not None:
            return None  # a text that tells a number changes from row to row
        at = member.end()
    following = _AFTER[lines].match(text, end)
    if not tags or following is None or len(set(tags)) < len(tags) or len(tags) > MOST_NUMBERS:
        return None
    texts.append(text[done : following.end()])
    if not all(one.isascii() and len(one) <= LONGEST_TEXT for one in texts):
        return None
    return _Kind(tags, [one.encode() for one in texts], lines)


def _commas(text: bytes, lines: bool) -> list[int]:
    return [place for place, byte in enumerate(text) if byte == _COMMA or (lines and byte == _NEWLINE)]


def _words(text: bytes) -> list[tuple[int, int, int]]:
    """Words of eight bytes that cover a text: where each begins, what it is, and which of its bits count."""
    if len(text) < 8:
        return [(0, int.from_bytes(text, "little"), (1 << 8 * len(text)) - 1)]
    places = [*range(0, len(text) - 8, 8), len(text) - 8]
    return [(place, int.from_bytes(text[place : place + 8], "little"), (1 << 64) - 1) for place in places]


def _leading(good: Any) -> int:
    """How many of the first ones are good."""
    bad = np.flatnonzero(~good)
    return int(bad[0]) if len(bad) else len(good)
