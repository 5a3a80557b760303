"""The order of reports: causes with what follows from them, runs from worst to best, the metrics that matter most."""

from __future__ import annotations

import re
from collections import Counter, deque
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlhealth.engine.earned import HOW_TO_NAME, not_recognised
from rlhealth.parsing.own_texts import read_texts
from rlhealth.sources.base.walk import natural
from rlhealth.verdict.findings import Finding, Severity
from rlhealth.verdict.verdicts import RunVerdict, Verdict

if TYPE_CHECKING:
    from rlhealth.metrics import Metric
    from rlhealth.run import Run

_RANK = {"critical": 0, "warning": 1, "unknown": 2, "healthy": 3}


def stories(run: RunVerdict) -> list[tuple[Finding, list[Finding]]]:
    """Each finding of the run exactly once: a cause with its consequences, and theirs, in time order; causes of
    others first, then the worst and earliest.
    """
    listed: list[Finding] = []
    result: list[tuple[Finding, list[Finding]]] = []

    def new(ones: list[Finding]) -> list[Finding]:
        fresh = [one for one in ones if not any(one is before for before in listed)]
        listed.extend(fresh)
        return fresh

    for cause in new(run.causes):
        following = new(run.consequences(cause))
        for one in following:
            following += new(run.consequences(one))
        result.append((cause, sorted(following, key=lambda one: (one.first_step, one.rule))))
    # the rest is too far down a chain of causes: each is listed alone
    orphans = sorted(new(run.findings), key=lambda one: (-one.severity, one.first_step))
    return result + [(one, []) for one in orphans]


def worst(run: RunVerdict) -> Finding | None:
    """The finding to name when there is room for one: the first cause of the worst severity there is."""
    groups = stories(run)
    return next((cause for cause, _ in groups if cause.severity == max(one.severity for one, _ in groups)), None)


def worst_first(runs: list[RunVerdict]) -> list[RunVerdict]:
    """Runs by verdict, then by how many criticals and warnings, then by the earliest onset; healthy runs by name, s2
    before s10.
    """

    def key(run: RunVerdict) -> tuple[int, int, int, int, list[Any]]:
        criticals = sum(one.severity == Severity.CRITICAL for one in run.findings)
        warnings = sum(one.severity == Severity.WARNING for one in run.findings)
        return (
            _RANK[run.verdict],
            -criticals,
            -warnings,
            min((one.first_step for one in run.findings), default=0),
            natural(run.name),
        )

    return sorted(runs, key=key)


def everything(verdict: Verdict) -> list[tuple[RunVerdict, Finding]]:
    """Every finding of every run, the worst first, causes before what they explain, then the earliest."""
    entries = [
        (run, one, one is not cause)
        for run in verdict.runs
        for cause, following in stories(run)
        for one in (cause, *following)
    ]
    return [
        (run, one)
        for run, one, follows in sorted(
            entries, key=lambda entry: (-entry[1].severity, entry[2], entry[1].first_step, entry[0].name)
        )
    ]


def shared(verdict: Verdict) -> list[tuple[str, int]]:
    """Rules of causes and of single findings in more than one run, with the number of runs, most common first."""
    seen = Counter(rule for run in verdict.runs for rule in {cause.rule for cause, _ in stories(run)})
    return sorted(((rule, count) for rule, count in seen.items() if count > 1), key=lambda one: (-one[1], one[0]))


def skips(runs: list[RunVerdict]) -> list[tuple[str, str, int]]:
    """Skipped rules over all runs: rule, its commonest reason, in how many runs; the most widely skipped first,
    those of other trainers last.
    """
    reasons: dict[str, Counter[str]] = {}
    for run in runs:
        for one in run.skipped:
            reasons.setdefault(one.rule, Counter())[one.reason] += 1
    return sorted(
        ((rule, found.most_common(1)[0][0], found.total()) for rule, found in reasons.items()),
        key=lambda one: (one[1].startswith("it is about"), -one[2], one[1], one[0]),
    )


def notes(run: RunVerdict) -> list[str]:
    """What the reader should know before believing the verdict: continuations, what was assumed, what was chosen in
    reading.
    """
    names = not_recognised(run.translation)
    unread = [f"{names}: {HOW_TO_NAME}"] if names and names not in run.no_answer else []
    return [*_resumes(run.run), *unread, *run.translation.assumed, *run.run.notes]


def _resumes(run: Run) -> list[str]:
    """Where the run was resumed, and which of its steps are no longer shown for that."""
    replaced = deque(run.replaced)  # in the order of the resumes, of which some replaced nothing
    said = []
    for step in run.resumed_at:
        last = replaced.popleft().last_step if replaced and replaced[0].step == step else step
        said.append(f"resumed at step {step}" + (f", replacing steps {step} to {last}" if last > step else ""))
    return said


@cache
def _slots() -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(slot) for slot in read_texts(Path(__file__).with_name("shown.yaml"))["slots"])


def main_metrics(run: RunVerdict, limit: int = 6) -> list[Metric]:
    """The few metrics that a reader looks at first, at most one of each slot of shown.yaml; raw order where none of
    those was logged.
    """
    known = {name: one for name, one in run.translation.metrics.items() if len(one)}
    picked = [next((known[name] for name in slot if name in known), None) for slot in _slots()]
    found = [one for one in picked if one is not None]
    return (found or list(known.values()))[:limit]


def column_metric(runs: list[RunVerdict]) -> str:
    """The metric that a table of runs has a column for: the first of most runs, the earlier run's where two tie."""
    names = Counter(metric.name for run in runs for metric in main_metrics(run, 1))
    return names.most_common(1)[0][0] if names else ""


def namesakes(runs: list[RunVerdict]) -> list[tuple[str, str]]:
    """Runs that were logged under one name, as reports call them, each with the place where it lies."""
    bare = {id(run): re.sub(r" \([0-9]{1,6}\)$", "", run.name) for run in runs}
    often = Counter(bare.values())
    found = [(run.name, run.run.place.location) for run in runs if often[bare[id(run)]] > 1 and run.run.place.location]
    return sorted(found, key=lambda one: natural(one[0]))


def logarithmic(metric: Metric) -> bool:
    """Whether the metric is drawn on a log scale, as its canonical definition says."""
    from rlhealth.metrics import meaning  # late: reading the catalogue is not free, and the piped report draws nothing

    known = meaning(metric.name)
    return known is not None and known.log
