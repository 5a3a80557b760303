"""How long something takes at its best: on a machine that others use too, one measurement says little."""

from __future__ import annotations

import time
from collections.abc import Callable


def least_seconds(work: Callable[[], object], enough: float, tries: int = 5) -> float:
    """The least processor time that it took, in seconds; it is tried again as long as that is more than `enough`."""
    least = float("inf")
    for _ in range(tries):
        begun = time.process_time()
        work()
        least = min(least, time.process_time() - begun)
        if least <= enough:
            break
    return least
