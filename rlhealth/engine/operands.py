"""Operands: the metric of a rule's condition, measured as the condition says; each rule reads at its own pace."""

from __future__ import annotations

from weakref import ReferenceType, ref

import numpy as np

from rlhealth.engine.estimate import NOTHING, Estimate, Measure, WithoutError
from rlhealth.engine.measures import MAKE
from rlhealth.engine.parts import Parts
from rlhealth.engine.trends import Correlation
from rlhealth.engine.versus import EstimateVersusStart, against
from rlhealth.engine.windows import count_until
from rlhealth.metrics import Metric
from rlhealth.rules.conditions import Condition
from rlhealth.rules.measures import COUNTS
from rlhealth.run import Floats, Ints

#: The parts that measures share, by the number of the series in the plan: a metric, and how its values are used.
SharedParts = dict[int, Parts]
NO_STEPS: Ints = np.empty(0, np.int64)


class Operand:
    """One side of a rule: a metric, measured as its condition says, as far as the run has been read."""

    def __init__(
        self,
        condition: Condition,
        metric: Metric,
        per: Metric | None,
        scale: float,
        parts: Parts | None = None,
        other: Metric | None = None,
    ) -> None:
        self.condition = condition
        self.metric = metric
        self.per = ForwardFill(per) if per is not None else None
        self.other = ForwardFill(other) if other is not None else None
        self.scale = scale
        self.parts = parts or Parts()
        self.measure: Measure | Correlation | None = build(condition, metric.smoothed, self.parts)
        self.seen = 0
        self.peak = float("nan")

    @property
    def late(self) -> bool:
        """Whether the metric that it is divided by, or correlated with, got a late point at a step already answered."""
        return any(one is not None and one.late for one in (self.per, self.other))

    def advance(self, until: int) -> tuple[Ints, Estimate]:
        """Steps and measured values of the points after the last ones asked for, up to and including step `until`."""
        steps = self.metric.steps
        end = count_until(steps, until)
        new_steps = steps[self.seen : end]
        values = self.metric.values_from(self.seen)[: len(new_steps)] if len(new_steps) else np.empty(0)
        unknown = self.condition.known_from - 1 - self.seen
        self.seen = max(end, self.seen)
        if self.condition.absolute:
            values = np.abs(values)
        if self.per is not None:
            divisor = self.condition.divided_by
            assert divisor is not None
            below = self.per.at(new_steps).value
            if divisor.max_so_far and len(below):
                below = np.fmax(np.fmax.accumulate(np.abs(below)), self.peak)
                self.peak = float(below[-1])
            with np.errstate(divide="ignore", invalid="ignore"):
                values = values / (self.scale * (below if divisor.signed else np.abs(below) ** float(divisor.power)))
        elif self.scale != 1:
            values = values / self.scale
        # an overflow gives infinity, and an undefined value NaN: both are judged as such
        with np.errstate(all="ignore"):
            if isinstance(self.measure, Correlation):
                assert self.other is not None
                found = self.measure.extend_with(values, self.other.at(new_steps).value)
            else:
                assert self.measure is not None
                found = self.measure.extend(values)
        return new_steps, found.unknown_until(unknown)

    def release(self) -> None:
        """Ends its measure: it is not read again, and other measures keep nothing for it."""
        self.measure = None
        self.parts.sweep()


class SharedOperand:
    """An operand that several rules read at their own pace: measured once, and kept until all have read it."""

    def __init__(self, operand: Operand) -> None:
        self.operand = operand
        self.takers: list[ReferenceType[OperandCursor]] = []  # weak: a cursor that was replaced is not waited for
        self.steps: Ints = NO_STEPS
        self.values = NOTHING
        self.dropped = 0

    def between(self, start: int, until: int) -> tuple[Ints, Estimate]:
        """Steps and measured values of its points from number `start` on, up to and including step `until`."""
        steps, values = self.operand.advance(until)
        if not len(self.steps):
            self.steps, self.values = steps, values
        elif len(steps):
            self.steps = np.concatenate([self.steps, steps])
            self.values = self.values.then(values)
        part = slice(start - self.dropped, count_until(self.steps, until))
        if part == slice(0, len(self.steps)):
            return self.steps, self.values
        return self.steps[part], self.values.part(part)

    def forget(self) -> None:
        """Drops what all have read."""
        done = min(taker.seen for one in self.takers if (taker := one()) is not None) - self.dropped
        if done == len(self.steps):
            self.steps, self.values = NO_STEPS, NOTHING
        elif done:
            self.steps, self.values = self.steps[done:].copy(), self.values.at(np.arange(done, len(self.values)))
        self.dropped += done

    def release(self, taker: OperandCursor) -> None:
        """Keeps nothing more for a cursor that will not read again."""
        self.takers = [one for one in self.takers if one() not in (taker, None)]
        if self.takers:
            self.forget()
        else:
            self.steps, self.values = self.steps[:0].copy(), NOTHING
            self.operand.release()


