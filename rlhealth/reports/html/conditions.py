"""Why the rules of a story fired: each condition that held, and the curves of the metrics beside the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlhealth.metrics import meaning
from rlhealth.reports import words
from rlhealth.reports.evidence import limit_of, value_of, why_fired
from rlhealth.reports.html.chart import Marks, Span, chart
from rlhealth.reports.html.levels import level_of
from rlhealth.reports.html.markup import Html, el, join, named

if TYPE_CHECKING:
    from rlhealth.verdict.evidence import Evidence
    from rlhealth.verdict.findings import Finding
    from rlhealth.verdict.verdicts import RunVerdict

EVIDENCE = 500  # buckets of an evidence chart: two a pixel on a wide screen


def conditions(cause: Finding, following: list[Finding]) -> Html | None:
    """The conditions that held, a line each: of a finding alone, or of each that a cause explains."""
    fired = why_fired(cause, following)
    if not fired:
        return None
    if not following:
        [(_, lines)] = fired
        return el("div", el("h4", f"Why it fired, {_worst_at(cause)}"), _listed(lines), class_="fired")
    rules = [join(el("p", el("code", one.rule), f", {_worst_at(one)}:"), _listed(lines)) for one, lines in fired]
    return el(
        "details",
        el("summary", f"Why {'these rules' if len(rules) > 1 else 'this rule'} fired"),
        *rules,
        class_="fired",
    )


def _worst_at(one: Finding) -> str:
    return f"at its worst (step {words.grouped(one.worst_step)})"


def _listed(lines: list[str]) -> Html:
    return el("ul", *(el("li", one) for one in lines))


def rows_beside(run: RunVerdict, found: Finding, span: Span | None, exact: bool) -> list[Html]:
    """A row for each metric that a finding looked at beside its own, but for counts of progress: their curves only
    rise."""
    rows, shown = [], {found.metric}
    for one in found.conditions:
        metric = run.translation.metrics.get(one.metric)
        if span is None or metric is None or one.metric in shown or _is_progress(one.metric):
            continue
        shown.add(one.metric)
        marks = Marks((found,), found.first_step, level_of(one))
        drawn = chart(metric, span, marks, buckets=EVIDENCE, tall=2000, focus=True, exact=exact)
        name = el("div", named(one.metric), el("span", "another condition", class_="at"), class_="name")
        rows.append(el("div", name, drawn, worst_of(one), class_="row"))
    return rows


def _is_progress(metric: str) -> bool:
    known = meaning(metric)
    return known is not None and known.group == "progress"


def worst_of(one: Evidence) -> Html:
    """What was measured, where, and its limit."""
    limit = el("span", f"limit {limit_of(one)}", class_="limit-said") if one.limit is not None else None
    where = el("span", f"at step {words.grouped(one.step)}", class_="at")
    return el("div", el("span", value_of(one), class_="worst"), where, limit, class_="value")
