"""Clock: the time as a watch needs it, and how much of it this machine slept through."""

from __future__ import annotations

import time

ASLEEP = 5.0  # seconds by which the wall clock may run ahead of the monotonic one before the machine must have slept


class Clock:
    """The machine's clocks. Tests and simulations bring their own."""

    def monotonic(self) -> float:
        """Seconds that pass while the machine is awake."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def wait(self, seconds: float) -> None:
        """Lets that much time pass."""
        time.sleep(max(0.0, seconds))


class Vigil:
    """Tells how much of the time since the run was last seen alive the machine was awake and could see.

    A laptop that was shut for a night makes every run look silent for a night; so does a network that was away, and a
    clock that was set. None of that is the run's doing.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.unseen = 0.0
        self._wall = clock.wall()
        self._monotonic = clock.monotonic()

    def look(self, *, new: bool, sees: bool) -> float:
        """Notes a look at the run, and returns what to take for now, seconds since 1970: the clock's time without the time that was not watched."""
        wall, monotonic = self.clock.wall(), self.clock.monotonic()
        awake, passed = monotonic - self._monotonic, wall - self._wall
        self._wall, self._monotonic = wall, monotonic
        if not sees:
            self.unseen += passed
        elif abs(passed - awake) > ASLEEP:
            self.unseen += passed - awake
        if new:
            self.unseen = 0.0
        return wall - self.unseen
