"""The terminal report when piped: one finding per line, never wrapped or cut, no escape sequences, so that
grep and wc work."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rlhealth.reports import ReportOptions, excerpts, words
from rlhealth.reports.stories import notes, stories, worst_first
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict, Verdict

if TYPE_CHECKING:
    from rlhealth.verdict.vitals import Vital


def render(verdict: Verdict, look: ReportOptions) -> str:
    """The answer as lines; the last one counts."""
    lines: list[str] = []
    if not look.quiet:
        places = Counter(run.run.place.location for run in verdict.runs)
        for run in worst_first(verdict.runs):
            place = run.run.place.location or run.name
            where = place if places[place] <= 1 else f"{place}:{run.name}"
            lines += _run(run, where, show_all=look.show_all, full=look.show_all or len(verdict.runs) == 1)
            lines += [line for cause, _ in stories(run) for line in excerpts.lines(look, run, cause, where)]
        for error in verdict.errors:
            hint = f" ({error.hint})" if error.hint else ""
            lines.append(
                f"{error.location or 'error'}: error: {error.message}{hint}"
                if error.location not in error.message
                else f"error: {error.message}{hint}"
            )
        lines += [f"{one.location}: not read: {one.reason}" for one in verdict.left_out]
        lines += [f"{run.name}: required rule could not run: {name}" for run, name in verdict.unmet]
    lines.append(words.closing(verdict))
    return "\n".join(words.clean(line, ascii=look.ascii) for line in lines)


def _run(run: RunVerdict, where: str, *, show_all: bool, full: bool) -> list[str]:
    lines = [_finding(one, where) for cause, following in stories(run) for one in (cause, *following)]
    if run.no_answer:
        lines.append("; ".join([f"{where}: unknown: {run.no_answer}", *run.run.notes]))
    elif not run.findings and full:
        lines.append(f"{where}: healthy")
    lines += [f"{where}: problem: {one}" for one in run.run.problems]
    if show_all and not run.no_answer:
        lines += [f"{where}: note: {one}" for one in notes(run)]
    if show_all:
        from rlhealth.verdict.vitals import vitals  # late: most lines are of findings alone

        lines += [_vital(one, where) for one in vitals(run)]
    if show_all and run.skipped:
        lines.append(
            f"{where}: skipped {words.plural(len(run.skipped), 'rule')}: "
            + ", ".join(f"{one.rule} ({one.reason})" for one in run.skipped)
        )
    return lines


def _vital(one: Vital, where: str) -> str:
    """A vital sign: its state, its metric with the two ends, and what is said of it."""
    metric = f" {one.metric.name} {words.ends(one)}".rstrip() if one.metric is not None else ""
    said = words.vital(one)
    return f"{where}: vital[{one.id}] {one.state}:{metric}{f'; {said}' if metric and said else said and f' {said}'}"


def _finding(one: Finding, where: str) -> str:
    limit = "" if one.limit is None else f" limit={one.limit:.6g}"
    ended = "" if one.active else f" until={one.last_step}"
    cause = f" cause={one.explained_by}" if one.explained_by else ""
    again = f" since={one.since_step}" if one.earlier else ""
    fields = f"step={one.first_step}{again}{ended} value={one.worst_value:.6g}{limit}{cause}"
    return f"{where}: {one.severity}[{one.rule}] {fields}: {one.message}"
