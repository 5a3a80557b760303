"""The measures that a rule may use: causal, over one series, in pure numpy.

Each measure takes the points of a series in order, in any number of pieces, and returns one number per point that
depends only on that point and the ones before it. So a watch that feeds a run point by point gives the same result
as a check of the whole run. Non-finite points count as missing, except for the measures that look for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rlhealth.engine.apart import GapFromBest
from rlhealth.engine.best import AboveLowest, BelowAllBefore, DropFromBest, MaxSoFar, ShareOfGainLost
from rlhealth.engine.estimate import Measure, ValueMeasure, WithoutError
from rlhealth.engine.gains import GainByThirds, GainSinceStart
from rlhealth.engine.order import OrderScore, RankTrend
from rlhealth.engine.parts import Parts
from rlhealth.engine.shares import MeanFraction, ShareNonFinite, ShareOfPoints
from rlhealth.engine.shifts import ShiftDown
from rlhealth.engine.streaks import Streak
from rlhealth.engine.trends import Arrival, Climb, Count, Plunge, Standstill
from rlhealth.engine.versus import Past, against
from rlhealth.engine.windows import ROLLING, Rolling, mean


class Window(Protocol):
    """The window of a condition: which points it measures, and against what."""

    @property
    def last(self) -> int:
        """How many points."""

    @property
    def at_least(self) -> int | None:
        """How many of them are enough; None for all."""

    @property
    def items(self) -> int:
        """How many items (groups, completions) a share must be counted over."""

    @property
    def versus(self) -> Past | None:
        """The points that the measure is compared with."""

    @property
    def where(self) -> FilterBounds | None:
        """The bounds within which points are counted."""


class FilterBounds(Protocol):
    """The bounds that a point must meet to be counted."""

    @property
    def above(self) -> float | None:
        """The bound that it must be above."""

    @property
    def below(self) -> float | None:
        """The bound that it must be below."""


#: Makes a measure for a window. The integer says over how many points the framework averages each point of the series;
#: `Parts` are intermediate results that measures share.
Make = Callable[[Window, int, Parts], Measure]


def _rolling(name: str) -> Make:
    return lambda one, smoothed, parts: WithoutError(Rolling(ROLLING[name], one.last, one.at_least or one.last, parts))


def _share(one: Window, smoothed: int, parts: Parts) -> Measure:
    level = one.where
    assert level is not None
    return WithoutError(ShareOfPoints(one.last, one.at_least or one.last, level.above, level.below))


def _counted(of: type[Count] | type[Streak]) -> Make:
    """Each point is compared with its past before it is counted."""

    def made(one: Window, smoothed: int, parts: Parts) -> Measure:
        level = one.where
        assert level is not None
        point: ValueMeasure = Rolling(mean, 1, 1)
        inner = point if one.versus is None else against(point, 1, one.versus)
        return WithoutError(of(inner, one.last, level.above, level.below))

    return made


#: For each measure of `rules/measures.py`, the function that makes it for a window.
MAKE: dict[str, Make] = {
    **{name: _rolling(name) for name in ROLLING},
    "share_nonfinite": lambda one, smoothed, parts: WithoutError(ShareNonFinite(one.last)),
    "share_of_points": _share,
    "mean_fraction": lambda one, smoothed, parts: MeanFraction(one.last, one.at_least or one.last, one.items, parts),
    "drop_from_best": lambda one, smoothed, parts: DropFromBest(one.last, one.at_least or one.last, smoothed, parts),
    "share_of_gain_lost": lambda one, smoothed, parts: WithoutError(
        ShareOfGainLost(one.last, one.at_least or one.last, smoothed, parts)
    ),
    "gap_from_best": lambda one, smoothed, parts: WithoutError(
        GapFromBest(one.last, one.at_least or one.last, smoothed, parts)
    ),
    "gain_since_start": lambda one, smoothed, parts: GainSinceStart(one.last, smoothed, parts),
    "count": _counted(Count),
    "streak": _counted(Streak),
    "climb": lambda one, smoothed, parts: Climb(one.last, smoothed, parts),
    "plunge": lambda one, smoothed, parts: Plunge(one.last, smoothed, parts),
    "arrival": lambda one, smoothed, parts: WithoutError(Arrival(one.last)),
    "gain_by_thirds": lambda one, smoothed, parts: GainByThirds(smoothed, parts),
    "rank_trend": lambda one, smoothed, parts: WithoutError(RankTrend(one.last)),
    "order_score": lambda one, smoothed, parts: WithoutError(OrderScore(one.last, smoothed)),
    "standstill": lambda one, smoothed, parts: WithoutError(Standstill(one.last)),
    "standstill_beyond_chance": lambda one, smoothed, parts: WithoutError(Standstill(one.last, by_chance=True)),
    "max_so_far": lambda one, smoothed, parts: WithoutError(MaxSoFar()),
    "above_lowest": lambda one, smoothed, parts: WithoutError(AboveLowest(one.last, one.at_least or one.last, parts)),
    "below_all_before": lambda one, smoothed, parts: WithoutError(BelowAllBefore(one.last, smoothed)),
    "shift_down": lambda one, smoothed, parts: WithoutError(ShiftDown(one.last)),
}
