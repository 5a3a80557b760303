"""JSONL logs, one row per line, and JSON files of rows, of columns under any name, or of a list of numbers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import orjson

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.growing import SparseFile, open_regular
from rlhealth.sources.base.packed import as_text
from rlhealth.sources.base.saved import stamp_of
from rlhealth.sources.base.spelling import BESIDE, clock, whole
from rlhealth.sources.rows.headerless import is_list, list_in, stem_of
from rlhealth.sources.rows.json_columns import RowBlock, stretches
from rlhealth.sources.rows.json_joining import JsonRun
from rlhealth.sources.rows.json_parts import holds_run
from rlhealth.sources.rows.json_rows import JsonRows
from rlhealth.sources.rows.json_tables import runs_of, unpivoted
from rlhealth.sources.rows.printed_dicts import dict_in
from rlhealth.sources.rows.textlog import TextLog, board_tag

#: A list of objects: bare, or the first one under a name.
OPENING = re.compile(r'"log_history"\s*:\s*\[|\A\s*\[(?=\s*[{\]])|"[^"]{1,100}"\s*:\s*\[(?=\s*\{)')
HEAD = 1024  # bytes that show whether it is a list of numbers, an object or a list of rows
FIRST_ROW = 1 << 20  # bytes within which the first object of a list must end, if it is a whole run
LARGEST_DOCUMENT = 64 << 20  # bytes of a JSON file of columns, which is read whole


class JsonLines(TextLog):
    """One JSON object per line: trainers' log rows, verl's file logger, wandb-history.jsonl; printed Python dicts are
    read too.
    """

    kind = "jsonl"

    def read(self) -> bool:
        """Takes the new lines; also the last one, if it is a complete object."""
        before = self.text.offset
        for block in self.text.blocks():
            for piece in stretches(self._rows_of(block)):
                if isinstance(piece, RowBlock):
                    self.rows.take_columns(piece.table)
                else:
                    self.rows.take(piece)
        if self.text.rest.rstrip().endswith(b"}"):
            row = self._row(self.text.rest)
            if row is not None:
                self.text.take_rest()
                self.rows.take((row,))
        return self.text.offset > before

    def _rows_of(self, block: bytes) -> Iterator[dict[str, Any]]:
        """The rows of complete lines; lines that cannot be read are counted."""
        for line in block.split(b"\n")[:-1]:
            self.text.line += 1
            try:
                row = orjson.loads(line)
            except ValueError:
                text = line.rstrip()
                row = self._row(text) if text else None
            if type(row) is dict:
                yield unpivoted(row) if "value" in row else row
            elif line.rstrip():
                self.is_bad(self.text.line)

    def _row(self, text: bytes) -> dict[str, Any] | None:
        try:
            row = json.loads(text)  # reads NaN and Infinity too
        except (ValueError, RecursionError):
            row = dict_in(text.decode("utf-8", "replace"))  # a printed Python dict
        return row if isinstance(row, dict) else None


class JsonDocument(TextLog):
    """A JSON file of rows (`[{…}, …]`, `{"history": [{…}]}`), of columns (`{"loss": [0.5, …]}`) or of numbers
    (`[0.5, …]` in rewards.json); the whole file is read after each change.

    Attributes:
        is_gathered: whether it is an object of lists or a list of numbers, as user code collects them.
    """

    kind = "json"
    rotates = False

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        super().__init__(path, file)
        self._file = file
        self._stamp: object = None
        self._lost = 0
        self._cut = False
        self._left: list[str] = []
        self.is_gathered = False

    def poll(self) -> bool:
        """Reads the file if it was written since the last poll."""
        if self._file is not None:
            if self._stamp is not None:
                return False
            self._stamp = True
            return self._poll(self._file)
        with open_regular(self.path) as file:
            here = os.fstat(file.fileno())
            stamp = stamp_of(here)
            if stamp == self._stamp:
                return False
            if self._stamp is not None:
                self.start_again()
            self._stamp, self.text.modified = stamp, here.st_mtime
            return self._poll(as_text(file, self.path))

    def is_over(self) -> bool:
        """Always true: the document is read again after each change, so its present content is complete."""
        return True

    def _poll(self, file: IO[bytes]) -> bool:
        self._document = file
        return super().poll()

    def read(self) -> bool:
        """Takes every row."""
        self._lost, self._cut, self._left = 0, False, []
        head = self._document.read(HEAD)
        self._document.seek(0)
        if self._numbers(head) or self._tables(head):
            return True
        rows = JsonRows(SparseFile(self._document), OPENING)
        for piece in rows.pieces():
            if isinstance(piece, RowBlock):
                self.rows.take_columns(named_by_file(self.path, piece.table))
            else:
                self.rows.take(named_by_file(self.path, row) for row in piece)
        self._lost, self._cut = rows.lost, rows.cut
        if not rows.found:
            self._document.seek(0)
            self.rows.take(self._columns())
        self.text.offset = self._document.tell()
        return True

    def problems(self) -> list[str]:
        """What was lost in reading, as sentences."""
        found = [f"{self.path.name}: {self._lost} damaged rows skipped"] if self._lost else []
        return [*found, f"{self.path.name}: the file ends inside its list of rows"] if self._cut else found

    def remarks(self) -> list[str]:
        """What a reader has to know of how the rows were taken, as sentences."""
        left = f"{', '.join(self._left[:3])}{', …' if len(self._left) > 3 else ''}"
        return [*super().remarks(), *([f"lists that count something else were left out: {left}"] if left else [])]

    def _numbers(self, head: bytes) -> bool:
        """Takes a list of numbers; if the file is none, returns False and rewinds the file."""
        if not is_list(self.path.name, head.decode("utf-8-sig", "replace")):
            return False
        text = self._document.read(LARGEST_DOCUMENT + 1)
        found = list_in(self.path.name, text) if len(text) <= LARGEST_DOCUMENT else None
        if found is None:
            self._document.seek(0)
            return False
        self.text.offset = self._document.tell()
        self.is_gathered, self._cut = True, found.cut
        self.rows.take_columns({found.name: found.values})
        return True

    def _tables(self, head: bytes) -> bool:
        """Takes the tables of one JSON object; if the file is none, returns False and rewinds the file."""
        if not head.lstrip(_BLANK).startswith(b"{"):  # a list of rows is not read twice
            first = self._document.read(FIRST_ROW)
            self._document.seek(0)
            if not begins_with_run(first):
                return False
        runs = document_runs(self._document.read(LARGEST_DOCUMENT + 1), self.path.name)
        self.text.offset = self._document.tell()
        self._document.seek(0)
        self.is_gathered = bool(runs)
        for place, found in enumerate(runs):
            if place:
                self.rows.begin_run(found.name)
            self._left += found.left
            for piece in stretches(found.rows):
                if isinstance(piece, RowBlock):
                    self.rows.take_columns(named_by_file(self.path, piece.table))
                else:
                    self.rows.take(named_by_file(self.path, row) for row in piece)
        return bool(runs)

    def _columns(self) -> Iterator[dict[str, Any]]:
        text = self._document.read(LARGEST_DOCUMENT + 1)
        if len(text) > LARGEST_DOCUMENT:
            raise RlhealthError(
                f"{self.path}: a JSON file of more than 64 MiB without a list of rows",
                hint="write rows, one a line",
                location=str(self.path),
            )
        try:
            for row in document_rows(text.decode("utf-8-sig", "replace")):
                if "wall_time" in row and len(row) == 3 and "value" in row:
                    row[board_tag(self.path)] = row.pop("value")
                yield row
        except (ValueError, RecursionError) as error:
            hint = "is it whole? jsonl is read line by line and may end anywhere"
            raise RlhealthError(
                f"{self.path}: not JSON: {str(error)[:100]}", hint=hint, location=str(self.path)
            ) from error


def named_by_file(path: Path, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with the file's name before its names, if these are only statistics and the file names their metric:
    `{"step": 1, "mean": 0.5, "max": 0.7}` in reward_curve.json gives `reward/mean` and `reward/max`.
    """
    names = row.keys() - BESIDE
    named = _NAMED_FILE.fullmatch(path.stem) if names and names <= _STATISTICS and "mean" in names else None
    if named is None:
        return row
    of = named["of"].lower().removesuffix("s")
    return {f"{of}/{name}" if name in _STATISTICS else name: value for name, value in row.items()}


