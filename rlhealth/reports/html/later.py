"""Small charts as data: on a page of many runs they are drawn when their run is opened. And the tools of the charts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from rlhealth.reports import words
from rlhealth.reports.html.chart import Marks, Span, chart_in_words
from rlhealth.reports.html.curve import path, scale_of, thinned
from rlhealth.reports.html.markup import Html, el
from rlhealth.reports.stories import logarithmic
from rlhealth.reports.words import clean

if TYPE_CHECKING:
    from rlhealth.metrics import Metric
    from rlhealth.verdict.verdicts import RunVerdict

_TALL = 250

#: Hidden where there are no scripts: they do nothing then.
TOOLS = el(
    "span",
    el("button", "log scale", type="button", class_="tool log-tool", aria_pressed="false"),
    el("button", "whole run", type="button", class_="tool whole-tool", hidden=True),
    el(
        "label",
        el("span", "Draw another run over this one", class_="hidden"),
        el("select", el("option", "overlay a run…", value=""), class_="tool overlay-tool"),
        class_="overlay",
        hidden=True,
    ),
    el("span", "drag to zoom", class_="hint drag-hint"),
    class_="tools",
    hidden=True,
)


def cards_later(run: RunVerdict, metrics: list[Metric], span: Span, buckets: int) -> Html:
    """The metrics as JSON, which scripts make cards of; none of it is markup."""
    rows = [_row(run, metric, span, buckets) for metric in metrics]
    return el("template", _data(rows))


def spelled(runs: Sequence[RunVerdict]) -> dict[str, int]:
    """Every name of a rule, and every reason why one could not run, with its place: runs of one trainer share them."""
    found = {said for run in runs for said in (*run.quiet, *(one.rule for one in run.skipped))}
    found |= {one.reason for run in runs for one in run.skipped}
    return {said: place for place, said in enumerate(sorted(found))}


def spelling(places: dict[str, int]) -> Html:
    """The names and reasons themselves, once for the page."""
    return el("template", _data([clean(said) for said in places]), id="spelled")


def rules_later(run: RunVerdict, places: dict[str, int]) -> Html:
    """The rules that could not run, were ignored, or found nothing, as data: a title and its lines each, a line being a
    reason's place, or text, and the places of rules.
    """
    reasons: dict[str, list[int]] = {}
    for one in run.skipped:
        reasons.setdefault(one.reason, []).append(places[one.rule])
    parts: list[list[object]] = []
    if run.skipped:
        lines = [[places[reason], rules] for reason, rules in reasons.items()]
        parts.append([f"{words.plural(len(run.skipped), 'rule')} could not run", lines])
    if run.ignored:
        said = [
            [f"{one.finding.rule}: {clean(one.finding.message)} (ignored: {one.reason})", []] for one in run.ignored
        ]
        parts.append([f"{words.plural(len(run.ignored), 'finding')} ignored", said])
    if run.quiet:
        quiet = [places[rule] for rule in run.quiet]
        parts.append([f"{words.plural(len(run.quiet), 'rule')} ran and found nothing", [["", quiet]]])
    return el("div", el("template", _data(parts)), class_="rules")


def _data(said: object) -> Html:
    """JSON as text of a template."""
    return Html(escape(json.dumps(said, ensure_ascii=False, separators=(",", ":"), allow_nan=False), quote=False))


def _row(run: RunVerdict, metric: Metric, span: Span, buckets: int) -> list[object]:
    """name, tag, unit, ends, tone, first step, width, height, low, high, log, path, onset, chart_in_words."""
    found = [one for one in run.findings if one.metric == metric.name]
    scale = scale_of(metric.values, _TALL, log=logarithmic(metric))
    kept = thinned(metric.steps, metric.values, buckets)
    first, last = (words.number(float(metric.values[place]), metric.unit) for place in (0, -1))
    unit = "%" if metric.unit == "fraction" else words.measured(0.0, metric.unit).removeprefix("0").strip()
    return [
        clean(metric.name),
        "" if metric.tag == metric.name else clean(metric.tag),
        unit,
        last if first == last else f"{first} → {last}",
        str(max(one.severity for one in found)) if found else "",
        span[0],
        max(1, span[1] - span[0]),
        _TALL,
        *(float(f"{one:.6g}") for one in (scale.low, scale.high)),
        int(scale.log),
        path(metric.steps[kept], metric.values[kept], scale, span[0]),
        min((one.since_step for one in found), default=None),
        chart_in_words(metric, Marks()) if not np.isfinite(metric.values).any() else "",
    ]
