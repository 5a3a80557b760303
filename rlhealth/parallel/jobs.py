"""Many runs at once, over processes of this machine; the answers come in order, as if one after another."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

from rlhealth.errors import RlhealthError
from rlhealth.run import Run
from rlhealth.sources.base.reader import Reader
from rlhealth.verdict.findings import RunVerdict

Answer = RunVerdict | RlhealthError
Examine = Callable[[Reader], Answer]

PATIENCE = (
    0.2  # seconds of work, after which there may be enough to do for more processes: each takes as long to begin …
)
PLENTY = 2.0  # … and of work to come, by the latest run, with which there is for certain


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_and_judge(judge: Callable[[Run], RunVerdict], reader: Reader) -> Answer:
    """What `judge` says of a run, once it is read; the error where it cannot be read, so that it never hides the
    others.
    """
    try:
        reader.poll()
        return judge(reader.run)
    except RlhealthError as error:
        return error
    except (OSError, MemoryError) as error:
        place = reader.run.place.location
        return RlhealthError(
            f"{place}: {error or type(error).__name__}",
            hint="check that it still exists and is readable",
            location=place,
        )


def examined(readers: Sequence[Reader], examine: Examine, jobs: int = 1) -> Iterator[Answer]:
    """What `examine` says of each reader, in order; over `jobs` processes where one of them would take long."""
    begun = latest = time.perf_counter()
    for place, reader in enumerate(readers):
        now, left = time.perf_counter(), len(readers) - place
        if jobs > 1 and left > 1 and (now - begun > PATIENCE or (now - latest) * left > PLENTY):
            from rlhealth.parallel.workers import over_processes  # late: most checks are of one run

            yield from over_processes(readers[place:], examine, jobs)
            return
        latest = now
        yield examine(reader)
