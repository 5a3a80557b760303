"""Operands: what a rule's condition looks at, measured as it says, and the limits that it is compared with."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from weakref import ReferenceType, ref

import numpy as np

from rlhealth.engine.estimate import NOTHING, Bound, Estimate, Measure, WithoutError
from rlhealth.engine.measures import MAKE
from rlhealth.engine.parts import Parts
from rlhealth.engine.trends import Correlation
from rlhealth.engine.versus import EstimateVersusStart, against
from rlhealth.engine.windows import count_until, first_points, plain_median
from rlhealth.metrics import Metric, Translation
from rlhealth.metrics.metric import DerivedSeries
from rlhealth.rules.measures import COUNTS, KINDS
from rlhealth.rules.model import Condition, CriticalLevel, Limit
from rlhealth.run import Floats, Ints

#: What the measures of each series share, by its number in the plan: a metric, and how its values are looked at.
SharedParts = dict[int, Parts]
NO_STEPS: Ints = np.empty(0, np.int64)


class CannotRun(Exception):
    """A rule cannot run at this run; the message says why."""


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
        """Whether what it is divided by, or goes with, was answered too early."""
        return any(one is not None and one.late for one in (self.per, self.other))

    def advance(self, until: int) -> tuple[Ints, Estimate]:
        """Steps and measured values of the points after the last ones asked for, up to and including step `until`."""
        steps = self.metric.steps
        end = count_until(steps, until)
        new_steps = steps[self.seen : end]
        values = self.metric.values_from(self.seen)[: len(new_steps)] if len(new_steps) else np.empty(0)
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
        with np.errstate(
            all="ignore"
        ):  # what overflows is infinite, and what has no value is NaN: both are judged as such
            if isinstance(self.measure, Correlation):
                assert self.other is not None
                return new_steps, self.measure.extend_with(values, self.other.at(new_steps).value)
            assert self.measure is not None
            return new_steps, self.measure.extend(values)

    def release(self) -> None:
        """Ends its measure: it is not asked again, and nothing that others measure is kept for it."""
        self.measure = None
        self.parts.sweep()


class SharedOperand:
    """An operand that several rules look at, each as far as it has come: measured once, kept until all have taken
    it."""

    def __init__(self, operand: Operand) -> None:
        self.operand = operand
        self.takers: list[ReferenceType[OperandCursor]] = []  # weak: one that is followed anew is no longer waited for
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
        """Drops what all have taken."""
        done = min(taker.seen for one in self.takers if (taker := one()) is not None) - self.dropped
        if done == len(self.steps):
            self.steps, self.values = NO_STEPS, NOTHING
        elif done:
            self.steps, self.values = self.steps[done:].copy(), self.values.at(np.arange(done, len(self.values)))
        self.dropped += done

    def release(self, taker: OperandCursor) -> None:
        """Keeps nothing any more for one that has taken all that it will."""
        self.takers = [one for one in self.takers if one() not in (taker, None)]
        if self.takers:
            self.forget()
        else:
            self.steps, self.values = self.steps[:0].copy(), NOTHING
            self.operand.release()


class OperandCursor:
    """One rule's own place in an operand that it may share; `condition` is the rule's own, with its limit."""

    def __init__(self, shared: SharedOperand, condition: Condition) -> None:
        self.shared = shared
        self.condition, self.metric = condition, shared.operand.metric
        self.seen = 0
        shared.takers.append(ref(self))

    def release(self) -> None:
        """Takes no more."""
        self.shared.release(self)

    @property
    def late(self) -> bool:
        """Whether what it is divided by was answered too early."""
        return self.shared.operand.late

    @property
    def waits(self) -> bool:
        """Whether its measure waits for something that only it can count."""
        return hasattr(self.shared.operand.measure, "lacking")

    @property
    def lacking(self) -> str:
        """What its measure still waits for; empty if it can say something."""
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
        """Whether a point has come since, at a step that was looked up before: what was answered there no longer
        holds."""
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
        if same and known[0 if held else int(known.argmax()) :].all():  # as a trainer logs: there is nothing to look up
            self.steps, self.found = new_steps[-1:].copy(), new.at(np.array([len(new) - 1]))
            return new
        self.steps = np.concatenate([self.steps, new_steps[known]])
        self.found = self.found.then(new.at(np.flatnonzero(known)))
        if not len(self.steps):
            return Estimate(np.full(len(steps), np.nan))
        # counting finds the place sooner than searching
        place = held + np.cumsum(known) - 1 if same else np.searchsorted(self.steps, steps, side="right") - 1
        found = self.found.at(place)
        keep = max(int(place[-1]), 0)  # one point is all that later steps can still look back to
        self.steps, self.found = self.steps[keep:].copy(), self.found.at(np.arange(keep, len(self.found)))
        return found


def _unread_before(metric: Metric, seen: int, step: int) -> bool:
    return len(metric) > seen and int(metric.steps[seen]) <= step


def build(condition: Condition, smoothed: int = 1, parts: Parts | None = None) -> Measure | Correlation:
    """The measure that a condition names, over its window, set against the start or the past where it says so.

    `smoothed`: over how many points each point of the metric is known to be averaged. `parts`: of other measures of the
    same series.
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
        own = Parts()  # the start is not measured on, and would keep what others have taken
        return EstimateVersusStart(inner, MAKE[condition.measure](start, smoothed, own))
    return WithoutError(against(inner.inner, condition.last, versus))


