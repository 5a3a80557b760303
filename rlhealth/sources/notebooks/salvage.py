"""The intact parts of a notebook that is no valid JSON: both sides of git conflict markers, and the cells and outputs
around damage or before a cut.
"""

from __future__ import annotations

import json
import re
from typing import Any

#: Characters before a table in which its progress bar stands.
BAR = 2_000
#: Characters that may be decoded in vain, as a multiple of the text: damage in a notebook costs one or two.
MOST_WORK = 8
#: Characters that count as decoded where objects are nested too deeply: how deep a Python tries is its own affair.
DEEP = 1 << 16
_MARKS = re.compile(r"^(?:<{7}|\|{7}|={7}|>{7})(?: .*)?$", re.MULTILINE)
_CELL = re.compile(r"\{\s*+\"(?:cell_type|attachments|execution_count|id|metadata|output_type|data|name|ename)\"\s*+:")
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)(?:"|\Z)', re.DOTALL)
_decode = json.JSONDecoder(strict=False).raw_decode


def sides(text: str) -> list[tuple[str, str]]:
    """The name and the whole text of either side of a file with git's conflict marks; empty if there are none."""
    if not (text.startswith("<<<<<<<") or "\n<<<<<<<" in text):
        return []
    ours: list[str] = []
    theirs: list[str] = []
    into = (ours, theirs)
    names = ["HEAD", "the other branch"]
    for line in text.splitlines(keepends=True):
        if not _MARKS.match(line.rstrip("\r\n")):
            for side in into:
                side.append(line)
        elif line[0] == "<":
            into = (ours,)  # type: ignore[assignment]
        elif line[0] == "|":
            into = ()  # type: ignore[assignment]
        elif line[0] == "=" and into != (ours, theirs):
            into = (theirs,)  # type: ignore[assignment]
        elif line[0] == ">":
            into = (ours, theirs)
    return [(names[0], "".join(ours)), (names[1], "".join(theirs))]


def salvage(text: str) -> list[Any]:
    """The cells of a damaged or cut notebook that are whole, and the outputs that are whole in those that are not."""
    cells: list[Any] = []
    at = end = work = 0
    while (start := _CELL.search(text, at)) is not None:
        try:
            found, end = _decode(text, start.start())
        except (ValueError, RecursionError) as error:
            work += error.pos - start.start() if isinstance(error, json.JSONDecodeError) else DEEP
            at = start.start() + 1
            if work > MOST_WORK * len(text) + (1 << 20):
                break
            continue
        at = end
        if isinstance(found, dict) and ("cell_type" in found or "output_type" in found):
            cells.append(found)
    tail = _text_that_is_cut(text[end:])
    if tail:
        cells.append({"output_type": "display_data", "data": {"text/html": tail}})
    return cells


def _text_that_is_cut(rest: str) -> str:
    """The text of a training table in an output that is cut off: its lines are JSON strings, of which the last may
    lack its end.
    """
    start = rest.rfind("<table")
    if start < 0:
        return ""
    bar = rest.rfind("<progress", max(0, start - BAR), start)
    opening = rest.rfind('"', 0, bar if bar >= 0 else start)
    while opening > 0 and rest[opening - 1] == "\\":  # a quote in the text
        opening = rest.rfind('"', 0, opening)
    found: list[str] = []
    for string in _STRING.finditer(rest, max(0, opening)):
        escaped = string[1].rstrip("\\") if string.end() == len(rest) else string[1]
        try:
            found.append(json.loads(f'"{escaped}"', strict=False))
        except ValueError:
            break
        if "</table>" in found[-1]:
            break
    return "".join(found)
