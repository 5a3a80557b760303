"""Findings: what is wrong with a run, how severe it is, when it was so, and whether it still is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rlhealth.verdict.evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable


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


class State(StrEnum):
    """What became of a finding: it holds now (standing), left a loss behind (lasting), or left none (over)."""

    STANDING = "standing"
    LASTING = "lasting"
    OVER = "over"


@dataclass(frozen=True)
class Episode:
    """One stretch in which a rule's condition held.

    Attributes:
        first_step: the first row that agrees with the condition: dated back into the window that raised it.
        raised_step: the first step at which it could have been known, after the rule's damping.
        last_step: the last step at which it held.
        state: standing until it has not held for as long as its rule's damping asks.
        from_start: whether no row came before `first_step`: it was so from the start.
    """

    first_step: int
    raised_step: int
    last_step: int
    state: State = State.STANDING
    from_start: bool = False

    @property
    def active(self) -> bool:
        """Whether it is standing."""
        return self.state is State.STANDING


@dataclass(frozen=True)
class Change:
    """A setting that is worth changing, as advice.

    Attributes:
        option: what the run's trainer calls it.
        setting: its canonical name.
        before: its value in this run; None if the run does not give it.
        to: the value to try.
        why: the reason, in a sentence.
    """

    option: str
    setting: str
    before: Any
    to: Any
    why: str


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a run, with its evidence. Steps are those of the run.

    Attributes:
        severity: how much it matters now: what is over is a warning at most.
        conditions: what made it fire: the conditions that held where it was worst, each with what it saw. The first is
            the one that the message speaks of, and what `metric`, `tag`, `unit`, `worst_step`, `worst_value`, `limit`,
            `side`, `measured` and `level` are read from. A cause has those of the finding that it begins with.
        state: standing, lasting or over.
        peak: how severe it was while it held; `severity` if not given.
        explained_by: the rule whose finding is the cause of this one, where one is.
        evidence: of a cause: what speaks for it, a line each, in the order of time.
        against: of a cause: what was looked for that would speak against it, and was not there.
        rivals: of a cause: other causes for which the evidence holds too, each with what would distinguish them.
        changes: settings that are worth changing, in the trainer's own names.
        replaced_at: the step of the resume that replaced what this was found in, or the first step that was logged
            again; None if it was found in the run as it is.
        from_outside: whether no policy could have caused it.
        also: other families whose symptom it reports as well.
    """

    rule: str
    family: str
    severity: Severity
    title: str
    conditions: tuple[Evidence, ...]
    first_step: int
    raised_step: int
    last_step: int
    state: State
    message: str
    why: str
    advice: tuple[str, ...]
    source: str
    explained_by: str | None = None
    episodes: tuple[Episode, ...] = ()
    replaced_at: int | None = None
    peak: Severity | None = None
    evidence: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    rivals: tuple[tuple[str, str], ...] = ()
    changes: tuple[Change, ...] = ()
    from_outside: bool = False
    also: tuple[str, ...] = ()

    @property
    def lead(self) -> Evidence:
        """The condition that the message speaks of."""
        return self.conditions[0]

    @property
    def metric(self) -> str:
        """The canonical metric."""
        return self.conditions[0].metric

    @property
    def tag(self) -> str:
        """The name under which the metric was logged."""
        return self.conditions[0].tag

    @property
    def unit(self) -> str:
        """The metric's own unit."""
        return self.conditions[0].unit

    @property
    def worst_step(self) -> int:
        """Where it was worst."""
        return self.conditions[0].step

    @property
    def worst_value(self) -> float:
        """What was measured there."""
        return self.conditions[0].value

    @property
    def limit(self) -> float | None:
        """What that was compared with, in the unit of the measure."""
        return self.conditions[0].limit

    @property
    def side(self) -> str:
        """On which side of the limit it is sick: above, below or equals."""
        return self.conditions[0].side

    @property
    def measured(self) -> str:
        """What the value is in: the metric's own unit (value), a ratio, noise, a share, a count or a correlation."""
        return self.conditions[0].measured

    @property
    def level(self) -> float | None:
        """The limit as a level of the metric's own values, for charts; None if the measure is something else."""
        return self.conditions[0].level

    @property
    def key(self) -> tuple[str, str]:
        """What makes it this finding and no other of its run: rule and metric."""
        return self.rule, self.metric

    @property
    def active(self) -> bool:
        """Whether it holds now, damping included."""
        return self.state is State.STANDING

    @property
    def ended(self) -> bool:
        """Whether it is over, and what it cost has come back: what a watcher calls cleared."""
        return self.state is State.OVER

    @property
    def from_start(self) -> bool:
        """Whether it was so from the first row of its metric on: a consequence of nothing."""
        return bool(self.episodes) and self.episodes[0].from_start

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The first and last step of each stretch in which it held."""
        return tuple((one.first_step, one.last_step) for one in self.episodes) or ((self.first_step, self.last_step),)

    @cached_property
    def earlier(self) -> tuple[tuple[int, int], ...]:
        """The stretches that were over before what holds now began.

        A break that was shorter than what held before it, and than what held after it, ended nothing. Where nothing
        holds now no stretch is an earlier one: what lasts may have been lost in any of them.
        """
        spans = self.spans
        place = len(spans) - 1 if self.active else 0
        while place:
            (begun, ended), again = spans[place - 1], spans[place][0]
            if again - ended >= min(ended - begun, spans[-1][1] - again):
                break
            place -= 1
        return spans[:place]

    @property
    def since_step(self) -> int:
        """Since when it holds: where the first stretch that is no earlier one began."""
        count = len(self.earlier)
        return self.spans[count][0] if count else self.first_step

    @property
    def breaks(self) -> int:
        """How many breaks there were since then."""
        return len(self.spans) - len(self.earlier) - 1

    @property
    def was_harmless(self) -> bool:
        """Whether it is over, and has shown that it did no damage."""
        return self.state is State.OVER and self.severity is Severity.INFO < self.worst_severity

    @property
    def worst_severity(self) -> Severity:
        """How severe it was while it held."""
        return self.severity if self.peak is None else self.peak

    def in_state(self, state: State, most: Severity = Severity.WARNING) -> Finding:
        """The same finding in that state; once it is over, its severity is `most` at most."""
        severity = min(self.worst_severity, most) if state is State.OVER else self.worst_severity
        return replace(self, state=state, severity=severity, peak=self.worst_severity)

    def at_most(self, most: Severity) -> Finding:
        """The same finding, never more severe than that."""
        return replace(self, severity=min(self.severity, most), peak=min(self.worst_severity, most))


def worst_state(findings: Iterable[Finding]) -> State:
    """The state of what several findings are parts of: standing where one stands, lasting where one lasts."""
    states = {one.state for one in findings}
    return next((state for state in State if state in states), State.OVER)


@dataclass(frozen=True)
class Skipped:
    """A rule that could not run, and why. Silence is never health: every report shows these."""

    rule: str
    family: str
    reason: str


@dataclass(frozen=True)
class Ignored:
    """A finding that the user chose not to see, with the reason given (`--ignore`, settings, baseline)."""

    finding: Finding
    reason: str
