"""Advice: what to do about one run, put together from its findings: settings to change, steps to look at."""

from __future__ import annotations

from dataclasses import dataclass

from rlhealth.verdict.findings import Change, Finding, RunVerdict, Severity


@dataclass(frozen=True)
class Look:
    """Steps that are worth looking at, where no setting is to blame.

    Attributes:
        first, last: from the step where the finding began to the one where it could be told.
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
        cause: the rule that the changes come from; empty where there are none.
        changes: settings to change, all at once, in the trainer's own names.
        looks: where to look instead, by cause: empty where there are changes.
    """

    cause: str
    title: str
    changes: tuple[Change, ...]
    looks: tuple[Look, ...]


def advice_of(run: RunVerdict) -> Advice:
    """The advice on one run: of its first cause alone, so that what is changed next can be told from what was changed before.

    A cause that names no setting goes before the symptoms that follow: a reward function that is wrong is not cured by a
    learning rate. Symptoms that no cause explains are passed over where a later one names a setting, or where a setting of a
    sick run is unusual.
    """
    roots = [one for one in run.causes if one.severity > Severity.INFO]
    for one in roots:
        if one.changes:
            return Advice(one.rule, one.title, one.changes, ())
        if one.evidence:
            return Advice("", one.title, (), (_look(one),))
    hints = [one for one in run.causes if one.severity is Severity.INFO and one.changes] if roots else []
    if hints:
        return Advice(hints[0].rule, hints[0].title, hints[0].changes, ())
    return Advice("", roots[0].title if roots else "", (), tuple(_look(one) for one in roots))


def _look(one: Finding) -> Look:
    return Look(one.rule, one.title, one.metric, one.first_step, max(one.raised_step, one.first_step), one.advice)
