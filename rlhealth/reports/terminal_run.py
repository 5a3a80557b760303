"""One run in the terminal: its header, its findings with their evidence, or the few metrics that show that it is
healthy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from rlhealth.reports import evidence, excerpts, terminal_vitals, words
from rlhealth.reports.glyphs import STYLES
from rlhealth.reports.sparkline import cell_of, cells, draw
from rlhealth.reports.stories import logarithmic, notes, skips, stories
from rlhealth.verdict.findings import Finding, Severity
from rlhealth.verdict.verdicts import RunVerdict

if TYPE_CHECKING:
    from rlhealth.metrics import Metric
    from rlhealth.reports.page import Page

_SPARK = 26  # columns at 80; narrower pages take a third of their width


def write(page: Page, run: RunVerdict, *, skips: bool = True) -> None:
    """The whole story of one run."""
    _header(page, run)
    for problem in run.run.problems:
        page.prose("!", problem, indent=3, hang=2, style="yellow")
    for note in notes(run) if page.look.show_all else notes(run)[:3]:
        page.prose(page.glyphs.dot, note, indent=3, hang=2, style="dim")
    findings(page, run)
    page.gap()
    terminal_vitals.write(page, run)
    page.gap()
    _rules(page, run)
    if skips and page.look.show_all:
        skipped(page, [run])


def findings(page: Page, run: RunVerdict) -> None:
    """Each story of the run: a cause with its consequences, or a finding alone."""
    for cause, following in stories(run):
        page.gap()
        _story(page, run, cause, following)


def _header(page: Page, run: RunVerdict) -> None:
    said = words.tally(run)
    sign = page.glyphs.of(run.verdict)
    span = words.span_of(run)
    title = run.translation.title or run.translation.framework
    framework = f"{title} {run.translation.version or ''}".strip() if run.translation.framework != "unknown" else ""
    steps = "" if span is None else words.plural(span[1], "step")
    planned = (
        f" of {words.grouped(run.run.planned_steps)}"
        if run.run.planned_steps and span and run.run.planned_steps > span[1]
        else ""
    )
    facts = (
        framework,
        words.tracker(run.run.place.kind),
        steps + planned,
        words.duration(words.wall_time(run)),
        run.state if run.state != "unknown" else "",
    )
    room = min(page.width, 100) - len(sign) - len(said) - 6
    name = page.safe(run.name)
    page.line(
        " ",
        (sign, STYLES[run.verdict]),
        " ",
        (page.fit(name, room).rstrip() if cell_len(name) > room else name, "bold"),
        "   ",
        (said, STYLES[run.verdict]),
        right=f" {page.glyphs.dot} ".join(one for one in facts if one),
    )
    if run.no_answer:
        page.prose("", f"Unknown: {run.no_answer}. So it is not called healthy.", indent=3)
    if spent := words.cost(run):
        page.prose("", spent)


def _story(page: Page, run: RunVerdict, cause: Finding, following: list[Finding]) -> None:
    brief = cause.severity == Severity.INFO and not page.look.show_all
    named = f"{cause.severity}[{cause.rule}]"
    if cell_len(named) + cell_len(page.safe(cause.title)) + 3 <= page.width:
        page.line(" ", (named, STYLES[str(cause.severity)]), "  ", (cause.title, "bold"))
    else:
        page.line(" ", (named, STYLES[str(cause.severity)]))
        page.prose("", cause.title, style="bold")
    page.prose("", cause.message)
    metric = run.translation.metrics.get(cause.metric)
    if metric is not None and len(metric) and not (following and any(one.metric == cause.metric for one in following)):
        _evidence(page, run, cause, metric)
    elif not following:
        page.line("   ", (page.glyphs.onset, STYLES[str(cause.severity)]), f" {_said(cause)}")
    if following:
        page.gap()
        _consequences(page, run, cause, following)
        page.gap()
    excerpts.write(page, run, cause)
    if brief:
        return
    if cause.why:
        page.prose("why", " ".join(cause.why.split()))
    if page.look.show_all:
        fired = evidence.why_fired(cause, following)
        alone = not following
        _list(page, "fired", tuple(line if alone else f"{one.rule}: {line}" for one, lines in fired for line in lines))
    _list(page, "for", cause.evidence)
    _list(page, "against", (f"none of: {'; '.join(cause.against)}",) if cause.against and page.look.show_all else ())
    _list(page, "or", tuple(f"{rule}: {apart}" for rule, apart in cause.rivals))
    _list(page, "try", cause.advice)
    _list(page, "change", tuple(words.changed(one) for one in cause.changes))
    page.line("   ", ("more  ", "dim"), (f"rlhealth explain {cause.rule}", "cyan"))


def _list(page: Page, name: str, lines: Sequence[str]) -> None:
    for number, line in enumerate(lines):
        page.prose(name if number == 0 else "", line, indent=3 if number == 0 else 9, bullet=f"{page.glyphs.bullet} ")


def _evidence(page: Page, run: RunVerdict, one: Finding, metric: Metric) -> None:
    span = words.span_of(run)
    if span is None:
        return
    value, beside = evidence.found_and_limit(one.lead)
    limit = f" ({beside})" if beside else ""
    at = f" at step {words.grouped(one.worst_step)}" if one.worst_step != one.since_step else ""
    width = _spark_width(page)
    room = page.width - width - 7 - len(value) - len(limit)
    name = page.fit(metric.name, max(8, min(cell_len(page.safe(metric.name)), room, 40)))
    left = page.width - 7 - cell_len(name) - width - len(value)
    limit = limit if len(limit) <= left else ""
    page.line(
        "   ",
        name,
        "  ",
        *_spark(page, one, metric, width, span),
        "  ",
        (value, "bold"),
        limit,
        (at if len(limit + at) <= left else "", "dim"),
    )
    _mark(page, 5 + cell_len(name), cell_of(one.since_step, span, width), _said(one), STYLES[str(one.severity)])


def _said(one: Finding) -> str:
    return words.since(one)


def _mark(page: Page, left: int, cell: int, said: str, style: str) -> None:
    sign = page.glyphs.onset
    if left + cell + len(said) + 2 <= page.width:
        page.line(" " * (left + cell), (sign, style), f" {said}")
    elif len(said) < left + cell:
        page.line(" " * (left + cell - len(said) - 1), f"{said} ", (sign, style))
    else:
        page.line(" " * (left + cell), (sign, style))
        page.prose("", said)


def _spark(page: Page, one: Finding, metric: Metric, width: int, span: tuple[int, int]) -> list[tuple[str, str]]:
    """The metric's blocks in two styles: quiet, and the finding's own where its condition held."""
    drawn = draw(cells(metric.steps, metric.values, width, span=span), ascii=page.look.ascii, log=logarithmic(metric))
    marked = {
        cell for first, last in one.spans for cell in range(cell_of(first, span, width), cell_of(last, span, width) + 1)
    }
    parts: list[tuple[str, str]] = []
    for place, block in enumerate(drawn):
        style = STYLES[str(one.severity)] if place in marked else "blue"
        if parts and parts[-1][1] == style:
            parts[-1] = (parts[-1][0] + block, style)
        else:
            parts.append((block, style))
    return parts


def _consequences(page: Page, run: RunVerdict, cause: Finding, following: list[Finding]) -> None:
    """A row for each metric: what several rules say of one curve is one row, led by the worst of them."""
    span = words.span_of(run) or (0, 1)
    groups: dict[str, list[Finding]] = {}
    for one in following:
        groups.setdefault(one.metric, []).append(one)
    leads = [min(group, key=lambda one: (-one.severity, not one.active, one.first_step)) for group in groups.values()]
    steps = [f"step {words.began(group)}" for group in groups.values()]
    wide = max(map(len, steps))
    said = [evidence.found_and_limit(one.lead) for one in leads]
    values, limits = [value for value, _ in said], [limit for _, limit in said]
    right = max(map(len, values)) + 2 + max(map(len, limits)) * (page.width >= 64)
    longest = max(cell_len(page.safe(one.metric)) for one in leads)
    room = page.width - 11 - wide - right
    width = min(_spark_width(page), max(6, room - max(12, min(longest, room - 14))))
    named = min(longest, max(8, room - width))
    used = 9 + wide + named + 2 + width + 2 + right + 2
    for number, (lead, group) in enumerate(zip(leads, groups.values(), strict=True)):
        metric = run.translation.metrics.get(lead.metric)
        spark = _spark(page, lead, metric, width, span) if metric is not None and len(metric) else [(" " * width, "")]
        last = number == len(leads) - 1
        rules = ", ".join(dict.fromkeys(one.rule for one in [lead, *group] if one.rule != cause.rule))
        beside = cell_len(page.safe(rules)) <= page.width - used
        tone = STYLES[str(lead.severity)]
        page.line(
            "   ",
            (page.glyphs.last_branch if last else page.glyphs.branch, "dim"),
            " ",
            f"{steps[number]:<{wide}}  ",
            (page.fit(lead.metric, named), tone),
            "  ",
            *spark,
            "  ",
            (values[number].rjust(max(map(len, values))), "bold"),
            (f"  {limits[number]:<{max(map(len, limits))}}" if page.width >= 64 else "", "dim"),
            (f"  {rules}" if beside else "", tone),
        )
        if rules and not beside:
            page.prose("", rules, indent=7 + wide, style="dim", most=0)
    _mark(page, 9 + wide + named, cell_of(cause.since_step, span, width), _said(cause), STYLES[str(cause.severity)])


def _spark_width(page: Page) -> int:
    return max(8, min(_SPARK, page.width // 3)) if page.width <= 100 else 40


def _rules(page: Page, run: RunVerdict) -> None:
    fired = len({one.rule for one in run.findings})
    other = run.beside_metrics.intersection(run.quiet)
    parts = [
        f"{len(run.quiet) - len(other)} quiet{' on metrics' if other else ''}",
        f"{len(other)} on endings and causes" if other else "",
        f"{fired} found something" if fired else "",
        f"{len(run.skipped)} skipped" if run.skipped else "",
        f"{len(run.ignored)} ignored" if run.ignored else "",
    ]
    rules = len(
        {
            *run.quiet,
            *(one.rule for one in run.findings),
            *(one.rule for one in run.skipped),
            *(one.finding.rule for one in run.ignored),
        }
    )
    first, *others = [part for part in parts if part]
    page.flow([f"{words.plural(rules, 'rule')}: {first}", *others])


def skipped(page: Page, runs: list[RunVerdict]) -> None:
    """Which rules could not run and why: a rule that did not run is no sign of health."""
    reasons: dict[str, list[str]] = {}
    for rule, reason, count in skips(runs):
        reasons.setdefault(reason, []).append(rule if count == len(runs) else f"{rule} {page.glyphs.times}{count}")
    if reasons:
        said = "; ".join(f"{', '.join(rules)} ({_short(reason)})" for reason, rules in reasons.items())
        page.prose("skipped", said, indent=1, hang=9, style="dim", most=0)


def _short(reason: str) -> str:
    """`no val/ratio` for `val/ratio was not logged`: the commonest reason, many times over."""
    return f"no {reason.removesuffix(' was not logged')}" if reason.endswith(" was not logged") else reason
