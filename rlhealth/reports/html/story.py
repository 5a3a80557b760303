"""One run on the page: its header, each cause with what followed on one time line, and all its metrics as small
charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlhealth.reports import ReportOptions, words
from rlhealth.reports.evidence import found_and_limit
from rlhealth.reports.html import vitals
from rlhealth.reports.html.chart import Marks, Span, axis, chart
from rlhealth.reports.html.completions import texts
from rlhealth.reports.html.conditions import EVIDENCE, conditions, rows_beside, worst_of
from rlhealth.reports.html.later import TOOLS, cards_later, rules_later
from rlhealth.reports.html.levels import level_of, usual
from rlhealth.reports.html.markup import Html, el, join, named, prose
from rlhealth.reports.stories import main_metrics, notes, stories
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict

if TYPE_CHECKING:
    from rlhealth.metrics import Metric

SIGNS = {"healthy": "✓", "warning": "▲", "critical": "✗", "unknown": "?", "info": "i"}
_STORIES = 40

_LEGEND = el(
    "p",
    el("span", "usual before it began", class_="key usual-key"),
    el("span", "where the rule held", class_="key episode-key"),
    el("span", "limit", class_="key limit-key"),
    class_="legend",
)


def badge(verdict: str, said: str = "") -> Html:
    """A verdict as a sign and a word; the colour only repeats them."""
    return el("span", el("span", SIGNS[verdict], aria_hidden="true"), f" {said or verdict}", class_=f"badge {verdict}")


def facts(run: RunVerdict) -> Html:
    """Trainer, tracker, steps, time and state in one line."""
    span = words.span_of(run)
    version = run.translation.version or ""
    said = (
        f"{run.translation.title} {version}".strip(),
        words.tracker(run.run.place.kind),
        words.plural(span[1], "step") if span else "no steps",
        words.duration(words.wall_time(run)),
        run.state if run.state != "unknown" else "",
    )
    return el(
        "p",
        *(el("span", one) for one in said if one),
        el("span", el("code", run.run.place.location)) if run.run.place.location else None,
        class_="facts",
    )


def body(run: RunVerdict, key: str, buckets: int, later: dict[str, int] | None, look: ReportOptions) -> Html:
    """Everything about one run below its name; with `later`, the places of names and reasons,
    what is small on it is drawn when it is opened.
    """
    span = words.span_of(run)
    told = stories(run)
    blank = el("p", f"Unknown: {run.no_answer}.", class_="quiet") if run.no_answer else None
    parts: list[Html | None] = [blank, _remarks(run)]
    for number, (cause, following) in enumerate(told[:_STORIES]):
        parts.append(_story(run, cause, following, span, f"{key}-f{number}", texts(look, run, cause), later is None))
    if len(told) > _STORIES:
        parts.append(
            el("p", f"… and {len(told) - _STORIES} more findings; the JSON report has them all.", class_="more")
        )
    if not told and run.verdict == "healthy":
        blind = f"; {len(run.skipped)} could not run" if run.skipped else ""
        parts.append(el("p", f"{words.plural(len(run.quiet), 'rule')} ran and found nothing{blind}.", class_="quiet"))
    parts.append(vitals.table(run, span, small=later is not None))
    if span is not None:
        parts.append(_metrics(run, span, key, buckets, later is not None))
    parts.append(_rules(run) if later is None else rules_later(run, later))
    return join(*parts)


def _remarks(run: RunVerdict) -> Html | None:
    problems = [el("li", one, class_="problem") for one in run.run.problems[:30]]
    assumed = [el("li", one) for one in notes(run)[:30]]
    return el("ul", *problems, *assumed, class_="remarks") if problems or assumed else None


def _story(
    run: RunVerdict,
    cause: Finding,
    following: list[Finding],
    span: Span | None,
    key: str,
    completions: Html | None,
    exact: bool,
) -> Html:
    tone = str(cause.severity)
    since = _since(cause)
    head = el("h3", badge(tone), " ", cause.title, " ", el("span", since, class_="since"), id=key)
    own = [] if any(one.metric == cause.metric for one in following) else [cause]
    rows = [_row(run, group, cause, span, exact) for group in _by_metric([*own, *following])]
    rows += [] if following else rows_beside(run, cause, span, exact)
    shown = [row for row in rows if row is not None]
    timeline: Html | None = None
    if shown and span:
        note = (
            el("p", f"What followed, on one time line ({words.plural(len(following), 'finding')}):", class_="label")
            if following
            else None
        )
        ruler = el(
            "div", el("span", "step", class_="name"), axis(span, cause.first_step, since, tone), class_="row ruler"
        )
        timeline = join(note, el("div", *shown, ruler, class_="timeline"), _LEGEND)
    lines = [*(prose(one) for one in cause.advice), *(el("code", words.changed(one)) for one in cause.changes)]
    advice = el("ul", *(el("li", one) for one in lines)) if lines else None
    evidence = el("ul", *(el("li", prose(one)) for one in cause.evidence)) if cause.evidence else None
    return el(
        "section",
        head,
        el("p", prose(cause.message), class_="message"),
        timeline,
        el(
            "div",
            el("div", el("h4", "Why it matters"), el("p", prose(cause.why)), class_="why"),
            el("div", el("h4", "Evidence"), evidence, class_="why") if evidence else None,
            el("div", el("h4", "What to try"), advice, class_="try") if advice else None,
            conditions(cause, following),
            class_="words",
        ),
        completions,
        el(
            "p",
            el("code", f"rlhealth explain {cause.rule}"),
            el("span", f" Source: {cause.source}", class_="source") if cause.source else None,
            class_="more",
        ),
        class_=f"story {tone}",
        aria_labelledby=key,
    )


def _by_metric(found: list[Finding]) -> list[list[Finding]]:
    """Findings about one metric share its chart; the worst of them leads, one that still holds before one that is over.
    Metrics stay in the order in which they were first found."""
    groups: dict[str, list[Finding]] = {}
    for one in found:
        groups.setdefault(one.metric, []).append(one)
    return [sorted(group, key=lambda one: (-one.severity, not one.active, one.first_step)) for group in groups.values()]


def _row(run: RunVerdict, group: list[Finding], cause: Finding, span: Span | None, exact: bool) -> Html | None:
    lead, *others = group
    metric = run.translation.metrics.get(lead.metric)
    if span is None or metric is None or not len(metric):
        return (
            None
            if group == [cause]
            else el("div", _named(lead, others), el("p", prose(lead.message), class_="said"), class_="row")
        )
    level = next((found for found in (level_of(one.lead) for one in group) if found is not None), None)
    marks = Marks(tuple(group), cause.first_step, level, usual(min(group, key=lambda one: one.first_step), metric))
    drawn = chart(metric, span, marks, buckets=EVIDENCE, tall=2000, focus=True, exact=exact)
    return el("div", _named(lead, others), drawn, worst_of(lead.lead), class_="row")


def _named(lead: Finding, others: list[Finding]) -> Html:
    more = [
        el(
            "span",
            _rule(one),
            el(
                "span",
                f"{_since(one)}: {', '.join(filter(None, found_and_limit(one.lead)))}",
                class_="at",
            ),
            class_="other",
        )
        for one in others
    ]
    return el("div", named(lead.metric), _rule(lead), el("span", _since(lead), class_="at"), *more, class_="name")


def _rule(one: Finding) -> Html:
    return el(
        "span", el("b", SIGNS[str(one.severity)], aria_hidden="true"), f" {one.rule}", class_=f"rule {one.severity}"
    )


def _since(one: Finding) -> str:
    return words.since(one)


def _metrics(run: RunVerdict, span: Span, key: str, buckets: int, later: bool) -> Html | None:
    first = main_metrics(run, 40)
    names = {one.name for one in first}
    rest = sorted(
        (one for one in run.translation.metrics.values() if one.name not in names and len(one)),
        key=lambda one: one.name,
    )
    judged = [one for one in rest if any(found.metric == one.name for found in run.findings)]
    shown = [*first, *judged, *(one for one in rest if one not in judged)]
    if not shown:
        return None
    cards = [cards_later(run, shown, span, buckets)] if later else [_card(run, one, span, buckets) for one in shown]
    title = f"All {words.plural(len(shown), 'metric')}"
    search = el(
        "label",
        el("span", "Find a metric", class_="hidden"),
        el(
            "input",
            type="search",
            placeholder="Find a metric  ( / )",
            autocomplete="off",
            spellcheck="false",
            data_for=f"{key}-m",
        ),
        class_="search",
    )
    count = el("span", "", class_="count", role="status")
    unknown = (
        el(
            "details",
            el("summary", f"{words.plural(len(run.translation.unrecognised), 'logged name')} not recognised"),
            el("p", *(join(el("code", one), " ") for one in run.translation.unrecognised[:200])),
            class_="unknown-tags",
        )
        if run.translation.unrecognised
        else None
    )
    return el(
        "section",
        el("div", el("h3", title), TOOLS, search if len(shown) > 6 else None, count, class_="bar"),
        el("div", *cards, class_="minis", id=f"{key}-m"),
        unknown,
        class_="metrics",
    )


def _card(run: RunVerdict, metric: Metric, span: Span, buckets: int) -> Html:
    found = tuple(one for one in run.findings if one.metric == metric.name)
    onset = min((one.first_step for one in found), default=None)
    unit = words.measured(0.0, metric.unit).removeprefix("0").strip() if metric.unit != "fraction" else ""
    first, last = (words.number(float(metric.values[place]), metric.unit) for place in (0, -1))
    ends = el("span", last if first == last else f"{first} → {last}")
    finite = metric.values[np.isfinite(metric.values)]
    low, high = (
        words.number(float(one), metric.unit)
        for one in ((finite.min(), finite.max()) if len(finite) else (np.nan, np.nan))
    )
    reach = el("span", f"{low} … {high}", title="least and greatest") if low != high else None
    tone = str(max(one.severity for one in found)) if found else ""
    sign = (
        el(
            "span",
            SIGNS[tone],
            class_=f"sign {tone}",
            role="img",
            aria_label=tone,
            title=", ".join(one.rule for one in found),
        )
        if tone
        else None
    )
    return el(
        "figure",
        el("figcaption", named(metric.name), el("span", unit, class_="unit") if unit else None, sign),
        chart(metric, span, Marks(found[:3], onset), buckets=buckets, exact=True),
        el("p", ends, reach, class_="ends"),
        class_="mini",
        data_find=f"{metric.name} {metric.tag}".lower(),
    )


def _rules(run: RunVerdict) -> Html:
    skipped = el(
        "details",
        el("summary", f"{words.plural(len(run.skipped), 'rule')} could not run"),
        el("ul", *(el("li", el("code", one.rule), f" {one.reason}") for one in run.skipped)),
    )
    quiet = el(
        "details",
        el("summary", f"{words.plural(len(run.quiet), 'rule')} ran and found nothing"),
        el("p", *(join(el("code", one), " ") for one in run.quiet)),
    )
    ignored = el(
        "details",
        el("summary", f"{words.plural(len(run.ignored), 'finding')} ignored"),
        el(
            "ul",
            *(
                el("li", el("code", one.finding.rule), f" {one.finding.message} (ignored: {one.reason})")
                for one in run.ignored
            ),
        ),
    )
    return el(
        "div",
        skipped if run.skipped else None,
        ignored if run.ignored else None,
        quiet if run.quiet else None,
        class_="rules",
    )
