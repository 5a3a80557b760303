"""Findings: what is wrong with a run, how severe it is, when it held, and whether it still holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rlhealth.verdict.evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable


class Severity(IntEnum):
    """How severe a finding is: look at it (warning), or stop the run (critical)."""

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
    """The state of a finding: it holds now (standing), it ended but left a loss (lasting), or it left none (over)."""

    STANDING = "standing"
    LASTING = "lasting"
    OVER = "over"


@dataclass(frozen=True)
class Episode:
    """One stretch in which a rule's condition held.

    Attributes:
        first_step: the first row that meets the condition, dated back into the window that raised it.
        raised_step: the first step at which it could have been known, after the rule's damping.
        last_step: the last step at which it held.
        state: standing until it has not held for as long as its rule's damping requires.
        from_start: whether no row came before `first_step`: it held from the start.
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
        option: its name in the run's trainer.
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
        severity: how severe it is now: a finding that is over is at most a warning.
        conditions: the conditions that held where it was worst, each with its measured value. The first is the one that
            the message is about; `metric`, `tag`, `unit`, `worst_step`, `worst_value`, `limit`, `side`, `measured` and
            `level` are read from it. A cause has those of the finding that it begins with.
        state: standing, lasting or over.
        peak: how severe it was while it held; `severity` if not given.
        explained_by: the rule whose finding is the cause of this one, if any.
        evidence: for a cause: its evidence, one line each, in the order of time.
        against: for a cause: the counter-evidence that was searched for and not found.
        rivals: for a cause: other causes that the evidence also supports, each with what would distinguish them.
        changes: settings that are worth changing, with the trainer's names.
        replaced_at: the step of the resume that replaced the rows in which this was found, or the first step that was
            logged again; None if it was found in the current run.
        from_outside: whether no policy could have caused it.
        also: other families whose symptom it also reports.
        refuted: whether the run showed later that it was no symptom: it is a note then, and neither a cause's nor one.
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
    refuted: bool = False

    @property
    def lead(self) -> Evidence:
        """The condition that the message is about."""
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
        """The step at which it was worst."""
        return self.conditions[0].step

    @property
    def worst_value(self) -> float:
        """The measured value at that step."""
        return self.conditions[0].value

    @property
    def limit(self) -> float | None:
        """The limit of that value, in the unit of the measure."""
        return self.conditions[0].limit

    @property
    def side(self) -> str:
        """The unhealthy side of the limit: above, below or equals."""
        return self.conditions[0].side

    @property
    def measured(self) -> str:
        """The unit of the value: the metric's own unit (value), a ratio, noise, a share, a count or a correlation."""
        return self.conditions[0].measured

    @property
    def level(self) -> float | None:
        """The limit as a level of the metric's own values, for charts; None if the measure is no such level."""
        return self.conditions[0].level

    @property
    def key(self) -> tuple[str, str]:
        """What identifies it among the findings of its run: rule and metric."""
        return self.rule, self.metric

    @property
    def active(self) -> bool:
        """Whether it holds now, damping included."""
        return self.state is State.STANDING

    @property
    def ended(self) -> bool:
        """Whether it is over and left no loss: a watch reports it as cleared."""
        return self.state is State.OVER

    @property
    def from_start(self) -> bool:
        """Whether it held from the first row of its metric on, so that it is no consequence of anything earlier."""
        return bool(self.episodes) and self.episodes[0].from_start

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The first and last step of each stretch in which it held."""
        return tuple((one.first_step, one.last_step) for one in self.episodes) or ((self.first_step, self.last_step),)

    @cached_property
    def earlier(self) -> tuple[tuple[int, int], ...]:
        """The stretches that ended before the one that holds now began.

        A break that is shorter than the stretch before it and the stretch after it does not separate them. If nothing
        holds now, no stretch is an earlier one: a lasting loss may come from any of them.
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
        """The step since which it holds: the start of the first stretch that is no earlier one."""
        count = len(self.earlier)
        return self.spans[count][0] if count else self.first_step

    @property
    def breaks(self) -> int:
        """How many breaks there were since then."""
        return len(self.spans) - len(self.earlier) - 1

    @property
    def was_harmless(self) -> bool:
        """Whether it is over and is known to have done no damage."""
        return self.state is State.OVER and self.severity is Severity.INFO < self.worst_severity

    @property
    def worst_severity(self) -> Severity:
        """How severe it was while it held."""
        return self.severity if self.peak is None else self.peak

    def in_state(self, state: State, most: Severity = Severity.WARNING) -> Finding:
        """The same finding in that state; once it is over, its severity is at most `most`."""
        severity = min(self.worst_severity, most) if state is State.OVER else self.worst_severity
        return replace(self, state=state, severity=severity, peak=self.worst_severity)

    def at_most(self, most: Severity) -> Finding:
        """The same finding, with at most that severity."""
        return replace(self, severity=min(self.severity, most), peak=min(self.worst_severity, most))


def worst_state(findings: Iterable[Finding]) -> State:
    """The joint state of several findings: standing if one is standing, lasting if one is lasting."""
    states = {one.state for one in findings}
    return next((state for state in State if state in states), State.OVER)


@dataclass(frozen=True)
class Skipped:
    """A rule that could not run, and why. Every report shows these, because no finding is no proof of health."""

    rule: str
    family: str
    reason: str


@dataclass(frozen=True)
class Ignored:
    """A finding that the user ignores, with the given reason (`--ignore`, settings, baseline)."""

    finding: Finding
    reason: str
