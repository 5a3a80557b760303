"""Many printed dicts in a row, as in the console of a trainer without other output: parsed at once, and their numbers
as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

FEWEST = 32  # lines; fewer lines are read one by one
MOST = 2048  # lines parsed at once
_NUMBERS = {float, int}


def dense_rows(lines: Sequence[bytes], start: int) -> list[dict[str, Any]]:
    """The rows of the lines from `start` on, as long as each is a dict of the same names with only finite numbers;
    empty if there are few, or if they have another form.
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
    if len(rows) != end - start:  # two dicts on a line: their rows cannot be matched to lines
        return []
    names = tuple(rows[0])
    for count, row in enumerate(rows):
        if tuple(row) != names or not _NUMBERS.issuperset(map(type, row.values())):
            return rows[:count] if count >= FEWEST else []
    return rows
