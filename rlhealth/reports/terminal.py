"""The terminal report: the verdict first, then the evidence, the cause, what to do, and last the counts, what was
skipped and the exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlhealth.reports import ReportOptions, piped, words
from rlhealth.verdict.verdicts import Verdict, counts

if TYPE_CHECKING:
    from rlhealth.reports.page import Page

_ERRORS = 5
_STORIES = 2  # this many unhealthy runs among several are reported in full below the table


def render(verdict: Verdict, look: ReportOptions) -> str:
    """The answer for a person at a terminal; lines for a program where the output is piped."""
    if look.piped:
        return piped.render(verdict, look)
    from rlhealth.reports.page import Page  # late: rich is only needed here

    page = Page(look)
    if not look.quiet:
        _body(page, verdict)
    _closing(page, verdict)
    return page.text()


def _body(page: Page, verdict: Verdict) -> None:
    from rlhealth.reports import terminal_run, terminal_table
    from rlhealth.reports.stories import worst_first

    page.gap()
    runs = worst_first(verdict.runs)
    several = len(runs) + len(verdict.errors) > 1
    if several:
        terminal_table.write(page, verdict, runs)
    sick = [run for run in runs if run.verdict != "healthy"]
    if not several or page.look.show_all or len(sick) <= _STORIES:
        for run in sick if several else runs:
            page.gap()
            terminal_run.write(page, run, skips=not several)
    if several and page.look.show_all and any(run.skipped for run in runs):
        page.gap()
        terminal_run.skipped(page, runs)
    shown = verdict.errors if page.look.show_all else verdict.errors[:_ERRORS]
    for error in shown:
        page.gap()
        where = f"{error.location}: " if error.location and error.location not in error.message else ""
        page.prose(page.glyphs.unknown, f"{where}{error.message}", indent=1, hang=2)
        if error.hint:
            page.prose("try", error.hint, indent=3, hang=6)
    if len(verdict.errors) > len(shown):
        page.line(
            f"   {page.glyphs.ellipsis} and {len(verdict.errors) - len(shown)} more "
            "that could not be read (--all shows them)"
        )
    for number, said in enumerate(words.left_out(verdict, len(verdict.left_out) if page.look.show_all else _ERRORS)):
        if not number:
            page.gap()
        page.prose(page.glyphs.unknown if not number else " ", said, indent=1, hang=2)
    for run, name in verdict.unmet:
        page.line(" ", (page.glyphs.critical, "bold red"), f" {run.name}: required rule could not run: {name}")
    page.gap()


def _closing(page: Page, verdict: Verdict) -> None:
    total = len(verdict.runs) + len(verdict.errors)
    found = [] if not verdict.runs else [f"{count} {word}" for word, count in counts(verdict).items() if count]
    if not found:
        said = ["no run could be read"]
    elif total == 1:
        said = [f"1 run {found[0].split(' ', 1)[1]}"]
    else:
        said = [f"{words.plural(total, 'run')}: {found[0]}", *found[1:]]
    hidden = words.hidden(verdict)
    gate = words.gate(verdict.gate)
    code = verdict.exit_code
    style = {0: "bold green", 1: "bold red"}.get(code, "bold magenta")
    page.flow([part for part in (*said, hidden, gate) if part], end=f"exit {code}", end_style=style)