def unit_of(condition: Condition) -> str:
    """What a condition's value is in: the metric's own unit (value), a ratio, noise, or a share of points."""
    unit = KINDS[condition.measure].unit
    is_ratio = condition.divided_by is not None or (condition.versus is not None and condition.versus.is_ratio)
    return "ratio" if unit == "value" and is_ratio else unit


def level_of(condition: Condition, limit: float, metric: Metric) -> float | None:
    """The limit of a condition as a level of the metric's own values; None if it measures something else (noise, a
    rise, a share)."""
    if not np.isfinite(limit) or not KINDS[condition.measure].level or condition.divided_by is not None:
        return None
    versus = condition.versus
    if versus is None:
        return limit
    if versus.start is None:
        return None
    start = first_points(metric.values, versus.start)
    if not len(start):
        return None
    return float(limit * plain_median(start)) if versus.is_ratio else float(limit + plain_median(start))


def bound_of(condition: Condition, config: Mapping[str, Any]) -> Bound:
    """The limit of a condition in numbers; raises CannotRun where it follows a setting that is unknown."""
    sign = next(sign for sign in ("above", "below", "equals") if getattr(condition, sign) is not None)
    return Bound(sign, limit_of(getattr(condition, sign), config), float(condition.standard_errors))


def worse_of(worse: CriticalLevel, base: Bound, config: Mapping[str, Any]) -> Bound:
    """The critical limit: the one given, or the base's own."""
    said = worse.above if worse.above is not None else worse.below
    sure = base.sure if worse.standard_errors is None else float(worse.standard_errors)
    if said is None:
        return replace(base, sure=sure)
    return Bound("above" if worse.above is not None else "below", limit_of(said, config), sure)


def limit_of(said: float | Limit, config: Mapping[str, Any]) -> float:
    """A limit in numbers; raises CannotRun where it follows a setting that is unknown."""
    if not isinstance(said, Limit):
        return float(said)
    setting = config.get(said.setting)
    if isinstance(setting, bool) or not isinstance(setting, int | float):
        if said.default is None:
            raise CannotRun(f"the setting {said.setting} is unknown")
        return float(said.default)
    limit = float(setting) * float(said.times) + float(said.plus)
    return limit if said.at_most is None else min(limit, float(said.at_most))


def pick(name: str, translation: Translation, anchor: Metric | None = None) -> Metric:
    """The metric of that canonical name, or the first logged of `one|another`; raises CannotRun if there is none.

    `*` stands for any part of a name, as the names of reward functions are the user's own.

    `step` is the step itself, at the points of `anchor`, or else of the metric logged most often; `same` is the anchor.
    """
    if name == "same" and anchor is not None:
        return anchor
    for one in name.split("|"):
        metric = clock_of(anchor, translation) if one == "step" else _named(one, translation)
        if metric is not None and len(metric):
            return metric
    raise CannotRun(f"{name.replace('|', ' or ')} was not logged")


def named_metric(name: str, own: Metric | None, translation: Translation) -> Metric:
    """The metric of a name that `pick` found; the step is read at the points of a rule's own metric."""
    if own is not None and name == own.name:
        return own
    clock = clock_of(own, translation) if name == "step" else None
    return translation.metrics[name] if clock is None else clock


def is_logged(names: str, translation: Translation) -> bool:
    """Whether one of `one|pattern/*` has points."""
    found = (_named(one, translation) for one in names.split("|"))
    return any(one is not None and len(one) > 0 for one in found)


def _named(name: str, translation: Translation) -> Metric | None:
    """The metric of that name, or the first logged that it is a pattern of."""
    if "*" not in name:
        return translation.metrics.get(name)
    pattern = pattern_of_any(name)
    return next((one for key, one in translation.metrics.items() if pattern.match(key) and len(one)), None)


def clock_of(anchor: Metric | None, translation: Translation) -> Metric | None:
    """The step itself as a metric."""
    longest = anchor or max(translation.metrics.values(), key=len, default=None)
    return (
        None
        if longest is None
        else replace(longest, name="step", tag="", unit="steps", transform="", source=_Clock(longest))
    )


class _Clock(DerivedSeries):
    """The steps of another metric, as values."""

    def __init__(self, of: Metric) -> None:
        super().__init__(of.tag)
        self._of = of

    def _raw(self) -> tuple[int, int]:
        return self._of.revision, len(self._of)

    def _make(self, start: int) -> None:
        steps = self._of.steps[start:]
        self._made.extend(steps, steps.astype(np.float64), self._of.times[start:])


def pick_all(names: str, translation: Translation) -> list[Metric]:
    """Every logged metric that `one|pattern/*` names; raises CannotRun if there is none."""
    pattern = pattern_of_any(names)
    found = [one for key, one in translation.metrics.items() if pattern.match(key) and len(one)]
    if not found:
        raise CannotRun(f"{names.replace('|', ' or ')} was not logged")
    return found


@cache
def pattern_of_any(names: str) -> re.Pattern[str]:
    """What `one|pattern/*` matches, for names from their beginning to their end."""
    return re.compile("|".join(map(fnmatch.translate, names.split("|"))))
