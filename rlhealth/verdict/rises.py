"""Whether a series has risen: by so many standard errors that chance does not explain it."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rlhealth.parsing.own_texts import read_texts
from rlhealth.run import Floats
from rlhealth.series import worth_of

#: Of the largest value: what the mean of equal numbers may be off, and no series has gained by.
ROUNDING = 64 * float(np.finfo(np.float64).eps)
#: The same of rewards that were summed up in single precision, as trainers do: no proof that one rose.
SINGLE = 64 * float(np.finfo(np.float32).eps)
STARTS = (10, 100)  # parts of a series, of which the first is its start: what is learned at once is over in a tenth
FEWEST_AT_START = 10  # points of a start that is shorter than a tenth
ALIKE = 0.97  # the most that neighbours are taken for
RANKED = 4096  # points, or up to twice as many, of which ranks are taken: a watch asks at every tick


@cache
def _said() -> dict[str, dict[str, str]]:
    said: dict[str, Any] = read_texts(Path(__file__).with_name("rises.yaml"))
    return said


class Rising:
    """What is asked of one series of shape (n,), finite: whether it rose, how surely."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    @cached_property
    def turned(self) -> Rising:
        """The same of the series upside down: whether it fell."""
        turned = Rising(-self.values)
        turned._ranks = len(self._ranks) + 1 - self._ranks
        return turned

    def surely(self, smoothed: int = 1) -> bool:
        """Whether it rose by so much that this alone proves it.

        Args:
            smoothed: over how many neighbours the trainer averages each point, at most.
        """
        with _of_any_size():
            return (
                self._rose(_said()["rise"])
                or self.early(smoothed)
                or self._rose_apart(smoothed)
                or self._rose_in_order(smoothed)
            )

    def early(self, smoothed: int = 1) -> bool:
        """The same, of few points; where all of them share samples with one another, nothing can be said."""
        return len(self.values) > smoothed and self._rose(_said()["early_rise"])

    def somewhat(self, smoothed: int = 1) -> bool:
        """Whether it surely rose, or by more than chance alone would have it in one run of twenty while its points do
        not fall with time on the whole, as those of a start that was low by chance do.

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
        """Whether the values differ by no more than sums in single precision are off."""
        low, high = self.values.min(), self.values.max()
        return bool(high / 2 - low / 2 <= SINGLE * max(abs(low), abs(high)) / 2)

    def _rose(self, rise: dict[str, str]) -> bool:
        """Whether the mean of the last third lies above that of the first tenth, or of a shorter start, by so many
        standard errors, or the mean of its ranks does: the returns of single episodes have heavy tails, whose noise
        hides a rise that their ranks show.
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

    def _rose_apart(self, smoothed: int) -> bool:
        """Whether the lowest point of the last third lies above the highest of the first third, which needs no noise
        that is the same throughout: the returns of an agent that has learned differ more than those of one that falls
        at once.
        """
        third = len(self.values) // 3
        few = len(self.values) < int(_said()["apart"]["points"]) * smoothed
        return not few and bool(self.values[-third:].min() > self.values[:third].max())

    def _rose_in_order(self, smoothed: int) -> bool:
        """Whether the points follow one another upwards, by so many standard errors of their rank correlation with time
        (Spearman 1904), and the means of equal parts do so too: a slow rise among large noise, whose ends alone say
        little. Neighbours that are alike around the trend count for fewer points.
        """
        asked = {name: float(value) for name, value in _said()["in_order"].items()}
        if len(self.values) < asked["points"] * smoothed or self._is_level:
            return False
        correlation, around = _with_time(self._ranks)
        if correlation * np.sqrt(worth_of(around, asked["hidden"], ALIKE)) <= asked["errors"]:
            return False
        return _with_time(_ranks(_means(self.values, int(asked["parts"]))))[0] >= asked["correlation"]


def surely_rose(values: Floats, smoothed: int = 1) -> bool:
    """Whether a series of shape (n,), finite, rose by so much that this alone proves it.

    Args:
        smoothed: over how many neighbours the trainer averages each point, at most.
    """
    return Rising(values).surely(smoothed)


def rose_somewhat(values: Floats) -> bool:
    """Whether a series, of shape (n,), finite, rose by more than chance alone would have it in one run of twenty."""
    return Rising(values).somewhat()


def rose_beyond_errors(values: Floats, errors: Floats) -> bool:
    """Whether a series of shape (n,), finite, rose by so much that this alone proves it, where the standard error of
    each of its points is known, shape (n,): by the episodes of an evaluation, say. What a policy gains and loses
    between two of them is no error, so that it must have risen by its points alone too, if less surely, and kept most.
    """
    asked = {name: float(value) for name, value in _said()["beyond_errors"].items()}
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
    """Sums of the largest numbers overflow: an error beyond every gain, or a mean that is no number and no rise."""
    return np.errstate(over="ignore", invalid="ignore")


def _gain(values: Floats, part: int, batches: int, trends: bool) -> float:
    """How many standard errors the mean of the last third lies above that of the first of so many parts; 0 where it
    does not."""
    start, end = values[: max(len(values) // part, batches)], values[-(len(values) // 3) :]
    gained = float(np.mean(end) - np.mean(start))
    if gained <= ROUNDING * float(np.abs(values).max()):
        return 0.0
    error = _error(start, end, batches, trends)
    return gained / error if error else np.inf


def _means(values: Floats, parts: int) -> Floats:
    """The means of so many parts of values of shape (n,), n at least `parts`: of n // parts points, and the first of
    them of one more where some are left."""
    width, left = divmod(len(values), parts)
    number = np.arange(parts)
    means: Floats = np.add.reduceat(values, number * width + np.minimum(number, left)) / (width + (number < left))
    return means


def _ranks(values: Floats) -> Floats:
    """The ranks of values of shape (n,); values that are equal share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def _with_time(ranks: Floats) -> tuple[float, Floats]:
    """The correlation of ranks of shape (n,) with their order, 0 where all are the same, and the ranks around the line
    through them."""
    middle = (len(ranks) - 1) / 2
    ranks, order = ranks - 1 - middle, np.arange(len(ranks)) - middle
    slope = float(ranks @ order / (order @ order))
    size = float(ranks @ ranks)
    return slope * float(np.sqrt(order @ order / size)) if size else 0.0, ranks - slope * order


def _error(start: Floats, end: Floats, batches: int, trends: bool) -> float:
    """The standard error of the difference between the means of two parts, of shapes (m,) and (n,).

    The noise of a batch mean comes from the end, where a run that has learned is level. A rise within a part is no
    noise: half of the mean square of successive differences leaves a trend out (von Neumann 1941), at the start, which
    may be noisier, and where `trends` count, at an end of which each batch lies above the one before.
    """
    level, early = _means(end, batches), _means(start, batches)
    rises = trends and bool(np.all(np.diff(level) > 0))
    noise = float(np.sqrt(np.mean(np.diff(level) ** 2) / 2) if rises else level.std(ddof=1))
    of_start = max(
        noise * np.sqrt(len(end) / len(start) / batches), np.sqrt(np.mean(np.diff(early) ** 2) / 2 / batches)
    )
    return float(np.hypot(of_start, noise / np.sqrt(batches)))
