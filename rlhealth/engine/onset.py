"""Onset: where a condition began to hold in the data, dated back into the window that raised it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rlhealth.engine.best import BelowAllBefore
from rlhealth.engine.estimate import Bound, Flags
from rlhealth.engine.measures import MAKE
from rlhealth.engine.parts import Parts
from rlhealth.engine.shifts import shifted_down
from rlhealth.engine.trends import moved
from rlhealth.engine.windows import sorted_median
from rlhealth.metrics import Metric
from rlhealth.rules.conditions import Condition
from rlhealth.rules.measures import COUNTS, KINDS, STANDSTILLS
from rlhealth.run import Floats, Ints
from rlhealth.series import first_points

AT_ONCE = 4096  # windows per batch, so that a run with many short episodes takes no more memory than another


def dated_back(
    condition: Condition, bound: Bound, metric: Metric, per: Metric | None, scale: float, steps: Ints
) -> tuple[Ints, Flags]:
    """For each window that ends at one of `steps` (shape (k,)), at which the condition began to hold: the first row
    that meets the condition by itself.

    A median over five rows passes a limit at the third row beyond it: the problem began two rows earlier. A series that
    stands still began to with the first row of its value. Only rows up to that step are used, so that a prefix of a run
    dates an onset as the whole run does.

    Returns:
        the steps of those rows; whether no finite row of the metric came before them. Shape (k,) each.
    """
    ends = np.searchsorted(metric.steps, steps, side="right")
    places = ends - 1
    if condition.measure == "streak" and len(ends):
        every = np.arange(int(ends.max()))
        there = _counted(condition, metric, per, scale, every[None, :])[0]
        began = np.maximum.accumulate(np.where(there, -1, every))[places] + 1
        places = np.minimum(began, places)  # an empty streak has no first row: the onset is the row itself
    elif condition.measure in STANDSTILLS and len(ends):
        places = _first_row(points_of(condition, metric, per, scale, np.arange(int(ends.max()))), _value_began, places)
    elif KINDS[condition.measure].of_newest and len(ends):
        newest_began = partial(_newest_began, condition, metric)
        places = _first_row(points_of(condition, metric, per, scale, np.arange(int(ends.max()))), newest_began, places)
    elif condition.last > 1:
        for begin in range(0, len(ends), AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            rows = ends[part, None] - condition.last + np.arange(condition.last)
            agree = (rows >= 0) & _agree(condition, bound, metric, per, scale, rows)
            found = np.argmax(agree, axis=1)
            places[part] = np.where(agree.any(axis=1), rows[np.arange(len(rows)), found], places[part])
    return metric.steps[places], places <= _first_finite(metric.values)


def _first_row(values: Floats, began: Callable[[Floats], Ints], places: Ints) -> Ints:
    """For each place, the first row of what it belongs to, over rows that are missing; the place itself where no row up
    to it is finite. `began` gives that first row for each finite one, as indices of these. Shape (k,).
    """
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return places
    newest = np.searchsorted(known, places, side="right") - 1
    return np.where(newest >= 0, known[began(values[known])[np.maximum(newest, 0)]], places)


def _value_began(points: Floats) -> Ints:
    """For each point, the first of the stretch of equal values that it belongs to, shape (n,)."""
    found: Ints = np.maximum.accumulate(np.where(moved(points), np.arange(len(points)), 0))
    return found


def _newest_began(condition: Condition, metric: Metric, points: Floats) -> Ints:
    """For each point, the first of the newest points that a measure of these is about; itself where it is about none.
    Shape (n,)."""
    if condition.measure == "shift_down":
        width = shifted_down(points, condition.last)[1]
    else:
        width = np.nan_to_num(BelowAllBefore(condition.last, metric.smoothed).extend(points)).astype(np.int64)
    found: Ints = np.arange(len(points)) - np.maximum(width - 1, 0)
    return found


def _first_finite(values: Floats) -> int:
    """The index of the first finite value, usually one of the first; the number of values if none is finite."""
    for part in (values[:64], values):
        known = np.isfinite(part)
        if known.any():
            return int(np.argmax(known))
    return len(values)


def points_of(condition: Condition, metric: Metric, per: Metric | None, scale: float, rows: Ints) -> Floats:
    """The metric at those rows, as the condition uses it (absolute, or divided), in the shape of `rows`."""
    values = metric.values[rows]
    if condition.absolute:
        values = np.abs(values)
    with np.errstate(all="ignore"):
        if per is None or condition.divided_by is None:
            return np.asarray(values / scale if scale != 1 else values, np.float64)
        known = np.isfinite(per.values)
        steps, below = per.steps[known], per.values[known]
        if condition.divided_by.max_so_far:
            below = np.maximum.accumulate(np.abs(below))
        place = np.searchsorted(steps, metric.steps[rows], side="right") - 1
        held = np.where(place >= 0, below[np.maximum(place, 0)] if len(below) else np.nan, np.nan)
        divisor = held if condition.divided_by.signed else np.abs(held) ** float(condition.divided_by.power)
        return np.asarray(values / (scale * divisor), np.float64)


def _agree(condition: Condition, bound: Bound, metric: Metric, per: Metric | None, scale: float, rows: Ints) -> Flags:
    """Which rows of each window meet the condition, each by itself; shape (k, w), as `rows`.

    A row below 0 does not exist: its flag means nothing.
    """
    if condition.measure in COUNTS and condition.where is not None:
        return _counted(condition, metric, per, scale, rows)
    values = points_of(condition, metric, per, scale, np.maximum(rows, 0))
    known = np.isfinite(values) & (rows >= 0)
    if condition.measure == "share_nonfinite":
        return ~known
    if condition.measure == "share_of_points" and condition.where is not None:
        where = condition.where
        sides = (("above", where.above), ("below", where.below))
        hits = [Bound(side, float(level)).holds(values) for side, level in sides if level is not None]
        return np.asarray(np.logical_and.reduce([known, *hits]))
    if KINDS[condition.measure].level:
        return bound.holds(_compared(condition, metric, values, rows))
    if KINDS[condition.measure].falls:  # the lower half of what has fallen
        return np.asarray(known & (values <= _medians(np.where(known, values, np.nan))[:, None]))
    if KINDS[condition.measure].predicts:
        return np.zeros(rows.shape, np.bool_)  # its onset is the step at which it was detected
    return known  # a spread or a gain is a property of the whole window


def _counted(condition: Condition, metric: Metric, per: Metric | None, scale: float, rows: Ints) -> Flags:
    """Which rows are counted, each compared with its own past."""
    past = 0 if condition.versus is None else condition.versus.past
    begin = max(0, int(rows[:, 0].min()) - past)
    every = np.arange(begin, int(rows[:, -1].max()) + 1)
    counted = MAKE["count"](condition.model_copy(update={"last": 1}), 1, Parts())
    found = counted.extend(points_of(condition, metric, per, scale, every)).value > 0
    return np.asarray(found[np.maximum(rows - begin, 0)])


def _compared(condition: Condition, metric: Metric, values: Floats, rows: Ints) -> Floats:
    """The rows compared with the condition's reference: the start, or the past."""
    versus = condition.versus
    if versus is None:
        return values
    if versus.start is not None:
        first = first_points(metric.values, versus.start)[None, :]
    else:
        earlier = np.maximum(rows[:, :1], 0) - np.arange(1, (versus.past or 1) + 1)
        first = np.where(earlier >= 0, metric.values[np.maximum(earlier, 0)], np.nan)
        first[~np.isfinite(first)] = np.nan
    if condition.absolute:
        first = np.abs(first)
    with np.errstate(all="ignore"):
        is_largest = versus.largest is not None or versus.by == "largest"
        if is_largest or versus.smallest is not None:
            level = (np.fmax if is_largest else np.fmin).reduce(first, axis=1, initial=np.nan)
        else:
            level = _medians(first)
        return np.asarray(values / level[:, None] if versus.is_ratio else values - level[:, None], np.float64)


def _medians(windows: Floats) -> Floats:
    """The median of each row of shape (k, w); NaN if all of its points are missing."""
    if not windows.shape[1]:
        return np.full(len(windows), np.nan)
    counts = np.count_nonzero(~np.isnan(windows), axis=1)
    return np.where(counts > 0, sorted_median(windows.T, counts), np.nan)
