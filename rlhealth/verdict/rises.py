"""Whether a series has risen: by so many standard errors that chance does not explain it."""

from __future__ import annotations

import math
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rlhealth.parsing.own_texts import read_texts
from rlhealth.run import Floats
from rlhealth.series import worth_of

#: Of the largest value: the rounding error in the mean of equal numbers; a smaller difference is no gain.
ROUNDING = 64 * float(np.finfo(np.float64).eps)
#: The same for rewards that trainers sum in single precision: a smaller difference does not prove a rise.
SINGLE = 64 * float(np.finfo(np.float32).eps)
STARTS = (10, 100)  # the start is the first tenth or hundredth: fast learning is over within a tenth
FEWEST_AT_START = 10  # points of a start that is shorter than a tenth
CLIMBING = 5  # batches that rise one by one in one of 120 runs by chance
ALIKE = 0.97  # the highest correlation of neighbours that is assumed
RANKED = 4096  # points, or up to twice as many, that are ranked: a watch does so at every tick


@cache
def _said() -> dict[str, dict[str, str]]:
    said: dict[str, Any] = read_texts(Path(__file__).with_name("rises.yaml"))
    return said


def _numbers(name: str) -> dict[str, float]:
    return {key: float(value) for key, value in _said()[name].items()}


class Rising:
    """Tests of one series of shape (n,), finite: whether it rose, and how surely."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    @cached_property
    def turned(self) -> Rising:
        """The same tests of the negated series: whether it fell."""
        turned = Rising(-self.values)
        turned._ranks = len(self._ranks) + 1 - self._ranks
        return turned

    def surely(self, smoothed: int = 1) -> bool:
        """Whether it rose by so much that the rise alone is proof.

        Args:
            smoothed: over how many neighbours the trainer averages each point, at most.
        """
        with _of_any_size():
            return (
                self._rose(_said()["rise"])
                or self.early(smoothed)
                or self._rose_apart(smoothed)
                or self._rose_in_order(smoothed)
                or self._rose_late()
            )

    def early(self, smoothed: int = 1) -> bool:
        """The same for few points: unless it rose from row to row, unknown if all of them share samples with one
        another.
        """
        with _of_any_size():
            return (
                self._rose_row_by_row()
                or self._rose_for_good()
                or self._rose_at_once(smoothed)
                or self._rose_by_ranks(smoothed)
                or (len(self.values) > smoothed and self._rose(_said()["early_rise"]))
            )

    def somewhat(self, smoothed: int = 1) -> bool:
        """Whether it surely rose, or rose by more than chance alone gives in one run of twenty. In the second case its
        points must not fall with time on the whole, as they do after a start that was low by chance.

        Args:
            smoothed: over how many neighbours the trainer averages each point, at most.
        """
        many = _said()["some_rise_of_many"]
        asked = many if len(self.values) >= int(many["points"]) else _said()["some_rise"]
        with _of_any_size():
            return (self._rose(asked) and _with_time(self._ranks)[0] > 0) or self.surely(smoothed)

    @cached_property
    def _ranks(self) -> Floats:
        return _ranks(self.values[:: max(len(self.values) // RANKED, 1)])

    @cached_property
    def _is_level(self) -> bool:
        """Whether the values differ by no more than the rounding error of single-precision sums."""
        low, high = self.values.min(), self.values.max()
        return bool(high / 2 - low / 2 <= SINGLE * max(abs(low), abs(high)) / 2)

    def _rose(self, rise: dict[str, str]) -> bool:
        """Whether the mean of the last third, or the mean of its ranks, lies above that of the first tenth or of a
        shorter start by so many standard errors. Ranks are used because the returns of single episodes have heavy
        tails, whose noise hides a rise.
        """
        values = self.values
        if len(values) < int(rise["points"]) or self._is_level:
            return False
        batches, errors = int(rise["batches"]), float(rise["errors"])
        trends = rise.get("trends") == "yes"
        starts = [part for part in STARTS if part == STARTS[0] or len(values) // part >= FEWEST_AT_START]
        if any(_gain(values, part, batches, trends) > errors for part in starts):
            return True
        return _gain(self._ranks, STARTS[0], batches, trends) > errors

    def _rose_row_by_row(self) -> bool:
        """Whether of few rows so many lie above the row before that chance does not explain it (the sign test of
        differences, Moore and Wallis 1943). Rows that are averaged over the same samples differ by those that they do
        not share. Were each the mean of all samples so far, a bad first one would make them rise, too: then the newest
        third must lie above the first without that averaging.
        """
        asked = _numbers("row_by_row")
        values = self.values
        moves = np.diff(values)
        moves = moves[moves != 0]
        if not asked["points"] <= len(values) <= asked["at_most"] or len(moves) + 1 < asked["points"] or self._is_level:
            return False
        if not _are_apart(np.diff(values * np.arange(1, len(values) + 1), prepend=0.0)):
            return False
        ups = int(np.count_nonzero(moves > 0))
        as_many = sum(math.comb(len(moves), one) for one in range(ups, len(moves) + 1))
        return math.ldexp(as_many, -len(moves)) <= asked["chance"]

    def _rose_for_good(self) -> bool:
        """Whether each of so many first points lies below all that come after it: a climb of which nothing was lost. A
        mean of all samples so far, of which the first was bad, makes half of its climb with the second.
        """
        asked = _numbers("for_good")
        if len(self.values) < asked["points"] or self._is_level:
            return False
        first = self.values[: int(asked["first"])]
        lowest_after = np.minimum.accumulate(self.values[:0:-1])[::-1][: len(first)]
        return bool(np.all(first < lowest_after) and first[1] - first[0] < (first[-1] - first[0]) / 3)

    def _rose_apart(self, smoothed: int) -> bool:
        """Whether the lowest point of the last third lies above the highest of the first third. This needs no constant
        noise: the returns of an agent that has learned vary more than those of one that fails at once.
        """
        few = len(self.values) < int(_said()["apart"]["points"]) * smoothed
        return not few and _are_apart(self.values)

    def _rose_at_once(self, smoothed: int) -> bool:
        """Whether its first points lie so far below all later ones that these seem level beside them: what was learned
        within a few rows. One point alone may be an outlier.
        """
        asked = _numbers("at_once")
        values, fewest = self.values, int(asked["first"])
        most = min(len(values) // 3, len(values) - int(asked["after"]) * smoothed)
        if most < fewest:
            return False
        before = np.maximum.accumulate(values[:most])[fewest - 1 :]
        low = np.minimum.accumulate(values[::-1])[::-1][fewest : most + 1]
        high = np.maximum.accumulate(values[::-1])[::-1][fewest : most + 1]
        return bool(np.any(low / 2 - before / 2 > asked["spans"] * (high / 2 - low / 2)))

    def _rose_by_ranks(self, smoothed: int) -> bool:
        """Whether so few pairs of its points are in falling order that chance does not explain it (Kendall 1938), and
        its thirds lie apart. Points that share samples are in order by chance, too; they do not count.
        """
        asked, values = _numbers("by_ranks"), self.values
        if smoothed > 1 or not asked["points"] <= len(values) <= asked["at_most"] or self._is_level:
            return False
        if not _are_apart(values):
            return False
        falling = sum(int(np.count_nonzero(values[at + 1 :] <= values[at])) for at in range(len(values) - 1))
        return sum(_orders(len(values))[: falling + 1]) <= asked["chance"] * math.factorial(len(values))

    def _rose_in_order(self, smoothed: int) -> bool:
        """Whether the points rise with time, by so many standard errors of their rank correlation with time (Spearman
        1904), and the means of equal parts do so too. This finds a slow rise in large noise, where both ends alone show
        little. Neighbours that are correlated around the trend count as fewer points.
        """
        asked = _numbers("in_order")
        if len(self.values) < asked["points"] * smoothed or self._is_level:
            return False
        correlation, around = _with_time(self._ranks)
        if correlation * np.sqrt(worth_of(around, asked["hidden"], ALIKE)) <= asked["errors"]:
            return False
        return _with_time(_ranks(_means(self.values, int(asked["parts"]))))[0] >= asked["correlation"]

    def _rose_late(self) -> bool:
        """Whether every point of the last tenth lies above all of the first four fifths, and most of them by more than
        the whole span of these; or the means of equal parts do. A run that begins to learn at its end does so. Even a
        random walk seldom does, so that it does not matter how much neighbours are alike.
        """
        asked = _numbers("late")
        parts = int(asked["points"])
        if len(self.values) < parts or self._is_level:
            return False
        return _is_late(self.values, asked) or (
            len(self.values) >= parts * int(asked["each"]) and _is_late(_means(self.values, parts), asked)
        )


def _are_apart(values: Floats) -> bool:
    """Whether the lowest of the last third of three values or more lies above the highest of the first."""
    third = len(values) // 3
    return bool(values[-third:].min() > values[:third].max())


@cache
def _orders(count: int) -> list[int]:
    """How many orders of so many points have 0, 1, 2, … pairs in falling order (the Mahonian numbers)."""
    found = [1]
    for points in range(2, count + 1):
        found = [sum(found[max(0, pairs - points + 1) : pairs + 1]) for pairs in range(len(found) + points - 1)]
    return found


def _is_late(values: Floats, asked: dict[str, float]) -> bool:
    """The test of `Rising._rose_late` on values of shape (n,)."""
    count = len(values)
    before, end = values[: int(count * asked["before"])], values[-(count // int(asked["part"])) :]
    low, high = float(before.min()), float(before.max())
    return bool(end.min() > high and np.median(end) / 2 - high / 2 > asked["spans"] * (high / 2 - low / 2))


def surely_rose(values: Floats, smoothed: int = 1) -> bool:
    """Whether a series of shape (n,), finite, rose by so much that the rise alone is proof.

    Args:
        smoothed: over how many neighbours the trainer averages each point, at most.
    """
    return Rising(values).surely(smoothed)


def rose_somewhat(values: Floats) -> bool:
    """Whether a series of shape (n,), finite, rose by more than chance alone gives in one run of twenty."""
    return Rising(values).somewhat()


def rose_beyond_errors(values: Floats, errors: Floats) -> bool:
    """Whether a series of shape (n,), finite, rose by so much that the rise alone is proof, if the standard error of
    each point is known, shape (n,): for example, by the episodes of an evaluation. These errors do not include what a
    policy gains and loses between two points. So it must also have risen somewhat by its points alone, and kept most of
    it.
    """
    asked = _numbers("beyond_errors")
    if len(values) < asked["points"]:
        return False
    third = len(values) // 3
    before = float(np.mean(values[:third]))
    gained = float(np.mean(values[-third:])) - before
    error = float(np.hypot(np.linalg.norm(errors[-third:]), np.linalg.norm(errors[:third]))) / third
    parts = _means(values, int(asked["parts"])) - before
    is_kept = bool(parts[-1] >= asked["kept"] * parts.max())
    return gained > asked["errors"] * error and is_kept and rose_somewhat(values)


def _of_any_size() -> np.errstate:
    """Ignores overflow in sums of the largest numbers: it gives an infinite error or a NaN mean, and so no rise."""
    return np.errstate(over="ignore", invalid="ignore")


def _gain(values: Floats, part: int, batches: int, trends: bool) -> float:
    """How many standard errors the mean of the last third lies above that of the first of `part` parts; 0 if it does
    not."""
    start, end = values[: max(len(values) // part, batches)], values[-(len(values) // 3) :]
    gained = float(np.mean(end) - np.mean(start))
    if gained <= ROUNDING * float(np.abs(values).max()):
        return 0.0
    error = _error(start, end, batches, trends)
    return gained / error if error else np.inf


def _means(values: Floats, parts: int) -> Floats:
    """The means of `parts` parts of values of shape (n,), n at least `parts`. Each part has n // parts points; the
    first parts have one more if there is a remainder."""
    width, left = divmod(len(values), parts)
    number = np.arange(parts)
    means: Floats = np.add.reduceat(values, number * width + np.minimum(number, left)) / (width + (number < left))
    return means


def _ranks(values: Floats) -> Floats:
    """The ranks of values of shape (n,); equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def _with_time(ranks: Floats) -> tuple[float, Floats]:
    """The correlation of ranks of shape (n,) with their order, 0 if all are equal, and the residuals of the ranks from
    the fitted line."""
    middle = (len(ranks) - 1) / 2
    ranks, order = ranks - 1 - middle, np.arange(len(ranks)) - middle
    slope = float(ranks @ order / (order @ order))
    size = float(ranks @ ranks)
    return slope * float(np.sqrt(order @ order / size)) if size else 0.0, ranks - slope * order


def _error(start: Floats, end: Floats, batches: int, trends: bool) -> float:
    """The standard error of the difference between the means of two parts, of shapes (m,) and (n,).

    The noise of a batch mean is taken from the end, where a run that has learned is level. A rise within a part is no
    noise: half of the mean square of successive differences leaves a trend out (von Neumann 1941). That is used at the
    start, which may be noisier; and with `trends`, at an end in which each batch lies above the one before. A start in
    which each of `CLIMBING` batches does so is a climb, and as noisy as the end: its mean lies above where it began.
    """
    level, early = _means(end, batches), np.diff(_means(start, batches))
    steps = np.diff(level)
    rises = trends and bool(np.all(steps > 0))
    noise = float(np.sqrt(np.mean(steps**2) / 2) if rises else level.std(ddof=1))
    of_start = noise * np.sqrt(len(end) / len(start) / batches)
    if not (trends and batches >= CLIMBING and np.all(early > 0)):
        of_start = max(of_start, np.sqrt(np.mean(early**2) / 2 / batches))
    return float(np.hypot(of_start, noise / np.sqrt(batches)))
