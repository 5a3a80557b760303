"""Metrics that vanish: logged so far, then missing while others go on. Trainers hide NaN in this way."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field

import numpy as np

from rlhealth.engine.wording import describe, words
from rlhealth.metrics import Metric, Translation
from rlhealth.rules.model import Rule
from rlhealth.run import Ints, Series
from rlhealth.verdict.findings import Episode, Finding, Severity, State

MISSED = 5  # a metric has vanished after this many of its own usual intervals without a point
HISTORY = 5  # and only if it had been logged this often, so that its interval is known


@dataclass
class Trail:
    """One metric among the steps at which anything was logged (the ticks).

    Attributes:
        place: the tick of its newest point.
        usual: the largest number of ticks between two of its points, so that metrics logged on every k-th step only, or
            with the odd gap, are left alone.
        points: how many points it had.
        gone: the absences that were long enough to be told, and that ended.
    """

    metric: Metric
    place: int = -1
    usual: int = 1
    points: int = 0
    gone: list[Episode] = field(default_factory=list)

    def follow(self, places: Ints, ticks: Ints) -> None:
        """Goes on over its new points, which lie at these ticks."""
        before = self.points + np.arange(len(places))
        gaps = np.diff(places, prepend=self.place)
        gaps[before == 0] = 1
        usual = np.maximum.accumulate(np.append(self.usual, gaps))[:-1]
        for index in np.flatnonzero((gaps > MISSED * usual) & (before >= HISTORY)).tolist():
            start = int(places[index] - gaps[index])
            self.gone.append(
                Episode(
                    int(ticks[start + 1]),
                    int(ticks[start + MISSED * usual[index]]),
                    int(ticks[places[index] - 1]),
                    State.OVER,
                )
            )
        self.usual = int(max(self.usual, gaps.max()))
        self.place = int(places[-1])
        self.points += len(places)

    def episodes(self, ticks: Ints) -> tuple[Episode, ...]:
        """Its absences so far, each told once it was long enough."""
        needed = self.place + MISSED * self.usual
        if self.points < HISTORY or needed >= len(ticks):
            return tuple(self.gone)
        return (*self.gone, Episode(int(ticks[self.place + 1]), int(ticks[needed]), int(ticks[-1])))


class Vanishing:
    """Follows the metrics that a rule's pattern names, against the steps at which any training metric was logged."""

    def __init__(self, rule: Rule, translation: Translation) -> None:
        assert rule.when is not None and rule.when.vanished is not None
        self.rule = rule
        self.translation = translation
        self.patterns = rule.when.vanished.split("|")
        self.metrics = [one for name, one in translation.metrics.items() if not name.startswith("eval/")]
        self._begin()

    def _begin(self) -> None:
        self.seen = [0] * len(self.metrics)
        self.ticks = Series("ticks")
        self.trails = {
            place: Trail(one)
            for place, one in enumerate(self.metrics)
            if any(fnmatch.fnmatchcase(one.name, to) for to in self.patterns)
        }

    def advance(self, until: int) -> None:
        """Follows every point up to and including step `until`."""
        ticks = self.ticks.steps
        if len(ticks) and any(
            len(one) > seen and one.steps[seen] <= ticks[-1] for one, seen in zip(self.metrics, self.seen, strict=True)
        ):
            self._begin()  # a point came late: what was counted without it no longer holds
        new = []
        for place, one in enumerate(self.metrics):
            end = int(np.searchsorted(one.steps, until, side="right"))
            new.append(one.steps[self.seen[place] : end])
            self.seen[place] = max(end, self.seen[place])
        added = _united(new)
        if not len(added):
            return
        base = len(self.ticks)
        self.ticks.extend(added, np.zeros(len(added)))
        for place, trail in self.trails.items():
            if len(new[place]):
                whole = len(new[place]) == len(added)
                trail.follow(
                    base + (np.arange(len(added)) if whole else np.searchsorted(added, new[place])), self.ticks.steps
                )

    def findings(self) -> list[Finding]:
        """One finding for each metric that went missing."""
        found = []
        for trail in self.trails.values():
            episodes = trail.episodes(self.ticks.steps)
            if episodes:
                metric, first = trail.metric, episodes[0]
                last = int(np.searchsorted(metric.steps, first.first_step)) - 1
                said = words(self.translation, metric, first) | {"value": float(metric.values[last])}
                found.append(
                    describe(
                        self.rule,
                        Severity.of(self.rule.severity),
                        metric,
                        first,
                        episodes,
                        (first.first_step, float("nan")),
                        None,
                        said,
                    )
                )
        return found


def _united(parts: list[Ints]) -> Ints:
    """The steps that are in any of these. Most metrics are logged at the same steps: those are united once."""
    distinct: list[Ints] = []
    for part in parts:
        if len(part) and not any(np.array_equal(part, other) for other in distinct[:5]):
            distinct.append(part)
    return distinct[0] if len(distinct) == 1 else np.unique(np.concatenate([*distinct, np.empty(0, np.int64)]))
