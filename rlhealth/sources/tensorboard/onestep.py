"""Runs that log every point at one and the same step, as `writer.add_scalar(tag, value)` without a step does: their
points are numbered in the order in which they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from rlhealth.run import Floats, Ints, Run

FEWEST = 10  # points of a tag; with fewer, a step was written again
Arrays = tuple[Ints, Floats, Floats]  # steps, values, times, shape (n,) each


class OneStep:
    """Numbers the points of such a run. As soon as a point has another step, each tag keeps its newest point at the
    first one.
    """

    def __init__(self) -> None:
        self._step: int | None = None
        self._is_over = False
        self._held: dict[str, list[Arrays]] = {}
        self._numbered: set[str] = set()  # the tags, once there are enough points

    def placed(self, points: Mapping[str, Arrays], run: Run) -> Mapping[str, Arrays]:
        """The next points to add to a run, by tag: numbered, if all so far have one step and there are enough."""
        if self._is_over or not points:
            return points
        for steps, _, _ in points.values():
            self._step = int(steps[0]) if self._step is None else self._step
            if steps.min() != self._step or steps.max() != self._step:
                self._end(run)
                return points
        if self._numbered:
            return self._in_order(points, run)
        for tag, one in points.items():
            self._held.setdefault(tag, []).append(one)
        if max(sum(len(steps) for steps, _, _ in held) for held in self._held.values()) < FEWEST:
            return points
        _drop(run, self._held)
        run.notes.append(f"every point was logged at step {self._step}: they are numbered in their order")
        held = {tag: _joined(parts) for tag, parts in self._held.items()}
        self._held.clear()
        return self._in_order(held, run)

    def _in_order(self, points: Mapping[str, Arrays], run: Run) -> dict[str, Arrays]:
        """The points, numbered after those of the run."""
        found = {}
        for tag, (steps, values, times) in points.items():
            known = run.series.get(tag)
            start = int(known.steps[-1]) if known is not None and len(known) else 0
            found[tag] = np.arange(start + 1, start + len(steps) + 1), values, times
        self._numbered |= points.keys()
        return found

    def _end(self, run: Run) -> None:
        """Steps are counted after all."""
        self._is_over = True
        self._held.clear()
        if not self._numbered:
            return
        known = {tag: run.series[tag] for tag in self._numbered if tag in run.series}
        newest = {tag: (one.values[-1:].copy(), one.times[-1:].copy()) for tag, one in known.items() if len(one)}
        _drop(run, newest)
        for tag, (value, time) in newest.items():
            run.add(tag, [self._step or 0], value, time)
        run.notes = [one for one in run.notes if not one.startswith("every point was logged at step ")]


def _drop(run: Run, tags: Iterable[str]) -> None:
    for tag in tags:
        if (series := run.series.get(tag)) is not None and len(series):
            series.rewind(int(series.steps[0]))
            series.overwritten.clear()


def _joined(parts: list[Arrays]) -> Arrays:
    """The points of several pieces, in their order."""
    steps, values, times = (np.concatenate(one) for one in zip(*parts, strict=True))
    return steps, values, times
