"""The start and end of a metric, and a word for its course that never contradicts them."""

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

FEW = 3  # the fewest points for the start or the end of a metric
_TREND = 24  # finite points that a trend needs
_PARTS, _PARTED = 5, 100  # parts that are searched for a turn, and the points it needs: neighbours are correlated
_BATCHES = 4  # batch means per part
_ERRORS = 4.0  # standard errors that a change needs, as in rises.yaml
_OF_MANY = 6.0  # errors for the best of many stretches: white noise turns by so many in 1 of 100 series
_FACTOR = 1.5  # between two ends that look different
_BACK = 0.2  # the least share of the way out that a series that came back has returned
_WORDS = {1: "rose", -1: "fell"}
_DISAGREE = (1, -1, 1)  # tests that show both directions


def start_of(values: Floats) -> float:
    """The start of finite values of shape (n,), n above 0: the median of the first tenth, which no outlier moves. If
    the first three points differ from it beyond chance, their median, because the metric changed at once.
    """
    few = plain_median(values[:FEW])
    return few if _leaves(few, values) else plain_median(values[: max(len(values) // 10, FEW)])


def end_of(values: Floats) -> float:
    """The end of the values, by the same method from the other end."""
    return start_of(values[::-1])


def before(values: Floats, onset: int) -> Floats:
    """The finite values before the index `onset`; if the onset is at the start of the series, the first three."""
    early = values[:onset][np.isfinite(values[:onset])]
    return early if len(early) else values[np.isfinite(values)][:FEW]


def trend_of(values: Floats, start: float | None = None, end: float | None = None) -> tuple[str, bool]:
    """The course from `start` to `end` in a word, and whether it still continues; `values`: shape (n,), finite.

    The word states only what is beyond chance. The last part of the points is compared with the first: by thirds; by
    fifths; and, because most learning may happen early, the last third with the first tenth, as `earned` does with the
    reward. A change at the very start is found by the start and the points after it. A series that moved and came back
    gets both words. It is steady if it did not even move somewhat. It gets no word if it moved somewhat but not surely,
    or in a way that its ends do not show.

    Args:
        start, end: the ends that are shown, if other than `start_of` and `end_of`.
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
    """Whether the last third differs from the first by more than chance, and whether it also differs from the middle
    one.

    The errors come from batch means, which take the correlation of neighbours into account. `values`: shape (n,),
    finite.
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
    """The direction from the start to the end, 1 or -1; empty without a change; both directions if tests disagree."""
    found = {_beyond(levels[0], levels[-1]) for levels in (thirds, fifths) if levels}
    found |= {side for side, one in ((1, rising), (-1, rising.turned)) if one.surely()}
    found.discard(0)
    return _DISAGREE if len(found) == 2 else tuple(found)


def _turn(fifths: list[Level], stretches: list[Level]) -> tuple[int, ...]:
    """The two directions of a series that moved and came back a good part of the way: a stretch in between, a tenth or
    a fifth long, lies beyond the first and the last fifth, on one side only.
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
    """Whether it rose or fell by more than chance gives in one series of ten, or a part differs from an end."""
    first, *between, last = levels
    bent = any(_beyond(edge, one) for edge in (first, last) for one in between)
    return bent or rising.somewhat() or rising.turned.somewhat()


def _is_apart(start: float, end: float, values: Floats) -> bool:
    """Whether the ends look different, so that "steady" would not be believed: by more than the span of the middle half
    of the points, or by a factor if that half lies on one side of zero."""
    low, high = (float(one) for one in np.quantile(values / 2, [0.25, 0.75]))
    near, far = sorted((abs(start), abs(end)))
    if (low > 0 or high < 0) and far / _FACTOR > near:
        return True
    return abs(end / 2 - start / 2) > max(high - low, ROUNDING * float(np.abs(values).max()))


def _leaves(level: float, values: Floats) -> int:
    """The direction in which a series jumps from its first level, 1, -1, or 0 for none: the rest of its first tenth
    lies further away than chance explains for a few correlated neighbours.
    """
    part = values[: max(len(values) // 10, 3 * FEW)]
    rest = part[FEW:]
    if len(rest) < FEW or not math.isfinite(level):
        return 0
    size = float(np.abs(part).max()) or 1.0
    jump = plain_median(rest / size) - level / size
    return int(np.sign(jump)) if abs(jump) > _ERRORS * max(float(np.std(rest / size)), ROUNDING) else 0


def _scaled(values: Floats) -> Floats:
    """The values divided by a power of two, so that their squares do not overflow; shape (n,), as given, n above 0."""
    return np.asarray(np.ldexp(values, -np.frexp(np.abs(values).max())[1]))


def _levels(scaled: Floats) -> tuple[list[Level], list[Level], list[Level]]:
    """The levels of the thirds; and, if there are many points, of the fifths and of stretches as long as a fifth or a
    tenth, each of which begins half its length after the previous one."""
    count = len(scaled)
    edges = [_parts(count, 3)]
    if count >= _PARTED:
        edges += [_parts(count, _PARTS), _stretches(count, _PARTS), _stretches(count, 2 * _PARTS)]
    starts, ends = (np.concatenate(side) for side in zip(*edges, strict=True))
    found = _levels_between(scaled, starts, ends)
    return found[:3], found[3 : 3 + _PARTS], found[3 + _PARTS :]


def _parts(count: int, parts: int) -> tuple[Ints, Ints]:
    """The starts and ends of `parts` equal parts of `count` points."""
    edges = np.arange(parts + 1) * count // parts
    return edges[:-1], edges[1:]


def _stretches(count: int, parts: int) -> tuple[Ints, Ints]:
    """The same for stretches as long as such a part, each of which overlaps the previous one by half."""
    width, last = count // parts, 2 * parts - 2
    starts = np.arange(last + 1) * (count - width) // last
    return starts, starts + width


def _levels_between(scaled: Floats, starts: Ints, ends: Ints) -> list[Level]:
    """The mean of each stretch, and its error from batch means; starts and ends of shape (k,). Batches that only rise,
    or only fall, count as a trend and no noise, as in rises.py.
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
    """1 if the second level is higher by more than chance and rounding, -1 if it is lower, 0 if neither is certain."""
    gained, error = end[0] - start[0], float(np.hypot(start[1], end[1]))
    least = ROUNDING * max(abs(start[0]), abs(end[0]))
    return int(np.sign(gained)) if abs(gained) > max(errors * error, least) else 0
