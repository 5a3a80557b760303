"""Causes: which findings and facts are evidence for a hypothesis, and which rule it out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rlhealth.parsing.strict_data import Count, Flag, Setting, StrictData, Text
from rlhealth.rules.conditions import Condition
from rlhealth.rules.scope import Bounds


@dataclass(frozen=True, kw_only=True)
class Fact(StrictData):
    """Evidence for or against a cause: findings, a metric measured by conditions, or settings.

    Attributes:
        says: the fact in words, with `{value}` for the measured value; every report shows it as evidence.
        finding: rule ids or families of which one was found (a warning or worse).
        order: when that finding began, relative to the start of the cause: before it, by then, or after it.
        from_start: whether that finding held from the start.
        harmless: whether it was over without having done damage.
        when: conditions on metrics, all of which must hold there; `{value}` is the value of the first one.
        at: the points at which the condition is measured: the last point `before` the cause began, its `onset`, where
            it could be known (`raised`), any point `between` these two, any point in its `beginning` (from its onset
            to where the finding that it begins with was raised), or `now`. Only evidence against a cause may use
            `now`: it withdraws the cause.
        settings: tests that must all hold; a test of an unknown setting does not hold.
    """

    says: Text
    finding: tuple[str, ...] = ()
    order: Literal["before", "by", "after"] | None = None
    from_start: Flag | None = None
    harmless: Flag | None = None
    when: tuple[Condition, ...] = ()
    at: Literal["before", "onset", "between", "beginning", "raised", "now"] = "raised"
    settings: dict[str, Setting | Bounds] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if sum((bool(self.finding), bool(self.when), bool(self.settings))) != 1:
            raise ValueError("needs exactly one of `finding`, `when` and `settings`")
        if (self.order or self.from_start is not None or self.harmless is not None) and not self.finding:
            raise ValueError("`order`, `from_start` and `harmless` are said of a `finding`")
        if any(one.divided_by is not None or one.with_ for one in self.when):
            raise ValueError("a fact measures one metric, without `divided_by` or `with`")


@dataclass(frozen=True, kw_only=True)
class Cause(StrictData):
    """A hypothesis: which findings (rule ids or families) it begins with, which follow, and what else must hold.

    It is named if it begins with one of `begins_with`, every fact of `requires` holds, none of `ruled_out_by` does,
    and there are at least two pieces of evidence: families of findings, and facts.

    Attributes:
        begins_with: the findings that it can begin with.
        from_start: whether that first finding must have held from the start (true), or must not (false).
        followed_by: findings that follow from it, and begin no earlier.
        unless: findings that rule it out, whenever they began.
        within: the first following finding begins within that many points of the cause's metric.
        requires: facts without which it is not named.
        requires_any: facts of which at least one must hold.
        supported_by: facts that make it more likely; the cause with the most evidence explains a finding.
        ruled_out_by: facts that rule it out.
        distinguished_by: what would distinguish it from another cause of the same findings.
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

    @property
    def texts(self) -> tuple[str, ...]:
        """Its texts with fields to fill."""
        facts = (*self.requires, *self.requires_any, *self.supported_by, *self.ruled_out_by)
        return (*(one.says for one in facts), self.distinguished_by)
