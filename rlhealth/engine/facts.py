"""Facts: evidence for or against a cause, other than the findings that it explains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rlhealth.engine.cannot_run import CannotRun
from rlhealth.engine.estimate import Bound
from rlhealth.engine.limits import bound_of
from rlhealth.engine.metric_choice import pick
from rlhealth.engine.operands import Operand
from rlhealth.engine.scope import passes
from rlhealth.metrics import Translation
from rlhealth.rules.causes import Fact
from rlhealth.rules.conditions import Condition
from rlhealth.rules.filling import fill, settings, within_a_sentence
from rlhealth.verdict.findings import Finding, Severity


def named(one: Finding, names: Iterable[str]) -> bool:
    """Whether a finding is of one of these rules or families."""
    return one.rule in names or one.family in names


class FollowedCondition:
    """One condition, measured further as points arrive."""

    def __init__(self, operand: Operand, bound: Bound) -> None:
        self.operand = operand
        self.bound = bound
        self.newest: float | None = None

    def at(self, now: int) -> float | None:
        """The measured value at the last point up to and including step `now`, if the condition holds there."""
        steps, found = self.operand.advance(now)
        if len(steps):
            self.newest = float(found.value[-1]) if bool(self.bound.holds(found)[-1]) else None
        return self.newest


class Facts:
    """Looks facts up in one run. Each is measured once, because a watch asks repeatedly and the past changes only when
    a point arrives late."""

    def __init__(self, translation: Translation) -> None:
        self.translation = translation
        self._measured: dict[tuple[int, int, int, tuple[int, ...]], float | None] = {}
        self._followed: dict[int, FollowedCondition] = {}

    @cached_property
    def said(self) -> dict[str, Any]:
        """The settings that texts can use: facts are looked up again when one of them changes."""
        return settings(self.translation)

    def holds(self, fact: Fact, findings: Sequence[Finding], begin: Finding, raised: int, now: int) -> str | None:
        """The fact in words if it holds for the cause that begins with `begin` and was raised at `raised`. None if it
        does not hold, or if none of its words apply to the trainer."""
        if fact.finding:
            return self._found(fact, findings, begin, now if fact.at == "now" else raised)
        if fact.settings:
            known = self.translation.config
            if all(known.get(name) is not None and passes(known[name], test) for name, test in fact.settings.items()):
                return fill(fact.says, self.said) or None
            return None
        if fact.at == "now":
            value = self._follow(fact, now)
        else:
            ends = {"before": begin.first_step - 1, "onset": begin.first_step, "beginning": begin.raised_step}
            until = ends.get(fact.at, raised)
            value = self._measure(fact, until, begin.first_step if fact.at in ("between", "beginning") else until)
        return None if value is None else fill(fact.says, {"value": value, **self.said}) or None

    def _found(self, fact: Fact, findings: Sequence[Finding], begin: Finding, raised: int) -> str | None:
        for one in findings:
            if (
                (one is begin and fact.order != "by")
                or not named(one, fact.finding)
                or (one.worst_severity < Severity.WARNING and one.rule not in fact.finding)  # a note counts if named
            ):
                continue
            in_order = {
                None: one.raised_step <= raised,
                "before": one.first_step < begin.first_step,
                "by": one.first_step <= begin.first_step,
                "after": one.first_step > begin.first_step and one.raised_step <= raised,
            }[fact.order]
            as_asked = (fact.from_start in (None, one.from_start), fact.harmless in (None, one.was_harmless))
            if in_order and all(as_asked):
                said = {"step": one.first_step, "title": within_a_sentence(one.title), "metric": one.metric}
                return fill(fact.says, said | self.said) or None
        return None

    def _follow(self, fact: Fact, now: int) -> float | None:
        """The value of the fact's first condition at the newest point, if all conditions hold; each call measures only
        new points."""
        values = []
        for condition in fact.when:
            one = self._followed.get(id(condition))
            if one is None:
                try:
                    metric = pick(condition.metric, self.translation)
                    bound = bound_of(condition, self.translation.config)
                except CannotRun:
                    return None
                one = self._followed[id(condition)] = FollowedCondition(Operand(condition, metric, None, 1.0), bound)
            values.append(one.at(now))
        return None if None in values else values[0]

    def _measure(self, fact: Fact, until: int, since: int) -> float | None:
        """The value of the fact's first condition up to step `until`, if all conditions hold: at the last point, or
        since that step."""
        key = (id(fact), since, until, tuple(self._points(condition, until) for condition in fact.when))
        if key not in self._measured:
            values = []
            for condition in fact.when:
                values.append(self._one(condition, until, since))
                if values[-1] is None:  # then the others need not be measured
                    break
            self._measured[key] = None if None in values else values[0]
        return self._measured[key]

    def _points(self, condition: Condition, until: int) -> int:
        """How many points there are to measure up to that step."""
        try:
            return int(np.searchsorted(pick(condition.metric, self.translation).steps, until, side="right"))
        except CannotRun:
            return 0

    def _one(self, condition: Condition, until: int, since: int) -> float | None:
        try:
            operand = Operand(condition, pick(condition.metric, self.translation), None, 1.0)
            bound = bound_of(condition, self.translation.config)
        except CannotRun:
            return None
        steps, found = operand.advance(until)
        looked = min(int(np.searchsorted(steps, since)), len(steps) - 1)  # the last point, if there is none since
        if not len(steps):
            return None
        held = np.flatnonzero(bound.holds(found)[looked:])
        return float(found.value[looked + held[0]]) if len(held) else None
