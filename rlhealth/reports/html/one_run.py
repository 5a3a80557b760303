"""One run on the page: its header, its stories, its vital signs, all its metrics, and the rules that found nothing."""

from __future__ import annotations

from rlhealth.reports import ReportOptions, words
from rlhealth.reports.html import vitals
from rlhealth.reports.html.cards import cards
from rlhealth.reports.html.completions import texts
from rlhealth.reports.html.later import rules_later
from rlhealth.reports.html.markup import Html, el, join
from rlhealth.reports.html.story import story
from rlhealth.reports.stories import notes, stories
from rlhealth.verdict.verdicts import RunVerdict

_STORIES = 40


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
    groups = stories(run)
    blank = el("p", f"Unknown: {run.no_answer}.", class_="quiet") if run.no_answer else None
    parts: list[Html | None] = [blank, _remarks(run)]
    for number, (cause, following) in enumerate(groups[:_STORIES]):
        parts.append(story(run, cause, following, span, f"{key}-f{number}", texts(look, run, cause), later is None))
    if len(groups) > _STORIES:
        parts.append(
            el("p", f"… and {len(groups) - _STORIES} more findings; the JSON report has them all.", class_="more")
        )
    if not groups and run.verdict == "healthy":
        blind = f"; {len(run.skipped)} could not run" if run.skipped else ""
        parts.append(el("p", f"{words.plural(len(run.quiet), 'rule')} ran and found nothing{blind}.", class_="quiet"))
    parts.append(vitals.table(run, span, small=later is not None))
    if span is not None:
        parts.append(cards(run, span, key, buckets, later is not None))
    parts.append(_rules(run) if later is None else rules_later(run, later))
    return join(*parts)


def _remarks(run: RunVerdict) -> Html | None:
    problems = [el("li", one, class_="problem") for one in run.run.problems[:30]]
    assumed = [el("li", one) for one in notes(run)[:30]]
    return el("ul", *problems, *assumed, class_="remarks") if problems or assumed else None


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
