"""Whether a log was rounded for people to read, so that a number written as 0 may only be small."""

from __future__ import annotations

import numpy as np

from rlhealth.run import Run

PRINTED = frozenset(("console",))  # rounded, unless some number shows more decimals
WRITTEN = frozenset(("csv", "jsonl", "json", "notebook"))  # as precise as they are, unless all numbers are on a grid
GRID = 1e4  # four decimals: transformers rounds a loss so, verl's console prints three
ENOUGH = 3  # numbers that are no integers, before a grid can be distinguished from chance
FIRST = 20  # numbers of each series: as many as most rules on zeros need before they speak


def is_rounded(run: Run) -> bool:
    """Whether the numbers of the log were rounded to four decimals or fewer, by the first ones of each of its series.

    The first ones decide, so that a watcher knows as much as a check; one of each would not do, for a run may begin
    with zeros. Trackers that store floats round nothing.
    """
    if run.place.kind not in PRINTED | WRITTEN:
        return False
    first = np.concatenate([np.zeros(0), *(np.asarray(one.values[:FIRST], np.float64) for one in run.series.values())])
    first = np.abs(first[np.isfinite(first)])
    broken = first[first != np.round(first)]
    on_grid = np.abs(broken * GRID - np.round(broken * GRID)) < 1e-6
    if run.place.kind in PRINTED:
        return bool(np.all(on_grid))
    return len(np.unique(broken)) >= ENOUGH and bool(np.all(on_grid))
