"""Clock: the time as a watch needs it, and what to take for now where this machine slept, could not see, or had its
clock set.
"""

from __future__ import annotations

import math
import time

BEHIND = 300.0  # seconds by which what arrives may be old before the clock that dated it must be behind this one
ZONES = 15 * 3600.0  # seconds: no time zone is further off; what is older was copied or replayed, not dated wrongly
ASLEEP = 5.0  # seconds by which the wall clock may run ahead of the monotonic one before the machine must have slept
#: The clock that continues while the machine sleeps, and that nobody sets, where the system names one.
_ALWAYS = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


class Clock:
    """The machine's clocks. Tests and simulations bring their own."""

    def monotonic(self) -> float:
        """Seconds that pass while the machine is awake."""
        return time.monotonic()

    def passed(self) -> float:
        """Seconds that pass whether the machine is awake or not; setting its clock does not change them."""
        return time.monotonic() if _ALWAYS is None else time.clock_gettime(_ALWAYS)

    def wall(self) -> float:
        """Seconds since 1970, which jump where somebody sets the clock."""
        return time.time()

    def wait(self, seconds: float) -> None:
        """Lets that much time pass."""
        time.sleep(max(0.0, seconds))


class AwakeTime:
    """Says how much of the time since the run was last seen alive the machine was awake and could see.

    A laptop that sleeps for a night makes every run look silent for a night; so does a network failure, or a clock that
    was changed. None of these is a fault of the run. From then on, and where the log's clock is ahead of this one or
    far behind it, the times in the log are not used: silence is counted from when new data last arrived.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.unseen = 0.0
        self.quiet = 0.0
        self._wall = clock.wall()
        self._monotonic = clock.monotonic()
        self._saw = self._grew = self._jumped = self._behind = False

    def look(self, *, new: bool, sees: bool, newest: float = math.nan) -> float:
        """Notes a look at the run, and returns what to take for now, seconds since 1970: the clock's time without the
        time that was not watched.

        Args:
            new: whether there was anything new.
            sees: whether the run could be seen at all.
            newest: the time of the run's last sign of life, by the clock of whoever wrote it.
        """
        wall, monotonic = self.clock.wall(), self.clock.monotonic()
        awake, passed = monotonic - self._monotonic, wall - self._wall
        self._wall, self._monotonic = wall, monotonic
        jumped = abs(passed - awake) > ASLEEP
        self._jumped = self._jumped or jumped
        if not sees:
            self.unseen += passed
        elif jumped:
            self.unseen += passed - awake
        self.quiet += awake if sees else 0.0
        if new:
            self.unseen = self.quiet = 0.0
            self._grew = self._grew or self._saw
            self._behind = BEHIND < wall - newest < ZONES
        self._saw = self._saw or sees
        if self._grew and math.isfinite(newest) and (self._jumped or self._behind or newest > wall):
            return newest + self.quiet
        return wall - self.unseen


def clock_time(moment: float) -> str:
    """The time of day here, such as 14:02:59."""
    return time.strftime("%H:%M:%S", time.localtime(moment))
