"""The vital signs of one run in the terminal: eight lines, each with its state, curve, values and a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len

from rlhealth.reports import words
from rlhealth.reports.glyphs import STYLES, VITALS
from rlhealth.reports.sparkline import cell_of, cells, draw
from rlhealth.reports.stories import logarithmic
from rlhealth.verdict.vitals import Vital, VitalState, vitals

if TYPE_CHECKING:
    from rlhealth.reports.page import Page
    from rlhealth.run import Floats
    from rlhealth.verdict.verdicts import RunVerdict

_CURVE, _WIDE_CURVE = 16, 28  # columns with the two of the limit, and on a page of more than 100
_BAR = ("▏", "|")  # before the block of the limit; in ASCII
_ABSENT = (VitalState.NOT_LOGGED, VitalState.NOT_FOR_TRAINER)


def write(page: Page, run: RunVerdict) -> None:
    """Eight lines. What is wrong, or unknown, and has no room on its line stands on the next one, whole."""
    span = words.span_of(run)
    if span is None:
        return
    signs = vitals(run)
    titles = max(len(one.title) for one in signs)
    named = max((cell_len(page.safe(one.metric.name)) for one in signs if one.metric is not None), default=0)
    curve = _WIDE_CURVE if page.width > 100 else min(_CURVE, page.width // 5)
    values = max(cell_len(words.ends(one, page.glyphs.arrow)) for one in signs)
    room = page.width - 3 - 2 - titles - 2 - 2 - curve - 2 - values
    named = min(named, max(8, room))
    left = room - named - 2
    for one in signs:
        _line(page, one, span, (titles, named, curve, values, left))
    bar = _BAR[page.look.ascii]
    if any(bar in part for one in signs if one.metric for part, _ in _curve(page, one, curve, span)[-2:-1]):
        page.prose("", f"{bar} and the block behind it: the limit, as high as on the curve", style="dim")


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


def _line(page: Page, one: Vital, span: tuple[int, int], columns: tuple[int, int, int, int, int]) -> None:
    titles, named, curve, values, left = columns
    style = STYLES[VITALS[one.state]] if one.state in VITALS else "dim"
    sign = page.fit(page.glyphs.sign(one.state), 2)
    said = words.vital(one)
    if one.metric is None:
        why = said if one.state not in _ABSENT else f"{one.state}: {said}"
        page.prose("", f"{sign}{one.title:<{titles}}  {why}", indent=1, style=style, most=0)
        return
    shown = [(words.ends(one, page.glyphs.arrow).ljust(values), "bold" if one.finding else "")]
    fits = cell_len(page.safe(said)) <= left
    page.line(
        " ",
        (sign, style),
        (f"{one.title:<{titles}}  ", style),
        page.fit(one.metric.name, named),
        "  ",
        *_curve(page, one, curve, span),
        "  ",
        *shown,
        (f"  {said}" if fits else "", style if one.finding else "dim"),
    )
    if said and not fits and one.state is not VitalState.WELL:
        page.prose("", said, indent=5 + titles, style=style if one.finding else "dim", most=0)


def _curve(page: Page, one: Vital, width: int, span: tuple[int, int]) -> list[tuple[str, str]]:
    """The metric's blocks, in the sign's colour where its finding held, and last, behind a bar, a block as high as the
    limit on the same scale, where the rule judges the metric's level.
    """
    assert one.metric is not None
    heights = cells(one.metric.steps, one.metric.values, width - 2, span=span)
    level = one.finding.level if one.finding is not None else None
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
