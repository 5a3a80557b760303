"""The JSON report, schema rlhealth.report/1: strictly valid, for programs; report.schema.json beside this file
describes it."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from typing import Any

from rlhealth import __version__
from rlhealth.reports import ReportOptions, words
from rlhealth.reports.stories import stories
from rlhealth.reports.strict_json import strict
from rlhealth.verdict.cost import cost_of
from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict, Verdict, counts
from rlhealth.verdict.vitals import Vital, vitals

SCHEMA = "rlhealth.report/1"


def render(verdict: Verdict, look: ReportOptions) -> str:
    """The whole verdict as one JSON object. A non-finite number is the string "NaN", "Infinity" or "-Infinity"."""
    text = json.dumps(strict(report(verdict)), indent=1, ensure_ascii=look.ascii, allow_nan=False, default=_plain)
    return "\n".join(map(_printable, text.split("\n")))


def _printable(line: str) -> str:
    return line if line.isprintable() else "".join(one if one.isprintable() else _escape(one) for one in line)


def _plain(value: Any) -> Any:
    """A number of numpy, or anything else that settings may hold, as JSON knows it."""
    return strict(value.item()) if hasattr(value, "item") else str(value)


def _escape(character: str) -> str:
    """JSON leaves C1 controls and bidi overrides as they are; a terminal or an editor may act on them."""
    return "".join(
        f"\\u{unit:04x}"
        for unit in struct.unpack(
            ">" + "H" * (1 + (ord(character) > 0xFFFF)), character.encode("utf-16-be", "surrogatepass")
        )
    )


def report(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain dictionaries and lists; numbers may still be non-finite."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "verdict": verdict.verdict,
        "exit_code": verdict.exit_code,
        "gate": {
            "fail_on": str(verdict.gate),
            "exit_zero": verdict.gate.exit_zero,
            "require": list(verdict.gate.require),
            "min_steps": verdict.gate.min_steps,
            "strict": verdict.gate.strict,
            "fail_on_past": verdict.gate.fail_on_past,
        },
        "counts": counts(verdict),
        "runs": [one_run(run) for run in verdict.runs],
        "errors": [
            {"location": error.location, "error": error.message, "hint": error.hint} for error in verdict.errors
        ],
        "left_out": [{"location": one.location, "reason": one.reason} for one in verdict.left_out],
        "unmet": [{"run": run.name, "require": name} for run, name in verdict.unmet],
        "seconds": verdict.seconds,
    }


def one_run(run: RunVerdict) -> dict[str, Any]:
    """One run of the report."""
    translation = run.translation
    spent = cost_of(run)
    return {
        "run": run.name,
        "source": {"kind": run.run.place.kind, "location": run.run.place.location},
        "framework": translation.framework,
        "framework_version": translation.version,
        "framework_assumed": list(translation.assumed),
        "state": run.state,
        "verdict": run.verdict,
        "no_answer": run.no_answer or None,
        "steps": {
            "first": run.run.first_step,
            "last": run.run.last_step,
            "points": max((len(one) for one in run.run.series.values()), default=0),
        },
        "findings": [one_finding(one) for cause, following in stories(run) for one in (cause, *following)],
        "vitals": [one_vital(one) for one in vitals(run)],
        "cost": None if spent is None else asdict(spent),
        "skipped": [{"rule": one.rule, "family": one.family, "reason": one.reason} for one in run.skipped],
        "quiet": list(run.quiet),
        "ignored": [
            {"rule": one.finding.rule, "reason": one.reason, "finding": one_finding(one.finding)} for one in run.ignored
        ],
        "metrics": [
            {"metric": name, "tag": one.tag, "unit": one.unit, "points": len(one)}
            for name, one in translation.metrics.items()
        ],
        "unrecognised": list(translation.unrecognised),
        "problems": list(run.run.problems),
        "notes": list(run.run.notes),
        "resumed_at": list(run.run.resumed_at),
        "seconds": run.seconds,
    }


def one_vital(one: Vital) -> dict[str, Any]:
    """One vital sign of the report; `from` and `to` are in `unit`."""
    return {
        "sign": one.id,
        "title": one.title,
        "state": str(one.state),
        "metric": one.metric.name if one.metric is not None else None,
        "unit": one.metric.unit if one.metric is not None else None,
        "from": one.start,
        "to": one.end,
        "trend": one.trend or None,
        "moving": one.moving,
        "rule": one.finding.rule if one.finding is not None else None,
        "said": words.vital(one),
    }


def one_condition(one: Evidence) -> dict[str, Any]:
    """One condition of a finding: what it measured, and its limit."""
    return {
        "metric": one.metric,
        "tag": one.tag,
        "unit": one.unit,
        "measure": one.measure,
        "measured": one.measured,
        "step": one.step,
        "value": one.value,
        "error": one.error,
        "limit": one.limit,
        "side": one.side,
        "standard_errors": one.sure,
    }


def one_finding(one: Finding) -> dict[str, Any]:
    """One finding of the report; the advice is under `try`."""
    return {
        "rule": one.rule,
        "family": one.family,
        "severity": str(one.severity),
        "title": one.title,
        "metric": one.metric,
        "tag": one.tag,
        "unit": one.unit,
        "first_step": one.first_step,
        "raised_step": one.raised_step,
        "last_step": one.last_step,
        "active": one.active,
        "state": str(one.state),
        "from_start": one.from_start,
        "worst_severity": str(one.worst_severity),
        "worst_step": one.worst_step,
        "worst_value": one.worst_value,
        "limit": one.limit,
        "side": one.side,
        "measured": one.measured,
        "conditions": [one_condition(part) for part in one.conditions],
        "message": one.message,
        "why": one.why,
        "try": list(one.advice),
        "source": one.source,
        "explained_by": one.explained_by,
        "evidence": list(one.evidence),
        "against": list(one.against),
        "rivals": [{"rule": rule, "apart": apart} for rule, apart in one.rivals],
        "changes": [
            {
                "option": change.option,
                "setting": change.setting,
                "from": change.before,
                "to": change.to,
                "why": change.why,
            }
            for change in one.changes
        ],
        "replaced_at": one.replaced_at,
        "episodes": [
            {
                "first_step": part.first_step,
                "raised_step": part.raised_step,
                "last_step": part.last_step,
                "active": part.active,
                "state": str(part.state),
                "from_start": part.from_start,
            }
            for part in one.episodes
        ],
    }
