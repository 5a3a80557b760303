"""Opens runs: finds and reads every run at a place once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.run import Run
from rlhealth.sources.discovery.find import find_readers

Tick = Callable[[int, int], None]


def open_all(
    where: str | Path, source: str | None = None, tick: Tick | None = None
) -> tuple[list[Run], list[RlhealthError]]:
    """Every run at `where`, read once, and what could not be read; one unreadable run never hides the others.

    `tick(done, total)` is called after each run. Raises RlhealthError if no run is found.
    """
    readers = find_readers(where, source=source)
    errors: list[RlhealthError] = []
    runs: list[Run] = []
    for done, reader in enumerate(readers, 1):
        try:
            reader.poll()
            runs.append(reader.run)
        except RlhealthError as error:
            errors.append(error)
        except (OSError, MemoryError) as error:
            location = reader.run.place.location
            errors.append(
                RlhealthError(
                    f"{location}: {error or type(error).__name__}",
                    hint="check that it still exists and is readable",
                    location=location,
                )
            )
        if tick:
            tick(done, len(readers))
    return runs, errors


def open_runs(where: str | Path, *, source: str | None = None) -> list[Run]:
    """Every run at `where`, read once.

    Raises:
        RlhealthError: if no run is found, or none of them can be read.
    """
    runs, errors = open_all(where, source)
    if not runs and errors:
        raise errors[0]
    return runs
