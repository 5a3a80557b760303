"""A buffer for points before they are added to a run: in lists, one tag after the other, in bounded
number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rlhealth.run import LONGEST_TAG, MOST_TAGS, Run
from rlhealth.sources.base.spelling import number

MOST_REPORTED = 10
Column = tuple[list[int], list[float], list[float]]


class Points:
    """Collects points of one run.

    Attributes:
        columns: by tag, the steps, values and times (seconds since 1970, or NaN) since the last `move`.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.columns: dict[str, Column] = {}
        self._nulls: dict[str, Column] = {}
        self._reported: set[str] = set()
        self._known = len(run.series)
        self._full = False

    def put(self, tag: str, value: Any, step: int, time: float) -> None:
        """Takes one value: a number in any spelling, null (NaN, if the tag is a number elsewhere) or a distribution;
        texts are no metrics.
        """
        found = number(value)
        if found is None:
            if value is None and step != self.last_step(tag):  # a null adds nothing to a step that has its number
                self._put_null(tag, step, time)
            elif isinstance(value, dict):
                self._put_distribution(tag, value, step, time)
            return
        column = self.columns.get(tag)
        if column is None:
            if not self.is_room_for(tag):
                return
            column = self.columns[tag] = self._nulls.pop(tag, ([], [], []))
        column[0].append(step)
        column[1].append(found)
        column[2].append(time)

    def is_room_for(self, tag: str) -> bool:
        """Whether a new tag is kept: its name must not be too long, and the number of tags is limited."""
        if tag in self.run.series:
            return True
        if len(tag) > LONGEST_TAG:
            self._report(f"a name of {len(tag):,} characters: not read")
            return False
        if self._known < MOST_TAGS:
            self._known += 1
            return True
        if not self._full:
            self._full = True
            self._report(f"more than {MOST_TAGS:,} metrics: the others were not read")
        return False

    def last_step(self, tag: str) -> float:
        """The newest step of a tag, moved or not; minus infinity where it has none."""
        column = self.columns.get(tag)
        if column:
            return column[0][-1]
        series = self.run.series.get(tag)
        return float(series.steps[-1]) if series is not None and len(series) else -math.inf

    def move(self) -> bool:
        """Moves the collected points into the run; True if there were any."""
        moved = bool(self.columns)
        for tag, (steps, values, times) in self.columns.items():
            self.run.add(tag, steps, values, times)
        self.columns.clear()
        return moved

    def _put_null(self, tag: str, step: int, time: float) -> None:
        if tag in self.run.series or tag in self.columns:
            column = self.columns.setdefault(tag, ([], [], []))
        elif len(self._nulls) < MOST_TAGS and len(tag) <= LONGEST_TAG:
            column = self._nulls.setdefault(tag, ([], [], []))
        else:
            return
        column[0].append(step)
        column[1].append(math.nan)
        column[2].append(time)

    def _put_distribution(self, tag: str, value: Mapping[str, Any], step: int, time: float) -> None:
        from rlhealth.sources.base.values import distribution  # late: rows exported from wandb are rare

        found = distribution(value)
        if found is not None and (tag in self.run.histograms or len(self.run.histograms) < MOST_TAGS):
            self.run.histogram(tag).add(step, *found, time)

    def _report(self, what: str) -> None:
        if what not in self._reported and len(self._reported) < MOST_REPORTED:
            self._reported.add(what)
            self.run.problems.append(what)
