"""Completions at a finding in the terminal: escaped like all that comes from a log, what repeats marked. Only where
they were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlhealth.completions.shown import SHOWN, Excerpt
from rlhealth.reports import ReportOptions, words
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict

if TYPE_CHECKING:
    from rlhealth.reports.page import Page

_PROMPT = 200  # characters of a prompt that are shown


def of(look: ReportOptions, run: RunVerdict, finding: Finding) -> Sequence[Excerpt]:
    """The texts that were asked for at this finding."""
    return look.completions.get((run.name, finding.rule, finding.metric), ())


def write(page: Page, run: RunVerdict, finding: Finding) -> None:
    """The texts at a finding, each under its step and rewards; the prompt once for those that share it."""
    prompt: str | None = None
    for one in of(page.look, run, finding):
        if one.prompt != prompt:
            prompt = one.prompt
            page.gap()
            page.prose("prompt", shortened(prompt, _PROMPT), hang=8, style="dim")
        page.line("   ", (f"step {words.grouped(one.step)}", "bold"), "  ", (rewards(one), "cyan"))
        page.prose("", body(one), indent=5, most=0)


def lines(look: ReportOptions, run: RunVerdict, finding: Finding, where: str) -> list[str]:
    """The texts at a finding as lines for a program."""
    return [
        f"{where}: text[{finding.rule}] step={one.step} {rewards(one)}"
        f" prompt={shortened(one.prompt, _PROMPT)!r} completion={body(one)!r}"
        for one in of(look, run, finding)
    ]


def rewards(one: Excerpt) -> str:
    """`acc=1 format=0.5`."""
    return " ".join(f"{name}={value:.4g}" for name, value in one.rewards)


def body(one: Excerpt, most: int = SHOWN) -> str:
    """The text with what repeats between ⟦ and ⟧, and what was left out counted; a text without any letter is named
    so."""
    if not one.completion.strip():
        return "(empty)" if not one.completion else f"(blank: {one.length} characters)"
    said, at = "", 0
    for start, end in one.repeats:
        if start >= most:
            break
        said += f"{one.completion[at:start]}⟦{one.completion[start : min(end, most)]}⟧"
        at = min(end, most)
    said += one.completion[at : max(at, most)]
    left = one.length - min(len(one.completion), most)
    return said + (f" … {words.grouped(left)} more characters" if left > 0 else "")


def shortened(text: str, most: int) -> str:
    """The end of a long text, where prompts differ."""
    return text if len(text) <= most else "… " + text[-most:]


def pages(found: Sequence[Excerpt], total: int, steps: Sequence[int], look: ReportOptions) -> str:
    """Texts for a person to read through: each whole, with its own line breaks, below its step, rewards and prompt."""
    from rlhealth.reports.page import Page  # late: rich is only needed here

    page = Page(look)
    span = f", {words.grouped(steps[0])} to {words.grouped(steps[-1])}" if len(steps) > 1 else ""
    page.line(f"{words.plural(total, 'text')} of {words.plural(len(steps), 'step')}{span}")
    for one in found:
        page.gap()
        page.line((f"step {words.grouped(one.step)}", "bold"), "  ", (rewards(one), "cyan"))
        for line in one.prompt.split("\n"):
            page.prose("prompt", line, indent=1, hang=8, style="dim", most=0)
        for line in body(one, len(one.completion)).split("\n"):
            page.prose("", line, indent=3, most=0)
    if total > len(found):
        page.gap()
        page.line(f"and {words.grouped(total - len(found))} more; --limit shows them")
    return page.text()
