"""Many runs on the page: a table that sorts, each line of which opens the run below it."""

from __future__ import annotations

from rlhealth.errors import RlhealthError
from rlhealth.reports import words
from rlhealth.reports.html.chart import Marks, chart
from rlhealth.reports.html.markup import SIGNS, Html, badge, el, join, named
from rlhealth.reports.html.vitals import marked, tone_of
from rlhealth.reports.stories import column_metric, main_metrics, shared, worst
from rlhealth.verdict.verdicts import RunVerdict, Verdict
from rlhealth.verdict.vitals import VitalState, vitals

_RANK = {"critical": 0, "warning": 1, "unknown": 2, "healthy": 3}
_COLUMNS = (
    ("run", "text"),
    ("verdict", "number"),
    ("vital signs", ""),
    ("worst finding", "text"),
    ("since step", "number"),
    ("", ""),
    ("last", "number"),
    ("steps", "number"),
    ("state", "text"),
)


FILTER = el(
    "label",
    el("span", "Find a run", class_="hidden"),
    el("input", type="search", placeholder="Find a run", autocomplete="off", spellcheck="false", id="find-run"),
    el("span", "", class_="count", role="status"),
    class_="search",
)


def pill(word: str, count: int) -> Html:
    """How many runs have a verdict, as a button that leaves only those."""
    tone = word if word in SIGNS else "unknown"
    sign = el("span", SIGNS[tone], aria_hidden="true")
    return el(
        "button",
        sign,
        f" {count} {word}",
        type="button",
        class_=f"badge {tone}",
        data_verdict=word,
        aria_pressed="false",
    )


def table(verdict: Verdict, runs: list[RunVerdict], keys: dict[int, str]) -> Html:
    """The runs, worst first, with what could not be read among them, and the findings they share."""
    column = column_metric(runs)
    heads = [_head(name or column or "metric", kind) for name, kind in _COLUMNS]
    sick = [run for run in runs if run.verdict != "healthy"]
    healthy = [run for run in runs if run.verdict == "healthy"]
    rows = [
        *(_row(run, keys[id(run)], column) for run in sick),
        *map(_unreadable, verdict.errors),
        *(_row(run, keys[id(run)], column) for run in healthy),
    ]
    common = shared(verdict)
    said = (
        el(
            "p",
            "Shared by several runs: ",
            *(join(el("code", rule), f" ×{count}  ") for rule, count in common[:8]),
            class_="shared",
        )
        if common
        else None
    )
    return join(
        el(
            "div",
            el("table", el("thead", el("tr", *heads)), el("tbody", *rows), class_="runs"),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label="Runs",
            id="runs",
        ),
        said,
    )


def _unreadable(error: RlhealthError) -> Html:
    said = el("td", error.message, " ", el("span", error.hint, class_="hint"), colspan=7)
    return el(
        "tr",
        el("th", error.location or "?", scope="row"),
        el("td", badge("unknown", "unreadable"), data_sort=2),
        said,
        data_verdict="unreadable",
    )


def _head(name: str, kind: str) -> Html:
    return (
        el("th", el("button", name, type="button", data_kind=kind), scope="col")
        if kind
        else el("th", name, scope="col")
    )


def _row(run: RunVerdict, key: str, column: str) -> Html:
    metric = next(iter(main_metrics(run, 1)), None)
    span = words.span_of(run)
    found = worst(run)
    curve = chart(metric, span, Marks((found,) if found else ()), buckets=40, tall=300) if metric and span else None
    last = float(metric.values[-1]) if metric else float("nan")
    return el(
        "tr",
        el("th", el("a", run.name, href=f"#{key}"), scope="row"),
        el("td", badge(run.verdict, words.tally(run).split(",")[0]), data_sort=_RANK[run.verdict]),
        el("td", _marks(run), class_="marks"),
        el("td", el("code", found.rule) if found else None),
        el(
            "td",
            words.grouped(found.since_step) if found else "",
            data_sort=found.since_step if found else -1,
            class_="number",
        ),
        el("td", named(metric.name) if metric and metric.name != column else None, curve, class_="curve"),
        el("td", words.number(last, metric.unit) if metric else "–", data_sort=repr(last), class_="number"),
        el("td", words.grouped(span[1]) if span else "–", data_sort=span[1] if span else -1, class_="number"),
        el("td", run.state),
        data_verdict=run.verdict,
    )


def _marks(run: RunVerdict) -> Html:
    """The eight vital signs as eight marks; the words are for those who do not see them."""
    signs = vitals(run)
    marks = [el("b", marked(one.state), class_=tone_of(one.state), title=f"{one.title}: {one.state}") for one in signs]
    unwell = [f"{one.title} {one.state}" for one in signs if one.state in (VitalState.SICK, VitalState.WATCH)]
    return el("span", *marks, role="img", aria_label=", ".join(unwell) or "none is sick")
