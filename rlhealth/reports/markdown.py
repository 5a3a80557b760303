"""Markdown for a pull-request comment or a job summary: verdict and causes first, tiny charts as text, everything else
folded."""

from __future__ import annotations

import re

from rlhealth.reports import ReportOptions, words
from rlhealth.reports.evidence import limit_of, value_of, why_fired
from rlhealth.reports.sparkline import sparkline
from rlhealth.reports.stories import (
    logarithmic,
    main_metrics,
    namesakes,
    notes,
    shared,
    skips,
    stories,
    worst,
    worst_first,
)
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict, Verdict
from rlhealth.verdict.vitals import vitals

_SIGNS = {"critical": "❌", "warning": "⚠️", "info": "ℹ️", "healthy": "✅", "unknown": "❔"}
_STATES = {"well": "✅", "watch": "⚠️", "sick": "❌", "over": "ℹ️", "unknown": "❔"}
_MOST = 60_000  # characters: GitHub refuses comments of more than 65 536
_NAME = 80
_STORIES = 10
_ROWS = 200


def render(verdict: Verdict, look: ReportOptions) -> str:
    """The comment. Runs are reported worst first until it is full; the closing line says how many there were."""
    runs = worst_first(verdict.runs)
    parts = [f"## {_SIGNS[verdict.verdict]} rlhealth: {verdict.verdict}\n"]
    if len(runs) + len(verdict.errors) > 1:
        parts.append(_table(verdict, runs, look))
    detailed = [run for run in runs if run.verdict != "healthy"] if len(runs) > 1 else runs
    parts += [_run(run) for run in detailed[: None if look.show_all else _STORIES]]
    parts += [
        f"❔ {_code(error.location or '?')} could not be read: {_text(error.message)}. {_text(error.hint)}\n"
        for error in verdict.errors[:_ROWS]
    ]
    parts += [
        f"❌ {_code(run.name)}: required rule {_code(name)} could not run\n" for run, name in verdict.unmet[:_ROWS]
    ]
    if unread := words.left_out(verdict, _ROWS):
        parts.append("\n".join([f"❔ {unread[0]}\n", *(f"- {_text(one)}" for one in unread[1:])]) + "\n")
    parts.append(_skipped(runs))
    end = f"---\n{_text(words.closing(verdict))}\n"
    kept: list[str] = []
    for part in filter(None, parts):
        if sum(map(len, kept)) + len(part) + len(end) > _MOST:
            kept.append("*… more than fits here; the full report has it.*\n")
            break
        kept.append(part)
    return "\n".join([*kept, end])


def _table(verdict: Verdict, runs: list[RunVerdict], look: ReportOptions) -> str:
    healthy = [run for run in runs if run.verdict == "healthy"]
    shown = runs if look.show_all or len(runs) <= 12 else [run for run in runs if run.verdict != "healthy"]
    rows = ["| run | verdict | worst finding | since | | |", "| --- | --- | --- | ---: | --- | ---: |"]
    for run in shown[:_ROWS]:
        metric = next(iter(main_metrics(run, 1)), None)
        chart = (
            f"`{sparkline(metric.steps, metric.values, 12, span=words.span_of(run), log=logarithmic(metric))}`"
            if metric
            else ""
        )
        last = f"{_text(metric.name)} {words.number(float(metric.values[-1]), metric.unit)}" if metric else ""
        found = worst(run)
        rule, since = (_code(found.rule), words.grouped(found.since_step)) if found else ("", "")
        rows.append(
            f"| {_code(run.name)} | {_SIGNS[run.verdict]} {words.tally(run)} | {rule} | {since} | {chart} | {last} |"
        )
    rows += [
        f"| {_code(error.location or '?')} | {_SIGNS['unknown']} unreadable | {_text(error.message)} | | | |"
        for error in verdict.errors[:_ROWS]
    ]
    if len(shown) < len(runs):
        rows.append(f"| *{words.plural(len(healthy), 'healthy run')}* | {_SIGNS['healthy']} healthy | | | | |")
    rows += ["", *(f"- {_code(name)}: {_code(place)}" for name, place in namesakes(runs)[:_ROWS])]
    common = ", ".join(f"{_code(rule)} ×{count}" for rule, count in shared(verdict)[:8])
    return "\n".join(rows) + "\n" + (f"\nShared by several runs: {common}\n" if common else "")


def _run(run: RunVerdict) -> str:
    span = words.span_of(run)
    steps = words.plural(span[1], "step") if span else ""
    facts = [
        run.translation.title,
        words.tracker(run.run.place.kind),
        steps,
        words.duration(words.wall_time(run)),
        run.state if run.state != "unknown" else "",
    ]
    lines = [
        f"### {_SIGNS[run.verdict]} {_code(run.name)}: {words.tally(run)}",
        "",
        " · ".join(_text(one) for one in facts if one),
        "",
    ]
    if run.no_answer:
        lines += [f"**Unknown**: {_text(run.no_answer)}", ""]
    lines += [f"> {_text(problem)}" for problem in run.run.problems[:20]] + [""]
    groups = stories(run)
    for cause, following in groups:
        lines += [_story(run, cause, following)]
    lines += [_vitals(run)]
    said = notes(run)
    if said:
        lines += [
            "<details><summary>What was assumed</summary>",
            "",
            *(f"- {_text(one)}" for one in said[:20]),
            "",
            "</details>",
            "",
        ]
    return "\n".join(lines)


