"""GitLab's Code Quality report: each finding as an issue of the merge request, what could not be judged as well."""

from __future__ import annotations

import json
from typing import Any

from rlhealth.reports import ReportOptions, words
from rlhealth.reports.prints import address, fingerprint
from rlhealth.reports.stories import everything
from rlhealth.verdict.findings import Severity
from rlhealth.verdict.verdicts import RunVerdict, Verdict

_SEVERITY = {Severity.CRITICAL: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def render(verdict: Verdict, look: ReportOptions) -> str:
    """A JSON array of issues. A fingerprint is of run, rule and metric, so that the same finding in a later pipeline
    is the same issue.
    """
    issues = [
        _issue(
            f"{run.name}: {one.title}, {words.since(one).replace(words.THIN, '')}: {one.message}",
            one.rule,
            _SEVERITY[one.severity],
            run.run.place.location or run.name,
            fingerprint(run, one),
        )
        for run, one in everything(verdict)
    ]
    issues += [
        _issue(
            f"{error.message} {error.hint}".strip(),
            "unreadable",
            "blocker",
            error.location or "rlhealth",
            fingerprint(error.location, error.message),
        )
        for error in verdict.errors
    ]
    issues += [
        _issue(
            f"{run.name}: {run.no_answer}",
            "unknown",
            "info" if verdict.is_aside(run) else "blocker",
            _where(run),
            fingerprint(run, "unknown"),
        )
        for run in verdict.runs
        if run.no_answer
    ]
    issues += [
        _issue(
            f"{run.name}: a required rule could not run: {name}",
            "required",
            "blocker",
            _where(run),
            fingerprint(run, f"required {name}"),
        )
        for run, name in verdict.unmet
    ]
    issues += [
        _issue(f"not read: {one.reason}", "left-out", "info", one.location, fingerprint(one.location, one.reason))
        for one in verdict.left_out
    ]
    hidden = words.hidden(verdict)
    if hidden:
        issues.append(
            _issue(
                f"Not judged or not shown: {hidden}",
                "not-judged",
                "info",
                _where(verdict.runs[0]) if verdict.runs else "rlhealth",
                fingerprint("not-judged", hidden),
            )
        )
    return json.dumps(issues, indent=1, ensure_ascii=False)


def _where(run: RunVerdict) -> str:
    return run.run.place.location or run.name


def _issue(description: str, check: str, severity: str, location: str, mark: str) -> dict[str, Any]:
    return {
        "description": words.clean(words.shortened(description, 2000)),
        "check_name": words.clean(check),
        "fingerprint": mark,
        "severity": severity,
        "location": {"path": words.clean(address(location)), "lines": {"begin": 1}},
    }
