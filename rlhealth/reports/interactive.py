"""A verdict in Python and notebooks: a few lines of text, the HTML report in a frame, a table of findings, a file by
its suffix."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlhealth.errors import RlhealthError
from rlhealth.reports import ReportOptions, words, write
from rlhealth.reports.destination import refuse_logs
from rlhealth.reports.stories import worst_first
from rlhealth.system.files import write_whole
from rlhealth.verdict.findings import Severity
from rlhealth.verdict.verdicts import RunVerdict, Verdict
from rlhealth.verdict.vitals import vitals

if TYPE_CHECKING:
    import pandas as pd

_MOST_RUNS = 5  # runs that the text of a verdict names
_MOST_FINDINGS = 3  # findings that the text of a run names
_LONGEST = 160  # characters of a line

#: Suffix -> report format of `save`.
FORMATS = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".md": "markdown",
    ".csv": "csv",
    ".sarif": "sarif",
    ".xml": "junit",
    ".txt": "terminal",
}
_TEXTS = (
    "run",
    "framework",
    "verdict",
    "severity",
    "rule",
    "family",
    "metric",
    "tag",
    "state",
    "explained_by",
    "message",
)
_STEPS = ("first_step", "raised_step", "last_step", "worst_step")
_NUMBERS = ("worst_value", "limit")
COLUMNS = (*_TEXTS[:8], *_STEPS, *_NUMBERS, *_TEXTS[8:])


def text_of(run: RunVerdict) -> str:
    """One run in a few lines: its verdict, its steps, its worst findings."""
    causes = [one for one in run.causes if one.severity > Severity.INFO]
    lines = [_cut(f"<RunVerdict {run.name}: {run.verdict}{_extent(run)}{_why(run)}>")]
    lines += [
        _cut(f"  {one.severity} {words.since(one)}: {one.rule}: {one.message}") for one in causes[:_MOST_FINDINGS]
    ]
    more = len(run.findings) - len(causes[:_MOST_FINDINGS])
    return "\n".join([*lines, f"  and {more} more: .findings, .frame()"] if more > 0 else lines)


def text_of_all(verdict: Verdict) -> str:
    """A verdict in a few lines: the closing line, the worst runs, what could not be read."""
    if len(verdict.runs) == 1 and not verdict.errors:
        return text_of(verdict.runs[0]).replace("<RunVerdict", "<Verdict", 1)
    runs = worst_first(verdict.runs)
    lines = [_cut(f"<Verdict {verdict.verdict}: {words.closing(verdict)}>")]
    lines += [_cut(f"  {run.name}: {words.tally(run)}{_why(run)}") for run in runs[:_MOST_RUNS]]
    lines += [_cut(f"  not read: {error.message}") for error in verdict.errors[:_MOST_FINDINGS]]
    more = len(runs) - _MOST_RUNS
    return "\n".join([*lines, f"  and {words.plural(more, 'run')} more: .runs"] if more > 0 else lines)


def framed(verdict: Verdict) -> str:
    """The HTML report as a frame for a notebook: its styles and scripts stay inside, and it cannot reach the
    notebook."""
    several = len(verdict.runs) + len(verdict.errors) > 1 or any(run.findings for run in verdict.runs)
    size = f"box-sizing:border-box;width:100%;height:{640 if several else 420}px"
    style = f"{size};border:1px solid #8884;border-radius:6px;resize:vertical"
    page = escape(write(verdict, "html"), quote=True)
    title = escape(words.clean(f"rlhealth: {verdict.verdict}"), quote=True)
    return f'<iframe title="{title}" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'


def frame(runs: list[RunVerdict]) -> pd.DataFrame:
    """One row a finding, worst runs first; a run without findings has one row with its verdict and why."""
    import pandas as pd  # late: half a second, and only tables need it

    rows: list[dict[str, Any]] = []
    for run in worst_first(runs):
        about = {"run": run.name, "framework": run.translation.framework, "verdict": run.verdict}
        for one in run.findings:
            shown = {name: getattr(one, name) for name in COLUMNS[3:]}
            rows.append(about | shown | {"severity": str(one.severity), "state": str(one.state)})
        if not run.findings:
            rows.append(about | {"message": run.no_answer})
    made = pd.DataFrame(rows, columns=list(COLUMNS))
    types = dict.fromkeys(_TEXTS, "string") | dict.fromkeys(_STEPS, "Int64") | dict.fromkeys(_NUMBERS, "float64")
    return made.astype(types)


def vitals_frame(runs: list[RunVerdict]) -> pd.DataFrame:
    """Eight rows a run, worst runs first: each vital sign, its state, and the metric that decides it in its unit."""
    import pandas as pd

    rows = [
        {
            "run": run.name,
            "vital": one.id,
            "state": str(one.state),
            "metric": one.metric.name if one.metric is not None else None,
            "unit": one.metric.unit if one.metric is not None else None,
            "start": one.start,
            "end": one.end,
            "trend": one.trend,
            "said": one.said,
        }
        for run in worst_first(runs)
        for one in vitals(run)
    ]
    texts = ("run", "vital", "state", "metric", "unit")
    made = pd.DataFrame(rows, columns=[*texts, "start", "end", "trend", "said"])
    return made.astype(dict.fromkeys((*texts, "trend", "said"), "string") | {"start": "float64", "end": "float64"})


def save(verdict: Verdict, path: str | Path) -> Path:
    """Writes the report in the format of the path's suffix, whole or not at all. Returns the path.

    Raises:
        RlhealthError: for a suffix that no format has, a file that cannot be written, and one of the logs judged.
    """
    file = Path(path).expanduser()
    name = "gitlab" if file.name == "gl-code-quality-report.json" else FORMATS.get(file.suffix.lower())
    if name is None:
        raise RlhealthError(
            f"{path}: no report format has the suffix {file.suffix or 'of a name without one'!r}",
            hint=f"the suffixes are {', '.join(FORMATS)}",
            location=str(path),
        )
    refuse_logs(str(file), verdict)
    try:
        write_whole(file, write(verdict, name, ReportOptions(show_all=True)))
    except OSError as error:
        raise RlhealthError(
            f"{path}: {error.strerror or error}", hint="save into a folder that exists", location=str(path)
        ) from None
    return file


def _extent(run: RunVerdict) -> str:
    span = words.span_of(run)
    return f", steps {span[0]} to {span[1]}, {run.state}" if span else ""


def _why(run: RunVerdict) -> str:
    return f": {run.no_answer}" if run.verdict == "unknown" else ""


def _cut(line: str) -> str:
    """One line, harmless for a terminal."""
    shown = words.clean(line).replace(words.THIN, " ")
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
