"""Metrics that vanish: logged so far, then missing while others continue. Trainers hide NaN in this way."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from rlhealth.engine.windows import count_until
from rlhealth.engine.wording import describe, words
from rlhealth.metrics import Metric, Translation
from rlhealth.metrics.catalogue import pattern_of_any
from rlhealth.rules.model import Rule
from rlhealth.run import Ints, Series
from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Episode, Finding, Severity, State

MISSED = 5  # a metric has vanished after this many of its own usual intervals without a point
ALIGNED = 3  # points that show that two metrics count the same steps
LENGTHS = ("completions/mean_length", "episodes/mean_length")
HISTORY = 5  # points that it must have before, so that its interval is known


@dataclass
class LoggedTicks:
    """One metric among the steps at which anything was logged (the ticks), for one rule.

    Attributes:
        place: the tick of its newest point.
        usual: the largest number of ticks between two of its points, so that metrics logged only every k-th step, or
                with an occasional gap, raise no finding.
        points: how many points it had.
        gone: the absences that were long enough to be reported, and that ended.
    """

    rule: Rule
    metric: Metric
    place: int = -1
    usual: int = 1
    points: int = 0
    gone: list[Episode] = field(default_factory=list)

    @property
    def history(self) -> int:
        """How many points it must have before it can count as vanished."""
        return max(HISTORY, self.rule.scope.min_points)

    @property
    def over(self) -> str:
        """How severe an absence that ended is."""
        return min(self.rule.severity, self.rule.severity_when_over, key=Severity.of)

    def follow(self, places: Ints, ticks: Ints) -> None:
        """Processes its new points, which lie at these ticks."""
        before = self.points + np.arange(len(places))
        gaps = np.diff(places, prepend=self.place)
        gaps[before == 0] = 1
        largest = int(gaps.max())
        if largest > MISSED * self.usual:
            self._note_absences(places, gaps, before, ticks)
        self.usual = max(self.usual, largest)
        self.place = int(places[-1])
        self.points += len(places)

    def _note_absences(self, places: Ints, gaps: Ints, before: Ints, ticks: Ints) -> None:
        """Keeps the gaps that were far longer than the longest gap before each of them."""
        usual = np.maximum.accumulate(np.append(self.usual, gaps))[:-1]
        for index in np.flatnonzero((gaps > MISSED * usual) & (before >= self.history)).tolist():
            start = int(places[index] - gaps[index])
            self.gone.append(
                Episode(
                    int(ticks[start + 1]),
                    int(ticks[start + MISSED * usual[index]]),
                    int(ticks[places[index] - 1]),
                    State.OVER,
                )
            )

    def episodes(self, ticks: Ints) -> tuple[Episode, ...]:
        """Its absences so far, each from the point where it was long enough to be reported."""
        needed = self.place + MISSED * self.usual
        if self.points < self.history or needed >= len(ticks):
            return tuple(self.gone)
        return (*self.gone, Episode(int(ticks[self.place + 1]), int(ticks[needed]), int(ticks[-1])))


class VanishedMetrics:
    """Follows the metrics that match the patterns of such rules, and compares each with all training metrics that count
    their steps on the same axis.

    Args:
        rules: those of a plan; rules that are not about vanished metrics are left out.
    """

    def __init__(self, rules: Iterable[Rule], translation: Translation) -> None:
        self.translation = translation
        self.metrics = [one for name, one in translation.metrics.items() if not name.startswith("eval/")]
        self.followed: list[tuple[Rule, int]] = []
        for rule in rules:
            if rule.when is not None and rule.when.vanished:
                pattern = pattern_of_any(rule.when.vanished)
                self.followed += [(rule, place) for place, one in enumerate(self.metrics) if pattern.match(one.name)]
        self._begin()

    def _begin(self) -> None:
        self.seen = [0] * len(self.metrics)
        self.started: list[int] = []
        self.settled = False
        self.axes = list(range(len(self.metrics)))
        self.ticks: dict[int, Series] = {}
        self.trails: dict[int, list[LoggedTicks]] = {}
        for rule, place in self.followed:
            self.trails.setdefault(place, []).append(LoggedTicks(rule, self.metrics[place]))

    def advance(self, until: int) -> None:
        """Follows every point up to and including step `until`."""
        if not self.followed:
            return
        ends = [count_until(one.steps, until) for one in self.metrics]
        started = [min(end, ALIGNED) for end in ends]
        axes = (
            self.axes
            if self.settled and started == self.started
            else axes_of([one.steps[:end] for one, end in zip(self.metrics, ends, strict=True)])
        )
        if axes != self.axes or self._came_late():
            self._begin()  # the counts so far are no longer valid
        self.axes, self.started, self.settled = axes, started, self._settled(ends)
        for axis in dict.fromkeys(axes):
            self._advance(axis, [place for place, one in enumerate(axes) if one == axis], ends)

    @property
    def has_looked(self) -> bool:
        """Whether any metric had enough points for an absence to be noticed."""
        return any(one.points >= one.history for trails in self.trails.values() for one in trails)

    def _settled(self, ends: list[int]) -> bool:
        """Whether no later point can show that two metrics share an axis: each has passed the first points of all."""
        logged = [(one.steps, end) for one, end in zip(self.metrics, ends, strict=True) if end]
        return not logged or min(steps[end - 1] for steps, end in logged) >= max(
            steps[min(end, ALIGNED) - 1] for steps, end in logged
        )

    def _came_late(self) -> bool:
        return any(
            len(one) > seen and axis in self.ticks and one.steps[seen] <= self.ticks[axis].steps[-1]
            for one, seen, axis in zip(self.metrics, self.seen, self.axes, strict=True)
        )

    def _advance(self, axis: int, places: list[int], ends: list[int]) -> None:
        """Follows the new points of the metrics at these indices, which count their steps on the same axis."""
        new = {place: self.metrics[place].steps[self.seen[place] : ends[place]] for place in places}
        for place in places:
            self.seen[place] = max(ends[place], self.seen[place])
        added = _united(list(new.values()))
        if not len(added):
            return
        ticks = self.ticks.setdefault(axis, Series("ticks"))
        base = len(ticks)
        ticks.extend(added, np.zeros(len(added)))
        for place in places:
            if place in self.trails and len(new[place]):
                whole = len(new[place]) == len(added)
                at = base + (np.arange(len(added)) if whole else np.searchsorted(added, new[place]))
                for trail in self.trails[place]:
                    trail.follow(at, ticks.steps)

    def findings(self, excerpted: Collection[str] = ()) -> list[Finding]:
        """One finding per rule and vanished metric; tags in `excerpted` (`Run.excerpted`) cannot vanish."""
        found = []
        for place, trail in ((place, trail) for place, trails in self.trails.items() for trail in trails):
            ticks = self.ticks.get(self.axes[place])
            episodes = trail.episodes(ticks.steps) if ticks is not None else ()
            if episodes and len(episodes) > len(trail.gone) and self._was_written_later(place):
                episodes = episodes[:-1]  # of two axes in one file, the longer has the higher last step, no later one
            if episodes and trail.metric.tag not in excerpted and not self._is_of_episodes(trail.metric):
                metric, first = trail.metric, episodes[0]
                last = int(np.searchsorted(metric.steps, first.first_step)) - 1
                missing = Evidence(
                    metric=metric.name, tag=metric.tag, step=first.first_step, value=math.nan, unit=metric.unit
                )
                said = words(trail.rule, self.translation, metric, first) | {"value": float(metric.values[last])}
                found.append(
                    describe(
                        rule=trail.rule,
                        severity=Severity.of(trail.rule.severity if episodes[-1].active else trail.over),
                        first=first,
                        episodes=episodes,
                        conditions=(missing,),
                        said=said,
                    )
                )
        return found

    def _is_of_episodes(self, metric: Metric) -> bool:
        """Whether a metric of a control task came at the steps at which the length of episodes came, and at no others:
        where both are missing no episode ended, as happens while the agent survives."""
        if self.translation.writes_texts:
            return False
        lengths = (self.translation.metrics.get(name) for name in LENGTHS)
        return any(one is not None and one is not metric and np.array_equal(one.steps, metric.steps) for one in lengths)

    def _was_written_later(self, place: int) -> bool:
        """Whether most points at later steps than a metric's newest point were written earlier in time."""
        metric = self.metrics[place]
        end = self.seen[place]
        last, written = metric.steps[end - 1], float(np.max(metric.times[:end]))
        behind = [
            one.times[np.searchsorted(one.steps[:seen], last, side="right") : seen]
            for one, seen, axis in zip(self.metrics, self.seen, self.axes, strict=True)
            if axis == self.axes[place]
        ]
        times = np.concatenate(behind)
        return bool(np.isfinite(written) and len(times) and 2 * np.count_nonzero(times < written) > len(times))


