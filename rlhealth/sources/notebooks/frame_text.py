"""Tables that pandas printed as text: with "..." where rows or columns are left out, and over several pages where
they are wide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rlhealth.sources.base.spelling import BLANKS, PROGRESS, number
from rlhealth.sources.notebooks.html_table import Grid

_GAP = re.compile(r"\s{2,}")
LONGEST_HEADING = 20_000


def frames(text: str) -> Iterator[Grid]:
    """The tables with a column of steps or epochs; the pages of a wide one are joined by the labels of their rows."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        at, grid = _pages(lines, at)
        if grid.rows and PROGRESS.intersection(grid.heading):
            yield grid


def _pages(lines: Sequence[str], at: int) -> tuple[int, Grid]:
    """The number of the line after the table that begins at `at`, and the table; an empty table if there is none."""
    grid = Grid([], [], is_frame=True)
    continued = True
    while continued and at < len(lines) and (heading := _heading(lines[at])):
        continued = lines[at].rstrip().endswith("\\")
        at, page = _page(lines, at + 1, len(heading))
        if grid.heading and [label for label, _ in page] != grid.labels:
            return at, grid
        if not grid.heading:
            grid.labels, grid.rows = [label for label, _ in page], [[] for _ in page]
        grid.heading += heading
        for row, (_, cells) in zip(grid.rows, page, strict=True):
            row += cells
        while continued and at < len(lines) and not lines[at].strip():
            at += 1
    return (at if grid.heading else at + 1), grid


def _heading(line: str) -> list[str]:
    """The names in a line that may be a heading; empty if it is none."""
    if len(line) > LONGEST_HEADING or not line.strip():
        return []
    names = _GAP.split(line.strip().removesuffix("\\").rstrip())
    return names if all(number(name) is None for name in names) else []


def _page(lines: Sequence[str], at: int, width: int) -> tuple[int, list[tuple[str, list[str]]]]:
    """The number of the line after the rows that begin at `at`, and the rows: each with its label, "" where they have
    none."""
    found: list[tuple[str, list[str]]] = []
    while at < len(lines):
        cells = lines[at].split()
        if len(cells) not in (width, width + 1) or not all(_is_cell(cell) for cell in cells):
            break
        found.append((cells[0] if len(cells) > width else "", cells[-width:]))
        at += 1
    return at, found


def _is_cell(cell: str) -> bool:
    return cell in ("...", "..", "…") or number(cell) is not None or cell.lower() in BLANKS
