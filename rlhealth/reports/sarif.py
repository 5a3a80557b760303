"""SARIF 2.1.0 for code scanning: a finding is a result with a fingerprint that outlives the run's growth, a rule
carries its help.
"""

from __future__ import annotations

import json
from typing import Any

from rlhealth import __version__
from rlhealth.reports import ReportOptions, words
from rlhealth.reports.prints import address, fingerprint
from rlhealth.reports.stories import everything
from rlhealth.reports.strict_json import strict
from rlhealth.verdict.findings import Finding, Severity
from rlhealth.verdict.verdicts import RunVerdict, Verdict

_LEVELS = {Severity.CRITICAL: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_LONGEST = 4000


def render(verdict: Verdict, look: ReportOptions) -> str:
    """One SARIF run: results worst first, ignored findings as suppressed results, what could not run or be read as
    notifications.
    """
    reported = everything(verdict)
    ignored = [(run, one) for run in verdict.runs for one in run.ignored]
    rules = {one.rule: _rule(one) for _, one in [*reported, *((run, one.finding) for run, one in ignored)]}
    places = {rule: number for number, rule in enumerate(rules)}
    results = [_result(run, one, places) for run, one in reported]
    results += [
        _result(run, one.finding, places) | {"suppressions": [{"kind": "external", "justification": _text(one.reason)}]}
        for run, one in ignored
    ]
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "rlhealth",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": list(rules.values()),
                    }
                },
                "automationDetails": {"id": "rlhealth/"},
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": verdict.exit_code != 2,
                        "exitCode": verdict.exit_code,
                        "exitCodeDescription": words.closing(verdict),
                        "toolExecutionNotifications": _unread(verdict),
                        "toolConfigurationNotifications": _skipped(verdict),
                    }
                ],
                "results": results,
            }
        ],
    }
    return json.dumps(strict(log), indent=1, ensure_ascii=False, allow_nan=False)


def _rule(one: Finding) -> dict[str, Any]:
    advice = "".join(f"\n- {_text(part)}" for part in one.advice)
    why = _text(" ".join(one.why.split())) or _text(one.title)
    return {
        "id": one.rule,
        "shortDescription": {"text": _text(one.title)},
        "fullDescription": {"text": why},
        "help": {
            "text": f"{why}\n\nWhat to try:{advice or ' nothing is known to help'}\n\nSource: "
            f"{_text(one.source) or 'none'}",
            "markdown": f"{why}\n\n**What to try**\n{advice}\n",
        },
        "defaultConfiguration": {"level": _LEVELS[one.severity]},
        "properties": {"tags": ["reinforcement-learning", one.family], "precision": "high"},
    }


def _result(run: RunVerdict, one: Finding, places: dict[str, int]) -> dict[str, Any]:
    since = words.since(one).replace(words.THIN, "")
    location = run.run.place.location or run.name
    name = words.clean(words.shortened(run.name, _LONGEST))
    return {
        "ruleId": one.rule,
        "ruleIndex": places[one.rule],
        "level": _LEVELS[one.severity],
        "message": {"text": _text(f"{run.name}: {one.message} ({since})")},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": address(location)}, "region": {"startLine": 1}},
                "logicalLocations": [
                    {"name": name, "fullyQualifiedName": f"{name}/{words.clean(one.metric)}", "kind": "member"}
                ],
            }
        ],
        "partialFingerprints": {"rlhealth/v1": fingerprint(run, one)},
        "properties": {
            "metric": words.clean(one.metric),
            "tag": words.clean(one.tag),
            "firstStep": one.first_step,
            "raisedStep": one.raised_step,
            "lastStep": one.last_step,
            "active": one.active,
            "state": str(one.state),
            "worstStep": one.worst_step,
            "worstValue": one.worst_value,
            "limit": one.limit,
            "explainedBy": one.explained_by,
        },
    }


def _unread(verdict: Verdict) -> list[dict[str, Any]]:
    said = [(f"{error.location}: {error.message} {error.hint}".strip(), "error") for error in verdict.errors]
    blank = [run for run in verdict.runs if run.no_answer]
    said += [(f"{run.name}: {run.no_answer}", "note" if verdict.is_aside(run) else "error") for run in blank]
    said += [(f"{run.name}: required rule could not run: {name}", "error") for run, name in verdict.unmet]
    said += [(f"{run.name}: {problem}", "warning") for run in verdict.runs for problem in run.run.problems]
    said += [(f"{one.location}: not read: {one.reason}", "warning") for one in verdict.left_out]
    return [{"level": level, "message": {"text": _text(text)}} for text, level in said]


def _skipped(verdict: Verdict) -> list[dict[str, Any]]:
    return [
        {
            "level": "note",
            "associatedRule": {"id": words.clean(one.rule)},
            "message": {"text": _text(f"{run.name}: {one.rule} could not run: {one.reason}")},
        }
        for run in verdict.runs
        for one in run.skipped
    ]


def _text(text: str) -> str:
    """Text as SARIF messages write it (3.11.5 and 3.11.6): braces doubled, so that none is a placeholder, brackets
    escaped, so that none is a link.
    """
    shown = words.clean(words.shortened(" ".join(text.split()) if "\n" in text else text, _LONGEST))
    return shown.replace("{", "{{").replace("}", "}}").replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
