"""Findings and verdicts: severity, the gate, and the one place that decides the exit code."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlhealth.errors import RlhealthError
    from rlhealth.metrics import Translation
    from rlhealth.run import LeftOut, Run


class Severity(IntEnum):
    """How much a careful researcher would care: look at it (warning), or stop the run (critical)."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Severity:
        """The severity of that name. Raises KeyError for another word."""
        return cls[word.upper()]


@dataclass(frozen=True)
class Episode:
    """One stretch in which a rule's condition held.

    Attributes:
        first_step: where the condition began to hold.
        raised_step: the first step at which it could have been told, after the rule's damping.
        last_step: the last step at which it held.
        active: whether it still held at the newest point.
        ended: whether it has not held for as long as its rule's damping asks. Between the two it may be about to hold again.
    """

    first_step: int
    raised_step: int
    last_step: int
    active: bool
    ended: bool = False


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a run, with its evidence. Steps are those of the run.

    Attributes:
        metric, tag: the canonical metric, and the name under which it was logged.
        worst_value, limit: in the unit of the measure; that is the metric's own `unit` where `measured` is "value".
        side: on which side of the limit it is sick: above, below or equals.
        measured: "value" where the measure is in the metric's own unit, "ratio" where it was set against something,
            "noise" where it is in units of the metric's noise, "share" where it is a share of points.
        level: the limit as a level of the metric's own values, for charts; None where the measure is something else.
        explained_by: the rule whose finding is the cause of this one, where one is.
        replaced_at: the step of the resume that replaced what this was found in, or the first step that was logged again; None where
            it was found in the run as it is.
    """

    rule: str
    family: str
    severity: Severity
    title: str
    metric: str
    tag: str
    first_step: int
    raised_step: int
    last_step: int
    active: bool
    worst_step: int
    worst_value: float
    limit: float | None
    message: str
    why: str
    advice: tuple[str, ...]
    source: str
    unit: str = ""
    side: str = "above"
    measured: str = "value"
    level: float | None = None
    explained_by: str | None = None
    episodes: tuple[Episode, ...] = ()
    replaced_at: int | None = None

    @property
    def ended(self) -> bool:
        """Whether every episode has ended, damping included: what a watcher calls cleared."""
        return bool(self.episodes) and all(one.ended for one in self.episodes)


@dataclass(frozen=True)
class Skipped:
    """A rule that could not look, and why. Silence is never health: every report shows these."""

    rule: str
    family: str
    reason: str


@dataclass(frozen=True)
class Ignored:
    """A finding that the user chose not to see, with the reason given (`--ignore`, settings, baseline)."""

    finding: Finding
    reason: str


@dataclass
class RunVerdict:
    """What was found out about one run.

    Attributes:
        state: finished, running, stopped (it ended before its plan, or died) or unknown.
        quiet: ids of the rules that looked and found nothing.
        translation: the canonical metrics, for charts; reports never judge with them.
        families: the family of each rule that the run was judged by, those that found nothing too.
        too_short: why the run is too short for an answer (`--min-steps`); empty where it is not.
        unearned: why the run would not be healthy though nothing was found: no reward or no witness of learning was
            recognised with enough points, or it is no reinforcement learning.
    """

    run: Run
    translation: Translation
    state: str
    findings: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    quiet: list[str] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)
    families: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    too_short: str = ""
    unearned: str = ""

    @property
    def name(self) -> str:
        """What reports call the run."""
        return self.run.name

    @property
    def judged(self) -> bool:
        """Whether at least one rule could look."""
        return bool(self.quiet or self.findings or self.ignored)

    @property
    def looked(self) -> set[str]:
        """Rules, and families, of which at least one could look."""
        found = [*self.findings, *(one.finding for one in self.ignored)]
        rules = {*self.quiet, *(one.rule for one in found)}
        return rules | {self.families[one] for one in rules if one in self.families} | {one.family for one in found}

    @property
    def sick(self) -> bool:
        """Whether there is a finding at or above warning."""
        return any(one.severity > Severity.INFO for one in self.findings)

    @property
    def no_answer(self) -> str:
        """Why nothing can be said about the run's health; empty where something can."""
        if self.too_short:
            return self.too_short
        if not self.sick and self.unearned:
            return self.unearned
        return "" if self.judged else "no rule could look"

    @property
    def verdict(self) -> str:
        """healthy, warning, critical, or unknown where nothing was found and health was not earned."""
        if self.sick:
            return str(max(one.severity for one in self.findings))
        return "unknown" if self.no_answer else "healthy"

    @property
    def causes(self) -> list[Finding]:
        """Findings that no other explains, causes of others first, then the worst and earliest."""
        explaining = {one.explained_by for one in self.findings}
        alone = [one for one in self.findings if one.explained_by is None]
        return sorted(alone, key=lambda one: (one.rule not in explaining, -one.severity, one.first_step))

    def consequences(self, cause: Finding) -> list[Finding]:
        """The findings that `cause` explains, in the order in which they began."""
        return sorted(
            (one for one in self.findings if one.explained_by == cause.rule), key=lambda one: (one.first_step, one.rule)
        )


