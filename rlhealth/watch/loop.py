"""Watch: repeats the main path while runs are logged; reports each change once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.parallel.ahead import in_turn
from rlhealth.rules.model import Rule
from rlhealth.run import unique_name
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.discovery.registry import is_online
from rlhealth.verdict.baseline import Baseline
from rlhealth.verdict.gate import Gate
from rlhealth.verdict.verdicts import Verdict
from rlhealth.watch.actions import Actions, change_document
from rlhealth.watch.clock import Clock, clock_time
from rlhealth.watch.discovery import Discovery, appeared, covered, elsewhere
from rlhealth.watch.follower import Event, Follower, why_of
from rlhealth.watch.stopping import Stopping

LOCAL, ONLINE = 15.0, 60.0  # seconds between two looks
ALL_OVER = 600.0  # seconds for which a folder of runs that are all over is still watched for a new one


@dataclass(frozen=True)
class Limits:
    """When a watch ends, besides the end of its runs.

    Attributes:
        until_step: every run has reached this step.
        timeout: seconds.
    """

    until_step: int | None = None
    timeout: float | None = None


class Watch:
    """Follows every run at and below some places.

    Args:
        places: files, folders or addresses; they need not exist yet.
        rules: what to judge by.
        baseline: findings that are known and accepted; they are counted, and not reported.
        interval: seconds between two looks; 15 for files and 60 for servers if not given.
    """

    def __init__(
        self,
        places: Sequence[str],
        rules: Sequence[Rule],
        *,
        source: str | None = None,
        gate: Gate | None = None,
        aliases: Mapping[str, str] | None = None,
        ignore: Mapping[str, str] | None = None,
        baseline: Baseline | None = None,
        interval: float | None = None,
        clock: Clock | None = None,
        completions: str | None = None,
    ) -> None:
        self.rules = rules
        self.gate = gate or Gate()
        self.aliases = aliases
        self.ignore = ignore
        self.baseline = baseline
        self.clock = clock or Clock()
        self.completions = completions
        self.interval = interval or (ONLINE if any(map(is_online, places)) else LOCAL)
        self.discovery = Discovery(places, source)
        self.asked = tuple(map(str, places))
        self.followers: list[Follower] = []
        self.begun = self.clock.monotonic()
        self.looked_at = self.begun
        self._waits: set[str] = set()

    def look(self) -> list[Event]:
        """One look at everything.

        Returns:
            what is to be reported, in order.

        Raises:
            RlhealthError: if no run can ever appear.
        """
        events = self._discover()
        due = [one for one in self.followers if one.is_due]
        for one, read in in_turn(due, lambda each: each.reader, Follower.read):
            events += one.look(self.interval, read)
            if self._is_refused(one):
                assert one.error is not None
                raise one.error
        for one in self._begun():
            events += one.look(self.interval)
        self.looked_at = self.clock.monotonic()
        return events

    def finish(self) -> list[Event]:
        """Judges the rows that were held back; returns the changes to report."""
        return [event for one in self.followers for event in one.finish()]

    def verdict(self) -> Verdict:
        """The verdict as `check` would give it, from what was read. A run that cannot be read is an error in it: a gate
        must not pass without it.
        """
        seen = [one.verdict for one in self.followers if one.verdict is not None]
        for one in seen:
            one.too_short = self.gate.too_short(one.run.last_step) or one.too_short
        errors = [_unseen(one, one.error, self.clock.wall()) for one in self.followers if one.error is not None] + list(
            self.discovery.waiting.values()
        )
        if not seen and not errors:
            errors.append(RlhealthError("nothing was read", hint="no run appeared before the watch ended"))
        left = [one for found in self.discovery.left_out.values() for one in found]
        return Verdict(seen, errors, self.gate, self.clock.monotonic() - self.begun, left, self.asked)

    def is_over(self, limits: Limits) -> bool:
        """Whether there is nothing left to wait for."""
        if limits.timeout is not None and self.clock.monotonic() - self.begun >= limits.timeout:
            return True
        seen = [one for one in self.followers if one.looks]
        if not seen or self.discovery.waiting:
            return False
        if limits.until_step is not None and all(
            one.over or (one.reader.run.last_step or 0) >= limits.until_step for one in seen
        ):
            return True
        quiet = self.clock.monotonic() - max(one.news_at for one in seen)
        return all(one.over for one in seen) and (len(seen) == 1 or quiet >= ALL_OVER)

    def pause(self, limits: Limits) -> float:
        """Seconds until the next look."""
        left = self.looked_at + self.interval - self.clock.monotonic()
        if limits.timeout is not None:
            left = min(left, self.begun + limits.timeout - self.clock.monotonic())
        return max(0.0, left)

    def _is_refused(self, one: Follower) -> bool:
        """Whether a server says that the only named run does not exist or is not accessible: waiting would not change
        that.
        """
        never_seen = one.looks == 0 and one.error is not None and not isinstance(one.error, Unavailable)
        return never_seen and is_online(one.place) and sum(other.place == one.place for other in self.followers) == 1

    def _discover(self) -> list[Event]:
        for place, readers in self.discovery.look().items():
            for reader in readers:
                self._take(reader, place)
            found = {one for reader in readers for one in covered(reader) | elsewhere(reader)}
            # it looked like a run while its only file had no numbers, and is now part of another run
            self.followers = [
                one
                for one in self.followers
                if one.place != place or one.reader.run.series or covered(one.reader) & found
            ]
        events = [
            Event("waiting", place, f"{error.message}; waiting for it to appear")
            for place, error in self.discovery.waiting.items()
            if place not in self._waits
        ]
        self._waits = set(self.discovery.waiting)
        return events

    def _begun(self) -> list[Follower]:
        """Follows new runs in a file or database that is already followed."""
        before = list(self.followers)
        for one in before:
            for reader in appeared(one.reader):
                reader.run.name = unique_name(reader.run.name, [other.name for other in self.followers])
                self._take(reader, one.place)
        return [one for one in self.followers if one not in before]

    def _take(self, reader: Reader, place: str) -> None:
        """Follows a run that is new; one that is followed continues with this reader where it covers more, so that it
        is read as `check` would read it.
        """
        mine, also = covered(reader), elsewhere(reader)
        same = [one for one in self.followers if covered(one.reader) & (mine | also)]
        if not same:
            self.followers.append(
                Follower(
                    reader=reader,
                    rules=self.rules,
                    aliases=self.aliases,
                    ignore=self.ignore,
                    clock=self.clock,
                    place=place,
                    baseline=self.baseline,
                    completions=self.completions,
                )
            )
            return
        kept = next((one for one in same if covered(one.reader) & mine), same[0])
        if not mine <= covered(kept.reader) or (also and not elsewhere(kept.reader)):
            kept.adopt(reader)
        self.followers = [
            one for one in self.followers if one is kept or one not in same or not covered(one.reader) <= mine | also
        ]


def _unseen(one: Follower, error: RlhealthError, now: float) -> RlhealthError:
    """Why a run can no longer be seen, and since when by the clock as it stands now, for the report."""
    if one.verdict is None or one.blind_for is None:
        return error
    place = one.reader.run.place.location
    return RlhealthError(
        f"{place}: not seen since {clock_time(now - one.blind_for)}: {why_of(error)}",
        hint="what was read before that is judged above",
        location=place,
    )


class Display(Protocol):
    """What shows events to a person: lines, or a screen."""

    def show(self, watch: Watch, event: Event) -> None:
        """Notifies one event."""

    def wait(self, watch: Watch, seconds: float) -> bool:
        """Waits until the next look; False to quit."""
        ...


def watch(
    subject: Watch, limits: Limits, display: Display, actions: Actions | None = None, stopping: Stopping | None = None
) -> Verdict:
    """Looks until everything is over, a limit is reached, a run was stopped, or the display asks to quit; Ctrl-C ends
    it as a limit does.

    Raises:
        RlhealthError: if no run can ever appear, or it is unknown which of several runs is to be stopped.
    """

    def show(events: Iterable[Event]) -> None:
        for event in events:
            display.show(subject, event)
            one = next((one for one in subject.followers if one.name == event.run), None)
            if event.change is None or actions is None or one is None or one.verdict is None:
                continue
            if one.looks > 1 or not event.change.finding.ended:  # over before the watch: no notification
                actions.take(event.change, one.verdict)

    try:
        while True:
            show(subject.look())
            if stopping is not None and not stopping.done:
                stopping.arm(subject.followers)
                show(stop_due(subject, stopping))
            show(troubles(actions))
            if (
                subject.is_over(limits)
                or (stopping is not None and stopping.done)
                or not display.wait(subject, subject.pause(limits))
            ):
                break
    except KeyboardInterrupt:
        pass
    show(subject.finish())
    if actions is not None:
        actions.end()
    show(troubles(actions))
    return subject.verdict()


def stop_due(subject: Watch, stopping: Stopping) -> Iterator[Event]:
    """Stops the first run that is to be stopped, and reports it before and after; the run is looked at once more, to
    see its end.
    """
    due = next((one for one in subject.followers if stopping.is_due(one)), None)
    if due is None or due.verdict is None:
        return
    worst = max(
        (one for one in due.verdict.findings if not one.ended), key=lambda one: (one.severity, -one.raised_step)
    )
    yield Event("stopping", due.name, f"{worst.rule} is {worst.severity}: will {stopping.how}")
    try:
        done = stopping.stop(change_document(due.ledger.change("stop", worst), due.verdict, subject.clock.wall()))
        yield Event("stopped", due.name, done)
    except RlhealthError as error:
        yield Event("trouble", due.name, error.message)
    yield from subject.look()


def troubles(actions: Actions | None) -> list[Event]:
    """The failures of actions since the last call."""
    found = []
    while actions is not None and actions.troubles:
        found.append(Event("trouble", "rlhealth", actions.troubles.popleft()))
    return found
