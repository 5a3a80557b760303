"""Known keys found in a buffer of bytes, all at once: each position is compared with the known keys, eight bytes at a
time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rlhealth.run import Ints
from rlhealth.sources.base.decimals import Flags, Words, words_of

MOST_KEYS = 4096
LONGEST_KEY = 127  # bytes
_SLOTS = 1 << 16
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))


class Keys:
    """The keys seen so far, recognised by comparing their bytes eight at a time.

    Args:
        wanted: whether the values of a key are needed at all.
    """

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        self.tags: list[str] = []
        self._wanted = wanted
        self._known: dict[bytes, int] = {}
        self.wanted = np.zeros(0, np.bool_)
        self._size = np.zeros(0, np.int64)
        self._pieces = np.zeros(
            (LONGEST_KEY // 8 + 1, 0), np.uint64
        )  # the first eight bytes, the next eight, …; the last ones end with the key
        self._slots = [np.full(_SLOTS, -1, np.int16) for _ in _FACTORS]

    def find(self, buffer: bytes, words: Words, start: Ints, size: Ints) -> NDArray[np.int16]:
        """The number of the key at each place, shape (n,); -1 for those that are not kept (too many of them)."""
        found = self._look_up(words, start, size)
        unknown = np.flatnonzero(found < 0)
        while len(unknown) and len(self.tags) < MOST_KEYS:
            first = unknown[:1000]
            if not self._add(
                {
                    buffer[at : at + length]
                    for at, length in zip(start[first].tolist(), size[first].tolist(), strict=True)
                }
            ):
                break
            found[unknown] = self._look_up(words, start[unknown], size[unknown])
            unknown = unknown[found[unknown] < 0]
        return found

    def _look_up(self, words: Words, start: Ints, size: Ints) -> NDArray[np.int16]:
        first, last = _ends(words, start, size)
        mixed = (first ^ (last * _FACTORS[0])) + size.astype(np.uint64)
        found = np.full(len(start), -1, np.int16)
        open_ = np.arange(len(start))
        for factor, slots in zip(_FACTORS, self._slots, strict=True):
            if not len(open_) or not len(self.tags):
                break
            whole = len(open_) == len(start)
            guess = slots[((mixed if whole else mixed[open_]) * factor) >> np.uint64(48)]
            same = self._same(
                words,
                start if whole else start[open_],
                size if whole else size[open_],
                guess,
                first if whole else first[open_],
                last if whole else last[open_],
            )
            if whole:
                found[same] = guess[same]
            else:
                found[open_[same]] = guess[same]
            open_ = open_[~same]
        return found

    def _same(
        self, words: Words, start: Ints, size: Ints, guess: NDArray[np.int16], first: Words, last: Words
    ) -> Flags:
        """Whether each key is the one guessed, byte for byte."""
        same: Flags = (
            (self._size[guess] == size)
            & (self._pieces[0][guess] == first)
            & (self._pieces[-1][guess] == last)
            & (guess >= 0)
        )
        for piece in range(1, LONGEST_KEY // 8):
            longer = np.flatnonzero(size > 8 * piece + 8)
            if not len(longer):
                break
            same[longer] &= words[start[longer] + 8 * piece] == self._pieces[piece][guess[longer]]
        return same

    def _add(self, keys: set[bytes]) -> bool:
        """Adds new keys; False if there was none to add."""
        new = sorted(keys - self._known.keys())[: MOST_KEYS - len(self.tags)]
        for key in new:
            self._known[key] = len(self.tags)
            self.tags.append(key.decode("utf-8", "replace"))
        if not new:
            return False
        padded = [bytes(8) + key + bytes(LONGEST_KEY + 8) for key in new]
        sizes = np.array([len(key) for key in new], np.int64)
        pieces = np.array(
            [
                [int.from_bytes(key[8 + 8 * i : 16 + 8 * i], "little") for key in padded]
                for i in range(LONGEST_KEY // 8 + 1)
            ],
            np.uint64,
        )
        ends = [
            _ends(words_of(np.frombuffer(key, np.uint8)), np.array([8]), np.array([size]))
            for key, size in zip(padded, sizes.tolist(), strict=True)
        ]
        pieces[0], pieces[-1] = [int(first[0]) for first, _ in ends], [int(last[0]) for _, last in ends]
        self._size = np.append(self._size, sizes)
        self._pieces = np.concatenate([self._pieces, pieces], axis=1)
        self.wanted = np.append(self.wanted, [self._wanted(tag) for tag in self.tags[-len(new) :]])
        mixed = (pieces[0] ^ (pieces[-1] * _FACTORS[0])) + sizes.astype(np.uint64)
        for index, mix in enumerate(mixed, len(self.tags) - len(new)):
            for factor, slots in zip(_FACTORS, self._slots, strict=True):
                slot = int((np.atleast_1d(mix) * factor)[0] >> np.uint64(48))
                if slots[slot] < 0:
                    slots[slot] = index
                    break
        return True


def _ends(words: Words, start: Ints, size: Ints) -> tuple[Words, Words]:
    """The first and the last eight bytes of each key; of a shorter key, all of it and nothing."""
    first = words[start]
    last = words[start + np.maximum(size, 8) - 8]
    short = np.flatnonzero(size < 8)
    if len(short):
        unused = (64 - 8 * size[short]).astype(np.uint64)
        first[short] = first[short] << unused >> unused
        last[short] = 0
    return first, last
