"""One story on the page: a cause, or a finding alone, with what followed on one time line, why, and what to try."""

from __future__ import annotations

from rlhealth.reports import words
from rlhealth.reports.evidence import found_and_limit
from rlhealth.reports.html.chart import Marks, Span, axis, chart
from rlhealth.reports.html.conditions import EVIDENCE, conditions, rows_beside, worst_of
from rlhealth.reports.html.levels import level_of, usual
from rlhealth.reports.html.markup import SIGNS, Html, badge, el, join, named, prose
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict

_LEGEND = el(
    "p",
    el("span", "usual before it began", class_="key usual-key"),
    el("span", "where the rule held", class_="key episode-key"),
    el("span", "beyond the limit", class_="key limit-key"),
    class_="legend",
)


def story(
    run: RunVerdict,
    cause: Finding,
    following: list[Finding],
    span: Span | None,
    key: str,
    completions: Html | None,
    exact: bool,
) -> Html:
    """The story of a cause: `key` is its address on the page, `completions` what its texts say, `exact` whether charts
    carry the values that their points stand for.
    """
    tone = str(cause.severity)
    since = words.since(cause)
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
            "div", el("span", "step", class_="name"), axis(span, cause.since_step, since, tone), class_="row ruler"
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
            el("div", el("h4", "Evidence"), evidence, class_="evidence") if evidence else None,
            el("div", el("h4", "What to try"), advice, class_="try") if advice else None,
            conditions(cause, following),
            class_="words",
        ),
        completions,
        el(
            "p",
            el("code", f"rlhealth explain {cause.rule}"),
            el("span", " Source: ", prose(cause.source), class_="source") if cause.source else None,
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
    marks = Marks(tuple(group), cause.since_step, level, usual(min(group, key=lambda one: one.first_step), metric))
    drawn = chart(metric, span, marks, buckets=EVIDENCE, tall=2000, focus=True, exact=exact)
    return el("div", _named(lead, others), drawn, worst_of(lead.lead), class_="row")


def _named(lead: Finding, others: list[Finding]) -> Html:
    more = [
        el(
            "span",
            _rule(one),
            el(
                "span",
                f"{words.since(one)}: {', '.join(filter(None, found_and_limit(one.lead)))}",
                class_="at",
            ),
            class_="other",
        )
        for one in others
    ]
    return el("div", named(lead.metric), _rule(lead), el("span", words.since(lead), class_="at"), *more, class_="name")


def _rule(one: Finding) -> Html:
    return el(
        "span", el("b", SIGNS[str(one.severity)], aria_hidden="true"), f" {one.rule}", class_=f"rule {one.severity}"
    )
