"""Whether a series has risen: by so many standard errors that chance does not explain it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rlhealth.parsing.own_texts import read_texts
from rlhealth.run import Floats

#: Of the largest value: what the mean of equal numbers may be off, and no series has gained by.
ROUNDING = 64 * float(np.finfo(np.float64).eps)
#: The same of rewards that were summed up in single precision, as trainers do: no proof that one rose.
SINGLE = 64 * float(np.finfo(np.float32).eps)
STARTS = (10, 100)  # parts of a series, of which the first is its start: what is learned at once is over in a tenth
FEWEST_AT_START = 10  # points of a start that is shorter than a tenth
RANKED = 4096  # points, or up to twice as many, of which ranks are taken: a watch asks at every tick


@cache
def _said() -> dict[str, dict[str, str]]:
    said: dict[str, Any] = read_texts(Path(__file__).with_name("rises.yaml"))
    return said


def surely_rose(values: Floats, smoothed: int = 1) -> bool:
    """Whether a series of shape (n,), finite, rose by so much that this alone proves it.

    Args:
        smoothed: over how many neighbours the trainer averages each point, at most.
    """
    with _of_any_size():
        return (
            _rose(values, _said()["rise"])
            or rose_early(values, smoothed)
            or _rose_apart(values, smoothed)
            or _rose_in_order(values, smoothed)
        )


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
    parts = [float(np.mean(part)) - before for part in np.array_split(values, int(asked["parts"]))]
    is_kept = parts[-1] >= asked["kept"] * max(parts)
    return gained > asked["errors"] * error and is_kept and rose_somewhat(values)


def rose_early(values: Floats, smoothed: int = 1) -> bool:
    """The same, of few points; where all of them share samples with one another, nothing can be said."""
    return len(values) > smoothed and _rose(values, _said()["early_rise"])


def _rose_apart(values: Floats, smoothed: int) -> bool:
    """Whether the lowest point of the last third lies above the highest of the first third, which needs no noise that
    is the same throughout: the returns of an agent that has learned differ more than those of one that falls at once.
    """
    third = len(values) // 3
    few = len(values) < int(_said()["apart"]["points"]) * smoothed
    return not few and bool(values[-third:].min() > values[:third].max())


def _rose_in_order(values: Floats, smoothed: int) -> bool:
    """Whether so many equal parts of a series lie one above the other, nearly (Spearman 1904): a slow rise among large
    noise, whose ends alone say little.
    """
    asked = {name: float(value) for name, value in _said()["in_order"].items()}
    if len(values) < asked["points"] * smoothed or _is_level(values):
        return False
    parts = np.array([part.mean() for part in np.array_split(values, int(asked["parts"]))])
    if not parts.max() > parts.min():  # equal parts have no order
        return False
    return float(np.corrcoef(_ranks(parts), np.arange(len(parts)))[0, 1]) >= asked["correlation"]


def rose_somewhat(values: Floats) -> bool:
    """Whether a series, of shape (n,), finite, rose by more than chance alone would have it in one run of twenty."""
    many = _said()["some_rise_of_many"]
    with _of_any_size():
        return _rose(values, many if len(values) >= int(many["points"]) else _said()["some_rise"])


def _of_any_size() -> np.errstate:
    """Sums of the largest numbers overflow: an error beyond every gain, or a mean that is no number and no rise."""
    return np.errstate(over="ignore", invalid="ignore")


def _rose(values: Floats, rise: dict[str, str]) -> bool:
    """Whether the mean of the last third lies above that of the first tenth, or of a shorter start, by so many
    standard errors, or the mean of its ranks does: the returns of single episodes have heavy tails, whose noise hides a
    rise that their ranks show.
    """
    if len(values) < int(rise["points"]) or _is_level(values):
        return False
    batches, errors = int(rise["batches"]), float(rise["errors"])
    trends = rise.get("trends") == "yes"
    starts = [part for part in STARTS if part == STARTS[0] or len(values) // part >= FEWEST_AT_START]
    if any(_gain(values, part, batches, trends) > errors for part in starts):
        return True
    every = max(len(values) // RANKED, 1)
    return _gain(_ranks(values[::every]), STARTS[0], batches, trends) > errors


def _is_level(values: Floats) -> bool:
    """Whether values, of shape (n,), differ by no more than sums in single precision are off."""
    return bool(values.max() / 2 - values.min() / 2 <= SINGLE * np.abs(values).max() / 2)


def _gain(values: Floats, part: int, batches: int, trends: bool) -> float:
    """How many standard errors the mean of the last third lies above that of the first of so many parts; 0 where it
    does not."""
    start, end = values[: max(len(values) // part, batches)], values[-(len(values) // 3) :]
    gained = float(np.mean(end) - np.mean(start))
    if gained <= ROUNDING * float(np.abs(values).max()):
        return 0.0
    error = _error(start, end, batches, trends)
    return gained / error if error else np.inf


def _ranks(values: Floats) -> Floats:
    """The ranks of values of shape (n,); values that are equal share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def _error(start: Floats, end: Floats, batches: int, trends: bool) -> float:
    """The standard error of the difference between the means of two parts, of shapes (m,) and (n,).

    The noise of a batch mean comes from the end, where a run that has learned is level. A rise within a part is no
    noise: half of the mean square of successive differences leaves a trend out (von Neumann 1941), at the start, which
    may be noisier, and where `trends` count, at an end of which each batch lies above the one before.
    """
    level = np.array([part.mean() for part in np.array_split(end, batches)])
    early = np.array([part.mean() for part in np.array_split(start, batches)])
    rises = trends and bool(np.all(np.diff(level) > 0))
    noise = float(np.sqrt(np.mean(np.diff(level) ** 2) / 2) if rises else level.std(ddof=1))
    of_start = max(
        noise * np.sqrt(len(end) / len(start) / batches), np.sqrt(np.mean(np.diff(early) ** 2) / 2 / batches)
    )
    return float(np.hypot(of_start, noise / np.sqrt(batches)))
