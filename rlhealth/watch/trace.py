"""Traces: a metric's course in a bounded number of points, kept up as it grows, so that drawing it costs the same
after a million steps.
"""

from __future__ import annotations

import numpy as np

from rlhealth.metrics import Metric
from rlhealth.metrics.metric import Points
from rlhealth.run import Floats, Ints

BUCKETS = 512


class Trace:
    """The smallest and largest value of each stretch of a metric. When there are too many stretches, two become one."""

    def __init__(self) -> None:
        self.source: Points | None = None
        self.revision = 0
        self.seen = 0
        self.stride = 1
        self.steps: Ints = np.empty((0, 2), np.int64)
        self.values: Floats = np.empty((0, 2))
        self._rest: tuple[Ints, Floats] = (np.empty(0, np.int64), np.empty(0))

    def follow(self, metric: Metric) -> None:
        """Takes in the metric's new points."""
        if metric.source is not self.source or metric.revision != self.revision:
            self.__init__()  # type: ignore[misc]
            self.source, self.revision = metric.source, metric.revision
        steps = np.concatenate([self._rest[0], metric.steps[self.seen :]])
        values = np.concatenate([self._rest[1], metric.values_from(self.seen)])
        self.seen = len(metric)
        whole = len(steps) // self.stride
        while len(self.steps) + whole > BUCKETS:
            self._halve()
            whole = len(steps) // self.stride
        if whole:
            cut = whole * self.stride
            self._add(steps[:cut].reshape(whole, -1), values[:cut].reshape(whole, -1))
            steps, values = steps[cut:], values[cut:]
        self._rest = steps.copy(), values.copy()

    @property
    def points(self) -> tuple[Ints, Floats]:
        """Steps and values, each of shape (n,) with n at most about a thousand, steps never falling; of values that
        are not finite only whole stretches remain.
        """
        return np.concatenate([self.steps.ravel(), self._rest[0]]), np.concatenate([self.values.ravel(), self._rest[1]])

    def _add(self, steps: Ints, values: Floats) -> None:
        finite = np.isfinite(values)
        low = np.argmin(np.where(finite, values, np.inf), axis=1)
        high = np.argmax(np.where(finite, values, -np.inf), axis=1)
        rows = np.arange(len(steps))
        pair = np.sort(np.stack([low, high], axis=1), axis=1)
        self.steps = np.concatenate([self.steps, steps[rows[:, None], pair]])
        self.values = np.concatenate([self.values, values[rows[:, None], pair]])

    def _halve(self) -> None:
        odd = len(self.steps) % 2
        steps, values = self.steps, self.values
        if odd:
            steps, values = np.concatenate([steps, steps[-1:]]), np.concatenate([values, values[-1:]])
        self.steps, self.values = np.empty((0, 2), np.int64), np.empty((0, 2))
        self.stride *= 2
        self._add(steps.reshape(-1, 4), values.reshape(-1, 4))


class Traces:
    """Traces by canonical name."""

    def __init__(self) -> None:
        self._traces: dict[str, Trace] = {}

    def of(self, metric: Metric) -> tuple[Ints, Floats]:
        """The metric's course, brought up to date."""
        trace = self._traces.setdefault(metric.name, Trace())
        trace.follow(metric)
        return trace.points
