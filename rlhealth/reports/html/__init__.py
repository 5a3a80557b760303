"""The HTML report: one file that needs no network, verdict and cause first, every chart inline, readable without
scripts."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from rlhealth import __version__
from rlhealth.reports import ReportOptions, words
from rlhealth.reports.html.later import spelled, spelling
from rlhealth.reports.html.markup import SIGNS, Html, badge, el, join
from rlhealth.reports.html.one_run import body, facts
from rlhealth.reports.html.table import FILTER, pill, table
from rlhealth.reports.stories import worst_first
from rlhealth.verdict.verdicts import RunVerdict, Verdict, counts

_PARTS = ("page.css", "charts.js", "page.js")
_CURVES = 450_000  # characters that all small charts of a page may take together
_PER_BUCKET = 13  # characters: two points of a path
_ORDER = ("critical", "warning", "unknown", "unreadable", "healthy")
_DETAILS = 150  # runs reported in full; with more, only those that are not healthy
_MANY = 600  # small charts: more of them are drawn when their run is opened


def render(verdict: Verdict, look: ReportOptions) -> str:
    """The page."""
    runs = worst_first(verdict.runs)
    keys = {id(run): f"run-{number}" for number, run in enumerate(runs)}
    several = len(runs) + len(verdict.errors) > 1
    detailed = runs if len(runs) <= _DETAILS else [run for run in runs if run.verdict != "healthy"][:_DETAILS]
    charts = sum(len(run.translation.metrics) for run in detailed)
    later = spelled(detailed) if len(detailed) > 1 and charts > _MANY else None
    buckets = int(min(150, max(24 if later is None else 12, _CURVES / _PER_BUCKET / max(1, charts))))
    main = (
        _several(verdict=verdict, runs=runs, detailed=detailed, keys=keys, buckets=buckets, later=later, look=look)
        if several
        else _single(verdict, runs, buckets, look)
    )
    style, *scripts = (Html((files(__package__) / name).read_text("utf-8").strip()) for name in _PARTS)
    script = Html("\n".join(scripts))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    name = runs[0].name if len(runs) == 1 else words.plural(len(runs), "run")
    title = f"{SIGNS[verdict.verdict]} {name}: {verdict.verdict} · rlhealth"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        el("style", style),
    )
    page = el(
        "html",
        head,
        el("body", _top(several), el("main", main, id="main"), _foot(verdict), el("script", script)),
        lang="en",
    )
    return f"<!doctype html>\n{page}\n"


def _top(several: bool) -> Html:
    theme = el("button", "◐", type="button", id="theme", aria_label="Dark or light", title="Dark or light")
    return el(
        "header",
        el("a", "Skip to the verdict", href="#main", class_="hidden skip"),
        el("span", "rlhealth", class_="brand"),
        el("a", "↑ all runs", href="#runs", class_="back") if several else None,
        theme,
        class_="top",
    )


def _single(verdict: Verdict, runs: list[RunVerdict], buckets: int, look: ReportOptions) -> Html:
    if not runs:
        said = [
            el(
                "section",
                el("h3", badge("unknown", "unreadable"), " ", error.message),
                el("p", error.hint),
                class_="story unknown",
            )
            for error in verdict.errors
        ]
        return join(el("h1", "No run could be read"), *said)
    run = runs[0]
    return el(
        "article",
        el("h1", run.name),
        el("p", badge(run.verdict, words.tally(run)), class_="verdict"),
        facts(run),
        el("h2", "The verdict", class_="hidden"),
        body(run, "run-0", buckets, None, look),
    )


def _several(
    verdict: Verdict,
    runs: list[RunVerdict],
    detailed: list[RunVerdict],
    keys: dict[int, str],
    buckets: int,
    later: dict[str, int] | None,
    look: ReportOptions,
) -> Html:
    found = [pill(word, count) for word in _ORDER if (count := counts(verdict)[word])]
    shown = {id(run) for run in detailed}
    sections = [
        el(
            "details",
            el("summary", el("h2", run.name), badge(run.verdict, words.tally(run))),
            facts(run),
            body(run, keys[id(run)], buckets, later, look),
            id=keys[id(run)],
            class_="run",
            data_verdict=run.verdict,
            open=run.verdict != "healthy" and number == 0,
        )
        if id(run) in shown
        else el(
            "details",
            el("summary", el("h2", run.name), badge(run.verdict)),
            facts(run),
            id=keys[id(run)],
            class_="run",
            data_verdict=run.verdict,
        )
        for number, run in enumerate(runs)
    ]
    title = words.plural(len(runs) + len(verdict.errors), "run")
    return join(
        el("h1", title),
        el("div", *found, FILTER, class_="verdict filters", role="group", aria_label="Which runs are shown"),
        table(verdict, runs, keys),
        el("div", *sections, class_="details"),
        spelling(later) if later is not None else None,
    )


def _foot(verdict: Verdict) -> Html:
    unmet = [
        el("p", f"{run.name}: required rule could not run: {name}", class_="problem") for run, name in verdict.unmet
    ]
    unread = [el("p", said, class_="problem") for said in words.left_out(verdict, 50)]
    return el(
        "footer", *unread, *unmet, el("p", words.closing(verdict)), el("p", f"rlhealth {__version__}", class_="version")
    )
