"""One rule on one run: what it looks at, where its conditions hold, and the finding that it makes of that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlhealth.engine.advice import changes_of
from rlhealth.engine.aftermath import Aftermath, is_fall
from rlhealth.engine.ending import Ending
from rlhealth.engine.episodes import Episodes
from rlhealth.engine.estimate import Flags
from rlhealth.engine.onset import dated_back
from rlhealth.engine.operands import (
    NO_STEPS,
    ForwardFill,
    Operand,
    OperandCursor,
    SharedOperand,
    SharedParts,
    level_of,
    named_metric,
    unit_of,
)
from rlhealth.engine.parts import Parts
from rlhealth.engine.plan import OperandPlan, RulePlan
from rlhealth.engine.wording import describe, words
from rlhealth.metrics import Metric, Translation
from rlhealth.rules.model import Rule
from rlhealth.run import Ints
from rlhealth.verdict.findings import Episode, Finding, Severity, State


class RuleState:
    """One rule on one run: its operands, its bounds and the episodes in which it held.

    Args:
        measured: operands by their number in the plan, and `parts` by that of their series: of other rules, from the
            first step on.
    """

    def __init__(
        self,
        plan: RulePlan,
        metric: Metric,
        translation: Translation,
        measured: dict[int, SharedOperand] | None = None,
        parts: SharedParts | None = None,
    ) -> None:
        rule = plan.rule
        assert rule.when is not None
        self.plan = plan
        self.rule = rule
        self.metric = metric
        self.translation = translation
        measured = {} if measured is None else measured
        parts = {} if parts is None else parts
        made = [self._operand(one, measured, parts) for one in plan.operands]
        self.sides = made
        self.anchor = made[0]
        self.others = [ForwardFill(one) for one in made[1:]]
        self.bounds = plan.bounds
        self.base = plan.base
        self.held: list[bool | None] = [False] * len(self.bounds)  # at the newest point; None if that was left out
        self.left_out = 0  # points at which some condition was
        self.newest: Ints = NO_STEPS
        self.dated: dict[Severity, list[Episode]] = {}
        # a window that still holds an unhealthy row says nothing of what came after it
        clear = max(rule.when.held_for, self.anchor.condition.last)
        self.levels = {Severity.of(rule.severity): Episodes(rule.when.held_for, clear, self.bounds[0].sign)}
        self.worse = plan.worse
        if rule.critical is not None:
            hold = rule.critical.held_for or rule.when.held_for
            self.levels[Severity.CRITICAL] = Episodes(hold, max(clear, hold), self.bounds[0].sign)
        self.points = 0
        self.latest = float("nan")

    def _operand(self, plan: OperandPlan, measured: dict[int, SharedOperand], parts: SharedParts) -> OperandCursor:
        shared = measured.get(plan.key)
        if shared is None:
            of = parts.setdefault(plan.series, Parts())
            per = None if plan.per is None else named_metric(plan.per, None, self.translation)
            other = None if plan.other is None else named_metric(plan.other, None, self.translation)
            metric = named_metric(plan.metric, self.metric, self.translation)
            shared = SharedOperand(Operand(plan.condition, metric, per, plan.scale, of, other))
            measured[plan.key] = shared
        return OperandCursor(shared, plan.condition)

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
            level.extend(steps, found.value, whole, self._begun(held, whole) if whole.any() else None)
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
        if reason := too_few_points(self.rule, self.metric, self.points):
            return reason
        self._count_items()
        return next((f"{one.metric.name} has {one.lacking} to judge" for one in self.sides if one.lacking), "")

    def finding(self, ending: Ending, aftermath: Aftermath) -> Finding | None:
        """What the rule found so far, or None."""
        raised = [severity for severity, level in self.levels.items() if level.count]
        if not raised:
            return None
        severity, base = max(raised), min(raised)
        episodes = tuple(self._episodes(base))
        state = aftermath.state_of(self.metric, self.anchor.condition, self._limit(base), episodes, self._is_elsewhere)
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

    @property
    def _is_elsewhere(self) -> bool:
        """Whether its first condition still holds, and another one on the same metric does not any more."""
        others = zip(self.held[1:], self.sides[1:], strict=True)
        return bool(self.held[0]) and any(held is False and one.metric is self.metric for held, one in others)

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


class UnmetRule:
    """One rule on one run, all of whose points it has, with a condition that no value of the run meets."""

    def __init__(self, plan: RulePlan, metric: Metric) -> None:
        self.rule = plan.rule
        self.metric = metric
        self.points = len(metric)

    @property
    def too_few(self) -> str:
        """Of what there was too little to judge; empty if there was enough."""
        return too_few_points(self.rule, self.metric, self.points)


def too_few_points(rule: Rule, metric: Metric, points: int) -> str:
    """How many points a rule lacks, in words; empty if there are enough."""
    return "" if points >= rule.points else f"{metric.name} has {points} of the {rule.points} points it takes to judge"
