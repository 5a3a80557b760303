"""Root causes: reads findings and their order in time; never metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rlhealth.metrics import Translation
from rlhealth.rules.filling import advise, back_to, fill, settings
from rlhealth.rules.model import Rule
from rlhealth.verdict.findings import Episode, Finding, Severity, worst_state


def explain(
    findings: list[Finding], diagnoses: Iterable[Rule], translation: Translation
) -> tuple[list[Finding], list[Finding], set[str]]:
    """Names the cause of findings where the evidence is there.

    A cause begins no later than its consequences, and a finding has one cause: the diagnosis that began first.

    Returns:
        the findings, those explained naming their cause; the diagnoses as findings; the ids of the diagnoses that
        ran and found nothing.
    """
    told = sorted(
        (one for one in (diagnose(rule, findings, translation) for rule in diagnoses) if one is not None),
        key=lambda one: (one[0].first_step, -len(one[1])),
    )
    explained: dict[tuple[str, str], str] = {}
    kept = []
    for cause, members in told:
        mine = [one for one in members if (one.rule, one.metric) not in explained]
        if len(mine) < 2:
            continue
        kept.append(cause)
        explained |= {(one.rule, one.metric): cause.rule for one in mine}
    named = [
        replace(one, explained_by=explained[one.rule, one.metric]) if (one.rule, one.metric) in explained else one
        for one in findings
    ]
    return named, kept, {rule.id for rule in diagnoses} - {one.rule for one in kept}


def points_between(translation: Translation, begin: Finding, step: int) -> int:
    """How many points of its metric lie between the beginning of a finding and a later step."""
    metric = translation.metrics.get(begin.metric)
    if metric is None:
        return step - begin.first_step
    return int(np.searchsorted(metric.steps, step) - np.searchsorted(metric.steps, begin.first_step))


def points_before(translation: Translation, begin: Finding) -> int:
    """How many points its metric has before a finding began."""
    metric = translation.metrics.get(begin.metric)
    return begin.first_step if metric is None else int(np.searchsorted(metric.steps, begin.first_step))


def diagnose(rule: Rule, findings: Iterable[Finding], translation: Translation) -> tuple[Finding, list[Finding]] | None:
    """One diagnosis over the findings: the finding that it makes, and those that it explains; None without evidence."""
    assert rule.cause is not None
    graded = [one for one in findings if one.severity >= Severity.WARNING or one.rule in rule.cause.first]
    if any(one.rule in rule.cause.none or one.family in rule.cause.none for one in graded):
        return None
    first = sorted(
        (one for one in graded if one.rule in rule.cause.first or one.family in rule.cause.first),
        key=lambda one: (one.first_step, one.raised_step),
    )
    if not first:
        return None
    begin = first[0]
    then = [
        one
        for one in graded
        if one is not begin
        and (one.rule in rule.cause.then or one.family in rule.cause.then)
        and one.first_step >= begin.first_step
    ]
    if not then or (
        rule.cause.within is not None
        and points_between(translation, begin, min(one.first_step for one in then)) > rule.cause.within
    ):
        return None
    members = sorted(
        [*first, *(one for one in then if one not in first)], key=lambda one: (one.first_step, one.raised_step)
    )
    raised = max(begin.raised_step, min(one.raised_step for one in then))
    last = max(one.last_step for one in members)
    state = worst_state(members)
    said = {
        "count": len(members),
        "first_step": begin.first_step,
        "back": back_to(points_before(translation, begin), begin.first_step),
        "metric": begin.metric,
        "first": begin.title.lower(),
        "families": ", ".join(dict.fromkeys(one.family for one in members)),
        **settings(translation),
    }
    return Finding(
        rule.id,
        rule.family,
        max(Severity.of(rule.severity), *(one.severity for one in members)),
        rule.title,
        begin.metric,
        begin.tag,
        begin.first_step,
        raised,
        last,
        state,
        begin.worst_step,
        begin.worst_value,
        begin.limit,
        fill(rule.message, said),
        rule.because.strip(),
        advise(rule.try_, said),
        rule.cites,
        begin.unit,
        episodes=(Episode(begin.first_step, raised, last, state, begin.from_start),),
    ), members