def _story(run: RunVerdict, cause: Finding, following: list[Finding]) -> str:
    where = words.since(cause)
    rows = [
        f"#### {_SIGNS[str(cause.severity)]} {_text(cause.title)}, {where}",
        "",
        _text(cause.message),
        "",
        "| | began at step | chart | worst | limit |",
        "| --- | ---: | --- | ---: | ---: |",
    ]
    own = [] if any(one.metric == cause.metric for one in following) else [cause]
    for one in [*own, *following]:
        metric = run.translation.metrics.get(one.metric)
        chart = (
            sparkline(metric.steps, metric.values, 20, span=words.span_of(run), log=logarithmic(metric))
            if metric is not None
            else ""
        )
        name = f"{_SIGNS[str(one.severity)]} {_code(one.rule)}" + (f" {_code(one.metric)}" if one.metric else "")
        cells = (
            name,
            words.began([one]),
            f"`{chart}`" if chart.strip() else "",
            value_of(one.lead),
            limit_of(one.lead),
        )
        rows.append(f"| {' | '.join(cells)} |")
    advice = [f"- {_text(part)}" for part in cause.advice]
    evidence = [f"- {_text(part)}" for part in cause.evidence]
    fired = [f"- {_code(one.rule)}: {_text('; '.join(lines))}" for one, lines in why_fired(cause, following)]
    fired = ["Why it fired:", "", *fired, ""] if fired else []
    evidence = ["Evidence:", "", *evidence, ""] if evidence else []
    tried = ["What to try:", ""] if fired or evidence else []
    changes = [f"- change {_text(words.changed(one))}" for one in cause.changes]
    return "\n".join(
        [
            *rows,
            "",
            f"<details><summary>Why, and what to try</summary>\n\n{_text(' '.join(cause.why.split()))}\n",
            *evidence,
            *fired,
            *tried,
            *advice,
            *changes,
            "",
            f"`rlhealth explain {cause.rule}`",
            "",
            "</details>",
            "",
        ]
    )


def _vitals(run: RunVerdict) -> str:
    """The eight vital signs as a table; folded where there is something worse to read first."""
    rows = ["| | sign | metric | chart | from → to | course | |", "| --- | --- | --- | --- | ---: | --- | --- |"]
    for one in vitals(run):
        chart = ""
        if one.metric is not None:
            span, log = words.span_of(run), logarithmic(one.metric)
            chart = f"`{sparkline(one.metric.steps, one.metric.values, 20, span=span, log=log)}`"
        named = _code(one.metric.name) if one.metric is not None else ""
        state = f"{_STATES.get(one.state, '➖')} {one.state}"
        course = next(iter(words.courses(one)), "")
        cells = (state, one.title, named, chart, _text(words.ends(one)), course, _text(words.reason(one)))
        rows.append(f"| {' | '.join(cells)} |")
    table = "\n".join(rows) + "\n"
    spent = words.cost(run)
    said = f"{_text(spent)}\n\n" if spent else ""
    return f"{said}<details><summary>Vital signs</summary>\n\n{table}\n</details>\n" if run.findings else said + table


def _skipped(runs: list[RunVerdict]) -> str:
    found = skips(runs)
    if not found:
        return ""
    lines = [
        f"- {_code(rule)}: {_text(reason)}" + (f" ({words.plural(count, 'run')})" if len(runs) > 1 else "")
        for rule, reason, count in found[:_ROWS]
    ]
    return "\n".join(
        [
            f"<details><summary>{words.plural(len(found), 'rule')} could not run</summary>",
            "",
            *lines,
            "",
            "</details>",
            "",
        ]
    )


def _code(text: str) -> str:
    """Log text as a code span: nothing in it is markup, a link or a mention. A fence longer than any run of backticks
    inside closes it."""
    shown = words.shortened(words.clean(text), _NAME).replace("|", "\\|").strip() or "?"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    space = " " if "`" in shown else ""
    return f"{fence}{space}{shown}{space}{fence}"


def _text(text: str) -> str:
    """Prose with no markup in it: what Markdown, HTML, mentions and bare links would act on is escaped."""
    shown = words.shortened(words.clean(" ".join(text.split())), 1000)
    shown = re.sub(
        r"([\\`*_{}\[\]#|~]|^[-+])", r"\\\1", shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    return shown.replace("@", "@<!-- -->").replace("://", ":<!-- -->//").replace("www.", "www<!-- -->.")