class OperandCursor:
    """One rule's position in an operand that it may share; `condition` is that rule's, with its limit."""

    def __init__(self, shared: SharedOperand, condition: Condition) -> None:
        self.shared = shared
        self.condition, self.metric = condition, shared.operand.metric
        self.seen = 0
        shared.takers.append(ref(self))

    def release(self) -> None:
        """Stops reading."""
        self.shared.release(self)

    @property
    def late(self) -> bool:
        """Whether the metric that it is divided by got a late point at a step already answered."""
        return self.shared.operand.late

    @property
    def waits(self) -> bool:
        """Whether its measure waits for something that only the measure can count."""
        return hasattr(self.shared.operand.measure, "lacking")

    @property
    def lacking(self) -> str:
        """What its measure still lacks; empty if it has a value."""
        return str(getattr(self.shared.operand.measure, "lacking", ""))

    def advance(self, until: int) -> tuple[Ints, Estimate]:
        """Steps and measured values of the points after the last ones asked for, up to and including step `until`."""
        steps, values = self.shared.between(self.seen, until)
        self.seen += len(steps)
        self.shared.forget()
        return steps, values


class ForwardFill:
    """A metric looked up at other steps: its last finite point at or before each of them."""

    def __init__(self, source: Metric | OperandCursor) -> None:
        self.source = source
        self.steps: Ints = NO_STEPS
        self.found = NOTHING
        self.seen = 0
        self.asked = -1

    @property
    def values(self) -> Floats:
        """The values that later steps can still look back to, shape (n,)."""
        return self.found.value

    @property
    def late(self) -> bool:
        """Whether a new point arrived at a step that was looked up before: the value returned there is no longer
        valid."""
        if isinstance(self.source, OperandCursor):
            return self.source.late or _unread_before(self.source.metric, self.source.seen, self.asked)
        return _unread_before(self.source, self.seen, self.asked)

    def at(self, steps: Ints) -> Estimate:
        """The values held at those steps (shape (n,), not falling); NaN before the first point."""
        if not len(steps):
            return NOTHING
        until = self.asked = int(steps[-1])
        if isinstance(self.source, OperandCursor):
            new_steps, new = self.source.advance(until)
        else:
            end = count_until(self.source.steps, until)
            new_steps = self.source.steps[self.seen : end]
            new = Estimate(self.source.values_from(self.seen)[: len(new_steps)]) if len(new_steps) else NOTHING
            self.seen = max(end, self.seen)
        known, held = ~np.isnan(new.value), len(self.steps)
        same = np.array_equal(new_steps, steps)
        if (
            same and known[0 if held else int(known.argmax()) :].all()
        ):  # the usual case of one trainer's log: no lookup is needed
            self.steps, self.found = new_steps[-1:].copy(), new.at(np.array([len(new) - 1]))
            return new
        self.steps = np.concatenate([self.steps, new_steps[known]])
        self.found = self.found.then(new.at(np.flatnonzero(known)))
        if not len(self.steps):
            return Estimate(np.full(len(steps), np.nan))
        # counting finds the place faster than searching
        place = held + np.cumsum(known) - 1 if same else np.searchsorted(self.steps, steps, side="right") - 1
        found = self.found.at(place)
        keep = max(int(place[-1]), 0)  # later steps can look back to one point only
        self.steps, self.found = self.steps[keep:].copy(), self.found.at(np.arange(keep, len(self.found)))
        return found


def _unread_before(metric: Metric, seen: int, step: int) -> bool:
    return len(metric) > seen and int(metric.steps[seen]) <= step


def build(condition: Condition, smoothed: int = 1, parts: Parts | None = None) -> Measure | Correlation:
    """The measure that a condition names, over its window, compared with the start or the past if the condition says
    so.

    `smoothed`: over how many points each point of the metric is known to be averaged. `parts`: those of other measures
    of the same series.
    """
    parts = parts or Parts()
    if condition.measure == "correlation":
        return Correlation(condition.last, condition.at_least or condition.last)
    inner = MAKE[condition.measure](condition, smoothed, parts)
    versus = condition.versus
    if versus is None or condition.measure in COUNTS:
        return inner
    if not isinstance(inner, WithoutError):
        start = condition.model_copy(update={"last": versus.start, "at_least": None})
        own = Parts()  # the start is not measured further, and would make shared parts keep what others have read
        return EstimateVersusStart(inner, MAKE[condition.measure](start, smoothed, own))
    return WithoutError(against(inner.inner, condition.last, versus))
