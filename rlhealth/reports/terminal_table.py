"""Several runs in the terminal: one line each, worst first, the healthy ones folded into one line, and what they
share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len

from rlhealth.reports import words
from rlhealth.reports.glyphs import STYLES
from rlhealth.reports.sparkline import sparkline
from rlhealth.reports.stories import column_metric, logarithmic, main_metrics, namesakes, shared, worst
from rlhealth.reports.terminal_vitals import legend, marks
from rlhealth.verdict.verdicts import RunVerdict, Verdict

if TYPE_CHECKING:
    from rlhealth.errors import RlhealthError
    from rlhealth.reports.page import Page

_NAMESAKES = 12  # runs of one name whose places are said; --all says all
Row = tuple[str, list[str]]  # verdict, then run, verdict in words, worst finding, since, sparkline, last value


def write(page: Page, verdict: Verdict, runs: list[RunVerdict]) -> None:
    """The table, the healthy line and the findings that several runs share."""
    healthy = [run for run in runs if run.verdict == "healthy"]
    folded = [] if page.look.show_all or len(healthy) == 1 or len(healthy) == len(runs) <= 12 else healthy
    drawn = 0 if page.width < 100 else 16
    column = column_metric(runs)
    rows = [_row(page, run, drawn, column) for run in runs if run.verdict != "healthy"]
    rows += [_unreadable(error) for error in verdict.errors]
    rows += [_row(page, run, drawn, column) for run in healthy if run not in folded]
    heads = [
        "run",
        "verdict",
        "worst finding",
        "since",
        *((column, "") if drawn else ("", column)),
        "vitals",
    ]
    widths = _widths(page, [heads, *(cols for _, cols in rows)])
    _line(page, "", heads, widths, "dim")
    page.line(
        (
            " " + page.glyphs.line * (min(page.width, sum(widths) + 2 * sum(width > 0 for width in widths) + 2) - 1),
            "dim",
        )
    )
    signs = {run.name: marks(page, run) for run in runs} if widths[6] else {}
    for word, cols in rows:
        _line(page, word, cols, widths, "", signs.get(cols[0]))
        if word == "unknown" and cell_len(page.safe(cols[2])) > widths[2]:
            page.prose("", cols[2], indent=4 + _sign_width(page), style="dim", most=0)
    if folded:
        page.line(
            " ",
            (page.glyphs.healthy, STYLES["healthy"]),
            f" {words.plural(len(folded), 'healthy run')} (--all shows them)",
        )
    for name, place in namesakes(runs)[: None if page.look.show_all else _NAMESAKES]:
        page.prose("", f"{name}: {place}", style="dim")
    if widths[6] and runs:
        legend(page, runs[0])
    common = shared(verdict)
    if common:
        page.gap()
        first, *others = [f"{rule} {page.glyphs.times}{count}" for rule, count in common[:8]]
        page.flow([f"Shared by several runs: {first}", *others])


def _row(page: Page, run: RunVerdict, width: int, column: str) -> Row:
    metric = next(iter(main_metrics(run, 1)), None)
    spark = (
        sparkline(
            metric.steps, metric.values, width, span=words.span_of(run), ascii=page.look.ascii, log=logarithmic(metric)
        )
        if metric and width
        else ""
    )
    last = words.number(float(metric.values[-1]), metric.unit) if metric else "–"
    if metric is not None and metric.name != column:  # what stands below another metric's name says what it is, or not
        spark, last = (page.fit(metric.name, width), last) if width else ("", "–")
    found = worst(run)
    rule, since = ("", "") if found is None else (found.rule, words.grouped(found.since_step))
    since = since or "–"
    said = words.tally(run).split(",")[0]
    return run.verdict, [run.name, said, rule or run.no_answer, since, spark, last, "x" * 8]


def _unreadable(error: RlhealthError) -> Row:
    return "unknown", [
        error.location or "?",
        "unreadable",
        error.message.replace(f"{error.location}: ", "") if error.location else error.message,
        "–",
        "",
        "–",
        "",
    ]


def _widths(page: Page, table: list[list[str]]) -> list[int]:
    """Columns that fit the page: numbers and verdicts whole, then the rule, then the name; on a narrow page the
    sparkline and the onset give way.
    """
    wanted = [max(cell_len(page.safe(cols[place])) for cols in table) for place in range(7)]
    wanted[4] = max(wanted[4], 8) if wanted[4] else 0
    for place, least in ((6, 66), (3, 60), (5, 46)):
        if page.width < least:
            wanted[place] = 0
    room = page.width - 3 - _sign_width(page) - 2 * sum(width > 0 for width in wanted[1:])
    flexible = room - sum(wanted[1:2] + wanted[3:])
    rule = min(wanted[2], max(10, flexible // 2, flexible - wanted[0]))
    name = max(6, min(wanted[0], flexible - rule))
    return [name, wanted[1], rule, *wanted[3:]]


def _sign_width(page: Page) -> int:
    return len(page.glyphs.critical)


def _line(
    page: Page,
    word: str,
    cols: list[str],
    widths: list[int],
    style: str,
    signs: list[tuple[str, str]] | None = None,
) -> None:
    sign = page.glyphs.of(word) if word else ""
    parts: list[str | tuple[str, str]] = [
        (f" {sign:<{_sign_width(page)}} ", STYLES.get(word, "")),
        (page.fit(cols[0], widths[0]), style or "bold"),
    ]
    tones = ("", STYLES.get(word, ""), "", "", "blue", "", "dim")
    for place in np.flatnonzero(widths)[1:]:
        if place == 6 and word:
            parts += [("  ", ""), *(signs or [(" " * 8, "")])]
            continue
        long_reason = place == 2 and word == "unknown" and cell_len(page.safe(cols[2])) > widths[2]
        body = "" if long_reason else cols[place]
        shown = page.fit(body, widths[place], right=place in (3, 5) and bool(word or place == 3))
        parts += [("  ", ""), (shown, style or tones[place])]
    page.line(*parts)
