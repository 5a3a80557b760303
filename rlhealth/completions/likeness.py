"""Likeness: how much a text repeats itself, and which texts of a batch are copies of one another, exactly or nearly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlhealth.completions.ngrams import Hashes, Numbers, Words, words
from rlhealth.run import Floats

SKETCH = 32  # the smallest n-grams of a text, by which it is compared
NEARLY = 0.8  # the share of n-grams in common from which two texts are near copies
SHORT = 8  # words; a shorter text repeats nothing
N = 4  # of the n-grams of repetition, as in seq-rep-4
_IN_A_GROUP = 32  # texts of one group that are compared with one another …
_GROUPS = 128  # … in so many groups
_LARGEST = np.uint64(2**64 - 1)
_LOW = np.uint64(16)
_HIGH = np.uint64(48)


@dataclass
class Likeness:
    """What counting n-grams says of n texts.

    Attributes:
        repetition: of each text, the share of its 4-grams that stood in it before, shape (n,); 0 if it is short.
        words: how many each text has, shape (n,).
        distinct_2: distinct pairs of words over all pairs of words; NaN if there are none.
        same: a number for each text, equal for equal words in equal order; 0 without any word, shape (n,).
        sketch: the smallest 4-grams of each text, sorted, shape (n, SKETCH), zeros behind them.
    """

    repetition: Floats
    words: Floats
    distinct_2: float
    same: Hashes
    sketch: Hashes


def likeness(texts: Sequence[str]) -> Likeness:
    """Counts the words and n-grams of the texts.

    Repetition is seq-rep-4 of Welleck et al. 2020 (arXiv 1908.04319): 1 - distinct 4-grams / 4-grams. distinct-2 is
    that of Li et al. 2016 (arXiv 1510.03055), over all texts together.
    """
    size = len(texts)
    repetition, count = np.zeros(size), np.zeros(size)
    sketch, same = np.zeros((size, SKETCH), np.uint64), np.zeros(size, np.uint64)
    pairs: list[Hashes] = []
    total = 0
    for part in words(texts):
        here = slice(part.first, part.first + part.texts)
        count[here] = np.bincount(part.text, minlength=part.texts)
        repetition[here], sketch[here] = _repeated(part)
        same[here] = part.whole()
        two, _ = part.ngrams(2)
        total += len(two)
        pairs.append(_distinct(np.sort(two)))
    repetition[count < SHORT] = 0.0
    distinct = len(_distinct(np.sort(np.concatenate(pairs)))) / total if total else float("nan")
    return Likeness(repetition, count, distinct, same, sketch)


def _repeated(part: Words) -> tuple[Floats, Hashes]:
    """The repetition of each text, and its sketch."""
    grams, text = part.ngrams(N)
    sketch = np.zeros((part.texts, SKETCH), np.uint64)
    if not len(grams):
        return np.zeros(part.texts), sketch
    keys = np.sort((text.astype(np.uint64) << _HIGH) | (grams >> _LOW))
    kept = _distinct(keys)
    owner = (kept >> _HIGH).astype(np.int64)
    all_of, distinct_of = np.bincount(text, minlength=part.texts), np.bincount(owner, minlength=part.texts)
    place = np.arange(len(kept)) - (np.cumsum(distinct_of) - distinct_of)[owner]
    small = place < SKETCH
    sketch[owner[small], place[small]] = (kept[small] << _LOW) | np.uint64(1)  # never 0, which stands for none
    return 1.0 - distinct_of / np.maximum(all_of, 1) * (all_of > 0) - (all_of == 0), sketch


def _distinct(ordered: Hashes) -> Hashes:
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def copies(alike: Likeness, groups: Numbers) -> dict[str, float]:
    """The shares of texts that copy another: in their group (exactly, nearly), and across prompts (exactly, nearly).

    In a group of n texts of which d are distinct it is (n - d) / (n - 1), averaged over groups; across prompts it is
    the share of all texts that have at least four words and that an answer to another prompt equals. Blanks do not
    count, and empty texts copy nothing. NaN if there is nothing to compare with.
    """
    filled = alike.words > 0
    same = np.unique(alike.same, return_inverse=True)[1].astype(np.int64)
    near = _near_families(same, alike.sketch)
    found = {"copies_in_group": _in_groups(same, groups, filled)}
    found["near_copies_in_group"] = max(_near_in_groups(same, groups, filled, alike.sketch), found["copies_in_group"])
    long_enough = alike.words >= N  # a right answer of one word answers many prompts
    found["copies_across"] = _across(same, groups, long_enough)
    found["near_copies_across"] = max(_across(near, groups, long_enough), found["copies_across"])
    return found


def _in_groups(same: Numbers, groups: Numbers, filled: np.ndarray[Any, Any]) -> float:
    """The mean over groups of the share of copies; `same` numbers equal texts."""
    size = np.bincount(groups[filled], minlength=1)
    pair = np.unique(groups[filled] * (int(same.max(initial=0)) + 1) + same[filled])
    distinct = np.bincount(pair // (int(same.max(initial=0)) + 1), minlength=len(size))
    several = size > 1
    return float(np.mean((size - distinct)[several] / (size[several] - 1))) if several.any() else float("nan")


def _near_in_groups(same: Numbers, groups: Numbers, filled: np.ndarray[Any, Any], sketch: Hashes) -> float:
    """As `_in_groups`, where a text counts as a copy of an earlier one of its group that it shares most n-grams
    with."""
    shares = []
    order = np.argsort(groups, kind="stable")
    every = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    for members in every[:: 1 + len(every) // _GROUPS]:
        rows = members[filled[members]][:_IN_A_GROUP]
        if len(rows) < 2:
            continue
        kinds, left = 0, rows
        while len(left):
            alike = (same[left] == same[left[0]]) | (_resemblances(sketch[left[0]], sketch[left]) >= NEARLY)
            kinds, left = kinds + 1, left[~alike]
        shares.append((len(rows) - kinds) / (len(rows) - 1))
    return float(np.mean(shares)) if shares else float("nan")


def _near_families(same: Numbers, sketch: Hashes) -> Numbers:
    """A number for each text: texts that share most n-grams with the first one of their kind get the same."""
    family = same.copy()
    for place in range(3):  # near copies share their smallest n-gram with a probability of `NEARLY`
        column = sketch[:, place]
        order = np.argsort(column, kind="stable")
        ordered = column[order]
        for bucket in np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1):
            leader = bucket[0]
            if len(bucket) < 2 or not column[leader]:
                continue
            alike = _resemblances(sketch[leader], sketch[bucket]) >= NEARLY
            family[bucket[alike]] = family[leader]
    return family


def _across(same: Numbers, groups: Numbers, long_enough: np.ndarray[Any, Any]) -> float:
    """The share of the texts that are `long_enough` and equal an answer to another prompt."""
    if len(np.unique(groups)) < 2:
        return float("nan")
    if not long_enough.any():
        return 0.0
    low, high = np.full(int(same.max()) + 1, np.iinfo(np.int64).max), np.full(int(same.max()) + 1, -1)
    np.minimum.at(low, same[long_enough], groups[long_enough])
    np.maximum.at(high, same[long_enough], groups[long_enough])
    return float((low[same[long_enough]] != high[same[long_enough]]).sum() / len(long_enough))


def _resemblances(one: Hashes, others: Hashes) -> Floats:
    """The share of n-grams in common (Jaccard's index), shape (k,) for `others` of shape (k, SKETCH); a text without
    n-grams resembles none.

    It is estimated from the smallest n-grams of each text (Broder 1997), as far as the sketches of both reach.
    """
    mine = one[one > 0]
    if not len(mine):
        return np.zeros(len(others))
    reach = np.where(others[:, -1] > 0, others[:, -1], _LARGEST)
    reach = np.minimum(reach, mine[-1] if len(mine) == SKETCH else _LARGEST)[:, None]
    within = (others > 0) & (others <= reach)
    shared = (within & (others[:, :, None] == mine).any(axis=2)).sum(axis=1)
    union = np.searchsorted(mine, reach[:, 0], side="right") + within.sum(axis=1) - shared
    return np.asarray(shared / np.maximum(union, 1), np.float64)
