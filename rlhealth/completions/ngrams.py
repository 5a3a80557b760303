"""N-grams of many texts at once: words become 64-bit numbers, so that counting them is sorting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]

CHUNK = 1 << 19  # bytes of text worked on at once: they stay in the processor's own memory
_FACTOR = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(32)
_PLACES = tuple(
    np.uint64(one) for one in (0x9FB21C651E98DF25, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
)


@dataclass(frozen=True)
class Words:
    """The words of some texts, one after another.

    Attributes:
        first: the number of the first of these texts.
        hashes: one a word, shape (w,).
        text: which text each word is of, counted from `first`, shape (w,), not falling.
        texts: how many texts there are.
    """

    first: int
    hashes: Hashes
    text: Numbers
    texts: int

    def ngrams(self, n: int) -> tuple[Hashes, Numbers]:
        """The n-grams that lie within one text: a number for each, and its text; both of shape (k,), in the order of
        the words."""
        size = len(self.hashes) - n + 1
        if size <= 0:
            return np.empty(0, np.uint64), np.empty(0, np.int64)
        whole = self.text[n - 1 :] == self.text[:size]
        mixed = self.hashes[:size] * _PLACES[0]
        for place in range(1, n):
            mixed += self.hashes[place : place + size] * _PLACES[place]
        mixed ^= mixed >> _SHIFT
        mixed *= _SPREAD
        return mixed[whole], self.text[:size][whole]

    def whole(self) -> Hashes:
        """A number for each text that equal words in equal order give; 0 for a text without any, shape (texts,)."""
        if not len(self.hashes):
            return np.zeros(self.texts, np.uint64)
        count = np.bincount(self.text, minlength=self.texts)
        begin = np.cumsum(count) - count
        place = np.arange(len(self.hashes)) - begin[self.text]
        weighed = self.hashes * _powers(_room(len(self.hashes)))[0][place]
        filled = count > 0
        found = np.zeros(self.texts, np.uint64)
        found[filled] = np.add.reduceat(weighed, begin[filled])
        return found


def words(texts: Sequence[str]) -> Iterator[Words]:
    """The words of the texts, about `CHUNK` bytes of text at a time.

    Words are separated by blanks; in scripts without blanks (Chinese, Japanese, Korean) each character is one.
    """
    part: list[bytes] = []
    size = first = 0
    for number, text in enumerate(texts):
        coded = text.encode("utf-8", "replace")
        if part and size + len(coded) > CHUNK:
            yield _words(part, first)
            part, size, first = [], 0, number
        part.append(coded)
        size += len(coded) + 1
    if part:
        yield _words(part, first)


def _words(texts: list[bytes], first: int) -> Words:
    joined = np.frombuffer(b" ".join(texts) + b" ", np.uint8)
    ends = np.cumsum([len(one) + 1 for one in texts])
    blank = joined <= 32
    boundary = blank.copy()  # a word begins at a letter behind a boundary
    wide = (joined >= 0xE3) & (
        joined <= 0xED
    )  # the first of the three bytes of a Chinese, Japanese or Korean character
    boundary[1:] = blank[:-1]
    boundary[0] = True
    if wide.any():
        behind = np.zeros(len(joined), bool)
        behind[3:] = wide[:-3]
        boundary |= wide | behind
    starts = np.flatnonzero(boundary & ~blank)
    if not len(starts):
        return Words(first, np.empty(0, np.uint64), np.empty(0, np.int64), len(texts))
    powers, inverse = _powers(_room(len(joined)))
    summed = np.empty(len(joined) + 1, np.uint64)
    summed[0] = 0
    np.cumsum((joined.astype(np.uint64) + np.uint64(1)) * ~blank * powers[: len(joined)], out=summed[1:])
    stops = np.append(starts[1:], len(joined))  # blanks in between count nothing
    hashes = (summed[stops] - summed[starts]) * inverse[starts]
    hashes ^= hashes >> _SHIFT
    hashes *= _SPREAD
    return Words(first, hashes, np.searchsorted(ends, starts, side="right"), len(texts))


def _room(size: int) -> int:
    return 1 << max(12, (size - 1).bit_length())


@cache
def _powers(size: int) -> tuple[Hashes, Hashes]:
    """The powers of the factor from 0 on, and of its inverse, modulo 2^64."""
    found = []
    for factor in (_FACTOR, pow(_FACTOR, -1, 1 << 64)):
        steps = np.full(size, factor, np.uint64)
        steps[0] = 1
        found.append(np.cumprod(steps, dtype=np.uint64))
    return found[0], found[1]
