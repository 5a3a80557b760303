"""Where a metric came from, where it is, and the course between, in a word that never contradicts the two."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from rlhealth.series import plain_median
from rlhealth.verdict.rises import ROUNDING, Rising

if TYPE_CHECKING:
    from rlhealth.run import Floats, Ints

    Level = tuple[float, float]  # a mean, and its error

FEW = 3  # points, at least, that say where a metric begins or ends
_TREND = 24  # finite points before anything is said of a trend
_PARTS, _PARTED = 5, 100  # in which a turn is looked for, and from how many points on: neighbours are alike
_BATCHES = 4  # batch means a part
_ERRORS = 4.0  # of their standard errors that a change takes, as in rises.yaml
_OF_MANY = 6.0  # errors, where many stretches are looked at: of white noise 1 in 100 turns so
_FACTOR = 1.5  # between two ends that nobody calls the same
_BACK = 0.2  # of the way there, at least, that what came back has come
_WORDS = {1: "rose", -1: "fell"}
_DISAGREE = (1, -1, 1)  # tests that say both


def start_of(values: Floats) -> float:
    """Where finite values of shape (n,), n above 0, begin: the median of the first tenth of them, which no stray point
    moves, or of the first three, where these lie beyond chance elsewhere: what changes at once began where it was.
    """
    few = plain_median(values[:FEW])
    return few if _leaves(few, values) else plain_median(values[: max(len(values) // 10, FEW)])


def end_of(values: Floats) -> float:
    """Where they end, by the same reckoning from their end."""
    return start_of(values[::-1])


def before(values: Floats, onset: int) -> Floats:
    """The finite ones of the values before the index `onset`; of a series that was so from its beginning the first
    three there are."""
    early = values[:onset][np.isfinite(values[:onset])]
    return early if len(early) else values[np.isfinite(values)][:FEW]


def trend_of(values: Floats, start: float | None = None, end: float | None = None) -> tuple[str, bool]:
    """The course from `start` to `end` in a word, and whether it still goes on; shape of `values`: (n,), finite.

    The word says what is beyond chance: the last part of the points is held against the first one, by thirds, by
    fifths, and, for most that is learned may be learned in the first points, by the last third and the first tenth,
    as `earned` does with the reward; what changed at once, by the start and the points that follow it. What went
    somewhere and came back says both. Steady is what has not even moved somewhat; what moved somewhat, and not surely,
    or went where its ends do not show it, gets no word.

    Args:
        start, end: what is shown as its ends, if not `start_of` and `end_of`.
    """
    if len(values) < _TREND:
        return "", False
    start = start_of(values) if start is None else start
    end = end_of(values) if end is None else end
    scaled = _scaled(values)
    thirds, fifths, stretches = _levels(scaled)
    rising = Rising(scaled)
    between = _turn(fifths, stretches) or _changes(rising, thirds, fifths)
    all_moves = (_leaves(start, values), *between, -_leaves(end, values[::-1]))
    moves = [move for move, _ in groupby(filter(None, all_moves))]
    if len(moves) == 2 and between != _DISAGREE:
        return f"{_WORDS[moves[0]]}, then {_WORDS[moves[1]]}", False
    if len(moves) == 1 and moves[0] == (end > start) - (end < start):
        return _WORDS[moves[0]], _course(thirds) == (_WORDS[moves[0]], True)
    moved = moves or _moved_somewhat(rising, fifths or thirds) or _is_apart(start, end, values)
    return "" if moved else "steady", False


def course(values: Floats) -> tuple[str, bool]:
    """Whether the last third lies beyond the first by more than chance, and whether it lies beyond the middle one too.

    The errors come from batch means, which know that neighbouring points are alike. Shape of `values`: (n,), finite.
    """
    if len(values) < _TREND:
        return "", False
    return _course(_levels_between(_scaled(values), *_parts(len(values), 3)))


def _course(thirds: list[Level]) -> tuple[str, bool]:
    first, middle, last = thirds
    change = _beyond(first, last)
    if not change:
        return "steady", False
    return _WORDS[change], _beyond(middle, last) == change


def _changes(rising: Rising, thirds: list[Level], fifths: list[Level]) -> tuple[int, ...]:
    """In which direction the end lies beyond the start, 1 or -1; none, or all, where tests disagree."""
    found = {_beyond(levels[0], levels[-1]) for levels in (thirds, fifths) if levels}
    found |= {side for side, one in ((1, rising), (-1, rising.turned)) if one.surely()}
    found.discard(0)
    return _DISAGREE if len(found) == 2 else tuple(found)


def _turn(fifths: list[Level], stretches: list[Level]) -> tuple[int, ...]:
    """The two directions of a series that went somewhere and has come back a good part of the way: a stretch in
    between, a tenth long or a fifth, lies beyond the first and the last fifth, on one side alone.
    """
    if not fifths:
        return ()
    first, last = fifths[0], fifths[-1]
    sides = {
        side
        for one in stretches
        if (side := _beyond(first, one, _OF_MANY))
        and _beyond(last, one, _OF_MANY) == side
        and abs(one[0] - last[0]) > _BACK * abs(one[0] - first[0])
    }
    return (min(sides), -min(sides)) if len(sides) == 1 else ()


def _moved_somewhat(rising: Rising, levels: list[Level]) -> bool:
    """Whether it rose or fell by more than chance has it in one series of ten, or a part differs from an end."""
    first, *between, last = levels
    bent = any(_beyond(edge, one) for edge in (first, last) for one in between)
    return bent or rising.somewhat() or rising.turned.somewhat()


def _is_apart(start: float, end: float, values: Floats) -> bool:
    """Whether the ends look apart, so that a word that says they are not would be doubted: by more than the middle half
    of the points spans, or by a factor where that half lies on one side of zero."""
    low, high = (float(one) for one in np.quantile(values / 2, [0.25, 0.75]))
    near, far = sorted((abs(start), abs(end)))
    if (low > 0 or high < 0) and far / _FACTOR > near:
        return True
    return abs(end / 2 - start / 2) > max(high - low, ROUNDING * float(np.abs(values).max()))


def _leaves(level: float, values: Floats) -> int:
    """In which direction a series jumps at once from the level that it begins with, 1, -1, or 0 for none: the rest of
    its first tenth lies further away than chance has a few neighbours, which may all err alike.
    """
    part = values[: max(len(values) // 10, 3 * FEW)]
    rest = part[FEW:]
    if len(rest) < FEW or not math.isfinite(level):
        return 0
    size = float(np.abs(part).max()) or 1.0
    jump = plain_median(rest / size) - level / size
    return int(np.sign(jump)) if abs(jump) > _ERRORS * max(float(np.std(rest / size)), ROUNDING) else 0


def _scaled(values: Floats) -> Floats:
    """The values over a power of two, so that no square of them overflows; shape (n,), as given, n above 0."""
    return np.asarray(np.ldexp(values, -np.frexp(np.abs(values).max())[1]))


def _levels(scaled: Floats) -> tuple[list[Level], list[Level], list[Level]]:
    """The levels of the thirds; where there are many points, of the fifths, and of the stretches that are as long as a
    fifth or a tenth, each begun half its length after the one before."""
    count = len(scaled)
    edges = [_parts(count, 3)]
    if count >= _PARTED:
        edges += [_parts(count, _PARTS), _stretches(count, _PARTS), _stretches(count, 2 * _PARTS)]
    starts, ends = (np.concatenate(side) for side in zip(*edges, strict=True))
    found = _levels_between(scaled, starts, ends)
    return found[:3], found[3 : 3 + _PARTS], found[3 + _PARTS :]


def _parts(count: int, parts: int) -> tuple[Ints, Ints]:
    """Where so many equal parts of `count` points begin and end."""
    edges = np.arange(parts + 1) * count // parts
    return edges[:-1], edges[1:]


def _stretches(count: int, parts: int) -> tuple[Ints, Ints]:
    """The same of stretches as long as such a part, half of each in the one before."""
    width, last = count // parts, 2 * parts - 2
    starts = np.arange(last + 1) * (count - width) // last
    return starts, starts + width


def _levels_between(scaled: Floats, starts: Ints, ends: Ints) -> list[Level]:
    """The mean of each stretch, and its error by the means of batches; starts and ends of shape (k,). Where batches
    only rise, or fall, that is no noise, as in rises.py.
    """
    sums = np.append(0.0, np.cumsum(scaled - scaled[0]))  # of a constant exactly 0
    edges = starts + np.arange(_BATCHES + 1)[:, np.newaxis] * (ends - starts) // _BATCHES
    means = np.diff(sums[edges], axis=0) / np.diff(edges, axis=0)
    steps = np.diff(means, axis=0)
    goes = np.all(steps > 0, axis=0) | np.all(steps < 0, axis=0)
    noise = np.where(goes, np.sqrt(np.mean(steps**2, axis=0) / 2), means.std(axis=0, ddof=1))
    levels = scaled[0] + means.mean(axis=0)
    return list(zip(levels.tolist(), (noise / math.sqrt(_BATCHES)).tolist(), strict=True))


def _beyond(start: Level, end: Level, errors: float = _ERRORS) -> int:
    """1 if the second level is higher by more than chance, and more than rounding, -1 if it is lower, 0 if neither can
    be said."""
    gained, error = end[0] - start[0], float(np.hypot(start[1], end[1]))
    least = ROUNDING * max(abs(start[0]), abs(end[0]))
    return int(np.sign(gained)) if abs(gained) > max(errors * error, least) else 0
