"""The settings that a trainer prints at its start, as a dict of dicts over many lines, as verl and its derivatives
do."""

from __future__ import annotations

import ast
import re
from typing import Any

from rlhealth.sources.rows.printed_line import bare, process_of

#: The start of such a dict: the name of a section, and its first setting.
_OPENS = re.compile(r"\{'[A-Za-z_]\w{0,60}': \{'[A-Za-z_]\w{0,60}': ")
_QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\"")
MOST_LINES = 3000  # of one such dict
LONGEST_LINE = 4000  # characters
SEARCHED = 1 << 20  # bytes at the beginning of a log that are searched for it
_BEGINS = b"{'"


class PrintedSettings:
    """Finds the first such dict in the blocks of a log, which are passed in order.

    Attributes:
        found: the settings, nested as they were printed; empty until they are complete.
        is_done: whether the search has ended.
    """

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self.is_done = False
        self._lines: list[str] = []
        self._depth = 0
        self._process = ""
        self._searched = 0

    def read(self, block: bytes) -> None:
        """Reads the next lines of the log; interleaved lines of other processes are skipped."""
        if not self._lines and _BEGINS not in block:
            self._count(block)
            return
        for raw in block.splitlines():
            if not self._lines and _BEGINS not in raw:
                continue
            text = raw.decode("utf-8", "replace")
            rank, line = bare(text)
            process = process_of(text) or rank
            if not self._lines and _OPENS.match(line):
                self._process = process
            elif not self._lines or process != self._process:
                continue
            self._take(line)
            if self.is_done:
                return
        self._count(block)

    def _count(self, block: bytes) -> None:
        self._searched += len(block)
        self.is_done = self._searched > SEARCHED and not self._lines

    def _take(self, line: str) -> None:
        """Takes a line of the dict; the dict ends where its braces are closed."""
        self._lines.append(line)
        unquoted = _QUOTED.sub("", line)
        self._depth += unquoted.count("{") - unquoted.count("}")
        if len(line) > LONGEST_LINE or len(self._lines) > MOST_LINES:
            self.is_done = True
        elif self._depth <= 0:
            self.found, self.is_done = _literal("\n".join(self._lines)), True


def _literal(text: str) -> dict[str, Any]:
    """The dict of plain values in a text; empty if the text is no such dict."""
    try:
        held = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return {str(name): value for name, value in held.items()} if isinstance(held, dict) else {}
