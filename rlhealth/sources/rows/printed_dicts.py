"""Printed dicts, Python's or JSON's, on one line or on many; nothing is evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from rlhealth.sources.base.spelling import AXES, number

_FLOATS = {float}
_LISTED = {float, int, list}  # lists of rewards become their mean and spread

LONGEST_LINE = 1 << 20  # characters; no program prints longer rows
LONGEST_BEFORE = 200  # characters before a dict that are read
MOST_LINES = 400  # of one printed dict
WANDB_CUT = 4096  # characters after which wandb cuts a line of output.log
_OPENING = re.compile(r"\{\s*(?=['\"])")
_BRACES = re.compile(r"[{}]")
_BRACE_LAST = re.compile(r"(?:^|[\s:=])\{\s*\Z")  # the first key is on the next line
_KEY_FIRST = re.compile(r"\s*['\"]")
_NAMED = re.compile(r"\W{0,8}[A-Za-z][\w ]{0,40}:\s{0,9}(?P<dict>\{\s{0,9}['\"][^{}]{1,4096}\})\s*")
_PAIR = re.compile(
    r"(?P<q>['\"])(?P<key>[^'\"\n]{1,4096})(?P=q)\s*:\s*"
    r"(?:['\"](?P<quoted>[^'\"\n]{0,200})['\"]|(?P<value>[A-Za-z_][\w.]{0,60}\([^()\n]{0,200}\)|[^\s,{}\[\]()'\"]{1,60}))\s*(?=[,}]|$)"
)


def dict_in(text: str, cut: bool = False) -> dict[str, Any] | None:
    """The log row in `text`, printed as a Python or JSON dict, or None; nothing is evaluated. With `cut`, its end may
    be missing.
    """
    opening = _OPENING.search(text)
    if opening is None:
        return None
    end = _closing(text, opening.start())
    if end is None and not cut:
        return None
    body = text[opening.start() : end]
    return _row_of(body if end is not None else body[: body.rfind(",") + 1], end is not None)


def dict_of_a_name(line: str) -> dict[str, Any]:
    """The row in a line that is a name and its dict, `Other logs: {'KL': 0.1}`; empty for any other line."""
    found = _NAMED.fullmatch(line)
    return (dict_in(found["dict"]) or {}) if found is not None else {}


def begins_dict(line: str) -> bool:
    """Whether a line ends with a brace whose first key may be on the next line, as `json.dumps(…, indent=4)` and
    other pretty printers write it."""
    return "{" in line and _BRACE_LAST.search(line) is not None


def _row_of(body: str, is_whole: bool) -> dict[str, Any] | None:
    """The row in a dict's text, from brace to brace; if it is not whole, its last number may be cut."""
    if body[1:].lstrip()[:1] == '"' and is_whole:
        try:
            row = json.loads(body)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            return row
    if is_whole and (quick := _quick(body)) is not None:
        return quick
    found: dict[str, Any] = {}
    for pair in _PAIR.finditer(body):
        value = pair["value"] if pair["value"] is not None else pair["quoted"]
        spelt = None if value == "None" else number(value)
        if spelt is not None or value == "None" or pair["key"] in AXES:
            found[pair["key"]] = spelt if spelt is not None or value == "None" else value
    return found or None


def _quick(body: str) -> dict[str, Any] | None:
    """A dict of names and finite numbers or lists, as nearly every trainer row is, in a sixth of the time; None if it
    may be any other dict.
    """
    if '"' in body or "\\" in body:
        return None
    try:
        row = orjson.loads(body.replace("'", '"'))
    except ValueError:  # Python's own words (nan, None, True), calls, tuples
        return None
    kinds = set(map(type, row.values()))
    if kinds == _FLOATS:
        found: dict[str, Any] = row
        return found
    if not row or not kinds <= _LISTED:
        return None
    return {key: value if type(value) is list else float(value) for key, value in row.items()}


def _closing(text: str, start: int) -> int | None:
    """The index after the brace that closes the one at `start`; None if it is not closed."""
    first = text.find("}", start)
    if first >= 0 and text.find("{", start + 1, first) < 0:
        return first + 1  # no dict inside the dict
    depth = 0
    for brace in _BRACES.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return None


class Dicts:
    """Finds dicts in lines that are passed in order; keeps a dict that has begun and is not yet closed.

    Attributes:
        is_open: whether a dict has begun and is not closed.
        before: the text on the line before the dict that was found last.
        text: the dict that was found last, as it was printed.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.before = ""
        self.text = ""

    @property
    def is_open(self) -> bool:
        """Whether a dict has begun and is not yet closed."""
        return bool(self._lines)

    def rows(self, line: str) -> Iterator[tuple[dict[str, Any], bool]]:
        """The dicts that end with this line, and whether each is cut. Afterwards `is_open` is true if the line is part
        of a dict.
        """
        if self._lines and not self._goes_on(line):
            yield from self._cut()
        text = "\n".join([*self._lines, line]) if self._lines else line
        opening = _OPENING.search(text)
        if opening is None:
            self._lines = [line] if begins_dict(line) else []
            return
        if len(self._lines) < 2:
            self.before = text[max(0, opening.start() - LONGEST_BEFORE) : opening.start()]
        end = _closing(text, opening.start())
        if end is None:
            self._begin(line, text)
            if len(line) >= WANDB_CUT:
                yield from self._cut()
            return
        self._lines = []
        while opening is not None and end is not None:
            self.text = text[opening.start() : end]
            row = _row_of(self.text, is_whole=True)
            if row is not None:
                yield row, False
            opening = _OPENING.search(text, end)
            end = _closing(text, opening.start()) if opening else None

    def end(self) -> Iterator[tuple[dict[str, Any], bool]]:
        """The dict that the end of the text cuts."""
        yield from self._cut()

    def _begin(self, line: str, text: str) -> None:
        self._lines = [*self._lines, line] if len(self._lines) < MOST_LINES and len(text) <= LONGEST_LINE else []

    def _cut(self) -> Iterator[tuple[dict[str, Any], bool]]:
        self.text = "\n".join(self._lines)
        row = dict_in(self.text, cut=True) if self._lines else None
        self._lines = []
        if row is not None:
            yield row, True

    def _goes_on(self, line: str) -> bool:
        """Whether a line may belong to the open dict."""
        if len(self._lines) == 1 and begins_dict(self._lines[0]):
            return _KEY_FIRST.match(line) is not None
        if _OPENING.search(line) is None:
            return any(sign in line for sign in "'\"}")
        text = "\n".join([*self._lines, line])
        opening = _OPENING.search(text)
        return opening is not None and _closing(text, opening.start()) is not None
