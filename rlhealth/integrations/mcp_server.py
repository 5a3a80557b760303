"""An MCP server for agents: runs are listed, checked, explained and compared over stdio, with short answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlhealth import __version__
from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from rlhealth.verdict.findings import Finding
    from rlhealth.verdict.verdicts import RunVerdict, Verdict

_MOST_RUNS = 50  # runs of one answer
_MOST_FINDINGS = 8  # findings of a run in a short answer
_MOST_POINTS = 2000  # points of a series, however many are asked for
_ABOUT = (
    "rlhealth reads the logs of reinforcement-learning runs and reports whether a run is healthy, since which step it "
    "is not, why, and what to try. It only reads. `unknown` is not healthy: the reason says what was missing."
)


def server() -> MCPServer:
    """The server with its tools.

    Raises:
        RlhealthError: if the extra is not installed.
    """
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise RlhealthError(
            "the MCP server needs the package mcp, version 2 or newer", hint="pip install 'rlhealth[mcp]'"
        ) from None
    made = MCPServer("rlhealth", version=__version__, instructions=_ABOUT, log_level="ERROR")
    for tool in (list_runs, check, vitals, advise, explain, compare, series):
        made.tool(structured_output=True)(_plainly(tool))
    return made


def list_runs(where: str) -> dict[str, Any]:
    """List the runs at and below a path or address: name, tracker, steps, logged metrics. Nothing is judged.

    `where` is a file, a folder, or wandb://entity/project/run, trackio://project/run.
    """
    from rlhealth.sources.discovery.opening import open_all

    runs, errors = open_all(where)
    shown = [
        {
            "run": run.name,
            "tracker": run.place.kind,
            "location": run.place.location,
            "steps": [run.first_step, run.last_step],
            "metrics": len(run.series),
        }
        for run in runs[:_MOST_RUNS]
    ]
    return {"runs": shown, "more": max(0, len(runs) - _MOST_RUNS), "errors": [_error(one) for one in errors]}


def check(where: str, run: str = "", full: bool = False) -> dict[str, Any]:
    """Judge the runs at and below a path or address: verdict, findings with the step since which they hold, advice.

    `run` names one of several runs; `full` gives the whole JSON report (rlhealth.report/1), which is long.
    """
    verdict = _checked(where)
    if full:
        from rlhealth.reports.json_report import one_run, report

        return one_run(verdict.run(run)) if run else report(verdict)
    return _short(verdict, [verdict.run(run)] if run else verdict.runs)


def vitals(where: str, run: str = "") -> dict[str, Any]:
    """Give the eight vital signs of a run: reward, learning signal, policy, exploration, completions, numbers, critic,
    pace; each with its state, its metric from the start to the end, and what is known of it.

    `run` names one of several runs.
    """
    from rlhealth.reports.json_report import one_vital
    from rlhealth.verdict.vitals import vitals as signs_of

    one = _one(where, run)
    return {"run": one.name, "verdict": one.verdict, "vitals": [one_vital(sign) for sign in signs_of(one)]}


def advise(where: str, run: str = "") -> dict[str, Any]:
    """Say what to change in a run, in its trainer's own options, or where to look, and what more to log.

    Nothing is written: change it, train again, and ask again. `run` names one of several runs.
    """
    from rlhealth.metrics.to_log import to_log
    from rlhealth.verdict.advised import advice_of

    one = _one(where, run)
    advice = advice_of(one)
    said: dict[str, Any] = {
        "run": one.name,
        "verdict": one.verdict,
        "cause": advice.title,
        "changes": [
            {"option": change.option, "from": change.before, "to": change.to, "why": change.why}
            for change in advice.changes
        ],
        "look": [
            {"rule": look.rule, "metric": look.metric, "steps": [look.first, look.last], "advice": list(look.advice)}
            for look in advice.looks
        ],
        "log": [
            {"option": more.option, "value": more.value, "gives": more.gives}
            for more in to_log(one.run, one.translation)
        ],
    }
    reason = advice.reason or one.no_answer
    return said | ({"reason": reason} if reason else {})


def explain(rule: str) -> dict[str, Any]:
    """Explain a rule or a family of rules: when it fires, why it matters, what to try, and where its limit comes
    from."""
    from rlhealth.rules.loading import load_rules, rules_named
    from rlhealth.rules.words import advice, in_words, scope, why

    chosen = rules_named([rule], load_rules())
    return {
        "rules": [
            {
                "rule": one.id,
                "family": one.family,
                "severity": one.severity,
                "title": one.title,
                "fires": in_words(one),
                "applies_to": scope(one),
                "why": why(one),
                "try": advice(one),
                "sources": [source.text for source in one.source],
            }
            for one in chosen
        ]
    }


def compare(where: str, baselines: list[str]) -> dict[str, Any]:
    """Report where runs left the range of two or more known-good runs of the same task, metric by metric."""
    from rlhealth.comparison.compare import compare as compare_runs

    verdict = compare_runs(where, baselines)
    return _short(verdict, verdict.runs)


def series(where: str, metric: str, run: str = "", points: int = 50) -> dict[str, Any]:
    """Give one metric of a run over its steps, thinned to `points` in which every extreme is kept.

    `metric` is a canonical name such as reward, kl or entropy, or the logged tag; `run` names one of several runs.
    """
    import difflib

    one = _one(where, run)
    canonical = one.translation.metrics.get(metric)
    found = canonical if canonical is not None else one.run.series.get(metric)
    if found is None:
        names = sorted({*one.translation.metrics, *one.run.series})
        near = difflib.get_close_matches(metric, names, 3, 0.4) or names[:10]
        raise RlhealthError(f"{one.name} has no metric {metric!r}", hint=f"it has {', '.join(near)}")
    kept = _thinned(found.values, max(4, min(points, _MOST_POINTS)))
    return {
        "run": one.name,
        "metric": metric,
        "tag": found.tag,
        "unit": canonical.unit if canonical is not None else "",
        "logged": len(found),
        "points": [[int(found.steps[index]), float(found.values[index])] for index in kept],
    }


def _thinned(values: Any, most: int) -> list[int]:
    """The places of at most `most` values: both ends, and of each stretch the smallest, the largest and one that is not
    finite."""
    import numpy as np

    count = len(values)
    if count <= most:
        return list(range(count))
    kept = {0, count - 1}
    for part in np.array_split(np.arange(1, count - 1), max(1, (most - 2) // 2)):
        finite = part[np.isfinite(values[part])]
        odd = part[~np.isfinite(values[part])]
        if len(finite):
            kept |= {int(finite[np.argmin(values[finite])])}
        kept |= {int(odd[0])} if len(odd) else {int(finite[np.argmax(values[finite])])} if len(finite) else set()
    return sorted(kept)


def _checked(where: str) -> Verdict:
    """The verdict by the settings of the working folder, as the command line has it."""
    from rlhealth.check import check as check_runs
    from rlhealth.rules.loading import choose, load_rules
    from rlhealth.settings.project import apply, load_settings

    settings = load_settings()
    judged_by = apply(settings, load_rules(*settings.rule_folders))
    return check_runs(
        where,
        rules=choose(judged_by, settings.select),
        aliases=settings.aliases,
        ignore=settings.ignore,
        ended=settings.ended,
    )


def _one(where: str, run: str) -> RunVerdict:
    """The run of that name; the only one where no name is given. Raises RlhealthError, with the names, for another."""
    verdict = _checked(where)
    if not verdict.runs and verdict.errors:
        raise verdict.errors[0]
    return verdict.run(run) if run or len(verdict.runs) > 1 else verdict.runs[0]


def _short(verdict: Verdict, runs: list[RunVerdict]) -> dict[str, Any]:
    from rlhealth.reports import words
    from rlhealth.reports.stories import worst_first

    shown = worst_first(runs)[:_MOST_RUNS]
    return {
        "verdict": verdict.verdict,
        "summary": words.plain(words.closing(verdict)),
        "runs": [_short_run(one) for one in shown],
        "more": max(0, len(runs) - len(shown)),
        "errors": [_error(one) for one in verdict.errors],
    }


def _short_run(run: RunVerdict) -> dict[str, Any]:
    from rlhealth.verdict.vitals import vitals

    causes = run.causes
    said: dict[str, Any] = {
        "run": run.name,
        "verdict": run.verdict,
        "framework": run.translation.framework,
        "state": run.state,
        "last_step": run.run.last_step,
        "vitals": {one.id: str(one.state) for one in vitals(run)},
        "findings": [_short_finding(run, one) for one in causes[:_MOST_FINDINGS]],
    }
    more = len(causes) - _MOST_FINDINGS
    return (
        said
        | ({"more_findings": more} if more > 0 else {})
        | ({"reason": run.no_answer} if run.no_answer else {})
        | ({"problems": run.run.problems[:3]} if run.run.problems else {})
    )


def _short_finding(run: RunVerdict, one: Finding) -> dict[str, Any]:
    following = [other.rule for other in run.consequences(one)]
    return {
        "rule": one.rule,
        "severity": str(one.severity),
        "state": str(one.state),
        "since_step": one.since_step,
        "first_step": one.first_step,
        "message": one.message,
        "try": list(one.advice[:2]),
    } | ({"explains": following} if following else {})


def _error(error: RlhealthError) -> dict[str, str]:
    return {"location": error.location, "error": error.message, "hint": error.hint}


def _plainly(tool: Any) -> Any:
    """The tool with numbers that strict JSON knows, and with an error of rlhealth as one plain line and what to try."""
    from functools import wraps

    from rlhealth.reports.strict_json import strict

    @wraps(tool)
    def answered(*args: Any, **named: Any) -> dict[str, Any]:
        from mcp.server.mcpserver.exceptions import ToolError

        try:
            found: dict[str, Any] = strict(tool(*args, **named))
            return found
        except RlhealthError as error:
            raise ToolError(f"{error.message}; {error.hint}" if error.hint else error.message) from None

    return answered
