"""Advice as text: a table for people, YAML and flags to paste, a difference of a config file."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlhealth.metrics.to_log import ToLog
from rlhealth.parsing.patching import written
from rlhealth.reports.words import clean
from rlhealth.rules.filling import within_a_sentence

if TYPE_CHECKING:
    from rlhealth.verdict.advised import Advice, StepsToInspect
    from rlhealth.verdict.verdicts import RunVerdict

FORMATS = ("table", "yaml", "flags")


def table(run: RunVerdict, advice: Advice, wanted: Sequence[ToLog]) -> str:
    """The advice for a person: what to change, or where to look, and what to log."""
    lines = [f"{clean(run.name)}: {run.verdict}" + (f", {within_a_sentence(advice.title)}" if advice.title else "")]
    if advice.changes:
        rows = [(one.option, _value(one.before), _value(one.to), one.why) for one in advice.changes]
        lines += ["", *_columns([("change", "from", "to", "why"), *rows])]
    for one in advice.looks:
        lines += ["", *_look(one, bool(advice.changes))]
    if not advice.changes and not advice.looks:
        reason = advice.reason or run.no_answer
        lines += ["", f"  nothing to change{': ' + clean(reason) if reason else ''}"]
    if wanted:
        wanted_rows = [(one.option, "" if one.value is None else _value(one.value), one.gives) for one in wanted]
        lines += ["", *_columns([("log", "", "what it would show"), *wanted_rows])]
    return "\n".join(lines) + "\n"


def yaml(run: RunVerdict, advice: Advice) -> str:
    """The changes as YAML: `option: value`, each with its reason as a comment; nested where an option has dots."""
    return _commented(run, advice) + "".join(
        f"{one.option}: {written(one.to)}  # was {_value(one.before)}: {clean(one.why)}\n" for one in advice.changes
    )


def flags(run: RunVerdict, advice: Advice) -> str:
    """The changes as flags, on one line; an option with dots as an override, `a.b=1`. Where there are none, a comment
    says so."""
    said = " ".join(
        f"{one.option}={written(one.to)}" if "." in one.option else f"--{one.option} {written(one.to)}"
        for one in advice.changes
    )
    return f"{said}\n" if said else _commented(run, advice)


def difference(before: str, after: str, file: str) -> str:
    """What would change in a config file, as a unified difference that `patch` takes."""
    name = clean(file)
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), name, name)
    return "".join(one if one.endswith("\n") else f"{one}\n\\ No newline at end of file\n" for one in lines)


def _commented(run: RunVerdict, advice: Advice) -> str:
    lines = [f"# {clean(run.name)}: {clean(advice.title or run.verdict)}"]
    if not advice.changes:
        lines.append(f"# no setting to change{': ' + advice.reason if advice.reason else ''}")
    lines += [f"# {line.strip()}" for one in advice.looks for line in _look(one, bool(advice.changes)) if line.strip()]
    return "\n".join(lines) + "\n"


def _look(one: StepsToInspect, is_beside: bool) -> list[str]:
    where = f"step {one.first:,}" if one.first == one.last else f"steps {one.first:,} to {one.last:,}"
    said = "that alone may not cure it" if is_beside else "no setting to change"
    lines = [f"  {said} ({one.rule}); look at {clean(one.metric)} and the {one.samples} of {where}"]
    return lines + [f"  - {clean(said)}" for said in one.advice]


def _value(value: object) -> str:
    return "unknown" if value is None else f"{value:g}" if isinstance(value, float) else clean(value)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    shown = [tuple(clean(cell) for cell in row) for row in rows]
    widths = [max(len(row[place]) for row in shown) for place in range(len(shown[0]))]
    return [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown
    ]
