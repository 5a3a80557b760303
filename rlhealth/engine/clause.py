"""One clause of a rule on one run: the operands of its conditions, and the points at which they hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlhealth.engine.estimate import Bound, Estimate, Flags
from rlhealth.engine.metric_choice import named_metric
from rlhealth.engine.onset import dated_back
from rlhealth.engine.operands import NO_STEPS, ForwardFill, Operand, OperandCursor, SharedOperand, SharedParts
from rlhealth.engine.parts import Parts
from rlhealth.engine.plan import OperandPlan, RulePlan
from rlhealth.metrics import Metric, Translation
from rlhealth.run import Ints


class ClausePoints(NamedTuple):
    """Where the conditions of a clause hold, at its next points.

    Attributes:
        steps: of the points, shape (n,).
        found: what each measured condition measured there.
        held: where each condition holds, shape (n,) each; the last conditions are left out if the others never hold
            together.
        worse: where the critical limit of the first condition is passed.
        before: which conditions held at the point before; None for a condition that was not measured there.
        base: how many of them are conditions of the rule itself; the others are those of the critical level.
    """

    steps: Ints
    found: list[Estimate]
    held: list[Flags]
    worse: Flags
    before: list[bool | None]
    base: int

    @property
    def is_whole(self) -> bool:
        """Whether all conditions were measured."""
        return len(self.held) == len(self.before)

    def level(self, is_worse: bool) -> Flags:
        """Where the conditions of the rule hold, or those of its critical level, shape (n,)."""
        if not self.is_whole:
            return np.zeros(len(self.steps), np.bool_)
        parts = [self.worse, *self.held[1:]] if is_worse else self.held[: self.base]
        return np.asarray(np.logical_and.reduce(parts))

    def begun(self, level: Flags) -> Ints:
        """Where a level begins to hold: bit by bit, which conditions hold there and did not at the point before;
        elsewhere 0. Shape (n,).
        """
        starts = np.flatnonzero(level & ~np.append(False, level[:-1]))
        marks = np.zeros(len(level), np.int64)
        for place, one in enumerate(self.held):
            before = np.where(starts > 0, one[starts - 1], bool(self.before[place]))
            marks[starts] |= (one[starts] & ~before).astype(np.int64) << place
        return marks


class Clause:
    """The conditions of one clause, as far as the run has been judged.

    Args:
        measured: operands of other rules by their number in the plan, from the first step on; `parts` by the number of
                their series.

    Attributes:
        sides: the operand of each condition; `anchor` is the first, at whose points the others are looked up.
        held: which conditions hold at the newest point; None for a condition that was left out there.
        left_out: the number of points at which some condition was left out.
        points: how many points were judged; `latest` is the value of the first condition at the last of them.
    """

    def __init__(
        self,
        plan: RulePlan,
        metric: Metric,
        translation: Translation,
        measured: dict[int, SharedOperand] | None = None,
        parts: SharedParts | None = None,
    ) -> None:
        self.plan = plan
        self.metric = metric
        self.translation = translation
        measured = {} if measured is None else measured
        parts = {} if parts is None else parts
        self.sides = [self._operand(one, measured, parts) for one in plan.operands]
        self.anchor = self.sides[0]
        self.others = [ForwardFill(one) for one in self.sides[1:]]
        self.bounds = plan.bounds
        self.base = plan.base
        self.worse = plan.worse
        self.held: list[bool | None] = [False] * len(self.bounds)
        self.left_out = 0
        self.newest: Ints = NO_STEPS
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
        """Whether one of its metrics got a late point, at a step that was judged without it."""
        return self.anchor.late or any(one.late for one in self.others)

    def advance(self, until: int) -> ClausePoints | None:
        """The points up to and including step `until` that were not judged yet; None if there is none."""
        steps, found = self.anchor.advance(until)
        if not len(steps):
            return None
        self.points += len(steps)
        self.latest = float(found.value[-1])
        first = self.bounds[0].holds(found)
        worse = first if self.worse is None else self.worse.holds(found)
        each, held = self._held_at(steps, found, first, worse)
        points = ClausePoints(steps, each, held, worse, self.held, self.base)
        self.newest = steps[-1:].copy()
        self.held = [bool(one[-1]) for one in held] + [None] * (len(self.bounds) - len(held))
        self.left_out = 0 if points.is_whole else self.left_out + len(steps)
        return points

    def _held_at(self, steps: Ints, found: Estimate, first: Flags, worse: Flags) -> tuple[list[Estimate], list[Flags]]:
        """What each condition measures and where it holds; the first condition is given. The last conditions are left
        out if the others never hold together.

        Most rules' first conditions never hold. The other conditions are then measured only when they are needed, which
        changes no result: measures do not depend on the pieces in which points arrive. A rule that judges the whole run
        asks only the newest point.
        """
        assert self.plan.rule.when is not None
        asked = slice(-1 if self.plan.rule.when.at_end else 0, None)
        each, held, possible = [found], [first], first | worse
        for place, (bound, other) in enumerate(zip(self.bounds[1:], self.others, strict=True), 1):
            if not possible[asked].any():
                break
            self._look_back(place)
            each.append(other.at(steps))
            held.append(bound.holds(each[-1]))
            if place < self.base:
                possible = possible & held[-1]
        return each, held

    def _look_back(self, place: int) -> None:
        """Measures one condition up to the newest judged point, if it was left out there."""
        if self.held[place] is None:
            self.held[place] = bool(self.bounds[place].holds(self.others[place - 1].at(self.newest))[0])

    def settle(self) -> None:
        """Measures the left-out conditions that are needed after all points were judged: those on the same metric, and
        those that refute."""
        for place, one in enumerate(self.sides[1:], 1):
            if one.metric is self.metric or one.condition.refutes:
                self._look_back(place)

    def catch_up(self) -> None:
        """Measures all conditions that were left out, so that nothing has to be kept for them."""
        for place in range(1, len(self.bounds)):
            self._look_back(place)
        self.left_out = 0

    def release(self) -> None:
        """Releases its operands, because no more points will come, so that nothing is kept for them. The operands that
        report how many items are missing stay.
        """
        self.count_items()
        for one in self.sides:
            if not one.waits:
                one.release()

    def end(self) -> None:
        """Releases all its operands: another clause follows the rule from here on, or none."""
        for one in self.sides:
            one.release()

    def count_items(self) -> None:
        """Measures the conditions that must report how many items are missing."""
        for place, one in enumerate(self.sides):
            if place and one.waits and len(self.newest):
                self._look_back(place)

    def first_bound(self, is_worse: bool) -> Bound:
        """The limit of the first condition, or the critical one."""
        return self.worse if self.worse is not None and is_worse else self.bounds[0]

    def dated_back(self, steps: Ints, marks: Ints, is_worse: bool) -> tuple[Ints, Flags]:
        """Dates the onsets of a level back: to where the last of the conditions that made it hold began (`marks`, from
        `ClausePoints.begun`). Returns these steps, and whether each is the start of the run. Shape (k,) each.
        """
        bounds = [self.first_bound(is_worse), *self.bounds[1:]]
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
    def is_elsewhere(self) -> bool:
        """Whether its first condition still holds while another condition on the same metric no longer does."""
        self.settle()
        others = zip(self.held[1:], self.sides[1:], strict=True)
        return bool(self.held[0]) and any(held is False and one.metric is self.metric for held, one in others)

    @property
    def is_refuted(self) -> bool:
        """Whether a condition that the symptom requires no longer holds."""
        self.settle()
        others = zip(self.held[1:], self.sides[1:], strict=True)
        return any(held is False and one.condition.refutes for held, one in others)
