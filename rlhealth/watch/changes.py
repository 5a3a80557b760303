"""Changes: what is new since a run was last looked at, an incident at a time, so that each thing is reported once."""

from __future__ import annotations

from dataclasses import dataclass

from rlhealth.verdict.findings import Finding, Severity
from rlhealth.verdict.verdicts import RunVerdict
from rlhealth.watch.incidents import Group, Incident, Incidents


@dataclass(frozen=True)
class Change:
    """One thing to report.

    Attributes:
        kind: raised (an incident opened), explained (its cause became known, or another one), worsened (it is more
            severe than was reported) or cleared (it is over); "stop" where the run is to be stopped.
        finding: the one that stands for it: its cause, or else the worst; of one that was withdrawn, as it stood
            before.
        note: why, where that is not plain: "again", or what took the finding back.
        incident: what the finding is part of.
    """

    kind: str
    finding: Finding
    note: str = ""
    incident: Incident | None = None

    @property
    def step(self) -> int:
        """The step at which it came to be known; of what worsened or is over, the newest at which it held."""
        is_newest = self.kind in ("worsened", "cleared")
        return self.finding.last_step if is_newest else self.finding.raised_step

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return (
            f"{self.kind}{note} {self.finding.worst_severity}[{self.finding.rule}] at step "
            f"{self.step}: {self.finding.message}"
        )


class ReportedFindings:
    """What was reported about one run so far."""

    def __init__(self) -> None:
        self.incidents = Incidents()

    def changes(self, verdict: RunVerdict, *, first: bool = False, last: bool = False) -> list[Change]:
        """What is to be reported of a newer verdict, in the order of the incidents; it counts as reported from then on.

        An incident is reported when it opens, when its cause becomes known, when it grows more severe than was
        reported, and once when it is over: when nothing of it holds, what it cost has come back, and it has rested. If
        it comes back it is reported again only where it is critical, and rests for longer, so that a metric at its
        limit is soon no longer reported. One that opened and ended between two looks is reported as both.

        Args:
            first: what is there was there before anybody watched: all of it is one change.
            last: no other verdict follows: what is over is reported without waiting for its rest.
        """
        self.incidents.take(verdict)
        if first:
            return self._before(verdict)
        found: list[Change] = []
        known = self.incidents
        over = all(group.over for group in known.groups if group.open)
        for group in [group for group in known.groups if group.open]:
            found += self._opened(group)
            if group.over and ((last and over) or known.is_rested(group, verdict)):
                found += self._closed(group, verdict)
        return found

    def change(self, kind: str, finding: Finding) -> Change:
        """A change of that kind about a finding, with the incident that it is part of."""
        return Change(kind, finding, incident=self.incidents.of(finding))

    def _opened(self, group: Group) -> list[Change]:
        """What is new of an open incident."""
        cause = group.known_cause()
        is_new = cause is not None and cause not in group.causes
        severity = group.worst if group.severity is None else max(group.worst_now, group.severity)
        was_reported, before = group.reported, group.severity
        if (before is not None and severity <= before and not is_new) or (
            not was_reported and not self.incidents.is_news(group, severity)
        ):
            return []
        group.reported, group.severity = True, severity
        if cause is not None and is_new:
            group.causes.append(cause)
        if before is None:
            return [Change("raised", group.root(), incident=group.seen())]
        if not was_reported:
            return [Change("raised", group.root(), "again", group.seen())]
        if severity > before:
            return [Change("worsened", group.root(), incident=group.seen())]
        known = next(one for one in group.found if one.rule == cause)
        note = f"not {group.causes[-2]}" if len(group.causes) > 1 else ""
        return [Change("explained", known, note, group.seen())]

    def _closed(self, group: Group, verdict: RunVerdict) -> list[Change]:
        """Closes an incident: that is reported if its beginning was. A warning that comes back is known; more is
        reported."""
        was_reported, group.reported, group.open, group.severity = group.reported, False, False, Severity.WARNING
        self.incidents.closed += 1
        note = "" if group.members or group.gone is None else _why_gone(group.gone, verdict)
        return [Change("cleared", group.root(), note, group.seen())] if was_reported else []

    def _before(self, verdict: RunVerdict) -> list[Change]:
        """All that happened before the watch began, in one change: the worst that is not over stands for it."""
        groups = self.incidents.groups
        if not groups:
            return []
        for group in groups:
            group.severity, group.reported = group.worst, True
            group.causes = [cause] if (cause := group.known_cause()) else []
            if group.over:
                self._closed(group, verdict)
        worst = min(groups, key=lambda group: (group.over, -group.worst, group.number))
        more = len(groups) - 1
        note = "before it was watched" + (", over since" if worst.over else "")
        note += f"; {more} more incident{'s' if more > 1 else ''}" if more else ""
        return [Change("raised", worst.root(), note, worst.seen())]


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
