"""Tables and progress bars in the HTML of an output, as transformers, Unsloth and pandas write them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rlhealth.sources.notebooks.salvage import BAR

_CELL = re.compile(r"<t[hd](?=[\s>])[^<>]*>")
_ROW = re.compile(r"<tr(?=[\s>])[^<>]*>")
_TAG = re.compile(r"<[^<>]*>")
#: `[ 31/597 3:10:18 < 61:54:18, 0.00 it/s, Epoch 0.15/3]`
_PROGRESS = re.compile(r"\[\s*+(?P<done>\d{1,12})/(?P<total>\d{1,12})(?P<rest>[^\[\]]{0,200})\]")
_EPOCHS = re.compile(r"Epoch [\d.]{1,12}/(?P<total>\d{1,9})\b")
#: The class of the tables in which wandb sums a run up: a sparkline or the last value a metric, no rows.
SUMMARY = "wandb"


@dataclass
class Grid:
    """One table: its heading and its rows, cells as text.

    Attributes:
        done, total: of the progress bar above it; None if there is none.
        epochs: the planned number of epochs, if the progress bar shows it.
        is_cut: whether the text ends inside the table, or rows of it are not shown.
        is_frame: whether pandas wrote it.
        labels: what pandas writes before each row; empty where another wrote it.
    """

    heading: list[str]
    rows: list[list[str]]
    done: int | None = None
    total: int | None = None
    epochs: int | None = None
    is_cut: bool = False
    is_frame: bool = False
    labels: list[str] = field(default_factory=list)


def grids(text: str) -> Iterator[Grid]:
    """The tables in that HTML which have a heading, in their order; a row that is not closed is left out."""
    end = 0
    while (start := text.find("<table", end)) >= 0:
        opened = text.find(">", start)
        if opened < 0:
            return
        closed = text.find("</table", opened)
        following = text.find("<table", opened)
        bar = text[max(end, start - BAR) : start]
        end = min(one for one in (closed, following, len(text)) if one >= 0)
        if SUMMARY not in text[start:opened]:
            grid = _grid(text[opened + 1 : end])
            grid.is_cut = closed < 0 and following < 0
            grid.is_frame = grid.heading[:1] == [""]
            grid.labels = [row[0] for row in grid.rows] if grid.is_frame else []
            _read_progress(grid, bar)
            if grid.heading:
                yield grid


def _grid(body: str) -> Grid:
    heading: list[str] = []
    rows: list[list[str]] = []
    for row in _ROW.split(body)[1:]:
        inside, closed, _ = row.partition("</tr")
        if not closed and not ("</thead" in inside or not heading):
            continue
        cells = [_words(cell) for cell in _CELL.split(inside)[1:]]
        if not cells:
            continue
        if not heading:
            heading = cells
        else:
            rows.append(cells)
    return Grid(heading, rows)


def _words(cell: str) -> str:
    """The text of a cell, up to where it is closed."""
    inside = cell.partition("</t")[0]
    if "<" in inside:
        inside = _TAG.sub("", inside)
    if "&" in inside:
        inside = html.unescape(inside)
    return inside.strip()


def _read_progress(grid: Grid, before: str) -> None:
    found = next(_PROGRESS.finditer(before), None)
    if found is None:
        return
    grid.done, grid.total = int(found["done"]), int(found["total"])
    epochs = _EPOCHS.search(found["rest"])
    grid.epochs = int(epochs["total"]) if epochs else None
