"""Reader: one run in one place, read once, or repeatedly as it grows; `Unreadable` stands for a run that cannot be
read.
"""

from __future__ import annotations

from typing import Protocol

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run


class Reader(Protocol):
    """What every source offers. `check` polls once; `watch` polls for as long as the run lasts.

    Attributes:
        run: grows in place with each poll; it is usable from the start, and may be empty.
    """

    run: Run

    def poll(self) -> bool:
        """Reads new content since the last poll into `run`, each byte or row once; True if there was any.

        Raises:
            RlhealthError: if nothing at all can be read (gone, no permission, not this format, no network).
        """
        ...


class Unreadable:
    """A run that was found and cannot be read. Its poll raises the error, so that the run is reported with the
    others."""

    def __init__(self, error: RlhealthError) -> None:
        self.error = error
        self.run = Run(error.location or "unreadable", Place("unreadable", error.location))

    def poll(self) -> bool:
        """Raises the stored error."""
        raise self.error
