"""Scope: the runs that a rule is about, by their trainer, their settings and what they log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rlhealth.parsing.strict_data import Count, Flag, Number, Setting, StrictData


@dataclass(frozen=True, kw_only=True)
class Bounds(StrictData):
    """The bounds of a setting, both exclusive."""

    above: Number | None = None
    below: Number | None = None


@dataclass(frozen=True, kw_only=True)
class Scope(StrictData):
    """The runs that a rule applies to; for other runs it is skipped, with the reason.

    Attributes:
        any_training: also for supervised and preference training, which no other rule judges.
        frameworks: trainers, where `*` matches anything; all trainers if left out.
        texts: only for runs whose trainer or metrics show that the policy writes texts, or only for other runs.
        unless: settings that switch the rule off: a value, or bounds.
        only_if: settings that the run must have.
        unless_logged: metrics that make the rule superfluous.
        min_points: how many points its metric must have.
        each_metric: each metric of `a|b` is judged by itself, not only the first that is logged.
        full_precision: not for a log with rounded numbers, in which 0 may be a small number.
    """

    any_training: Flag = False
    frameworks: tuple[str, ...] = ()
    texts: Literal["", "shown", "not-shown"] = ""
    unless: dict[str, Setting | Bounds] = field(default_factory=dict)
    only_if: dict[str, Setting | Bounds] = field(default_factory=dict)
    unless_logged: tuple[str, ...] = ()
    min_points: Count = 1
    each_metric: Flag = False
    full_precision: Flag = False
