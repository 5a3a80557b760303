"""Many runs at once, over processes of this machine; the answers come in order, as if one after another."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rlhealth.completions.texts import read_texts
from rlhealth.errors import RlhealthError
from rlhealth.parallel.ahead import ahead, at_once, in_order
from rlhealth.run import Run
from rlhealth.sources.base.reader import Reader
from rlhealth.verdict.verdicts import RunVerdict

Answer = RunVerdict | RlhealthError
Examine = Callable[[Reader], Answer]

PATIENCE = (
    0.2  # seconds of work, after which there may be enough to do for more processes: each takes as long to begin …
)
PLENTY = 2.0  # … and of work to come, by the latest run, with which there is for certain


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_whole(reader: Reader, completions: str | None = None) -> None:
    """Reads a run, with what its completions measure. Raises RlhealthError, OSError or MemoryError where it cannot."""
    reader.poll()
    read_texts(reader, completions)


@dataclass(frozen=True)
class Examination:
    """What is done with each run: read, with what its completions measure, and judged.

    Args:
        judge: judges a run that was read.
        completions: where its completions lie, if not beside its logs; "" for those that its server keeps.
    """

    judge: Callable[[Run], RunVerdict]
    completions: str | None = None

    def read(self, reader: Reader) -> None:
        """Reads a run. Raises RlhealthError, OSError or MemoryError where it cannot be read."""
        read_whole(reader, self.completions)

    def judged(self, reader: Reader, read: Callable[[], None]) -> Answer:
        """What is said of a run, once `read` has read it; the error where that failed, so that it never hides the
        others.
        """
        try:
            read()
            return self.judge(reader.run)
        except RlhealthError as error:
            return error
        except (OSError, MemoryError) as error:
            place = reader.run.place.location
            return RlhealthError(
                f"{place}: {error or type(error).__name__}",
                hint="check that it still exists and is readable",
                location=place,
            )

    def __call__(self, reader: Reader) -> Answer:
        """What is said of a run; the error where it cannot be read."""
        return self.judged(reader, lambda: self.read(reader))


def examined(readers: Sequence[Reader], examine: Examine, jobs: int = 1) -> Iterator[Answer]:
    """What `examine` says of each reader, in order; over `jobs` processes where one of them would take long, and of
    runs on a server, whose answers are waited for, several are read at once.
    """
    for most, part in itertools.groupby(readers, at_once):
        if most > 1 and isinstance(examine, Examination):
            found = ahead(part, examine.read, most)  # judged as they come
            yield from in_order((number, examine.judged(reader, read)) for number, reader, read in found)
        else:
            yield from _examined(list(part), examine, jobs)


def _examined(readers: Sequence[Reader], examine: Examine, jobs: int) -> Iterator[Answer]:
    begun = latest = time.perf_counter()
    for place, reader in enumerate(readers):
        now, left = time.perf_counter(), len(readers) - place
        if jobs > 1 and left > 1 and (now - begun > PATIENCE or (now - latest) * left > PLENTY):
            from rlhealth.parallel.workers import over_processes  # late: most checks are of one run

            yield from over_processes(readers[place:], examine, jobs)
            return
        latest = now
        yield examine(reader)
