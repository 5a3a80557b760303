"""A log that is rewritten as a whole: its new content is added to the run that was read from it before, and unchanged
content stays untouched.
"""

from __future__ import annotations

import numpy as np

from rlhealth.run import Histogram, Run, Series


def bring_up_to_date(run: Run, found: Run) -> bool:
    """Updates `run` to the content of `found`, which was read from the whole file; True if it grew or changed.

    If the file only grew, the series grow. If its content differs from a step on (a trainer that resumes from a
    checkpoint cuts its history back), the run is rewound to that step.
    """
    before = (run.step_axis, run.planned_steps, *run.notes, *run.problems)
    _copy_state(run, found)
    changed = before != (run.step_axis, run.planned_steps, *run.notes, *run.problems)
    if not run.series and not run.histograms:
        run.series.update(found.series)
        run.histograms.update(found.histograms)
        run.resumed_at[:] = found.resumed_at
        run.replaced[:] = found.replaced
        return changed or bool(run.series or run.histograms)
    differing = [_differs(one, found.series.get(tag)) for tag, one in run.series.items()]
    differing += [_differs(one, found.histograms.get(tag)) for tag, one in run.histograms.items()]
    step = min((one for one in differing if one is not None), default=None)
    if step is not None:
        run.rewind(step)
        changed = True
    for tag, series in found.series.items():
        known = len(run.series.get(tag, ()))
        changed = changed or len(series) > known
        run.add(tag, series.steps[known:], series.values[known:], series.times[known:])
    for tag, histogram in found.histograms.items():
        into = run.histogram(tag)
        for index in range(len(into), len(histogram)):
            changed = True
            into.add(histogram.steps[index], histogram.edges[index], histogram.counts[index], histogram.times[index])
    return changed


def _copy_state(run: Run, found: Run) -> None:
    run.step_axis = found.step_axis
    run.planned_steps = found.planned_steps or run.planned_steps
    run.refused = found.refused
    run.problems[:] = found.problems
    run.notes += [note for note in found.notes if note not in run.notes]


def _differs(known: Series | Histogram, found: Series | Histogram | None) -> int | None:
    """The first earlier step that is now missing or different, or None."""
    if not len(known):
        return None
    if found is None:
        return int(known.steps[0])
    shared = min(len(known), len(found))
    same = np.asarray(known.steps[:shared]) == np.asarray(found.steps[:shared])
    if isinstance(known, Series) and isinstance(found, Series):
        same &= (known.values[:shared] == found.values[:shared]) | (
            np.isnan(known.values[:shared]) & np.isnan(found.values[:shared])
        )
    elif isinstance(known, Histogram) and isinstance(found, Histogram):
        same &= [_equal(known, found, index) for index in range(shared)]
    first = int(np.argmin(same)) if not same.all() else shared
    if first < shared:
        return min(int(known.steps[first]), int(found.steps[first]))
    return int(known.steps[shared]) if len(known) > shared else None


def _equal(known: Histogram, found: Histogram, index: int) -> bool:
    return bool(
        np.array_equal(known.edges[index], found.edges[index])
        and np.array_equal(known.counts[index], found.counts[index])
    )
