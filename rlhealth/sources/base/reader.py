"""Reader: one run in one place, read once or again and again as it grows; `Unreadable` keeps the place of one that
cannot be read.
"""

from __future__ import annotations

from typing import Protocol

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run


class Reader(Protocol):
    """What every source offers. `check` polls once; `watch` polls for as long as the run lasts.

    Attributes:
        run: grows in place with each poll; it is usable (perhaps empty) from the start.
    """

    run: Run

    def poll(self) -> bool:
        """Reads what is new since the last poll, each byte or row once, into `run`; True if anything was.

        Raises:
            RlhealthError: if nothing at all can be read (gone, no permission, not this format, no network).
        """
        ...


class Unreadable:
    """What was found and cannot be read, so that it is not lost among the runs that can: its poll raises."""

    def __init__(self, error: RlhealthError) -> None:
        self.error = error
        self.run = Run(error.location or "unreadable", Place("unreadable", error.location))

    def poll(self) -> bool:
        """Raises the error that was met."""
        raise self.error
