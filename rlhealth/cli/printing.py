"""Printing: writes each report to its output, and errors to stderr; stdout is for the result."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rlhealth.errors import RlhealthError
from rlhealth.system.files import write_whole

if TYPE_CHECKING:
    from rlhealth.reports import ReportOptions
    from rlhealth.verdict.verdicts import Verdict


def print_error(error: RlhealthError) -> None:
    """Prints one line with the error and one with the hint on stderr; text from a log cannot control the terminal."""
    from rlhealth.reports.words import clean

    sys.stderr.write(f"error: {clean(error.message)}\n")
    if error.hint:
        sys.stderr.write(f"hint: {clean(error.hint)}\n")


def pairs(formats: list[str], outputs: list[str], said: list[str]) -> list[tuple[str, str]]:
    """Each format with its file, `-` for stdout: in the order of the command line, an output belongs to the format
    before it.
    """
    found = [[name, "-"] for name in formats]
    rest = iter(outputs)
    at = -1
    for word in said:
        if word == "--format" or word.startswith(("-f", "--format=")):
            at += 1
        elif word == "--output" or word.startswith(("-o", "--output=")):
            found[max(at, 0)][1] = next(rest, "-")
    for file in rest:  # not on this command line: matched by order
        next(one for one in found if one[1] == "-")[1] = file
    return [(name, file) for name, file in found]


def write_file(file: str, text: str, *, append: bool = False, verdict: Verdict | None = None) -> None:
    """Writes a report to a file, atomically.

    Raises:
        RlhealthError: if it cannot be written, or is one of the logs that `verdict` is about.
    """
    if verdict is not None:
        from rlhealth.reports.destination import refuse_logs

        refuse_logs(file, verdict)
    try:
        if append:
            with Path(file).open("a", encoding="utf-8") as out:
                out.write(text)
        else:
            write_whole(Path(file), text)
    except OSError as error:
        raise RlhealthError(
            f"{file}: {error.strerror}", hint="-o takes a file in a folder that exists", location=file
        ) from None


def _print(text: str, format: str) -> None:
    """Prints a report; commands in GitHub annotations are rlhealth's own, and are not escaped."""
    raw = getattr(sys.stdout, "raw", None) if format == "github" else None
    sys.stdout.write(text) if raw is None or not callable(raw) else raw(text)


def report(verdict: Verdict, formats: list[str] | None, outputs: list[str] | None, look: ReportOptions) -> None:
    """Writes each format to its output: an `-o` belongs to the `-f` before it; a format without one goes to stdout.

    In GitHub Actions the terminal report is followed by annotations, and the job summary is written too.
    """
    from rlhealth.reports import write

    wanted = formats or ["terminal"]
    if len(outputs or ()) > len(wanted):
        raise RlhealthError(
            "there are more -o than -f", hint="give each -f its own -o: -f junit -o health.xml -f terminal"
        )
    for name, file in pairs(wanted, outputs or [], sys.argv[1:]):
        text = write(verdict, name, look)
        if file == "-":
            _print(text, name)
        else:
            write_file(file, text, verdict=verdict)
        if name == "terminal" and file == "-" and os.environ.get("GITHUB_ACTIONS") == "true":
            _print(write(verdict, "github", look), "github")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        from rlhealth.reports import github

        write_file(summary, github.summary(verdict, look), append=True)
    if formats and "terminal" not in formats:
        for unread in verdict.errors:
            print_error(unread)


def write_back(verdict: Verdict) -> bool:
    """Writes each verdict into the tracker of its run, and notes on stderr where; False if one could not be written."""
    from rlhealth.publishing.publish import publish

    good = True
    for run in verdict.runs:
        try:
            from rlhealth.reports.words import clean

            sys.stderr.write(f"note: written to {clean(publish(run))}\n")
        except RlhealthError as error:
            print_error(error)
            good = False
    return good
