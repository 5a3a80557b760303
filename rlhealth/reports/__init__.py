"""Reports, one file for each format: a verdict goes in, text comes out. May import verdict, engine and below."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from rlhealth.errors import RlhealthError
from rlhealth.reports.unsteered import in_format

if TYPE_CHECKING:
    from rlhealth.completions.shown import Shown
    from rlhealth.verdict.verdicts import Verdict

# Format name -> the module whose `render(verdict, look)` writes it. Modules are imported when asked for: rich and numpy
# are not free.
REPORTS = {
    "terminal": "rlhealth.reports.terminal",
    "json": "rlhealth.reports.json_report",
    "markdown": "rlhealth.reports.markdown",
    "github": "rlhealth.reports.github",
    "junit": "rlhealth.reports.junit",
    "sarif": "rlhealth.reports.sarif",
    "gitlab": "rlhealth.reports.gitlab",
    "csv": "rlhealth.reports.csv_report",
    "html": "rlhealth.reports.html",
}


@dataclass(frozen=True)
class ReportOptions:
    """How a report is shown. Only the terminal report has a width and colour; the others ignore what they cannot use.

    Attributes:
        width: columns of the terminal.
        color: whether escape sequences may be written.
        ascii: only ASCII characters may be written.
        piped: one finding per line, never wrapped or cut.
        show_all: nothing is folded away.
        quiet: only the closing line.
        completions: texts to show at findings, by run, rule and metric; none unless they were asked for. The terminal
            and the page show them, no other format does.
    """

    width: int = 80
    color: bool = False
    ascii: bool = False
    piped: bool = False
    show_all: bool = False
    quiet: bool = False
    completions: Shown = field(default_factory=dict)


def write(verdict: Verdict, format: str, look: ReportOptions | None = None) -> str:
    """The report of `verdict` in that format, ending in a newline.

    Raises:
        RlhealthError: for a format that there is not.
    """
    if format not in REPORTS:
        raise RlhealthError(f"there is no report format {format!r}", hint=f"the formats are {', '.join(REPORTS)}")
    text: str = import_module(REPORTS[format]).render(verdict, look or ReportOptions())
    text = in_format(text if text.endswith("\n") else text + "\n", format)
    return _in_ascii(text, format) if look is not None and look.ascii and not text.isascii() else text


def _in_ascii(text: str, format: str) -> str:
    """The same report for a stream that knows ASCII alone, by the means of its format."""
    if format in ("html", "junit", "markdown"):
        return text.encode("ascii", "xmlcharrefreplace").decode("ascii")
    if format in ("json", "sarif", "gitlab"):
        return "".join(one if one.isascii() else json.dumps(one)[1:-1] for one in text)
    return text.encode("ascii", "backslashreplace").decode("ascii")
