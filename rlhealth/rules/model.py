"""What a rule may hold: the models that a rule's YAML is checked against."""

from __future__ import annotations

import re
import string
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from rlhealth.parsing.checked import meant
from rlhealth.rules.measures import ESTIMATED, KINDS, MEASURES

Number = StrictInt | StrictFloat
Text = Annotated[str, Field(max_length=4000)]
Setting = StrictBool | StrictInt | StrictFloat | StrictStr | None

WHOLE = ("nonfinite", "peak", "gain")  # measures that wait for no number of points, or for a whole window
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


class Strict(BaseModel):
    """A model that refuses unknown keys and numbers written as text."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True
    )  # built when first used: most are only parts of others


class Limit(Strict):
    """A limit that follows one of the run's own settings: `times` x the setting, or `default` where the run does not tell it.

    `planned_steps` is a setting too. `most`: the limit is never above that.
    """

    config: str
    times: Number = 1
    plus: Number = 0
    most: Number | None = None
    default: Number | None = None


class Per(Strict):
    """What a metric is divided by: another metric (at its last point so far) to a power, or a setting, times a factor."""

    metric: str | None = None
    power: Number = 1
    signed: StrictBool = False
    peak: StrictBool = False
    config: str | None = None
    default: Number | None = None
    times: Number = 1


class Against(Strict):
    """What a measure is set against: the run's `first` points, or the points `before` its window."""

    first: Annotated[StrictInt, Field(ge=1)] | None = None
    before: Annotated[StrictInt, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Against:
        if (self.first is None) == (self.before is None):
            raise ValueError("needs either `first: N` or `before: N`")
        return self


class Where(Strict):
    """The level that `measure: share` counts at."""

    above: Number | None = None
    below: Number | None = None
    equals: Number | None = None

    @model_validator(mode="after")
    def _any(self) -> Where:
        if self.above is None and self.below is None and self.equals is None:
            raise ValueError("needs `above`, `below` or `equals`: without one, every point counts")
        return self


class Condition(Strict):
    """One measure of one metric, compared with a limit.

    One that is asked `if_logged` is left out where its metric was not; one that is asked `unless_logged: one|another`, where
    one of those was.
    """

    metric: str
    over: Annotated[StrictInt, Field(ge=1)] = 1
    least: Annotated[StrictInt, Field(ge=1)] | None = None
    items: Annotated[StrictInt, Field(ge=1)] = 20
    measure: str = "value"
    where: Where | None = None
    absolute: StrictBool = False
    per: Per | None = None
    ratio_to: Against | None = None
    minus: Against | None = None
    above: Number | Limit | None = None
    below: Number | Limit | None = None
    equals: Number | None = None
    sure: Annotated[Number, Field(ge=0)] = 0
    if_logged: StrictBool = False
    unless_logged: StrictStr = ""

    @model_validator(mode="after")
    def _whole(self) -> Condition:
        if self.measure not in MEASURES:
            raise ValueError(
                f"no measure `{self.measure}`" + (meant(self.measure, MEASURES) or f"; there are {', '.join(MEASURES)}")
            )
        if sum(one is not None for one in (self.above, self.below, self.equals)) != 1:
            raise ValueError("needs exactly one of `above`, `below` and `equals`")
        if (self.measure == "share") != (self.where is not None):
            raise ValueError("`where` goes with `measure: share`, and only with it")
        if self.least is not None and self.measure in WHOLE:
            raise ValueError(f"`least` means nothing to `measure: {self.measure}`: leave it out")
        if self.ratio_to is not None and self.minus is not None:
            raise ValueError("`ratio_to` and `minus` exclude each other")
        if self.measure == "proportion" and (self.ratio_to or (self.minus and self.minus.first is None)):
            raise ValueError("`proportion` can only be set against the start, with `minus: {first: N}`")
        if self.sure and self.measure not in ESTIMATED:
            raise ValueError(f"`sure` goes with a measure that has an error ({', '.join(ESTIMATED)})")
        return self

    @property
    def points(self) -> int:
        """How many points it takes until the measure can say anything."""
        own = 1 if KINDS[self.measure].at_once else self.least or self.over
        against = self.ratio_to or self.minus
        if against is None:
            return own
        return max(own, against.first + 1) if against.first is not None else own + max(3, (against.before or 0) // 2)


class Test(Strict):
    """A test on the run's settings: equals, one of a list, above or below."""

    is_: Setting = Field(default=None, alias="is")
    above: Number | None = None
    below: Number | None = None
    among: tuple[Setting, ...] | None = None


class When(Strict):
    """When a rule fires: a condition, all or any of several, or the way in which the run ended.

    Conditions other than the first are looked up at the first one's steps, at their last point so far.
    """

    all: tuple[Condition, ...] = ()
    any: tuple[Condition, ...] = ()
    ending: tuple[str, ...] = ()
    vanished: str | None = None
    for_: Annotated[StrictInt, Field(ge=1)] = Field(default=1, alias="for")
    clear: Annotated[StrictInt, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> When:
        if sum((bool(self.all), bool(self.any), bool(self.ending), self.vanished is not None)) != 1:
            raise ValueError("needs exactly one of `all`, `any`, `ending` and `vanished` (or a single condition)")
        return self

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions, the first of which gives the steps at which the rule is judged."""
        return self.all or self.any


class Worse(Strict):
    """When the same sickness is critical: other limits for the first condition, or more conditions on top."""

    above: Number | Limit | None = None
    below: Number | Limit | None = None
    sure: Annotated[Number, Field(ge=0)] | None = None
    and_: tuple[Condition, ...] = Field(default=(), alias="and")
    for_: Annotated[StrictInt, Field(ge=1)] | None = Field(default=None, alias="for")


class Fact(Strict):
    """A fact that speaks for a cause or against it: findings, a metric measured by one condition, or settings.

    Attributes:
        says: the fact in words, with `{value}` for what was measured; evidence in every report.
        finding: rule ids or families of which one was found (a warning or worse).
        order: when that finding began, against the beginning of the cause: before it, by then, or after it.
        from_start: whether that finding was so from the start.
        when: conditions on metrics, all of which must hold there; `{value}` is what the first of them measured.
        at: where on the run the condition is looked at: at the last point `before` the cause began, at its `onset`, where it
            could be known (`raised`), at any point `between` these two, or `now`. Only what speaks against a cause may wait for `now`: it withdraws it.
        settings: tests of which each one must hold; what is not known does not.
    """

    says: Text
    finding: tuple[str, ...] = ()
    order: Literal["before", "by", "after"] | None = None
    from_start: StrictBool | None = None
    when: tuple[Condition, ...] = ()
    at: Literal["before", "onset", "between", "raised", "now"] = "raised"
    settings: dict[str, Setting | Test] = {}

    @model_validator(mode="after")
    def _one_kind(self) -> Fact:
        if sum((bool(self.finding), bool(self.when), bool(self.settings))) != 1:
            raise ValueError("needs exactly one of `finding`, `when` and `settings`")
        if (self.order or self.from_start is not None) and not self.finding:
            raise ValueError("`order` and `from_start` are said of a `finding`")
        if any(one.per is not None for one in self.when):
            raise ValueError("a fact measures one metric, without `per`")
        return self


class Cause(Strict):
    """A hypothesis: which findings (rule ids or families) begin first, which follow from them, and what else must be so.

    It is named where it begins with one of `first`, every one of `needs` holds, none of `against` does, and there are at
    least two pieces of evidence: families of findings, and facts.

    Attributes:
        first: what it begins with.
        from_start: whether what it begins with must have been so from the start (true), or must not (false).
        then: what follows from it, and begins no earlier.
        none: findings that rule it out, whenever they began.
        within: the first that follows begins within so many points of the cause's metric.
        needs: facts without which it is not named.
        any: facts of which at least one must hold.
        support: facts that make it likelier; the cause with the most evidence explains a finding.
        against: facts that rule it out.
        apart: what would tell it from another cause of the same findings.
    """

    first: tuple[str, ...]
    from_start: StrictBool | None = None
    then: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    within: Annotated[StrictInt, Field(ge=1)] | None = None
    needs: tuple[Fact, ...] = ()
    any: tuple[Fact, ...] = ()
    support: tuple[Fact, ...] = ()
    against: tuple[Fact, ...] = ()
    apart: Text = ""

    @model_validator(mode="after")
    def _causal(self) -> Cause:
        if any(one.at == "now" for one in (*self.needs, *self.any, *self.support)):
            raise ValueError(
                "`at: now` is for what speaks against a cause: anything else must be known when it is named"
            )
        return self


class Changed(Strict):
    """A setting that is worth changing, by its canonical name, and by how much: to a value, or so many times the present one.

    Attributes:
        times: the new value as a multiple of the run's own.
        to: the new value, where the run's own does not matter.
        from_zero: the new value where the run's own is 0, of which no multiple helps.
        metric: where the run does not tell the setting, the largest value of this metric stands for it.
        most, least: bounds of the new value; where the run's own is beyond one already, nothing is changed.
    """

    setting: str
    times: Number | None = None
    to: Setting = None
    from_zero: Number | None = None
    metric: str | None = None
    most: Number | None = None
    least: Number | None = None
    why: Text

    @model_validator(mode="after")
    def _one_way(self) -> Changed:
        if (self.times is None) == (self.to is None):
            raise ValueError("needs either `times` or `to`")
        return self


class Aspect(Strict):
    """Another way in which the same sickness shows, on the same metric: one symptom is one finding, with its worst aspect's words."""

    title: Annotated[str, Field(max_length=200)]
    severity: Literal["info", "warning", "critical"]
    when: When
    critical: Worse | None = None
    when_over: Literal["info", "warning"] = "warning"
    message: Text
    because: Text | None = None
    try_: tuple[Text, ...] | None = Field(default=None, alias="try", min_length=1)


class Source(Strict):
    """Where a limit comes from: published guidance, or a distribution over labelled runs."""

    text: str
    url: str | None = None


class Rule(Strict):
    """One rule, as its YAML file says it."""

    id: str
    family: str
    title: Annotated[str, Field(max_length=200)]
    severity: Literal["info", "warning", "critical"]
    applies_to: tuple[str, ...] = ()
    unless: dict[str, Setting | Test] = {}
    only_if: dict[str, Setting | Test] = {}
    unless_logged: tuple[str, ...] = ()
    needs: Annotated[StrictInt, Field(ge=1)] = 1
    each: StrictBool = False
    exact: StrictBool = False
    when: When | None = None
    critical: Worse | None = None
    when_over: Literal["info", "warning"] = "warning"
    cause: Cause | None = None
    message: Text
    because: Text
    try_: tuple[Text, ...] = Field(alias="try", min_length=1)
    changes: tuple[Changed, ...] = ()
    also: tuple[Aspect, ...] = ()
    source: tuple[Source, ...] = Field(min_length=1)
    covers: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Rule:
        texts = [text for one in self.also for text in (one.message, *(one.try_ or ()))]
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
        if self.family not in FAMILIES:
            raise ValueError(f"no family `{self.family}`" + meant(self.family, FAMILIES))
        if (self.cause is None) == (self.when is None) or (self.family == "diagnosis" and self.cause is None):
            raise ValueError("a diagnosis has `cause`, every other rule has `when`")
        if self.also and (self.when is None or not self.when.conditions):
            raise ValueError("`also` goes with conditions on a metric")
        _check_levels(self)
        for other in self.also:
            _check_levels(other)
            first = other.when.conditions[0].metric if other.when.conditions else ""
            if self.when is not None and not set(first.split("|")) <= set(self.when.conditions[0].metric.split("|")):
                raise ValueError(
                    f"an aspect is of the rule's own metric, and `{first}` is another: make it a separate rule"
                )
        return self

    @property
    def aspects(self) -> tuple[Rule, ...]:
        """The rule as rules that each follow one list of conditions that must all hold: what `any` and `also` stand for.

        Of two that are as bad, the one that comes first speaks: those of `also`, which say more, then the rule itself.
        """
        shared = {"also": ()}
        each = []
        for one in self.also:
            given = {name: getattr(one, name) for name in Aspect.model_fields if getattr(one, name) is not None}
            each.append(self.model_copy(update=shared | {"critical": one.critical} | given))
        return tuple(part for one in (*each, self.model_copy(update=shared)) for part in _alternatives(one))

    @property
    def points(self) -> int:
        """How many points it takes until the rule could have told anything; with fewer, it has not looked."""
        parts = [
            max(condition.points for condition in one.when.conditions) + one.when.for_ - 1
            for one in self.aspects
            if one.when is not None and one.when.conditions
        ]
        return max(self.needs, min(parts, default=0))

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
    """A rule for each alternative of `any`, which is followed by itself; the rule itself where there is none."""
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
