"""All metrics of a run as small charts, each with where it began and ended, found by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlhealth.reports import words
from rlhealth.reports.html.chart import Marks, Span, chart
from rlhealth.reports.html.later import TOOLS, cards_later
from rlhealth.reports.html.markup import SIGNS, Html, el, join, named
from rlhealth.reports.stories import main_metrics
from rlhealth.verdict.verdicts import RunVerdict

if TYPE_CHECKING:
    from rlhealth.metrics import Metric


def cards(run: RunVerdict, span: Span, key: str, buckets: int, later: bool) -> Html | None:
    """The cards of a run, those that matter most first; with `later` as data, from which they are drawn when opened."""
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
    drawn = [cards_later(run, shown, span, buckets)] if later else [_card(run, one, span, buckets) for one in shown]
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
        el("div", *drawn, class_="minis", id=f"{key}-m"),
        unknown,
        class_="metrics",
    )


def _card(run: RunVerdict, metric: Metric, span: Span, buckets: int) -> Html:
    found = tuple(one for one in run.findings if one.metric == metric.name)
    onset = min((one.since_step for one in found), default=None)
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
