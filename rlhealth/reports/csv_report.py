"""The CSV report: one row a finding, and a row for whatever was ignored, skipped or unreadable, so that an empty
table never means health.
"""

from __future__ import annotations

import csv
from io import StringIO

from rlhealth.reports import ReportOptions
from rlhealth.reports.stories import stories, worst_first
from rlhealth.reports.strict_json import strict
from rlhealth.reports.words import clean
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict, Verdict

COLUMNS = (
    "kind",
    "run",
    "tracker",
    "location",
    "framework",
    "state",
    "verdict",
    "severity",
    "rule",
    "family",
    "metric",
    "tag",
    "unit",
    "first_step",
    "raised_step",
    "last_step",
    "active",
    "worst_step",
    "worst_value",
    "limit",
    "explained_by",
    "message",
)
_FORMULA = ("=", "+", "-", "@")


def render(verdict: Verdict, look: ReportOptions) -> str:
    """The table; text that a spreadsheet would take for a formula has an apostrophe before it."""
    out = StringIO()
    table = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    table.writeheader()
    for run in worst_first(verdict.runs):
        for row in _rows(run):
            table.writerow({key: _cell(value) for key, value in row.items()})
    for error in verdict.errors:
        table.writerow(
            {
                key: _cell(value)
                for key, value in {
                    "kind": "unreadable",
                    "location": error.location,
                    "verdict": "unknown",
                    "message": error.message,
                }.items()
            }
        )
    for left in verdict.left_out:
        about = {"kind": "left-out", "location": left.location, "message": f"not read: {left.reason}"}
        table.writerow({key: _cell(value) for key, value in about.items()})
    return out.getvalue()


def _rows(run: RunVerdict) -> list[dict[str, object]]:
    about = {
        "run": run.name,
        "tracker": run.run.place.kind,
        "location": run.run.place.location,
        "framework": run.translation.framework,
        "state": run.state,
        "verdict": run.verdict,
    }
    found = [_finding("finding", one) for cause, following in stories(run) for one in (cause, *following)]
    ignored = [
        _finding("ignored", one.finding) | {"message": f"{one.finding.message} (ignored: {one.reason})"}
        for one in run.ignored
    ]
    skipped: list[dict[str, object]] = [
        {"kind": "skipped", "rule": one.rule, "family": one.family, "message": one.reason} for one in run.skipped
    ]
    rows = found or [{"kind": run.verdict, "message": run.no_answer}]
    return [about | row for row in rows + ignored + skipped]


def _finding(kind: str, one: Finding) -> dict[str, object]:
    names = COLUMNS[COLUMNS.index("rule") : COLUMNS.index("message") + 1]
    return {"kind": kind, "severity": str(one.severity)} | {name: strict(getattr(one, name)) for name in names}


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return "" if value is None else value
    text = clean(value)
    return text if value == "-Infinity" or not text.startswith(_FORMULA) else f"'{text}"
