"""Changes: what is new since a run was last looked at, so that each thing is told once and nothing chatters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlhealth.verdict.findings import Finding, RunVerdict

# points for which a finding that has come back before must rest until it is called cleared; twice as many each time
REST = 5
LONGEST_REST = 10  # doublings
Key = tuple[str, str]


@dataclass(frozen=True)
class Change:
    """One thing to tell.

    Attributes:
        kind: raised, worsened (a finding told before is more severe now) or cleared.
        finding: as it stands now; for one that was withdrawn, as it stood before.
        note: why, where that is not plain: "again", or what took the finding back.
    """

    kind: str
    finding: Finding
    note: str = ""

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return (
            f"{self.kind}{note} {self.finding.severity}[{self.finding.rule}] at step "
            f"{self.finding.raised_step}: {self.finding.message}"
        )


@dataclass
class Entry:
    """What was told of one finding.

    Attributes:
        finding: as it was when it was last looked at.
        open: whether it was told and not yet called cleared.
        times: how often it was told.
    """

    finding: Finding
    open: bool = True
    times: int = 1


class Ledger:
    """What was told about one run so far."""

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}

    def changes(self, verdict: RunVerdict) -> list[Change]:
        """What is to be told of a newer verdict, in the order of the steps; it counts as told from then on.

        A finding is raised when its rule's damping has passed, and cleared when it has passed again; one that comes
        back has to rest longer each time before it is called cleared, so that a metric at its limit is soon told no
        more. A finding that rose and ended between two looks is told as both.
        """
        found: list[Change] = []
        for finding in sorted(verdict.findings, key=lambda one: (one.raised_step, one.first_step, one.rule)):
            found += self._of_one(finding, verdict)
        present = {(one.rule, one.metric) for one in verdict.findings}
        for key in [key for key in self.entries if key not in present]:
            entry = self.entries.pop(key)
            if entry.open:
                found.append(Change("cleared", entry.finding, _why_gone(entry.finding, verdict)))
        return found

    def _of_one(self, finding: Finding, verdict: RunVerdict) -> list[Change]:
        key = finding.rule, finding.metric
        entry = self.entries.get(key)
        found: list[Change] = []
        if entry is None:
            entry = self.entries[key] = Entry(finding)
            found.append(Change("raised", finding))
        elif not entry.open and (not finding.ended or len(finding.episodes) > len(entry.finding.episodes)):
            entry.open = True
            entry.times += 1
            found.append(Change("raised", finding, "again"))
        elif finding.worst_severity > entry.finding.worst_severity:
            found.append(Change("worsened", finding))
        entry.finding = finding
        if entry.open and finding.ended and rested(finding, verdict) >= needed(entry.times):
            entry.open = False
            found.append(Change("cleared", finding))
        return found


def needed(times: int) -> int:
    """For how many points a finding that was told so often must rest, beyond its rule's own damping."""
    return 0 if times == 1 else int(REST * 2 ** min(times - 1, LONGEST_REST))


def rested(finding: Finding, verdict: RunVerdict) -> int:
    """How many points of its metric have come since the finding last held."""
    metric = verdict.translation.metrics.get(finding.metric)
    return 0 if metric is None else len(metric) - int(np.searchsorted(metric.steps, finding.last_step, side="right"))


def _why_gone(finding: Finding, verdict: RunVerdict) -> str:
    """Why a finding that had not ended is no longer there."""
    if finding.family == "stalled":
        return "the run continues"
    last = verdict.run.resumed_at[-1] if verdict.run.resumed_at else None
    if last is not None and last <= finding.raised_step:
        return f"the run was resumed at step {last}"
    if finding.family == "diagnosis":
        return "another cause explains it better"
    return "what was logged since changes how the run is judged"
