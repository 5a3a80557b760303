"""What the tests of watching share: a clock that is wound by hand, and a log of what was told."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from rlhealth.watch.clock import Clock
from rlhealth.watch.follower import Event
from rlhealth.watch.loop import Watch


class HandClock(Clock):
    """Starts now, and stands still until it is wound."""

    def __init__(self) -> None:
        self.now = time.time()
        self.ticks = 1000.0
        self.slept = 0.0

    def monotonic(self) -> float:
        return self.ticks

    def passed(self) -> float:
        return self.ticks + self.slept

    def wall(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.ticks += seconds

    def sleep_through(self, seconds: float) -> None:
        """The machine is asleep: only the wall clock goes on, and the one that counts sleep."""
        self.now += seconds
        self.slept += seconds

    def set(self, seconds: float) -> None:
        """Somebody sets the clock, by so many seconds forwards or backwards."""
        self.now += seconds


@dataclass
class Told:
    """Keeps every event."""

    events: list[Event] = field(default_factory=list)

    def look(self, watch: Watch, seconds: float = 15.0) -> list[Event]:
        """One look, after some time; returns what was new."""
        watch.clock.wait(seconds)
        new = watch.look()
        self.events += new
        return new

    def finish(self, watch: Watch) -> None:
        self.events += watch.finish()

    def of(self, *kinds: str) -> list[Event]:
        return [one for one in self.events if one.kind in kinds]

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """Kind, rule and metric of every change, in the order in which they were told."""
        return [
            (one.change.kind, one.change.finding.rule, one.change.finding.metric)
            for one in self.events
            if one.change is not None
        ]
