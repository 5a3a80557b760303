"""GitHub: workflow annotations, worst first and never more than GitHub shows, and the job summary."""

from __future__ import annotations

from rlhealth.reports import ReportOptions, markdown, words
from rlhealth.reports.stories import everything
from rlhealth.verdict.findings import Finding, Severity
from rlhealth.verdict.verdicts import RunVerdict, Verdict

# annotations of one kind that GitHub shows for a step (docs.github.com, "Workflow commands"); the rest it drops without
# a word
MOST = 10
_COMMANDS = {Severity.CRITICAL: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_LONGEST = 2000


def render(verdict: Verdict, look: ReportOptions) -> str:
    """Annotations as workflow commands: errors, warnings, notices; the last notice counts."""
    said: dict[str, list[str]] = {command: [] for command in _COMMANDS.values()}
    for error in verdict.errors:
        hint = f"\nTry: {error.hint}" if error.hint else ""
        said["error"].append(
            _annotation("error", "rlhealth: could not be read", f"{error.location}: {error.message}{hint}")
        )
    for run in verdict.runs:
        if run.no_answer:
            command = "notice" if verdict.is_aside(run) else "error"
            said[command].append(
                _annotation(command, f"rlhealth: no verdict for {run.name}", f"{run.name}: {run.no_answer}")
            )
    for run, name in verdict.unmet:
        said["error"].append(
            _annotation("error", f"rlhealth: {name} could not run", f"{run.name}: a required rule could not run")
        )
    for run, one in everything(verdict):
        command = _COMMANDS[one.severity]
        said[command].append(_annotation(command, f"{one.rule}: {run.name}", _text(run, one)))
    for run in verdict.runs:
        if run.run.problems:
            said["warning"].append(
                _annotation(
                    "warning", f"rlhealth: not all of {run.name} could be read", "\n".join(run.run.problems[:5])
                )
            )
    if unread := words.left_out(verdict):
        said["warning"].append(_annotation("warning", "rlhealth: " + unread[0].rstrip(":"), "\n".join(unread)))
    said["notice"].append(_annotation("notice", "rlhealth", words.closing(verdict)))
    return "\n".join(line for command, lines in said.items() for line in _capped(command, lines))


def summary(verdict: Verdict, look: ReportOptions) -> str:
    """The job summary (for GITHUB_STEP_SUMMARY): the Markdown report."""
    return markdown.render(verdict, look)


def _capped(command: str, lines: list[str]) -> list[str]:
    if len(lines) <= MOST:
        return lines
    last = lines[-1:] if command == "notice" else []
    room = MOST - 1 - len(last)
    return [
        *lines[:room],
        _annotation(
            command, "rlhealth", f"… and {len(lines) - room - len(last)} more like these; the report has them all"
        ),
        *last,
    ]


def _text(run: RunVerdict, one: Finding) -> str:
    where = words.since(one).replace(words.THIN, "")
    cause = f"\nFollows from: {one.explained_by}" if one.explained_by else ""
    advice = "".join(f"\nTry: {part}" for part in one.advice[:3]) if not one.explained_by else ""
    return f"{run.name}: {one.title}, {where}: {one.message}{cause}{advice}"


def _annotation(command: str, title: str, message: str) -> str:
    """One workflow command; its line breaks are ours alone."""
    body = "\n".join(words.clean(line) for line in words.shortened(message, _LONGEST).split("\n"))
    return f"::{command} title={_property(words.clean(words.shortened(title, 200)))}::{_data(body)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