@dataclass(frozen=True)
class Gate:
    """What makes a check fail.

    Attributes:
        fail_on: the least severity that fails; None never fails.
        exit_zero: report only: leave with 0 even so.
        require: rule ids or families that must have been able to look.
        min_steps: a run that did not come this far is no answer.
        strict: a file that looks like a log and was not read is no answer.
    """

    fail_on: Severity | None = Severity.CRITICAL
    exit_zero: bool = False
    require: tuple[str, ...] = ()
    min_steps: int = 0
    strict: bool = False

    def __str__(self) -> str:
        return "never" if self.fail_on is None else str(self.fail_on)

    def too_short(self, last_step: int | None) -> str:
        """Why a run that came as far as `last_step` is too short for an answer; empty where it is not."""
        return (
            f"it has {last_step or 0} of the {self.min_steps} steps that --min-steps asks for"
            if (last_step or 0) < self.min_steps
            else ""
        )

    def hits(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings at or above the gate."""
        return [] if self.fail_on is None else [one for one in findings if one.severity >= self.fail_on]


@dataclass
class Verdict:
    """The answer to one `check`: every run, what could not be read, and the exit code."""

    runs: list[RunVerdict]
    errors: list[RlhealthError] = field(default_factory=list)
    gate: Gate = field(default_factory=Gate)
    seconds: float = 0.0
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The worst verdict of any run; unknown outranks healthy and warning, critical outranks it."""
        words = {one.verdict for one in self.runs} | ({"unknown"} if self.errors or not self.runs else set())
        return next(word for word in ("critical", "unknown", "warning", "healthy") if word in words)

    @property
    def unmet(self) -> list[tuple[RunVerdict, str]]:
        """Rules that `--require` names and that could not look, by run."""
        return [(run, name) for run in self.runs for name in self.gate.require if name not in run.looked]

    @property
    def exit_code(self) -> int:
        """0 nothing at or above the gate, 1 a finding at or above it, 2 no whole answer for some run; where 1 and 2 apply, 2.

        A run of which records were lost has an answer for what was intact, and not a whole one: it does not pass.
        """
        if (
            (self.gate.strict and self.left_out)
            or self.errors
            or not self.runs
            or any(run.no_answer or run.run.problems for run in self.runs)
        ):
            return 0 if self.gate.exit_zero and self.runs else 2
        failed = any(self.gate.hits(run.findings) for run in self.runs) or bool(self.unmet)
        return 1 if failed and not self.gate.exit_zero else 0


def counts(verdict: Verdict) -> dict[str, int]:
    """How many runs came out how: healthy, warning, critical, unknown, unreadable."""
    found = dict.fromkeys(("healthy", "warning", "critical", "unknown"), 0)
    for run in verdict.runs:
        found[run.verdict] += 1
    return found | {"unreadable": len(verdict.errors)}


def strict(value: Any) -> Any:
    """A value for strict JSON: a non-finite number becomes the string "NaN", "Infinity" or "-Infinity"."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: strict(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [strict(one) for one in value]
    return value
