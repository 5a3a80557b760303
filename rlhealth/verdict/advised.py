"""Advice: what to do about one run, put together from its findings: settings to change, steps to look at."""

from __future__ import annotations

from dataclasses import dataclass

from rlhealth.verdict.findings import Change, Finding, RunVerdict, Severity


@dataclass(frozen=True)
class StepsToInspect:
    """Steps that are worth looking at, if no setting is to blame.

    Attributes:
        first, last: from the step where the finding began to the one where it could be known.
        advice: what to do there, in sentences.
    """

    rule: str
    title: str
    metric: str
    first: int
    last: int
    advice: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """What to do about one run.

    Attributes:
        cause: the rule that the changes come from; empty if there are none.
        changes: settings to change, all at once, in the trainer's own names.
        looks: where to look instead, by cause: empty if there are changes.
    """

    cause: str
    title: str
    changes: tuple[Change, ...]
    looks: tuple[StepsToInspect, ...]


def advice_of(run: RunVerdict) -> Advice:
    """The advice on one run: of its first cause alone, so that what is changed next can be distinguished from what was
    changed before.

    A cause that names no setting is not passed over: a reward function that is wrong is not cured by a learning rate.
    Where nothing but symptoms was found, an unusual setting comes first, then the first symptom that names a setting.
    """
    roots = [one for one in run.causes if one.severity > Severity.INFO]
    if not roots:
        return Advice("", "", (), ())
    cause = next((one for one in roots if one.evidence), None)
    if cause is not None:
        looks = () if cause.changes else (_look(cause),)
        return Advice(cause.rule if cause.changes else "", cause.title, cause.changes, looks)
    unusual = [one for one in run.causes if one.severity is Severity.INFO and one.family == "settings"]
    for one in (*unusual, *roots):
        if one.changes:
            return Advice(one.rule, one.title, one.changes, ())
    return Advice("", roots[0].title, (), tuple(_look(one) for one in roots))


def _look(one: Finding) -> StepsToInspect:
    return StepsToInspect(
        one.rule, one.title, one.metric, one.first_step, max(one.raised_step, one.first_step), one.advice
    )
