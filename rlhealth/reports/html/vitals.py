"""The vital signs of one run on the page: a table of eight rows, each with its state, a small curve, values and
words."""

from __future__ import annotations

from rlhealth.reports import words
from rlhealth.reports.html.chart import Marks, Span, chart
from rlhealth.reports.html.markup import Html, el, named
from rlhealth.verdict.verdicts import RunVerdict
from rlhealth.verdict.vitals import Vital, VitalState, vitals

_SIGNS = {
    VitalState.WELL: "✓",
    VitalState.WATCH: "▲",
    VitalState.SICK: "✗",
    VitalState.OVER: "i",
    VitalState.UNKNOWN: "?",
}
_TONES = {
    VitalState.WELL: "healthy",
    VitalState.WATCH: "warning",
    VitalState.SICK: "critical",
    VitalState.OVER: "info",
    VitalState.UNKNOWN: "unknown",
}
_BUCKETS = 60


def table(run: RunVerdict, span: Span | None, *, small: bool = False) -> Html:
    """Eight rows, whether or not anything was found; the sign and the word say the state, the colour only repeats them.

    With `small` the curves are copies of those of the metrics below, made when they are drawn.
    """
    rows = [_row(one, span, small) for one in vitals(run)]
    spent = words.cost(run)
    return el(
        "section",
        el("h3", "Vital signs"),
        el("p", spent, class_="cost") if spent else None,
        el(
            "div",
            el("table", el("tbody", *rows)),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label="Vital signs",
        ),
        class_="vitals",
    )


def marked(state: VitalState) -> str:
    """The mark of a state; a dash for what is neither good nor bad."""
    return _SIGNS.get(state, "–")


def tone_of(state: VitalState) -> str:
    """The class that colours a state."""
    return _TONES.get(state, "absent")


def _row(one: Vital, span: Span | None, small: bool) -> Html:
    sign = el("span", marked(one.state), aria_hidden="true")
    state = el("td", el("span", sign, f" {one.state}", class_=f"badge {tone_of(one.state)}"))
    head = el("th", one.title, scope="row")
    if one.metric is None or span is None:
        return el("tr", head, state, el("td", words.reason(one), colspan="4"))
    found = (one.finding,) if one.finding is not None else ()
    onset = one.finding.since_step if one.finding is not None else None
    course = next(iter(words.courses(one)), "")
    curve = None if small else chart(one.metric, span, Marks(found, onset), buckets=_BUCKETS)
    return el(
        "tr",
        head,
        state,
        el("td", named(one.metric.name)),
        el("td", curve, class_="curve", data_curve=one.metric.name if small else None),
        el("td", words.ends(one), el("span", course, class_="course") if course else None, class_="values"),
        el("td", words.reason(one)),
    )
