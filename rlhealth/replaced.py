"""What a run held before a resume, or another writer, replaced it: the run as it stood then, made from what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rlhealth.series import Histogram, Points, Series

#: More replaced parts of one run than this are not judged, with a problem that says so.
MOST_REPLACED = 32
#: So many values of one metric must have been overwritten for them to be judged as another writer's; one that is not
#: finite is enough.
FEWEST_OVERWRITTEN = 3
DENSE = 0.9  # of the steps between the first and the last of them must be theirs


class Segment(NamedTuple):
    """What a resume replaced: every point from `step` on, as it was before, by tag."""

    step: int
    points: dict[str, Points]
    histograms: dict[str, Histogram]

    @property
    def last_step(self) -> int:
        """The last step that was replaced."""
        steps = [one[0] for one in self.points.values()] + [one.steps for one in self.histograms.values()]
        return max((int(one[-1]) for one in steps if len(one)), default=self.step)


class EarlierPoints(NamedTuple):
    """The points of a run as it stood before, from `step` on other than they are now; `said` names it."""

    step: int
    said: str
    series: dict[str, Series]
    histograms: dict[str, Histogram]


def before_resumes(
    series: dict[str, Series], histograms: dict[str, Histogram], replaced: list[Segment]
) -> Iterator[EarlierPoints]:
    """The points as they stood before each resume, the newest resume first; at most `MOST_REPLACED`."""
    now, bins = dict(series), dict(histograms)
    for segment in replaced[: -MOST_REPLACED - 1 : -1]:
        now = {tag: _with_tail(tag, now.get(tag), segment) for tag in now.keys() | segment.points.keys()}
        bins = {tag: _with_bins(tag, bins.get(tag), segment) for tag in bins.keys() | segment.histograms.keys()}
        said = f"before the run was resumed at step {segment.step:,}"
        yield EarlierPoints(segment.step, said, now, bins)


def by_other_writers(
    series: dict[str, Series], histograms: dict[str, Histogram]
) -> Iterator[tuple[int, EarlierPoints]]:
    """The points with the values that were overwritten, those of the first writer first, each with how many steps were
    logged again."""
    writers = [_by_writer(one) for one in series.values()]
    for number in range(min(MOST_REPLACED, max(map(len, writers), default=0))):
        overwritten = {
            one.tag: writer[number]
            for one, writer in zip(series.values(), writers, strict=True)
            if len(writer) > number
        }
        if not any(_is_other_writer(points, series[tag]) for tag, points in overwritten.items()):
            continue
        first = min(int(steps[0]) for steps, _, _ in overwritten.values())
        count = max(len(steps) for steps, _, _ in overwritten.values())
        said = "as it was logged first, at steps that were logged again with other values"
        changed = {tag: _with_points(one, overwritten.get(tag)) for tag, one in series.items()}
        yield count, EarlierPoints(first, said, changed, histograms)


def _with_tail(tag: str, now: Series | None, segment: Segment) -> Series:
    """A series as it stood before a resume: what stands before the resume's step, then what the resume replaced."""
    kept = Series(tag) if now is None else now.until(segment.step - 1)
    made = Series(tag, kept.steps, kept.values, kept.times)
    if tag in segment.points:
        made.extend(*segment.points[tag])
    return made


def _with_bins(tag: str, now: Histogram | None, segment: Segment) -> Histogram:
    made = (Histogram(tag) if now is None else now).until(segment.step - 1)
    tail = segment.histograms.get(tag)
    if tail is not None:
        made.steps, made.times = made.steps + tail.steps, made.times + tail.times
        made.edges, made.counts = made.edges + tail.edges, made.counts + tail.counts
    return made


def _with_points(one: Series, points: Points | None) -> Series:
    """A series with other values at some of its steps; steps that it does not have are left out."""
    made = Series(one.tag, one.steps, one.values, one.times)
    if points is not None:
        steps, values, times = points
        there = np.isin(steps, one.steps)
        made.extend(steps[there], values[there], times[there])
    made.overwritten.clear()
    return made


def _by_writer(one: Series) -> list[Points]:
    """The overwritten points of a series, one list for the first value of each step, one for the second, …"""
    if not one.overwritten:
        return []
    steps, values, times = (np.concatenate(part) for part in zip(*one.overwritten, strict=True))
    order = np.argsort(steps, kind="stable")
    steps, values, times = steps[order], values[order], times[order]
    begins = np.flatnonzero(np.append(True, steps[1:] != steps[:-1]))
    turn = np.arange(len(steps)) - np.repeat(begins, np.diff(np.append(begins, len(steps))))
    return [
        (steps[turn == number], values[turn == number], times[turn == number]) for number in range(int(turn.max()) + 1)
    ]


def _is_other_writer(points: Points, series: Series) -> bool:
    """Whether what was overwritten is another writer's: it wrote most steps of a stretch, or a value that is not
    finite.

    Several environments that end an episode at one step log several values there, now and then.
    """
    steps, values, _ = points
    if not np.isfinite(values).all():
        return True
    begin, end = np.searchsorted(series.steps, [steps[0], steps[-1] + 1])
    return bool(len(steps) >= max(FEWEST_OVERWRITTEN, DENSE * (end - begin)))


def segment_until(one: Segment, step: int) -> Segment:
    """What a resume replaced, as far as it had been logged up to and including a step."""
    points = {}
    for tag, (steps, values, times) in one.points.items():
        end = int(np.searchsorted(steps, step, side="right"))
        points[tag] = steps[:end], values[:end], times[:end]
    return Segment(one.step, points, {tag: bins.until(step) for tag, bins in one.histograms.items()})
