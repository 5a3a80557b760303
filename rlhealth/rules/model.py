"""The rule schema, against which the YAML of a rule is checked."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

from rlhealth.parsing.strict_data import (
    AtLeastZero,
    Count,
    Flag,
    Number,
    Schema,
    Setting,
    StrictData,
    Text,
    Title,
    Word,
)
from rlhealth.rules.causes import Cause
from rlhealth.rules.conditions import Condition, Limit
from rlhealth.rules.scope import Scope

FAMILIES = (
    "ratio",
    "approx-kl",
    "clip-fraction",
    "kl-high",
    "kl-negative",
    "kl-coef",
    "entropy",
    "value-loss",
    "reward-trend",
    "reward-signal",
    "reward-hacking",
    "truncation",
    "length",
    "grad-norm",
    "loss",
    "numerics",
    "dead",
    "stalled",
    "mismatch",
    "throughput",
    "evaluation",
    "agent",
    "text",
    "settings",
    "baseline",
    "diagnosis",
)


@dataclass(frozen=True, kw_only=True)
class When(StrictData):
    """When a rule fires: a condition, all or any of several, or how the run ended.

    Conditions other than the first are evaluated at the first one's steps, at their last point so far. With `at_end`
    they are evaluated only at the last row, and only for a log that shows a whole run, because a statement about a
    whole run is premature while more rows may come. A measure of the newest points asks only that no more come.
    """

    all: tuple[Condition, ...] = ()
    any: tuple[Condition, ...] = ()
    ending: tuple[str, ...] = ()
    vanished: str | None = None
    held_for: Count = 1
    at_end: Flag = False

    def __post_init__(self) -> None:
        if sum((bool(self.all), bool(self.any), bool(self.ending), self.vanished is not None)) != 1:
            raise ValueError("needs exactly one of `all`, `any`, `ending` and `vanished` (or a single condition)")
        if self.at_end and (not self.conditions or self.held_for > 1):
            raise ValueError("`at_end` goes with conditions, which are asked once: leave out `held_for`")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions, the first of which gives the steps at which the rule is judged."""
        return self.all or self.any


@dataclass(frozen=True, kw_only=True)
class CriticalLevel(StrictData):
    """When the finding is critical: another limit for the first condition, additional conditions, or both.

    It refines `when` and does not replace it, so that every critical finding is a warning too.

    Attributes:
        even_while_best: whether the finding stays critical while reward is at its best, whatever `severity_while_best`
            says of one that is not.
    """

    above: Number | Limit | None = None
    below: Number | Limit | None = None
    standard_errors: AtLeastZero | None = None
    and_: tuple[Condition, ...] = ()
    held_for: Count | None = None
    even_while_best: Flag = False


@dataclass(frozen=True, kw_only=True)
class SettingChange(StrictData):
    """A setting that is worth changing, by its canonical name, and its new value: a fixed value, a multiple of the
    present one, or the usual one.

    Attributes:
        times: the new value as a multiple of the run's value.
        to: the new value, whatever the run's value is.
        up_to_usual: the usual value for this trainer (rlhealth/metrics/usual.yaml), if the run's value is less than a
            tenth of it.
        stops_at_usual: for a learning rate that is lowered: the usual value instead, if it lies between the run's value
            and the multiple, and clearly below the run's value.
        from_zero: the new value if the run's value is 0, of which no multiple helps.
        unknown: the new value if the run's value is unknown.
        instead_of: change this setting only if the trainer is known to lack that other setting.
        metric: if the setting is not logged, the largest value of this metric is used as its value.
        only_above: no change unless the run's value is above it.
        at_most, at_least: bounds of the new value; no change if the run's value is already beyond one.
    """

    setting: str
    times: Number | None = None
    to: Setting = None
    up_to_usual: bool = False
    stops_at_usual: bool = False
    from_zero: Number | None = None
    unknown: Number | None = None
    instead_of: Word = ""
    metric: str | None = None
    only_above: Number | None = None
    at_most: Number | None = None
    at_least: Number | None = None
    why: Text

    def __post_init__(self) -> None:
        if (self.times is not None) + (self.to is not None) + self.up_to_usual != 1:
            raise ValueError("needs one of `times`, `to` and `up_to_usual`")


@dataclass(frozen=True, kw_only=True)
class Aspect(StrictData):
    """Another sign of the same symptom, on the same metric. One symptom gives one finding, with the words of its worst
    aspect."""

    title: Title
    severity: Literal["info", "warning", "critical"]
    when: When
    critical: CriticalLevel | None = None
    severity_when_over: Literal["info", "warning"] = "warning"
    severity_while_best: Literal["info", "warning", "critical"] | None = None  # that of its rule, if not given
    message: Text
    because: Text | None = None
    try_: Annotated[tuple[Text, ...], Schema(min_length=1)] | None = None


