"""JUnit XML: a run is a suite, a rule is a case; what is at or above the gate fails, what could not run is skipped."""

from __future__ import annotations

from xml.etree import ElementTree as Tree

from rlhealth.errors import RlhealthError
from rlhealth.reports import ReportOptions, words
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict, Verdict

_LONGEST = 4000


def render(verdict: Verdict, look: ReportOptions) -> str:
    """The suites as XML 1.0. Findings below the gate pass, with their message as output; the last suite holds the
    closing line.
    """
    suites = (
        [_suite(verdict, run) for run in verdict.runs]
        + [_unreadable(error) for error in verdict.errors]
        + [_closing(verdict)]
    )
    cases = [case for suite in suites for case in suite.iter("testcase")]
    root = Tree.Element("testsuites", {"name": "rlhealth", **_counts(cases), "time": f"{verdict.seconds:.3f}"})
    root.extend(suites)
    Tree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root, encoding="unicode")


def _suite(verdict: Verdict, run: RunVerdict) -> Tree.Element:
    missing = {name for other, name in verdict.unmet if other is run}
    by_rule: dict[str, list[Finding]] = {}
    for one in run.findings:
        by_rule.setdefault(one.rule, []).append(one)
    cases = [_found(verdict, run, rule, found) for rule, found in by_rule.items()]
    cases += [_case(run.name, rule) for rule in run.quiet]
    for ignored in run.ignored:
        cases.append(_case(run.name, ignored.finding.rule))
        _add(cases[-1], "skipped", message=f"ignored ({ignored.reason}): {ignored.finding.message}")
    for skipped in run.skipped:
        cases.append(_case(run.name, skipped.rule))
        required = skipped.rule in missing or skipped.family in missing
        _add(
            cases[-1],
            "failure" if required else "skipped",
            type="required rule could not run" if required else "",
            message=skipped.reason,
        )
    for name in sorted(missing - {one.rule for one in run.skipped} - {one.family for one in run.skipped}):
        cases.append(_case(run.name, name))
        _add(cases[-1], "failure", type="required rule could not run", message="this run was not judged by it")
    if run.no_answer:
        cases.append(_case(run.name, "judged"))
        _add(cases[-1], "skipped" if verdict.is_aside(run) else "error", type="unknown", message=run.no_answer)
    suite = Tree.Element("testsuite", {"name": _safe(run.name), **_counts(cases), "time": f"{run.seconds:.3f}"})
    facts = {
        "verdict": run.verdict,
        "state": run.state,
        "framework": run.translation.framework,
        "tracker": run.run.place.kind,
        "location": run.run.place.location,
    }
    properties = Tree.SubElement(suite, "properties")
    for name, value in facts.items():
        Tree.SubElement(properties, "property", name=name, value=_safe(value))
    suite.extend(cases)
    if run.run.problems:
        Tree.SubElement(suite, "system-err").text = _lines(run.run.problems)
    return suite


def _found(verdict: Verdict, run: RunVerdict, rule: str, found: list[Finding]) -> Tree.Element:
    case = _case(run.name, rule)
    hits = verdict.gate.hits(found)
    said = _lines([line for one in found for line in _story(one)])
    if hits:
        failure = _add(case, "failure", type=str(max(one.severity for one in hits)), message=hits[0].message)
        failure.text = said
    else:
        Tree.SubElement(case, "system-out").text = said
    return case


def _story(one: Finding) -> list[str]:
    where = words.since(one).replace(words.THIN, "")
    cause = [f"explained by {one.explained_by}"] if one.explained_by else []
    return [
        f"{one.severity}: {one.title}, {where}",
        one.message,
        *cause,
        f"why: {one.why}",
        *(f"try: {part}" for part in one.advice),
    ]


def _unreadable(error: RlhealthError) -> Tree.Element:
    name = error.location or "rlhealth"
    case = _case(name, "readable")
    _add(case, "error", type="unreadable", message=error.message).text = _safe(error.hint)
    suite = Tree.Element("testsuite", {"name": _safe(name), **_counts([case]), "time": "0.000"})
    suite.append(case)
    return suite


def _closing(verdict: Verdict) -> Tree.Element:
    case = _case("rlhealth", "summary")
    Tree.SubElement(case, "system-out").text = _lines([words.closing(verdict), *words.left_out(verdict, 1000)])
    suite = Tree.Element("testsuite", {"name": "rlhealth", **_counts([case]), "time": "0.000"})
    suite.append(case)
    return suite


def _case(run: str, rule: str) -> Tree.Element:
    return Tree.Element("testcase", {"classname": _safe(run), "name": _safe(rule), "time": "0.000"})


def _add(case: Tree.Element, tag: str, *, message: str, type: str = "") -> Tree.Element:
    return Tree.SubElement(case, tag, {"message": _safe(message)} | ({"type": type} if type else {}))


def _counts(cases: list[Tree.Element]) -> dict[str, str]:
    found = {
        name: str(sum(case.find(tag) is not None for case in cases))
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    return {"tests": str(len(cases)), **found}


def _lines(parts: list[str]) -> str:
    return "\n".join(_safe(" ".join(part.split())) for part in parts)


def _safe(text: str) -> str:
    """Text that XML 1.0 can hold: whatever it cannot is written out; ElementTree escapes the rest."""
    return words.clean(words.shortened(text, _LONGEST))
