"""Causes: hypotheses over findings, facts and their order in time. A cause is named if there is evidence for it and
none against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlhealth.engine.advice import changes_of
from rlhealth.engine.aftermath import Aftermath
from rlhealth.engine.episodes import united
from rlhealth.engine.facts import Facts, named
from rlhealth.metrics import Translation
from rlhealth.rules.causes import Cause
from rlhealth.rules.filling import advise, back_to, fill, settings, within_a_sentence
from rlhealth.rules.model import Rule
from rlhealth.verdict.findings import Episode, Finding, Severity, State, worst_state

ENOUGH = 2  # pieces of evidence: families of findings, and facts; one alone is a symptom


class Hypothesis(NamedTuple):
    """A cause that the evidence supports.

    Attributes:
        begin: the finding that it starts with.
        members: all findings that it would explain, including `begin`, in order of time.
        raised: the first step at which it could have been known.
        facts: evidence for it other than findings, in words.
        needed: how many of these facts it requires: a cause with more requirements is more specific.
        missing: facts that would speak against it and do not hold, in words.
    """

    rule: Rule
    begin: Finding
    members: tuple[Finding, ...]
    raised: int
    facts: tuple[str, ...]
    needed: int
    missing: tuple[str, ...]

    @property
    def weight(self) -> int:
        """How much evidence there is: the families that it explains and its facts; required facts count twice."""
        return len({one.family for one in self.members}) + len(self.facts) + self.needed


def explain(
    findings: list[Finding], diagnoses: Sequence[Rule], translation: Translation, facts: Facts, now: int
) -> tuple[list[Finding], list[Finding], set[str]]:
    """Names the cause of findings where there is enough evidence.

    A cause begins no later than its consequences, and a finding has one cause. Of the hypotheses that hold, that is
    the one that began first; if several began together, the one with the most evidence. The others are listed as its
    rivals.

    Args:
        now: the step up to which the run was judged.

    Returns:
        the findings, those explained naming their cause; the causes as findings; the ids of the diagnoses that ran and
        found nothing.
    """
    symptoms = [one for one in findings if not one.refuted]
    held = [one for rule in diagnoses if (one := _hypothesis(rule, symptoms, translation, facts, now)) is not None]
    held.sort(key=lambda one: (one.begin.first_step, -one.weight))
    explained: dict[tuple[str, str], str] = {}
    kept: list[Finding] = []
    for place, one in enumerate(held):
        mine = tuple(member for member in one.members if member.key not in explained)
        if one.begin.key in explained or _evidence_count(mine, one) < ENOUGH:
            continue
        rivals = [other for other in held[place + 1 :] if other.begin.key in {member.key for member in mine}]
        rivals = [other for other in rivals if other.begin.first_step == one.begin.first_step]
        kept.append(_finding(one._replace(members=mine), rivals, translation, now))
        explained |= {member.key: one.rule.id for member in mine}
    linked = [replace(one, explained_by=explained[one.key]) if one.key in explained else one for one in findings]
    return linked, kept, {rule.id for rule in diagnoses} - {one.rule for one in kept}


def _evidence_count(members: Sequence[Finding], one: Hypothesis) -> int:
    return len({member.rule for member in members}) + len(one.facts)


def _hypothesis(
    rule: Rule, findings: Sequence[Finding], translation: Translation, facts: Facts, now: int
) -> Hypothesis | None:
    """One diagnosis over the findings; None if it does not begin, lacks evidence or is contradicted."""
    cause = rule.cause
    assert cause is not None
    graded = [one for one in findings if one.worst_severity >= Severity.WARNING or one.rule in cause.begins_with]
    if any(named(one, cause.unless) for one in graded):
        return None
    first = sorted(
        (one for one in graded if named(one, cause.begins_with) and cause.from_start in (None, one.from_start)),
        key=lambda one: (one.first_step, one.raised_step),
    )
    if not first:
        return None
    begin = first[0]
    then = [one for one in graded if one is not begin and _is_consequence(one, begin, cause)]
    then = [one for one in then if not _had_begun(one, begin, graded)]
    if cause.within is not None:
        near = [one for one in then if points_between(translation, begin, one.first_step) <= cause.within]
        then = then if near else []
    if cause.followed_by and not then and not (cause.requires or cause.supported_by):
        return None
    raised = max(begin.raised_step, min((one.raised_step for one in then), default=0))
    needed: list[str] = []
    for one in cause.requires:
        said = facts.holds(one, findings, begin, raised, now)
        if said is None:
            return None
        needed.append(said)
    if _contradicted(cause, findings, begin, raised, now, facts):
        return None
    either = [facts.holds(one, findings, begin, raised, now) for one in cause.requires_any]
    if cause.requires_any and not any(one is not None for one in either):
        return None
    helped = [facts.holds(one, findings, begin, raised, now) for one in cause.supported_by]
    others = [one for one in first if one is begin or _follows(one, begin)]
    members = sorted(
        {one.key: one for one in [*others, *then]}.values(), key=lambda one: (one.first_step, one.raised_step)
    )
    known = tuple(one for one in [*needed, *either, *helped] if one is not None)
    absent = (fill(one.says, facts.said) for one in cause.ruled_out_by if "{value" not in one.says)
    missing = tuple(one for one in absent if one)
    found = Hypothesis(
        rule=rule, begin=begin, members=tuple(members), raised=raised, facts=known, needed=len(needed), missing=missing
    )
    return found if _evidence_count(members, found) >= ENOUGH else None


def _is_consequence(one: Finding, begin: Finding, cause: Cause) -> bool:
    """Whether a cause that begins with `begin` can explain a finding. A finding from outside is explained only if the
    cause could have begun with it; a symptom of several families, only if all of them follow from the cause."""
    if one.from_outside and not named(one, cause.begins_with):
        return False
    if not set(one.also) <= {*cause.begins_with, *cause.followed_by}:
        return False
    return named(one, cause.followed_by) and _follows(one, begin)


def _follows(one: Finding, begin: Finding) -> bool:
    """Whether a finding can be a consequence: it began no earlier, and a finding that held from the start follows only
    from one that did too. Nothing follows later from a finding that is over and did no damage."""
    if begin.was_harmless and one.first_step > begin.last_step:
        return False
    return one.first_step >= begin.first_step and (begin.from_start or not one.from_start)


def _had_begun(one: Finding, begin: Finding, findings: Sequence[Finding]) -> bool:
    """Whether the problem had begun before the cause did: another finding of the same family lasted until then. A
    reward that was already falling did not begin to fail with the entropy."""
    return any(
        (other.family, other.metric) == (one.family, one.metric)
        and other.first_step < begin.first_step <= other.last_step
        for other in findings
    )


def _contradicted(
    cause: Cause, findings: Sequence[Finding], begin: Finding, raised: int, now: int, facts: Facts
) -> bool:
    return any(facts.holds(one, findings, begin, raised, now) is not None for one in cause.ruled_out_by)


def points_between(translation: Translation, begin: Finding, step: int) -> int:
    """How many points of its metric lie between the start of a finding and a later step."""
    metric = translation.metrics.get(begin.metric)
    if metric is None:
        return step - begin.first_step
    return int(np.searchsorted(metric.steps, step) - np.searchsorted(metric.steps, begin.first_step))


def points_before(translation: Translation, begin: Finding) -> int:
    """How many points its metric has before a finding began."""
    metric = translation.metrics.get(begin.metric)
    return begin.first_step if metric is None else int(np.searchsorted(metric.steps, begin.first_step))


def _finding(one: Hypothesis, rivals: Sequence[Hypothesis], translation: Translation, now: int) -> Finding:
    """A cause as a finding: with its evidence, its rivals and the settings that are worth changing."""
    rule, begin = one.rule, one.begin
    assert rule.cause is not None
    last = max(member.last_step for member in one.members)
    state = worst_state(one.members)
    others = [member for member in one.members if member is not begin]
    said = {
        "count": len(one.members),
        "back": back_to(points_before(translation, begin), begin.first_step),
        "first_step": begin.first_step,
        "metric": begin.metric,
        "first": within_a_sentence(begin.title),
        "families": _families(one.members),
        **({"others": len(others), "other_families": _families(others)} if others else {}),
        **settings(translation),
    }
    return Finding(
        rule=rule.id,
        family=rule.family,
        severity=_severity(one, translation, now),
        title=rule.title,
        conditions=begin.conditions,
        first_step=begin.first_step,
        raised_step=one.raised,
        last_step=last,
        state=state,
        message=fill(rule.message, said),
        why=fill(rule.because, said),
        advice=advise(rule.try_, said),
        source=rule.cites,
        episodes=_episodes(one, state),
        evidence=(*_in_time(one), *one.facts),
        against=one.missing,
        rivals=tuple((other.rule.id, fill(_apart(other), settings(translation))) for other in rivals),
        changes=changes_of(rule, translation),
    )


def _episodes(one: Hypothesis, state: State) -> tuple[Episode, ...]:
    """The episodes in which any of its members held; the first is that of the whole story."""
    first, *others = united([member.episodes for member in one.members], state)
    raised = one.raised if one.raised <= first.last_step else first.raised_step
    begun = replace(first, first_step=one.begin.first_step, raised_step=raised, from_start=one.begin.from_start)
    return (begun, *others)


def _families(members: Sequence[Finding]) -> str:
    """The families of findings, worded so that they are not mistaken for metrics."""
    families = list(dict.fromkeys(member.family for member in members))
    return f"rule {'family' if len(families) == 1 else 'families'} {', '.join(families)}"


def _severity(one: Hypothesis, translation: Translation, now: int) -> Severity:
    """As severe as the worst finding that it explains. Lasting consequences are the cost of the whole story: until the
    reward is known to be back, the root cause counts as severe as while it held. A cause of notes is a note too.
    """
    worst = max(member.severity for member in one.members)
    if worst < Severity.WARNING:
        return worst
    if worst_state(one.members) is State.OVER:
        return min(max(worst, Severity.of(one.rule.severity)), Severity.WARNING)
    lasts = not Aftermath(translation, now).regained(one.begin.episodes)
    return max(worst, Severity.of(one.rule.severity), one.begin.worst_severity if lasts else worst)


def _apart(other: Hypothesis) -> str:
    assert other.rule.cause is not None
    return other.rule.cause.distinguished_by or other.rule.title


def _in_time(one: Hypothesis) -> list[str]:
    """The first finding of each family, in the order of their beginnings."""
    firsts: dict[str, Finding] = {}
    for member in one.members:
        firsts.setdefault(member.family, member)
    lines = []
    for member in firsts.values():
        later = member.first_step - one.begin.first_step
        when = (
            "from the start"
            if member.from_start
            else f"step {member.first_step:,}"
            if not later
            else f"{later:,} {'step' if later == 1 else 'steps'} later"
        )
        lines.append(f"{when}: {within_a_sentence(member.title)} ({member.metric})")
    return lines
