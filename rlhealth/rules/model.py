"""The rule schema: the models that a rule's YAML is checked against."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

from rlhealth.parsing.checked import meant
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
from rlhealth.rules.measures import COUNTS, ESTIMATED, KINDS, MEASURES

COUNTED = ("share_of_points", *COUNTS)  # measures that count the points at a level
TRENDS = ("climb", "plunge", "arrival", "correlation")  # measures that look at how a series changes
WHOLE = (
    "share_nonfinite",
    "max_so_far",
    "gain_since_start",
    "count",
    "streak",
    "climb",
    "plunge",
    "arrival",
)  # measures that `at_least` means nothing to
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
class Limit(StrictData):
    """A limit that follows one of the run's own settings: `times` x the setting + `plus`, or `default` if it is
    unknown.

    `planned_steps` is a setting too. The limit is never above `at_most`.
    """

    setting: str
    times: Number = 1
    plus: Number = 0
    at_most: Number | None = None
    default: Number | None = None


@dataclass(frozen=True, kw_only=True)
class Divisor(StrictData):
    """What a metric is divided by: another metric to a power, or a setting, times a factor.

    Of the other metric (`same`: the rule's own), its last point so far counts, or with `max_so_far` the largest. It
    must be above 0 unless `signed`.
    """

    metric: str | None = None
    power: Number = 1
    signed: Flag = False
    max_so_far: Flag = False
    setting: str | None = None
    default: Number | None = None
    times: Number = 1


@dataclass(frozen=True, kw_only=True)
class Versus(StrictData):
    """What a measure is compared with: the run's first N points (`start: N`), or the N points `before` its window.

    Both by their median; `largest: N` and `smallest: N` are the extremes of the N points before the window.
    `as` says how: the `ratio` of the two, or their `difference`.
    """

    start: Count | None = None
    before: Count | None = None
    largest: Count | None = None
    smallest: Count | None = None
    as_: Literal["ratio", "difference"]

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.start, self.before, self.largest, self.smallest)) != 1:
            raise ValueError("needs either `start: N` or `before: N` (or `largest: N`, `smallest: N`)")

    @property
    def past(self) -> int:
        """How many points before the window it looks at; 0 if it looks at the start."""
        return self.before or self.largest or self.smallest or 0

    @property
    def needed(self) -> int:
        """How many of them must be there: half for a median, most of them for an extreme."""
        return max(3, self.past // 2) if self.before is not None else self.past - self.past // 4

    @property
    def is_ratio(self) -> bool:
        """Whether the measure is divided by what it is compared with, rather than diminished by it."""
        return self.as_ == "ratio"


@dataclass(frozen=True, kw_only=True)
class PointFilter(StrictData):
    """The points that `measure: share_of_points` and `measure: count` count."""

    above: Number | None = None
    below: Number | None = None

    def __post_init__(self) -> None:
        if self.above is None and self.below is None:
            raise ValueError("needs `above` or `below`: without one, every point counts")


@dataclass(frozen=True, kw_only=True)
class Condition(StrictData):
    """One measure of one metric, compared with a limit.

    Attributes:
        metric: a canonical name; of `a|b` the first that is logged.
        last: the window, in points; of these, `at_least` so many must be there.
        items: of `mean_fraction`, how many groups or completions the window must have seen.
        absolute: the size of the metric counts, not its sign.
        divided_by: the metric is divided by another one or by a setting before it is measured.
        versus: the measure is compared with that of the run's start, or of the points before the window.
        above, below, equals: the limit, of which there is exactly one.
        standard_errors: the value is beyond its limit by more than so many of its standard errors; of a negative one,
            it is not surely on the other side: within so many errors it may be beyond the limit.
        if_logged: the condition is left out where its metric, or what it is divided by, is not logged.
        unless_logged: the condition is left out where one of `a|b` is logged.
    """

    metric: str
    last: Count = 1
    at_least: Count | None = None
    items: Count = 20
    measure: str = "value"
    with_: Word = ""
    where: PointFilter | None = None
    absolute: Flag = False
    divided_by: Divisor | None = None
    versus: Versus | None = None
    above: Number | Limit | None = None
    below: Number | Limit | None = None
    equals: Number | None = None
    standard_errors: Number = 0
    if_logged: Flag = False
    unless_logged: Word = ""

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(
                f"no measure `{self.measure}`" + (meant(self.measure, MEASURES) or f"; there are {', '.join(MEASURES)}")
            )
        if sum(limit is not None for limit in (self.above, self.below, self.equals)) != 1:
            raise ValueError("needs exactly one of `above`, `below` and `equals`")
        if self.measure == "value" and self.last > 1:
            raise ValueError("`measure: value` is that of one point: say `mean`, `median`, … of the `last` points")
        if (self.measure in COUNTED) != (self.where is not None):
            raise ValueError("`where` goes with `measure: share_of_points`, `count` or `streak`, and only with them")
        if (self.measure == "correlation") != bool(self.with_):
            raise ValueError("`with` names the other metric of `measure: correlation`, and goes only with it")
        if self.measure in TRENDS and self.versus is not None:
            raise ValueError(f"`{self.measure}` looks at the past by itself: leave out `versus`")
        if self.at_least is not None and self.measure in WHOLE:
            raise ValueError(f"`at_least` means nothing to `measure: {self.measure}`: leave it out")
        versus_start = self.versus is None or (self.versus.start is not None and not self.versus.is_ratio)
        if self.measure in ESTIMATED and not versus_start:
            raise ValueError(f"`{self.measure}` can be compared only with `versus: {{start: N, as: difference}}`")
        if self.standard_errors and self.measure not in ESTIMATED:
            raise ValueError(f"`standard_errors` goes with a measure that has an error ({', '.join(ESTIMATED)})")

    @cached_property
    def points(self) -> int:
        """How many points it takes until the measure can say anything."""
        own = 1 if KINDS[self.measure].at_once else self.at_least or self.last
        if self.versus is None:
            return own
        if self.versus.start is not None:
            return max(own, self.versus.start + 1)
        return own + self.versus.needed


@dataclass(frozen=True, kw_only=True)
class Bounds(StrictData):
    """The bounds of a setting, both exclusive."""

    above: Number | None = None
    below: Number | None = None


@dataclass(frozen=True, kw_only=True)
class Scope(StrictData):
    """The runs that a rule is about; elsewhere it is skipped, with the reason.

    Attributes:
        frameworks: trainers, where `*` matches anything; all of them where left out.
        unless: settings that switch the rule off: a value, or bounds.
        only_if: settings that the run must have.
        unless_logged: metrics that make the rule superfluous.
        min_points: how many points its metric must have.
        each_metric: each metric of `a|b` is judged by itself, not only the first that is logged.
        full_precision: not for a log whose numbers are rounded, where 0 may be a small number.
    """

    frameworks: tuple[str, ...] = ()
    unless: dict[str, Setting | Bounds] = field(default_factory=dict)
    only_if: dict[str, Setting | Bounds] = field(default_factory=dict)
    unless_logged: tuple[str, ...] = ()
    min_points: Count = 1
    each_metric: Flag = False
    full_precision: Flag = False


@dataclass(frozen=True, kw_only=True)
class When(StrictData):
    """When a rule fires: a condition, all or any of several, or the way in which the run ended.

    Conditions other than the first are looked up at the first one's steps, at their last point so far.
    """

    all: tuple[Condition, ...] = ()
    any: tuple[Condition, ...] = ()
    ending: tuple[str, ...] = ()
    vanished: str | None = None
    held_for: Count = 1

    def __post_init__(self) -> None:
        if sum((bool(self.all), bool(self.any), bool(self.ending), self.vanished is not None)) != 1:
            raise ValueError("needs exactly one of `all`, `any`, `ending` and `vanished` (or a single condition)")

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
class Fact(StrictData):
    """A fact that speaks for a cause or against it: findings, a metric measured by one condition, or settings.

    Attributes:
        says: the fact in words, with `{value}` for what was measured; evidence in every report.
        finding: rule ids or families of which one was found (a warning or worse).
        order: when that finding began, against the beginning of the cause: before it, by then, or after it.
        from_start: whether that finding was so from the start.
        when: conditions on metrics, all of which must hold there; `{value}` is what the first of them measured.
        at: where on the run the condition is looked at: at the last point `before` the cause began, at its `onset`,
            where it could be known (`raised`), at any point `between` these two, at any in its `beginning` (from its
            onset to where the finding that it begins with was raised), or `now`. Only what speaks against a
            cause may wait for `now`: it withdraws it.
        settings: tests of which each one must hold; what is not known does not.
    """

    says: Text
    finding: tuple[str, ...] = ()
    order: Literal["before", "by", "after"] | None = None
    from_start: Flag | None = None
    when: tuple[Condition, ...] = ()
    at: Literal["before", "onset", "between", "beginning", "raised", "now"] = "raised"
    settings: dict[str, Setting | Bounds] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if sum((bool(self.finding), bool(self.when), bool(self.settings))) != 1:
            raise ValueError("needs exactly one of `finding`, `when` and `settings`")
        if (self.order or self.from_start is not None) and not self.finding:
            raise ValueError("`order` and `from_start` are said of a `finding`")
        if any(one.divided_by is not None or one.with_ for one in self.when):
            raise ValueError("a fact measures one metric, without `divided_by` or `with`")


@dataclass(frozen=True, kw_only=True)
class Cause(StrictData):
    """A hypothesis: which findings (rule ids or families) it begins with, which follow, and what else must be so.

    It is named where it begins with one of `begins_with`, every fact of `requires` holds, none of `ruled_out_by` does,
    and there are at least two pieces of evidence: families of findings, and facts.

    Attributes:
        begins_with: what it begins with.
        from_start: whether what it begins with must have been so from the start (true), or must not (false).
        followed_by: what follows from it, and begins no earlier.
        unless: findings that rule it out, whenever they began.
        within: the first that follows begins within that many points of the cause's metric.
        requires: facts without which it is not named.
        requires_any: facts of which at least one must hold.
        supported_by: facts that make it likelier; the cause with the most evidence explains a finding.
        ruled_out_by: facts that rule it out.
        distinguished_by: what would tell it from another cause of the same findings.
    """

    begins_with: tuple[str, ...]
    from_start: Flag | None = None
    followed_by: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    within: Count | None = None
    requires: tuple[Fact, ...] = ()
    requires_any: tuple[Fact, ...] = ()
    supported_by: tuple[Fact, ...] = ()
    ruled_out_by: tuple[Fact, ...] = ()
    distinguished_by: Text = ""

    def __post_init__(self) -> None:
        if any(one.at == "now" for one in (*self.requires, *self.requires_any, *self.supported_by)):
            raise ValueError(
                "`at: now` is for what speaks against a cause: anything else must be known when it is named"
            )


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
            held, as where rewards did not differ and there was nothing else to regain.
        from_outside: what it reports does not come from the policy (a reward of another scale, a setting that jumped):
            only a cause that can begin with it explains it.
    """

    id: str
    family: Annotated[str, Schema(pattern=r"^[a-z][a-z0-9-]*$", max_length=60)]
    title: Title
    severity: Literal["info", "warning", "critical"]
    scope: Scope = field(default_factory=Scope)
    when: When | None = None
    critical: CriticalLevel | None = None
    severity_when_over: Literal["info", "warning"] = "warning"
    harmless_once: Literal["reward-is-back", "reward-rose"] = "reward-is-back"
    from_outside: Flag = False
    cause: Cause | None = None
    message: Text
    because: Text
    try_: Annotated[tuple[Text, ...], Schema(min_length=1)]
    changes: tuple[SettingChange, ...] = ()
    aspects: tuple[Aspect, ...] = ()
    source: Annotated[tuple[Source, ...], Schema(min_length=1)]
    guidance: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        texts = [text for one in self.aspects for text in (one.message, *(one.try_ or ()))]
        for text in (self.message, *self.try_, *texts):
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

        Of two that are as bad, the one that comes first speaks: the aspects, which say more, then the rule itself.
        """
        shared = {"aspects": ()}
        each = []
        for one in self.aspects:
            given = {name: getattr(one, name) for name in Aspect.__dataclass_fields__ if getattr(one, name) is not None}
            each.append(self.model_copy(update=shared | {"critical": one.critical} | given))
        return tuple(part for one in (*each, self.model_copy(update=shared)) for part in _alternatives(one))

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
