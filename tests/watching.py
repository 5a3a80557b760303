"""What the tests of watching share: a clock that is wound by hand, and a log of what was reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event as Written

from rlhealth.sources import find_readers
from rlhealth.watch.clock import Clock
from rlhealth.watch.follower import Event
from rlhealth.watch.loop import Watch
from tests.fuzz.framing import event_payloads
from tests.sources.event_files import framed


class HandClock(Clock):
    """Starts now, or when the first step of a log was written, and stands still until it is wound."""

    def __init__(self, log: Path | None = None) -> None:
        self.now = time.time() if log is None else first_time(log)
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


def first_time(log: Path) -> float:
    """When the first step of a log was written, by its own times: whoever watches a replay of it stands there."""
    [reader] = find_readers(str(log))
    reader.poll()
    return min(float(one.times[0]) for one in reader.run.series.values())


def written_now(log: Path, folder: Path) -> Path:
    """A copy of an event file in that folder, whose first step was written at this moment."""
    since = time.time() - first_time(log)
    return shifted(log, folder, lambda step: since)


def shifted(log: Path, folder: Path, wrong: Callable[[int], float]) -> Path:
    """A copy of an event file in that folder, with each step written so many seconds later."""
    events = [Written.FromString(payload) for payload in event_payloads(log.read_bytes())]
    for event in events:
        event.wall_time += wrong(event.step)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / log.name).write_bytes(framed(event.SerializeToString() for event in events))
    return folder / log.name


@dataclass
class Recorder:
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
    def rules(self) -> set[str]:
        """The rules of all that was reported, the incidents' other findings too."""
        incidents = [one.change.incident for one in self.events if one.change is not None]
        return {rule for one in incidents if one is not None for rule in one.rules}

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """Kind, rule and metric of every change, in the order in which they were reported."""
        return [
            (one.change.kind, one.change.finding.rule, one.change.finding.metric)
            for one in self.events
            if one.change is not None
        ]
