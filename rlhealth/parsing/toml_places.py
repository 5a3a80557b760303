"""Where each key of a TOML file stands. tomllib gives no places, and a message should name the line."""

from __future__ import annotations

import re
from typing import Any

_KEY = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\'[^\']*\'|[A-Za-z0-9_-]+)\s*')
_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)
_PLAIN = re.compile(r"[^,\]}\n#]*")

Path = tuple[Any, ...]


def toml_places(text: str) -> dict[Path, tuple[int, int]]:
    """The line and column (from 1) of every key path in TOML text that tomllib accepts; list items stand under their
    index.
    """
    scan = _Scan(text)
    scan.document()
    return scan.places


class _Scan:
    """Walks once through valid TOML."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: dict[Path, tuple[int, int]] = {(): (1, 1)}
        self.lists: dict[Path, int] = {}

    def document(self) -> None:
        """Takes headers and `key = value` lines until the end."""
        under: Path = ()
        while self._skip() < len(self.text):
            start = self.at
            if self.text[self.at] == "[":
                double = self.text.startswith("[[", self.at)
                self.at += 1 + double
                under = self._keys(())
                self.at += 1 + double
                if double:
                    self.lists[under] = self.lists.get(under, -1) + 1
                    self._mark(under, start)
                    under = (*under, self.lists[under])
                self._mark(under, start)
            else:
                self._pair(under)

    def _pair(self, under: Path) -> None:
        self._skip()
        start = self.at
        path = self._keys(under)
        self._mark(path, start)
        self.at += 1  # =
        self._value(path)

    def _keys(self, under: Path) -> Path:
        path = under
        while match := _KEY.match(self.text, self.at):
            key = match[1]
            path = (*path, key[1:-1] if key[0] in "\"'" else key)
            if path in self.lists:  # a table within the newest item of a list
                path = (*path, self.lists[path]) if self.text[match.end()] == "." else path
            self.at = match.end()
            if self.text[self.at] != ".":
                break
            self.at += 1
        return path

    def _value(self, path: Path) -> None:
        self._skip()
        opened = self.text[self.at]
        if opened not in "[{":
            match = _STRING.match(self.text, self.at) or _PLAIN.match(self.text, self.at)
            assert match is not None
            self.at = match.end()
            return
        self.at += 1
        index = 0
        while self._skip() < len(self.text) and self.text[self.at] not in "]}":
            if self.text[self.at] == ",":
                self.at += 1
            elif opened == "{":
                self._pair(path)
            else:
                self._mark((*path, index), self.at)
                self._value((*path, index))
                index += 1
        self.at += 1

    def _skip(self) -> int:
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _mark(self, path: Path, start: int) -> None:
        line = self.text.count("\n", 0, start)
        self.places.setdefault(path, (line + 1, start - (self.text.rfind("\n", 0, start) + 1) + 1))
