"""Completions on the page: folded, escaped, what repeats marked. Only where they were asked for."""

from __future__ import annotations

from html import escape

from rlhealth.completions.shown import SHOWN, Excerpt
from rlhealth.reports import ReportOptions, excerpts, words
from rlhealth.reports.html.markup import Html, el, join
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict


def texts(look: ReportOptions, run: RunVerdict, finding: Finding) -> Html | None:
    """The texts at a finding, folded; None if there are none."""
    found = excerpts.of(look, run, finding)
    if not found:
        return None
    steps = " and ".join(f"step {words.grouped(step)}" for step in dict.fromkeys(one.step for one in found))
    return el("details", el("summary", f"Completions of {steps}"), *map(_one, found), class_="completions")


def _one(one: Excerpt) -> Html:
    prompt = el("p", el("b", "prompt "), excerpts.shortened(one.prompt, 400), class_="label")
    head = el("p", el("b", f"step {words.grouped(one.step)} "), excerpts.rewards(one), class_="label")
    return el("div", prompt, head, el("pre", *_marked(one)))


def _marked(one: Excerpt) -> list[Html]:
    """The text in pieces, with what stood in it before in <mark>."""
    if not one.completion.strip():
        return [el("i", excerpts.body(one))]
    parts, at = [], 0
    for start, end in one.repeats:
        if start >= SHOWN:
            break
        parts += [_lines(one.completion[at:start]), el("mark", _lines(one.completion[start : min(end, SHOWN)]))]
        at = min(end, SHOWN)
    parts.append(_lines(one.completion[at : max(at, SHOWN)]))
    left = one.length - min(len(one.completion), SHOWN)
    return [*parts, el("i", f" … {words.grouped(left)} more characters")] if left > 0 else parts


def _lines(text: str) -> Html:
    """Text whose line breaks are kept; anything else that is not printable is written out."""
    return join(*(Html(escape(words.clean(line), quote=False) + "\n" * (not last)) for line, last in _ends(text)))


def _ends(text: str) -> list[tuple[str, bool]]:
    lines = text.split("\n")
    return [(line, number == len(lines) - 1) for number, line in enumerate(lines)]
