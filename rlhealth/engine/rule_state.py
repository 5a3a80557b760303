"""One rule on one run: what it looks at, where its conditions hold, and the finding that it makes of that."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from rlhealth.engine.advice import changes_of
from rlhealth.engine.aftermath import Aftermath, is_fall
from rlhealth.engine.ending import Ending
from rlhealth.engine.episodes import Episodes
from rlhealth.engine.estimate import Bound, Flags
from rlhealth.engine.onset import dated_back
from rlhealth.engine.operands import (
    CannotRun,
    ForwardFill,
    Operand,
    OperandCursor,
    SharedOperand,
    SharedParts,
    bound_of,
    level_of,
    pick,
    unit_of,
    worse_of,
)
from rlhealth.engine.parts import Parts
from rlhealth.engine.scope import applicable
from rlhealth.engine.wording import describe, words
from rlhealth.metrics import Metric, Translation
from rlhealth.rules.model import Condition, Rule
from rlhealth.run import Ints
from rlhealth.verdict.findings import Episode, Finding, Severity, State

Shape = tuple[Any, ...]


class RuleState:
    """One rule on one run: its operands, its bounds and the episodes in which it held."""

    def __init__(
        self,
        rule: Rule,
        metric: Metric,
        translation: Translation,
        measured: dict[Shape, SharedOperand] | None = None,
        parts: SharedParts | None = None,
    ) -> None:
        assert rule.when is not None and rule.when.all
        self.rule = rule
        self.metric = metric
        self.translation = translation
        self.measured = {} if measured is None else measured  # by other rules, from the first step on
        self.parts = {} if parts is None else parts
        conditions = applicable(rule.when.conditions, translation)
        extra = applicable(rule.critical.and_ if rule.critical else (), translation)
        made = [
            self._operand(one, metric if index == 0 else None, translation)
            for index, one in enumerate((*conditions, *extra))
        ]
        self.sides = made
        self.anchor = made[0]
        self.others = [ForwardFill(one) for one in made[1:]]
        settings = {**translation.config, "planned_steps": translation.planned_steps}
        self.bounds = [bound_of(one, settings) for one in (*conditions, *extra)]
        self.base = len(conditions)
        self.held: list[bool | None] = [False] * len(self.bounds)  # at the newest point; None if that was left out
        self.left_out = 0  # points at which some condition was
        self.newest: Ints = np.empty(0, np.int64)
        self.dated: dict[Severity, list[Episode]] = {}
        # a window that still holds an unhealthy row says nothing of what came after it
        clear = max(rule.when.held_for, conditions[0].last)
        self.levels = {Severity.of(rule.severity): Episodes(rule.when.held_for, clear, self.bounds[0].sign)}
        self.worse: Bound | None = None
        if rule.critical is not None:
            self.worse = worse_of(rule.critical, self.bounds[0], translation.config)
            hold = rule.critical.held_for or rule.when.held_for
            self.levels[Severity.CRITICAL] = Episodes(hold, max(clear, hold), self.bounds[0].sign)
        self.points = 0
        self.latest = float("nan")

    def _operand(self, condition: Condition, metric: Metric | None, translation: Translation) -> OperandCursor:
        metric = metric or pick(condition.metric, translation, self.metric)
        per, scale = None, 1.0
        divisor = condition.divided_by
        if divisor is not None:
            scale = float(divisor.times)
            if divisor.metric is not None:
                per = pick(divisor.metric, translation)
            if divisor.setting is not None:
                said = translation.config.get(divisor.setting, divisor.default)
                if not isinstance(said, int | float) or not said:
                    raise CannotRun(f"the setting {divisor.setting} is unknown")
                scale *= float(said)
        clock = (
            self.metric.tag if metric.name == "step" else ""
        )  # the step is read at the points of the rule's own metric
        other = pick(condition.with_, translation) if condition.with_ else None
        key = (_looks(condition), metric.name, metric.tag, clock, per and per.name, scale)
        shared = self.measured.get(key)
        if shared is None:
            series = metric.name, metric.tag, clock, condition.absolute, condition.divided_by, scale
            parts = self.parts.setdefault(series, Parts())
            shared = self.measured[key] = SharedOperand(Operand(condition, metric, per, scale, parts, other))
        return OperandCursor(shared, condition)

    @property
    def late(self) -> bool:
        """Whether one of its metrics got a point at a step that was judged without it."""
        return self.anchor.late or any(one.late for one in self.others)

    def advance(self, until: int) -> None:
        """Judges the points up to and including step `until`."""
        steps, found = self.anchor.advance(until)
        if not len(steps):
            return
        self.points += len(steps)
        self.latest = float(found.value[-1])
        first = self.bounds[0].holds(found)
        worse = first if self.worse is None else self.worse.holds(found)
        held = self._held_at(steps, first, worse)
        known = len(held) == len(self.bounds)
        for severity, level in self.levels.items():
            if not known:
                level.extend(steps, found.value, np.zeros(len(steps), np.bool_))
                continue
            parts = held[: self.base] if severity == min(self.levels) else [worse, *held[1:]]
            whole = np.logical_and.reduce(parts)
            level.extend(steps, found.value, whole, self._begun(held, whole))
        self.newest = steps[-1:].copy()
        self.held = [bool(one[-1]) for one in held] + [None] * (len(self.bounds) - len(held))
        self.left_out = 0 if known else self.left_out + len(steps)

    def _held_at(self, steps: Ints, first: Flags, worse: Flags) -> list[Flags]:
        """Where each condition holds, the first of them as given; without the last ones, where the others together
        never hold.

        Most rules' first conditions never hold. What must hold with them is then not looked at before it is asked for,
        which changes nothing: measures say the same in whatever pieces points come.
        """
        held, possible = [first], first | worse
        for place, (bound, other) in enumerate(zip(self.bounds[1:], self.others, strict=True), 1):
            if not possible.any():
                break
            self._look_back(place)
            held.append(bound.holds(other.at(steps)))
            if place < self.base:
                possible = possible & held[-1]
        return held

    def _look_back(self, place: int) -> None:
        """Looks at one condition up to the newest point that was judged, if it was left out there."""
        if self.held[place] is None:
            self.held[place] = bool(self.bounds[place].holds(self.others[place - 1].at(self.newest))[0])

    def catch_up(self) -> None:
        """Looks at all conditions that were left out, so that nothing has to be kept for them."""
        for place in range(1, len(self.bounds)):
            self._look_back(place)
        self.left_out = 0

    def release(self) -> None:
        """Ends what it looks at, as no more points will come, so that nothing is kept for it; but for what is to say
        how much it lacks.
        """
        self._count_items()
        for one in self.sides:
            if not one.waits:
                one.release()

    def _count_items(self) -> None:
        """Looks at the conditions that are to say of how many items they have too few."""
        for place, one in enumerate(self.sides):
            if place and one.waits and len(self.newest):
                self._look_back(place)

    def _begun(self, held: list[Flags], whole: Flags) -> Ints:
        """Where a level begins to hold: bit by bit, which conditions hold there and did not at the point before;
        elsewhere 0. Shape (n,).
        """
        starts = np.flatnonzero(whole & ~np.append(False, whole[:-1]))
        marks = np.zeros(len(whole), np.int64)
        for place, one in enumerate(held):
            before = np.where(starts > 0, one[starts - 1], bool(self.held[place]))
            marks[starts] |= (one[starts] & ~before).astype(np.int64) << place
        return marks

    def _episodes(self, severity: Severity, most: int | None = None) -> list[Episode]:
        """The episodes of one level, `most` of them at most, each dated back to the first row that agrees: once, for
        what came before it stays.
        """
        level, known = self.levels[severity], self.dated.setdefault(severity, [])
        if known and known[-1].active:
            last, ended = int(level.spans[2, len(known) - 1]), not level.open or len(known) < level.count
            known[-1] = replace(known[-1], last_step=last, state=State.OVER if ended else State.STANDING)
        if len(known) < min(level.count, most or level.count):
            spans = level.spans[:, len(known) : most]
            first, from_start = self._dated(spans[0], spans[3], severity)
            rows = zip(first.tolist(), *spans[1:3].tolist(), from_start.tolist(), strict=True)
            known += [Episode(first, raised, last, State.OVER, start) for first, raised, last, start in rows]
            if level.open and len(known) == level.count:
                known[-1] = replace(known[-1], state=State.STANDING)
        return known

    def _dated(self, steps: Ints, marks: Ints, severity: Severity) -> tuple[Ints, Flags]:
        """Where episodes begin that were told to begin at those steps: where the last of the conditions that made each
        of them hold began; and whether that is the start of the run. Shape (k,) each.
        """
        bounds = [self.worse if self.worse and severity > min(self.levels) else self.bounds[0], *self.bounds[1:]]
        first, from_start = np.full(len(steps), np.iinfo(np.int64).min), np.zeros(len(steps), np.bool_)
        for place, (side, bound) in enumerate(zip(self.sides, bounds, strict=True)):
            mine = np.flatnonzero(marks >> place & 1 | ((marks == 0) & (place == 0)))
            if not len(mine):
                continue
            operand = side.shared.operand
            per = None if operand.per is None else operand.per.source
            assert per is None or isinstance(per, Metric)
            found, is_start = dated_back(operand.condition, bound, operand.metric, per, operand.scale, steps[mine])
            later, same = found > first[mine], found == first[mine]
            from_start[mine] = np.where(later, is_start, from_start[mine] | (same & is_start))
            first[mine] = np.maximum(first[mine], found)
        return first, from_start

    @property
    def too_few(self) -> str:
        """Of what there was too little to judge; empty if there was enough."""
        if self.points < self.rule.points:
            return f"{self.metric.name} has {self.points} of the {self.rule.points} points it takes to judge"
        self._count_items()
        return next((f"{one.metric.name} has {one.lacking} to judge" for one in self.sides if one.lacking), "")

    def finding(self, ending: Ending, aftermath: Aftermath) -> Finding | None:
        """What the rule found so far, or None."""
        raised = [severity for severity, level in self.levels.items() if level.count]
        if not raised:
            return None
        severity, base = max(raised), min(raised)
        episodes = tuple(self._episodes(base))
        state = aftermath.state_of(self.metric, self.anchor.condition, self._limit(base), episodes)
        worst_step, worst_value = self.levels[severity].worst
        first = min((self._episodes(one, 1)[0] for one in raised), key=lambda one: one.raised_step)
        limit = self._limit(severity)
        said = words(self.translation, self.metric, first) | {
            "value": worst_value,
            "limit": limit,
            "worst_step": worst_step,
            "points": self.anchor.condition.last,
            "step": ending.step,
        }
        harmless = aftermath.regained(episodes, is_fall(self.metric, self.anchor.condition))
        if harmless is None or self.rule.harmless_once == "reward-rose":
            harmless = aftermath.learned_since(episodes) or harmless
        told = describe(
            rule=self.rule,
            severity=severity,
            metric=self.metric,
            first=first,
            episodes=episodes,
            worst=(worst_step, worst_value),
            limit=limit,
            said=said,
        )
        condition = self.anchor.condition
        parts = (*episodes[:-1], replace(episodes[-1], state=state))
        return replace(
            told,
            severity=self._after(severity, harmless) if state is State.OVER else severity,
            peak=severity,
            state=state,
            episodes=parts,
            side=self.bounds[0].sign,
            measured=unit_of(condition),
            level=level_of(condition, limit, self.metric),
            changes=changes_of(self.rule, self.translation),
        )

    def _limit(self, severity: Severity) -> float:
        """The limit of one of its levels."""
        worse = self.worse is not None and severity > min(self.levels)
        return (self.worse or self.bounds[0]).limit if worse else self.bounds[0].limit

    def _after(self, severity: Severity, harmless: bool | None) -> Severity:
        """How severe a level is once it is over: a warning at most, or less where its rule says so.

        It is less than a warning only where the reward came back; what had been critical, only where it shows that.
        """
        if harmless or (harmless is None and severity < Severity.CRITICAL):
            return min(severity, Severity.of(self.rule.severity_when_over))
        return min(severity, Severity.WARNING)


@cache
def _looks(condition: Condition) -> Condition:
    """What a condition looks at, whatever limit it is compared with, and whatever it calls the metric."""
    limit = {"above": None, "below": None, "equals": None, "standard_errors": 0}
    return condition.model_copy(update={"metric": "", "if_logged": False, "unless_logged": "", **limit})
