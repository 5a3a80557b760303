"""Whether a log was rounded for display, so that a number written as 0 may be a small one."""

from __future__ import annotations

import numpy as np

from rlhealth.run import Run

PRINTED = frozenset(("console",))  # rounded, unless a number has more decimals
WRITTEN = frozenset(("csv", "jsonl", "json", "notebook"))  # exact, unless all numbers are on a grid
GRID = 1e4  # four decimals: transformers rounds a loss so, verl's console prints three
ENOUGH = 3  # non-integers that it takes to distinguish a grid from chance
FIRST = 20  # numbers of each series: as many as most rules about zeros need


def is_rounded(run: Run) -> bool:
    """Whether the numbers of the log were rounded to four decimals or fewer, by the first ones of each of its series.

    The first ones decide, so that a watch and a check agree. One of each is not enough, because a run may begin with
    zeros. Trackers that store floats do not round.
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