def axes_of(steps: list[Ints]) -> list[int]:
    """For each metric, the number of the axis on which it counts its steps: gradient steps, environment steps, …

    Two metrics share an axis if the first points of one lie at steps of the other. A metric with fewer points has its
    own axis.

    Args:
        steps: of each metric, shape (n,) each.
    """
    axes = list(range(len(steps)))
    for place, mine in enumerate(steps):
        for other in range(place):
            if axes[other] != axes[place] and (_starts_on(mine, steps[other]) or _starts_on(steps[other], mine)):
                joined = axes[place]
                axes = [axes[other] if axis == joined else axis for axis in axes]
    return axes


def _starts_on(mine: Ints, others: Ints) -> bool:
    if min(len(mine), len(others)) >= ALIGNED and mine[:ALIGNED].tolist() == others[:ALIGNED].tolist():
        return True  # as nearly all do
    place = np.searchsorted(others, mine[:ALIGNED])
    return len(mine) >= ALIGNED and len(others) > place[-1] and bool((others[place] == mine[:ALIGNED]).all())


def _same(one: Ints, other: Ints) -> bool:
    """Whether two metrics have the same new steps; if no step is left out, their ends show it."""
    if len(one) != len(other) or one[0] != other[0] or one[-1] != other[-1]:
        return False
    return bool(one[-1] - one[0] == len(one) - 1) or np.array_equal(one, other)


def _united(parts: list[Ints]) -> Ints:
    """The union of these steps. Most metrics are logged at the same steps: equal arrays are merged once."""
    distinct: list[Ints] = []
    for part in parts:
        if len(part) and not any(_same(part, other) for other in distinct[:5]):
            distinct.append(part)
    return distinct[0] if len(distinct) == 1 else np.unique(np.concatenate([*distinct, np.empty(0, np.int64)]))