_BLANK = b"\xef\xbb\xbf \t\r\n"
_HISTORY = b'"log_history"'
_STATISTICS = frozenset({"mean", "max", "min", "std", "median", "count"})
#: File names that name the metric whose statistics are in the rows.
_NAMED_FILE = re.compile(
    r"(?:(?:train|training|episode|mean)_)?(?P<of>rewards?|returns?|scores?)(?:_(?:curves?|history|hist|log|trace))?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[\s,\x1e]*")
_decode = json.JSONDecoder().raw_decode


def begins_with_run(text: bytes) -> bool:
    """Whether a JSON text begins as a list in which each object is a whole run."""
    if not text.lstrip(_BLANK).startswith(b"["):
        return False
    try:
        said = text.decode("utf-8-sig", "ignore").lstrip()[1:].lstrip()
        row, _ = _decode(said)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and holds_run(row)


def document_runs(text: bytes, name: str = "") -> list[JsonRun]:
    """The runs of a JSON text that is one object of named lists, or a list of runs; empty for any other text. `name` is
    that of the file."""
    if len(text) > LARGEST_DOCUMENT:
        return []
    is_object = text.lstrip(_BLANK).startswith(b"{") and _HISTORY not in text
    if not is_object and not begins_with_run(text[:FIRST_ROW]):
        return []
    try:
        found = orjson.loads(text)
    except ValueError:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return []
    return runs_of(found if is_object else {"": found}, stem_of(name))


def document_rows(text: str) -> Iterator[dict[str, Any]]:
    """The rows of a JSON text without a list of rows: one object of columns, or consecutive objects, indented or
    not.

    Raises:
        ValueError, RecursionError: if it is no JSON up to the end of the first object; the text after a complete
                object may be truncated.
    """
    at = _BETWEEN.match(text).end()  # type: ignore[union-attr]  # it matches everywhere
    first, at = _decode(text, at)
    at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
    if at >= len(text):
        yield from _rows_of(first)
        return
    while True:
        if isinstance(first, dict):
            yield first
        if at >= len(text):
            return
        try:
            first, at = _decode(text, at)
        except (ValueError, RecursionError):
            return
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]


def _rows_of(found: Any) -> Iterator[dict[str, Any]]:
    """The rows of TensorBoard's points, a list of `[wall time, step, value]`."""
    if isinstance(found, list):
        yield from ({"wall_time": one[0], "step": one[1], "value": one[2]} for one in found if _is_point(one))


def _is_point(value: object) -> bool:
    """Whether this is a point as TensorBoard's page exports it: the wall time, the step, the value."""
    return isinstance(value, list) and len(value) == 3 and clock(value[0]) > 0 and whole(value[1]) is not None
