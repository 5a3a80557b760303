"""The rule schema: what the YAML of a rule is checked against."""

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
    """When a rule fires: a condition, all or any of several, or the way in which the run ended.

    Conditions other than the first are looked up at the first one's steps, at their last point so far. With `at_end`
    they are asked of the last row alone, and only of a log that shows a whole run: what is said of the whole of a run
    is said too early while more may come.
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
    """When the finding is critical: another limit for the first condition, more conditions on top, or both.

    It refines `when` rather than replace it, so that whatever is critical is a warning too.
    """

    above: Number | Limit | None = None
    below: Number | Limit | None = None
    standard_errors: AtLeastZero | None = None
    and_: tuple[Condition, ...] = ()
    held_for: Count | None = None


@dataclass(frozen=True, kw_only=True)
class SettingChange(StrictData):
    """A setting that is worth changing, by its canonical name, and by how much: to a value, so many times the present
    one, or up to what is usual.

    Attributes:
        times: the new value as a multiple of the run's own.
        to: the new value, where the run's own does not matter.
        up_to_usual: the value that this trainer is usually given (rlhealth/metrics/usual.yaml), where the run's own is
            less than a tenth of it.
        stops_at_usual: of a learning rate that is lowered: the usual one instead, where it lies between the run's own
            and the multiple, and clearly below the run's own.
        from_zero: the new value where the run's own is 0, of which no multiple helps.
        unknown: the new value where the run's own is not known.
        instead_of: it is changed only where the trainer is known to lack this other setting.
        metric: where the run does not give the setting, the largest value of this metric stands for it.
        only_above: nothing is changed unless the run's own value lies above it.
        at_most, at_least: bounds of the new value; where the run's own is beyond one already, nothing is changed.
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
    """Another way in which the same symptom shows, on the same metric: one symptom is one finding, in the words of its
    worst aspect."""

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
    """Where a limit comes from: published guidance, or a distribution over labelled runs."""

    text: str
    url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rule(StrictData):
    """One rule, as its YAML file says it.

    Attributes:
        severity_when_over: how severe a finding is at most once it is over and was harmless.
        harmless_once: what shows that: reward is back where it was before, or rose above its level while the finding
            held, as where rewards did not differ and there was nothing else to regain; or its end alone, where all that
            was missing is there again.
        severity_while_best: how severe a finding is at most as long as reward has risen and lies where it was highest:
            of a symptom that matters by what it costs.
        severity_while_alone: how severe it is at most where, beside that, nothing of another family is found: of a
            symptom that is a price, and no damage by itself.
        over_once: what ends a finding whose condition no longer holds: that it cost nothing that has not come back, or
            only that reward rose beyond its noise.
        warns_when_over: whether it stays a warning in a control task that was learned nevertheless: what broke once may
            break again.
        from_outside: what it reports does not come from the policy (a reward of another scale, a setting that jumped):
            only a cause that can begin with it explains it.
        also: other families whose symptom it reports as well, as a drift for which nothing was gained is one of KL and
            one of reward: only a cause that explains all of them explains it.
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
        """The rule as rules that each have one list of conditions, all of which must hold: its aspects and the
        alternatives of `any`.

        Of two that are as bad, the one that comes first speaks: the aspects, which say more, then the rule itself, and
        last what is asked at the end, which could have been said before.
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
        """How many points it takes until the rule could have reported anything; with fewer, it is skipped."""
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
    """Raises ValueError for a critical level that is none, or that no value could reach."""
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
    """A rule for each alternative of `any`, which is followed by itself; the rule itself if there is none."""
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
