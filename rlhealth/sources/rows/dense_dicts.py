"""Many printed dicts in a row, as a trainer without anything else on its console leaves them: parsed at once, and their
numbers as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

FEWEST = 32  # lines; fewer are read one by one
MOST = 2048  # lines parsed at once
_NUMBERS = {float, int}


def dense_rows(lines: Sequence[bytes], start: int) -> list[dict[str, Any]]:
    """The rows of the lines from `start` on, as far as each is a dict of the same names and of nothing but finite
    numbers; empty if they are few, or of another form.
    """
    end, last = start, min(len(lines), start + MOST)
    while end < last and lines[end].startswith(b"{'") and lines[end].endswith(b"}"):
        end += 1
    if end - start < FEWEST:
        return []
    text = b",".join(lines[start:end])
    if b'"' in text or b"\\" in text or b"[" in text or b"(" in text:
        return []
    try:
        rows: list[dict[str, Any]] = orjson.loads(b"[" + text.replace(b"'", b'"') + b"]")
    except ValueError:
        return []
    if len(rows) != end - start:  # two dicts on a line: their rows could not be told from those of the lines after it
        return []
    names = tuple(rows[0])
    for count, row in enumerate(rows):
        if tuple(row) != names or not _NUMBERS.issuperset(map(type, row.values())):
            return rows[:count] if count >= FEWEST else []
    return rows
