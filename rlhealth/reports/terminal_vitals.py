"""The vital signs of one run in the terminal: eight lines, each with its state, curve, values and a few words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len

from rlhealth.reports import words
from rlhealth.reports.glyphs import STYLES, VITALS
from rlhealth.reports.sparkline import cell_of, cells, draw
from rlhealth.reports.stories import logarithmic
from rlhealth.verdict.vitals import Vital, VitalState, vitals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlhealth.reports.page import Page
    from rlhealth.run import Floats
    from rlhealth.verdict.verdicts import RunVerdict

_CURVE, _WIDE_CURVE = 16, 28  # columns with the two of the limit, and on a page of more than 100
_BAR = ("▏", "|")  # before the block of the limit; in ASCII
_LEAST_CURVE, _SHORT_CURVE, _LEAST_NAME = 8, 6, 8  # columns that are left of them where the line is full
_SIGN = 3  # columns of the sign, with the spaces around it
_NARROW = 50  # columns below which nothing hangs
_ABSENT = (VitalState.NOT_LOGGED, VitalState.NOT_FOR_TRAINER)


@dataclass(frozen=True)
class _Columns:
    """How wide the parts of a line are, and whether values have their unit."""

    titles: int
    named: int
    curve: int
    values: int
    word: int
    units: bool = True

    @property
    def wide(self) -> int:
        """Of the whole line."""
        word = self.word + 2 if self.word else 0
        return _SIGN + self.titles + 2 + self.named + 2 + self.curve + 2 + self.values + word


def write(page: Page, run: RunVerdict) -> None:
    """Eight lines. What is wrong, or unknown, and has no room on its line stands on the next one, whole."""
    span = words.span_of(run)
    if span is None:
        return
    signs = vitals(run)
    columns = _columns(page, signs)
    for one in signs:
        _line(page, one, span, columns)
    bar = _BAR[page.look.ascii]
    if any(bar in part for one in signs if one.metric for part, _ in _curve(page, one, columns.curve, span)[-2:-1]):
        page.prose("", f"{bar} and the block behind it: the limit, as high as on the curve", style="dim")


def _columns(page: Page, signs: Sequence[Vital]) -> _Columns:
    """Columns that fit: first the curve gives way, then names, then units, then the words for the course."""

    def widest(texts: Iterable[str]) -> int:
        return max(map(cell_len, texts), default=0)

    named = widest(page.safe(one.metric.name) for one in signs if one.metric is not None)
    curve = _WIDE_CURVE if page.width > 100 else max(_LEAST_CURVE, min(_CURVE, page.width // 5))
    bare = widest(words.ends(one, page.glyphs.arrow, unit=False) for one in signs)
    columns = _Columns(
        titles=widest(one.title for one in signs),
        named=named,
        curve=curve,
        values=widest(words.ends(one, page.glyphs.arrow) for one in signs),
        word=widest(words.courses(one)[-1] for one in signs if words.courses(one)),
    )

    def giving(columns: _Columns, part: str, least: int) -> _Columns:
        """The columns with one part as narrow as is needed, and `least` at least."""
        now = getattr(columns, part)
        return replace(columns, **{part: max(min(now, least), now - max(columns.wide - page.width, 0))})

    for part, least in (("curve", _CURVE), ("named", 14), ("curve", _LEAST_CURVE), ("named", _LEAST_NAME)):
        columns = giving(columns, part, least)
    if columns.wide > page.width:
        columns = giving(replace(columns, values=bare, units=False), "curve", _SHORT_CURVE)
    if columns.wide > page.width:
        columns = replace(columns, word=0)
    return columns


def marks(page: Page, run: RunVerdict) -> list[tuple[str, str]]:
    """The eight vital signs of a run as eight marks in a row, each in the style of its state."""
    return [
        (page.glyphs.sign(one.state)[:1], STYLES[VITALS[one.state]] if one.state in VITALS else "dim")
        for one in vitals(run)
    ]


def legend(page: Page, run: RunVerdict) -> None:
    """What the marks of a row stand for, in their order, and what each mark says."""
    signs = ", ".join(one.title for one in vitals(run))
    said = [f"{page.glyphs.sign(state)[:1]}{words.NBSP}{state}" for state in (*VITALS, VitalState.NOT_LOGGED)]
    page.prose("vitals", f"{signs}: {', '.join(said)}", indent=1, hang=8, style="dim")


def _line(page: Page, one: Vital, span: tuple[int, int], columns: _Columns) -> None:
    style = STYLES[VITALS[one.state]] if one.state in VITALS else "dim"
    sign = page.fit(page.glyphs.sign(one.state), 2)
    below = _SIGN + columns.titles + 2 if page.width >= _NARROW else _SIGN
    said = words.reason(one)
    if one.metric is None:
        why = said if one.state not in _ABSENT else f"{one.state}: {said}"
        head = f"{sign}{one.title:<{columns.titles}}"
        if page.width >= _NARROW:
            page.prose(head, why, indent=1, hang=below - 1, style=style, label_style=style, most=0)
        else:
            page.prose("", f"{head}  {why}", indent=1, style=style, most=0)
        return
    ends = words.ends(one, page.glyphs.arrow, unit=columns.units)
    left = page.width - (columns.wide - columns.word - 2 if columns.word else columns.wide)
    room = left - cell_len(page.safe(said)) - 2
    short = [word for word in words.courses(one) if cell_len(word) + 2 <= left]
    course = next((word for word in short if cell_len(word) + 2 <= room), next(iter(short), ""))
    fits = (cell_len(course) + 2 if course else 0) <= room
    page.line(
        " ",
        (sign, style),
        (f"{one.title:<{columns.titles}}  ", style),
        page.fit(one.metric.name, columns.named),
        "  ",
        *_curve(page, one, columns.curve, span),
        "  ",
        (ends.ljust(columns.values), "bold" if one.finding else ""),
        (f"  {course}" if course else "", "dim"),
        (f"  {said}" if fits else "", style if one.finding else "dim"),
    )
    if said and not fits and one.state is not VitalState.WELL:
        page.prose("", said, indent=below, style=style if one.finding else "dim", most=0)


def _curve(page: Page, one: Vital, width: int, span: tuple[int, int]) -> list[tuple[str, str]]:
    """The metric's blocks, in the sign's colour where its finding held, and last, behind a bar, a block as high as the
    limit on the same scale, where the rule judges the metric's level.
    """
    assert one.metric is not None
    heights = cells(one.metric.steps, one.metric.values, width - 2, span=span)
    level = one.level
    if level is not None and np.isfinite(level) and _is_near(level, heights):
        drawn = draw(np.append(heights, level), ascii=page.look.ascii, log=logarithmic(one.metric))
        limit = [(_BAR[page.look.ascii], "dim"), (drawn[-1], "red")]
        drawn = drawn[:-1]
    else:
        drawn, limit = draw(heights, ascii=page.look.ascii, log=logarithmic(one.metric)), [("  ", "")]
    width -= 2
    if one.finding is None:
        return [(drawn, "blue"), *limit]
    loud = STYLES[str(one.finding.worst_severity)]
    held = {
        cell
        for part in one.finding.episodes
        for cell in range(cell_of(part.first_step, span, width), cell_of(part.last_step, span, width) + 1)
    }
    return [*((block, loud if place in held else "blue") for place, block in enumerate(drawn)), *limit]


def _is_near(level: float, heights: Floats) -> bool:
    """Whether a limit can be drawn without pressing the curve flat."""
    finite = heights[np.isfinite(heights)]
    if not len(finite):
        return False
    low, high = float(finite.min()), float(finite.max())
    reach = high - low or abs(high)
    return low - reach <= level <= high + reach
