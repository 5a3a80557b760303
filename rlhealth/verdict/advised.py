"""Advice on one run, from its findings: settings to change, steps to inspect."""

from __future__ import annotations

from dataclasses import dataclass

from rlhealth.rules.filling import task
from rlhealth.verdict.findings import Change, Finding, Severity
from rlhealth.verdict.verdicts import RunVerdict

AT_ITS_BEST = "reward is at its best so far: watch it, and change nothing yet"


@dataclass(frozen=True)
class StepsToInspect:
    """Steps that are worth inspecting if no setting is the cause.

    Attributes:
        first, last: from the step at which the finding began to the one at which it could be known.
        advice: what to do there, in sentences.
        samples: what the policy produces: completions, episodes of a control task, or samples if either is possible.
    """

    rule: str
    title: str
    metric: str
    first: int
    last: int
    advice: tuple[str, ...]
    samples: str = "completions"


@dataclass(frozen=True)
class Advice:
    """What to do about one run.

    Attributes:
        cause: the rule that the changes come from; empty if there are none.
        changes: settings to change, all at once, in the trainer's own names.
        looks: steps to inspect, instead of changes or beside the change of a setting that is no cause by itself.
        reason: why there is nothing to do, if the run is not healthy and there is still no advice.
    """

    cause: str
    title: str
    changes: tuple[Change, ...]
    looks: tuple[StepsToInspect, ...]
    reason: str = ""


def advice_of(run: RunVerdict) -> Advice:
    """The advice on one run: that of its first cause alone, so that the effect of one change can be distinguished from
    that of the next.

    A cause that names no setting is not skipped: no learning rate fixes a wrong reward function. Only one setting is
    given beside it: one that was far outside the usual range from the start, because such a run says little about its
    reward function. That setting is also given beside a cause with settings, if another finding that the cause does
    not explain asks for the same one. If there are only symptoms, such a setting comes first. Next comes a cause that
    is over, because its settings are still the same. Next comes the first symptom that names a setting, unless reward
    is at its best: a merely unusual metric is watched while the run learns, and not treated.
    """
    roots = [one for one in run.causes if one.severity > Severity.INFO]
    if not roots:
        return Advice("", "", (), ())
    notes = [one for one in run.causes if one.severity is Severity.INFO and one.changes]
    unusual = [one for one in notes if one.family == "settings"]
    cause = next((one for one in roots if one.evidence), None)
    if cause is not None and cause.changes:
        others = {change.setting for one in roots if one is not cause for change in one.changes}
        others -= {change.setting for change in cause.changes}
        beside_it = (change for one in unusual if one.from_start for change in one.changes if change.setting in others)
        return Advice(cause.rule, cause.title, (*cause.changes, *beside_it), ())
    if cause is not None:
        beside = next((one for one in unusual if one.from_start), None)
        if beside is None:
            return Advice("", cause.title, (), (_look(cause, run),))
        return Advice(beside.rule, cause.title, beside.changes, (_look(cause, run),))
    past = [one for one in notes if one.evidence]
    urgent = [one for one in roots if one.severity is Severity.CRITICAL or not run.reward_is_best]
    for one in (*unusual, *past, *urgent):
        if one.changes:
            return Advice(one.rule, one.title, one.changes, ())
    if not urgent:
        return Advice("", roots[0].title, (), (), AT_ITS_BEST)
    return Advice("", roots[0].title, (), tuple(_look(one, run) for one in roots))


def _look(one: Finding, run: RunVerdict) -> StepsToInspect:
    last = max(one.raised_step, one.first_step)
    samples = task(run.translation.writes_texts)["task.completions"]
    return StepsToInspect(one.rule, one.title, one.metric, one.first_step, last, one.advice, samples)
