"""Lines: a watch written to a pipe or a log file, one line for each change, and the same sentences for the screen's
log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from rlhealth.reports import words
from rlhealth.verdict.findings import Severity
from rlhealth.watch.clock import clock_time
from rlhealth.watch.near import pending

if TYPE_CHECKING:
    from rlhealth.watch.changes import Change
    from rlhealth.watch.follower import Event
    from rlhealth.watch.loop import Watch


class LineDisplay:
    """Writes each event as one line that is never wrapped or cut, and flushes it."""

    def __init__(self, out: TextIO, *, ascii: bool = False) -> None:
        self.out = out
        self.ascii = ascii

    def show(self, watch: Watch, event: Event) -> None:
        """Writes one event."""
        self.say(watch.clock.wall(), f"{event.run}: {sentence(event)}")

    def say(self, moment: float, text: str) -> None:
        """Writes one line with the time before it."""
        self.out.write(f"{clock_time(moment)} {words.clean(text, ascii=self.ascii)}\n")
        self.out.flush()

    def wait(self, watch: Watch, seconds: float) -> bool:
        """Lets time pass; a pipe has no key to quit with."""
        watch.clock.wait(seconds)
        return True


def sentence(event: Event) -> str:
    """An event as a sentence, for a line by itself."""
    if event.change is None:
        return (
            f"{_NAMES.get(event.kind, event.kind)}: {event.said}" if event.said else _NAMES.get(event.kind, event.kind)
        )
    return described(event.change)


_NAMES = {"sees": "back", "over": "ended", "trouble": "error", "found": "watching"}


def described(change: Change) -> str:
    """A change with its numbers: `raised critical[kl-high] step=41 value=4.3 limit=1 incident=1: …`."""
    one = change.finding
    note = f" ({change.note})" if change.note else ""
    again = f" since={one.since_step}" if one.earlier else ""
    head = f"{change.kind}{note} {one.worst_severity}[{one.rule}] step={one.first_step}{again}"
    part = f" incident={change.incident.number}" if change.incident is not None else ""
    if change.kind == "cleared":
        until = change.incident.last_step if change.incident is not None else one.last_step
        return f"{head} until={until}{part}{_others(change)}"
    limit = "" if one.limit is None else f" limit={one.limit:.6g}"
    cause = f" cause={one.explained_by}" if one.explained_by else ""
    return f"{head} value={one.worst_value:.6g}{limit}{part}{cause}{_others(change)}: {one.message}"


def _others(change: Change) -> str:
    """The other rules of the incident."""
    rules = [rule for rule in change.incident.rules if rule != change.finding.rule] if change.incident else []
    return f" with={','.join(rules)}" if rules else ""


def counted(watch: Watch) -> dict[str, int]:
    """How many rules are quiet, pending (their condition holds, but not yet long enough), and raised, over all runs."""
    quiet = waiting = raised = 0
    for one in watch.followers:
        if one.verdict is not None and one.judge is not None:
            quiet += len(one.verdict.quiet)
            raised += sum(not found.ended and found.severity > Severity.INFO for found in one.verdict.findings)
            waiting += len(pending(one.judge))
    return {"quiet": quiet, "pending": waiting, "raised": raised}
