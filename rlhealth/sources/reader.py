"""Reader: one run in one place, read once or again and again as it grows."""

from __future__ import annotations

from typing import Protocol

from rlhealth.run import Run


class Reader(Protocol):
    """What every source offers. `check` polls once; `watch` polls for as long as the run lasts.

    Attributes:
        run: grows in place with each poll; it is usable (perhaps empty) from the start.
    """

    run: Run

    def poll(self) -> bool:
        """Reads what is new since the last poll, each byte or row once, into `run`; True where anything was.

        Raises:
            RlhealthError: where nothing at all can be read (gone, no permission, not this format, no network).
        """
        ...
