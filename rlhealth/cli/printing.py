"""Printing: each report where it is to go, errors on stderr; stdout is the answer."""

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
    """One line for what went wrong, one for what to try, on stderr; nothing from a log can control the terminal."""
    from rlhealth.reports.words import clean

    sys.stderr.write(f"error: {clean(error.message)}\n")
    if error.hint:
        sys.stderr.write(f"hint: {clean(error.hint)}\n")


def pairs(formats: list[str], outputs: list[str], said: list[str]) -> list[tuple[str, str]]:
    """Each format with its file, `-` for stdout: in the order in which they were said, an output belongs to the
    format before it.
    """
    found = [[name, "-"] for name in formats]
    rest = iter(outputs)
    at = -1
    for word in said:
        if word == "--format" or word.startswith(("-f", "--format=")):
            at += 1
        elif word == "--output" or word.startswith(("-o", "--output=")):
            found[max(at, 0)][1] = next(rest, "-")
    for file in rest:  # not said on this command line: by their order
        next(one for one in found if one[1] == "-")[1] = file
    return [(name, file) for name, file in found]


def write_file(file: str, text: str, *, append: bool = False, verdict: Verdict | None = None) -> None:
    """Writes a report to a file, whole or not at all.

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
    """Prints a report; the commands in GitHub's annotations are ours and pass."""
    raw = getattr(sys.stdout, "raw", None) if format == "github" else None
    sys.stdout.write(text) if raw is None or not callable(raw) else raw(text)


def report(verdict: Verdict, formats: list[str] | None, outputs: list[str] | None, look: ReportOptions) -> None:
    """Writes each format where it is to go: an `-o` belongs to the `-f` before it; a format without one goes to stdout.

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
    """Writes each verdict into the tracker of its run, and says on stderr where; False if one could not be."""
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
