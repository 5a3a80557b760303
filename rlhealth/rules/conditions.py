"""Conditions: one measure of one metric over a window, optionally relative to a start or a past, compared with a
limit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rlhealth.metrics.rewards import written_out
from rlhealth.parsing.checked import meant
from rlhealth.parsing.strict_data import Count, Flag, Number, StrictData, Word
from rlhealth.rules.measures import COUNTS, ESTIMATED, KINDS, MEASURES

ALWAYS = ("step", "same")  # names that are no metrics: the steps, and the first condition's metric
COUNTED = ("share_of_points", *COUNTS)  # measures that count the points at a level
TRENDS = ("climb", "plunge", "arrival", "correlation")  # measures of how a series changes
WHOLE = (
    "share_nonfinite",
    "max_so_far",
    "gain_since_start",
    "count",
    "streak",
    "climb",
    "plunge",
    "arrival",
)  # measures that do not use `at_least`


@dataclass(frozen=True, kw_only=True)
class Limit(StrictData):
    """A limit that depends on one of the run's settings: `times` x the setting + `plus`, or `default` if it is
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

    The other metric (`same`: the rule's own) is used at its last point so far, or with `max_so_far` at its largest. It
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

    Both are represented by their median; `by: largest` takes the largest of the first points; `largest: N` and
    `smallest: N` are the extremes of the N points before the window. `as` is the `ratio` of the two or their
    `difference`.
    """

    start: Count | None = None
    before: Count | None = None
    largest: Count | None = None
    smallest: Count | None = None
    by: Literal["median", "largest"] = "median"
    as_: Literal["ratio", "difference"]

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.start, self.before, self.largest, self.smallest)) != 1:
            raise ValueError("needs either `start: N` or `before: N` (or `largest: N`, `smallest: N`)")
        if self.by != "median" and self.start is None:
            raise ValueError("`by` goes with `start: N`; before the window it is `largest: N`")

    @property
    def past(self) -> int:
        """How many points before the window are used; 0 if the start is used."""
        return self.before or self.largest or self.smallest or 0

    @property
    def needed(self) -> int:
        """How many of them must be known: half for a median, most of them for an extreme."""
        return max(3, self.past // 2) if self.before is not None else self.past - self.past // 4

    @property
    def is_ratio(self) -> bool:
        """Whether the measure is divided by its reference; otherwise the reference is subtracted."""
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
        metric: a canonical name; of `a|b` the first that is logged. A word of rewards.yaml stands for its names.
        last: the window, in points; at least `at_least` of them must be known.
        items: for `mean_fraction`, how many groups or completions the window must cover.
        absolute: the absolute value of the metric is used.
        divided_by: the metric is divided by another one or by a setting before it is measured.
        versus: the measure is compared with that of the run's start, or of the points before the window.
        above, below, equals: the limit; exactly one of them is given.
        standard_errors: the value must be beyond its limit by more than so many of its standard errors. If negative,
            the value may be on the healthy side, but not by that many errors.
        if_logged: the condition is left out if its metric, or the metric that it is divided by, is not logged.
        unless_logged: the condition is left out if one of `a|b` is logged.
        refutes: if it no longer holds, the finding is over at once and becomes a note, because it was no symptom.
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
    refutes: Flag = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", written_out(self.metric))
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
        """How many points the measure needs before it has a value."""
        own = 1 if KINDS[self.measure].at_once else self.at_least or self.last
        if self.versus is None:
            return own
        if self.versus.start is not None:
            return max(own, self.versus.start + 1)
        return own + self.versus.needed

    @cached_property
    def known_from(self) -> int:
        """The number of the first point at which the measure can have a value. A count, and what is compared with the
        past, may have one from the first point on.
        """
        return 1 if self.versus is not None or self.measure in COUNTS else self.points
