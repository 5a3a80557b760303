"""Incidents: findings that belong together, so that a failed run is one message and not thirty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlhealth.engine.aftermath import BAND, WINDOW
from rlhealth.verdict.findings import Finding, Severity, State, worst_state
from rlhealth.verdict.verdicts import RunVerdict

NEAR = WINDOW  # rows after the newest beginning in an incident for which what else begins is part of it
REST = BAND  # rows after its end before it is closed: as many as the usual range of a metric needs
LONGEST_REST = 10  # doublings: the second incident that a run closes rests for twice as long, and so on
Key = tuple[str, str]


@dataclass(frozen=True)
class Incident:
    """An incident as it stands when it is reported.

    Attributes:
        number: counts the incidents of the run, from 1.
        severity: the worst so far.
        state: standing, lasting or over, as the worst of its findings.
        first_step, last_step: from the first beginning to the last step at which any of it held.
        cause: the diagnosis that explains it; None while that is not known.
        rules: the rules of its findings, in the order in which they began, the cause first.
    """

    number: int
    severity: Severity
    state: State
    first_step: int
    last_step: int
    cause: str | None
    rules: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """For the documents of schema rlhealth.change/1."""
        return {
            "number": self.number,
            "severity": str(self.severity),
            "state": str(self.state),
            "first_step": self.first_step,
            "last_step": self.last_step,
            "cause": self.cause,
            "rules": list(self.rules),
        }


@dataclass
class Group:
    """The findings of one incident while a run is followed.

    Attributes:
        members: by rule and metric, as they were last seen.
        severity: the worst that was reported of it since it opened, or came back; None before it was reported.
        causes: those that were reported, the latest last.
        open: whether it is not closed.
        reported: whether it was reported that it opened, or came back.
        newest: the first step of the finding that began last.
        gone: the finding that was withdrawn last.
        held_at: the run's last step when it was last seen to hold.
    """

    number: int
    newest: int
    members: dict[Key, Finding] = field(default_factory=dict)
    severity: Severity | None = None
    causes: list[str] = field(default_factory=list)
    open: bool = True
    reported: bool = False
    gone: Finding | None = None
    held_at: int = 0

    @property
    def found(self) -> list[Finding]:
        """Its findings, the last that was withdrawn where none is left."""
        return list(self.members.values()) or ([self.gone] if self.gone else [])

    @property
    def worst(self) -> Severity:
        """Its worst severity so far."""
        return max(one.worst_severity for one in self.found)

    @property
    def worst_now(self) -> Severity:
        """The worst severity of the findings that are not over."""
        return max((one.worst_severity for one in self.found if not one.ended), default=Severity.INFO)

    @property
    def over(self) -> bool:
        """Whether none of its findings holds, and the loss has been recovered."""
        return all(one.ended for one in self.members.values())

    def root(self) -> Finding:
        """The finding that stands for it: the worst that is not over, its cause before what follows from it."""
        causes = self._causes
        return min(
            self.found,
            key=lambda one: (one.ended, -one.worst_severity, one.rule not in causes, one.raised_step, one.first_step),
        )

    def known_cause(self) -> str | None:
        """The rule of its cause, if one is known; one that holds before one that is over."""
        causes = [one for one in self.found if one.rule in self._causes]
        first = min(causes, key=lambda one: (one.ended, one.explained_by is not None, one.raised_step), default=None)
        return None if first is None else first.rule

    @property
    def _causes(self) -> set[str]:
        return {one.explained_by for one in self.found if one.explained_by is not None}

    def seen(self) -> Incident:
        """As it is reported now."""
        found = sorted(self.found, key=lambda one: (one.rule not in self._causes, one.first_step, one.rule))
        return Incident(
            number=self.number,
            severity=self.worst,
            state=worst_state(found) if self.members else State.OVER,
            first_step=min(one.first_step for one in found),
            last_step=max(one.last_step for one in found),
            cause=self.known_cause(),
            rules=tuple(dict.fromkeys(one.rule for one in found)),
        )


class Incidents:
    """Puts each finding of a run into one incident; it stays there while that incident is open."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.closed = 0  # how often one of them was
        self._of: dict[Key, Group] = {}

    def take(self, verdict: RunVerdict) -> None:
        """Takes a newer verdict: a withdrawn finding leaves its incident, a new one joins or opens an incident."""
        graded = {one.key: one for one in verdict.findings if one.worst_severity > Severity.INFO}
        for key in [key for key in self._of if key not in graded]:
            group = self._of.pop(key)
            group.gone = group.members.pop(key)
        for key, one in sorted(graded.items(), key=lambda item: (item[1].raised_step, item[1].first_step, item[0])):
            found = self._of.get(key) or self._group_for(one, graded.values(), verdict)
            if found is None:
                continue
            group = found
            if not group.open and _is_back(one, group.members.get(key)):
                group.open = True
                group.newest = one.raised_step if one.ended else one.last_step
            self._of[key] = group
            group.members[key] = one
            group.newest = max(group.newest, one.first_step)
        for group in self.groups:
            if group.open and not group.over:
                group.held_at = verdict.run.last_step or 0

    def of(self, finding: Finding) -> Incident | None:
        """The incident that a finding is part of."""
        group = self._of.get(finding.key)
        return None if group is None else group.seen()

    def is_rested(self, group: Group, verdict: RunVerdict) -> bool:
        """Whether an incident has been over for long enough to be closed; the first that is withdrawn has."""
        if not group.members and not self.closed:
            return True
        last = max(group.held_at, *(one.last_step for one in group.found))
        needed = REST * 2 ** min(self.closed, LONGEST_REST)
        return rows_between(verdict, last, None) >= int(needed)

    def is_news(self, group: Group, severity: Severity) -> bool:
        """Whether an incident of that severity is to be reported though others are open: a warning beside what is
        critical can wait until that is over.
        """
        others = [other for other in self.groups if other is not group and other.open and other.reported]
        return severity is Severity.CRITICAL or not any(other.worst_now is Severity.CRITICAL for other in others)

    def _group_for(self, one: Finding, others: Iterable[Finding], verdict: RunVerdict) -> Group | None:
        """Where a new finding belongs: with its cause or its consequences, with what began shortly before it, or in a
        new incident. None for a finding that is only a note by now: it was over before the first look.
        """
        alike = [group for group in self.groups if is_ending(one) == any(map(is_ending, group.found))]
        related = [
            self._of[other.key]
            for other in others
            if self._of.get(other.key) in alike and one.rule != other.rule
            if other.explained_by == one.rule or other.rule == one.explained_by
        ]
        near = [group for group in alike if rows_between(verdict, group.newest, one.first_step) <= NEAR]
        for group in [*sorted(related, key=lambda group: (not group.open, group.number)), *reversed(near)]:
            if group.open or group in related:
                return group
        if one.severity is Severity.INFO:
            return None
        self.groups.append(Group(len(self.groups) + 1, one.first_step))
        return self.groups[-1]


def is_ending(finding: Finding) -> bool:
    """Whether it says that the run stopped or hangs: that is reported however unhealthy the run was before."""
    return finding.family == "stalled"


def _is_back(now: Finding, before: Finding | None) -> bool:
    """Whether a finding holds again, or is new, after its incident was closed."""
    return not now.ended or before is None or len(now.episodes) > len(before.episodes)


def rows_between(verdict: RunVerdict, start: int, end: int | None) -> int:
    """How many rows the run has after a step and up to another, or up to its end; 0 if the second comes first."""
    steps = max((one.steps for one in verdict.run.series.values()), key=len, default=np.empty(0, np.int64))
    last = len(steps) if end is None else int(np.searchsorted(steps, end, side="right"))
    return max(0, last - int(np.searchsorted(steps, start, side="right")))