@dataclass(frozen=True, kw_only=True)
class Source(StrictData):
    """The source of a limit: published guidance, or a distribution over labelled runs."""

    text: str
    url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rule(StrictData):
    """One rule, as defined by its YAML file.

    Attributes:
        severity_when_over: the highest severity of a finding that is over and was harmless.
        harmless_once: what shows that it was harmless: reward is back at its earlier level, or rose above its level
            while the finding held (if rewards did not differ, there was nothing else to regain); or only the end of the
            finding, if everything that was missing is back.
        severity_while_best: the highest severity while reward has risen and is at its best, for a symptom that matters
            only by its cost.
        severity_while_alone: the highest severity if, in addition, no other family has a finding, for a symptom that is
            a price and no damage by itself.
        over_once: what ends a finding whose condition no longer holds: the run has recovered from it, or only that
            reward rose beyond its noise.
        warns_when_over: whether it stays a warning in a control task that was learned nevertheless, because it may
            happen again.
        from_outside: its finding does not come from the policy (a reward with a new scale, a setting that jumped): only
            a cause that can begin with it explains it.
        also: other families whose symptom it also reports: a drift without gain is a symptom of KL and of reward, so
            only a cause that explains both explains it.
    """

    id: str
    family: Annotated[str, Schema(pattern=r"^[a-z][a-z0-9-]*$", max_length=60)]
    title: Title
    severity: Literal["info", "warning", "critical"]
    scope: Scope = field(default_factory=Scope)
    when: When | None = None
    critical: CriticalLevel | None = None
    severity_when_over: Literal["info", "warning"] = "warning"
    harmless_once: Literal["reward-is-back", "reward-rose", "its-end"] = "reward-is-back"
    severity_while_best: Literal["info", "warning", "critical"] = "critical"
    severity_while_alone: Literal["info", "warning", "critical"] = "critical"
    over_once: Literal["nothing-is-lost", "reward-rose"] = "nothing-is-lost"
    warns_when_over: Flag = False
    from_outside: Flag = False
    also: tuple[str, ...] = ()
    cause: Cause | None = None
    message: Text
    because: Text
    try_: Annotated[tuple[Text, ...], Schema(min_length=1)]
    changes: tuple[SettingChange, ...] = ()
    aspects: tuple[Aspect, ...] = ()
    source: Annotated[tuple[Source, ...], Schema(min_length=1)]
    guidance: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        texts = [text for one in self.aspects for text in (one.message, one.because or "", *(one.try_ or ()))]
        for text in (self.message, self.because, *self.try_, *texts, *(self.cause.texts if self.cause else ())):
            try:
                for piece in re.split(r"\[\[|\]\]", text):
                    fields = [
                        (name, format or "")
                        for _, name, format, _ in string.Formatter().parse(piece)
                        if name is not None
                    ]
                    if any(not name or name[0].isdigit() or "{" in format for name, format in fields):
                        raise ValueError("a field has a name, and no other field in it,")
            except ValueError as error:
                raise ValueError(
                    f"{str(error).lower()} in `{text[:60]}`; write {{{{ and }}}} for braces that are meant as such"
                ) from None
        if (self.cause is None) == (self.when is None) or (self.family == "diagnosis" and self.cause is None):
            raise ValueError("a diagnosis has `cause`, every other rule has `when`")
        if self.aspects and (self.when is None or not self.when.conditions):
            raise ValueError("`aspects` go with conditions on a metric")
        _check_levels(self)
        for other in self.aspects:
            _check_levels(other)
            first = other.when.conditions[0].metric if other.when.conditions else ""
            if self.when is not None and not set(first.split("|")) <= set(self.when.conditions[0].metric.split("|")):
                raise ValueError(
                    f"an aspect is of the rule's own metric, and `{first}` is another: make it a separate rule"
                )

    @cached_property
    def clauses(self) -> tuple[Rule, ...]:
        """The rule split into rules with one list of conditions each, all of which must hold: its aspects, and the
        alternatives of `any`.

        Of two that are equally severe, the first is reported: aspects come first, as they are more specific, then the
        rule itself, and last the conditions at the end of a run.
        """
        shared = {"aspects": ()}
        each = []
        for one in self.aspects:
            given = {name: getattr(one, name) for name in Aspect.__dataclass_fields__ if getattr(one, name) is not None}
            each.append(self.model_copy(update=shared | {"critical": one.critical} | given))
        each.append(self.model_copy(update=shared))
        each.sort(key=lambda one: one.when is not None and one.when.at_end)
        return tuple(part for one in each for part in _alternatives(one))

    @cached_property
    def points(self) -> int:
        """How many points the rule needs before it can raise a finding; with fewer, it is skipped."""
        parts = [
            max(condition.points for condition in one.when.conditions) + one.when.held_for - 1
            for one in self.clauses
            if one.when is not None and one.when.conditions
        ]
        return max(self.scope.min_points, min(parts, default=0))

    @property
    def cites(self) -> str:
        """The sources in one line."""
        return "; ".join(f"{one.text} ({one.url})" if one.url else one.text for one in self.source)


def _check_levels(one: Rule | Aspect) -> None:
    """Raises ValueError for a critical level that adds nothing, or that no value can reach."""
    if one.critical is None:
        return
    if one.when is not None and one.when.at_end:
        raise ValueError("what is asked `at_end` has one level: leave out `critical`")
    if one.severity == "critical":
        raise ValueError("`severity: critical` leaves nothing for `critical` to add: use `severity: warning`")
    conditions = one.when.conditions if one.when is not None else ()
    for sign in ("above", "below"):
        if getattr(one.critical, sign) is not None and not any(getattr(part, sign) is not None for part in conditions):
            raise ValueError(f"`critical` has a limit `{sign}`, and no condition of the rule has one")


def _alternatives(rule: Rule) -> list[Rule]:
    """One rule per alternative of `any`, each followed by itself; the rule itself if there is none."""
    if rule.when is None or not rule.when.any:
        return [rule]
    found = []
    for one in rule.when.any:
        worse = rule.critical
        if worse is not None:
            sign = "above" if one.above is not None else "below"
            limit = getattr(worse, sign)
            other = (worse.above, worse.below) != (None, None) and limit is None  # it is meant for the other side
            worse = None if other else worse.model_copy(update={"above": None, "below": None, sign: limit})
        when = rule.when.model_copy(update={"all": (one,), "any": ()})
        found.append(rule.model_copy(update={"when": when, "critical": worse}))
    return found
