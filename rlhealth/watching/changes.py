"""Changes: what is new between two looks at a run, so that each thing is told once."""

from __future__ import annotations

from dataclasses import dataclass

from rlhealth.findings import Finding, RunVerdict

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
        return f"{self.kind} {self.finding.severity}[{self.finding.rule}] at step {self.finding.raised_step}: {self.finding.message}"


def key_of(finding: Finding) -> Key:
    """By what a finding is known again: its rule and its metric."""
    return finding.rule, finding.metric


def changes(before: RunVerdict | None, after: RunVerdict) -> list[Change]:
    """What to tell of the second verdict to someone who was told the first, in the order of the steps.

    A finding is raised once its rule's damping has passed and cleared once it has passed again, so one that sits at its
    limit is told once. A finding that rose and ended between two looks is told as both.
    """
    known = {key_of(one): one for one in before.findings} if before else {}
    found: list[Change] = []
    for finding in sorted(after.findings, key=lambda one: (one.raised_step, one.first_step, one.rule)):
        found += _of_one(known.pop(key_of(finding), None), finding)
    gone = [one for one in known.values() if not one.ended]
    found += [Change("cleared", one, _why_gone(one, before, after)) for one in gone]
    return found


def _of_one(old: Finding | None, new: Finding) -> list[Change]:
    if old is None:
        return [Change("raised", new), *([Change("cleared", new)] if new.ended else [])]
    if old.ended and (not new.ended or len(new.episodes) > len(old.episodes)):
        return [Change("raised", new, "again"), *([Change("cleared", new)] if new.ended else [])]
    found = [Change("worsened", new)] if new.severity > old.severity else []
    if new.ended and not old.ended:
        found.append(Change("cleared", new))
    return found


def _why_gone(finding: Finding, before: RunVerdict | None, after: RunVerdict) -> str:
    """Why a finding that had not ended is no longer there."""
    if finding.family == "stalled":
        return "the run goes on"
    last = after.run.resumed_at[-1] if after.run.resumed_at else None
    if last is not None and last <= finding.raised_step:
        return f"the run was resumed at step {last}"
    return "what was logged since changes how the run is judged"
