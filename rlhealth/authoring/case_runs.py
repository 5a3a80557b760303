"""Runs `*.test.yaml`: the engine judges each case, and its findings are compared with the expected ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlhealth.authoring.cases import (
    Case,
    Expected,
    TestFile,
    newest_time,
    read_cases,
    run_of,
    test_files,
    translation_of,
)
from rlhealth.engine.judge import NEVER, Judge
from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import text_of
from rlhealth.rules.model import Rule
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict

CLOSE = 0.01  # numbers match within one percent, because cases are written by hand


@dataclass(frozen=True)
class Outcome:
    """The outcome of one case: as expected if `got` is empty.

    Attributes:
        exp, got: what was expected and what was found instead, one line each.
    """

    rule: str
    case: str
    location: str
    exp: list[str] = field(default_factory=list)
    got: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether the result was as expected."""
        return not self.got


def find_cases(
    paths: Iterable[Path], rules: Sequence[Rule], wanted: Collection[str] = ()
) -> list[tuple[str, TestFile]]:
    """Every test file at and below those places, with its location.

    Args:
        wanted: ids of rules: only files that name one of them are read; all files if it is empty.

    Raises:
        RlhealthError: for a place that is not there, or a file that cannot be used.
    """
    known = {rule.id: rule for rule in rules}
    found: list[tuple[str, TestFile]] = []
    for path in paths:
        if not path.is_dir() and not path.is_file():
            raise RlhealthError(
                f"no rule tests at {path}", hint="give a folder, or a file called <rule>.test.yaml", location=str(path)
            )
        for file in [path] if path.is_file() else test_files(path):
            if path.is_file() and not file.name.endswith((".test.yaml", ".test.yml")):
                file = Path(str(file)).with_name(
                    file.name.partition(".")[0] + ".test.yaml"
                )  # a rule names its own test
                if not file.is_file():
                    raise RlhealthError(
                        f"{path}: there is no {file.name} beside it",
                        hint="`rlhealth rules new` prints one to start from",
                        location=str(path),
                    )
            text = text_of(file)
            if not wanted or any(one in text for one in wanted):
                found.append((str(file), read_cases(text, str(file), known)))
    return found


def run_case(case: Case, rule: Rule, rules: Sequence[Rule], location: str = "") -> Outcome:
    """Judges one case by its rule; by all rules, if the rule depends on other findings or on how a run ends."""
    verdict = judge_case(case, rule, rules)
    found = [one for one in verdict.findings if one.rule == rule.id]
    outcome = Outcome(rule.id, case.name, location)
    if isinstance(case.expect, str):
        wanted = {"quiet": rule.id in verdict.quiet, "skipped": any(one.rule == rule.id for one in verdict.skipped)}[
            case.expect
        ]
        if not wanted:
            outcome.exp.append(case.expect)
            outcome.got.extend(_said(verdict, rule, found))
        return outcome
    misses = [_misses(case.expect, one, verdict) for one in found]
    if not found:
        outcome.exp.append(_shown(case.expect))
        outcome.got.extend(_said(verdict, rule, found))
    elif all(misses):
        nearest = min(misses, key=len)
        outcome.exp.extend(f"{name}: {wanted}" for name, wanted, _ in nearest)
        outcome.got.extend(f"{name}: {seen}" for name, _, seen in nearest)
    return outcome


def judge_case(case: Case, rule: Rule, rules: Sequence[Rule], until: int | None = None) -> RunVerdict:
    """The verdict on a case's run, or on its part up to step `until`."""
    run = run_of(case)
    translation = translation_of(case, run, rule)
    alone = rule.cause is None and rule.when is not None and bool(rule.when.conditions)
    judge = Judge(run, [rule] if alone else rules, translation=translation)
    judge.advance(NEVER if until is None else until)
    return judge.verdict(newest_time(run) + case.idle, ended=case.ended)


def _misses(expected: Expected, found: Finding, verdict: RunVerdict) -> list[tuple[str, object, object]]:
    """Each value that is not as expected: its name, the expected and the found value."""
    seen = {
        "severity": str(found.worst_severity),
        "metric": found.metric,
        "first_step": found.first_step,
        "raised_step": found.raised_step,
        "last_step": found.last_step,
        "worst_step": found.worst_step,
        "active": found.active,
        "state": str(found.state),
        "from_start": found.from_start,
        "episodes": len(found.episodes),
        "value": found.worst_value,
        "limit": found.limit,
        "message": found.message,
        "advice": "\n".join(found.advice),
        "explains": [one.rule for one in verdict.consequences(found)],
        "changes": {one.option: one.to for one in found.changes},
    }
    wanted = expected.model_dump(exclude_none=True)
    return [(name, one, seen[name]) for name, one in wanted.items() if not _holds(name, one, seen[name])]


def _holds(name: str, wanted: object, seen: object) -> bool:
    if name in ("message", "advice"):
        return str(wanted) in str(seen)
    if name == "explains":
        return isinstance(wanted, tuple) and isinstance(seen, list) and set(wanted) <= set(seen)
    if name in ("value", "limit") and isinstance(wanted, int | float) and isinstance(seen, int | float):
        return wanted == seen or math.isclose(wanted, seen, rel_tol=CLOSE) or (math.isnan(wanted) and math.isnan(seen))
    return wanted == seen


def _said(verdict: RunVerdict, rule: Rule, found: Sequence[Finding]) -> list[str]:
    if found:
        return [
            f"{one.severity} from step {one.first_step} (raised at {one.raised_step}): {one.message}" for one in found
        ]
    reason = next((one.reason for one in verdict.skipped if one.rule == rule.id), None)
    return [f"skipped: {reason}" if reason else "quiet"]


def _shown(expected: Expected) -> str:
    return ", ".join(f"{name}: {one}" for name, one in expected.model_dump(exclude_none=True).items()) or "a finding"


def fires(case: Case) -> bool:
    """Whether the case expects a finding."""
    return isinstance(case.expect, Expected)
