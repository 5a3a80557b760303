"""The masked CRC-32C with which TFRecord guards lengths and payloads: one record at a time, or one byte of many
records at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
MASK_DELTA = 0xA282EAD8
crc32c: Callable[[Any], int] = google_crc32c.value  # of anything that is a buffer of bytes


def masked(payload: bytes) -> int:
    """The checksum as TFRecord stores it: rotated and shifted, so that a checksum of checksums stays a checksum."""
    value = crc32c(payload)
    return ((value >> 15 | value << 17) + MASK_DELTA) & 0xFFFFFFFF


def intact(payload: bytes, stored: int) -> bool:
    """Whether the payload fits its stored checksum."""
    return masked(payload) == stored


def unmasked(stored: Words) -> Words:
    """Stored checksums, shape (n,), as plain CRC-32C."""
    rotated = stored - np.uint32(MASK_DELTA)
    return rotated >> np.uint32(17) | rotated << np.uint32(15)


def vanishes(differences: NDArray[np.uint8]) -> bool:
    """Whether the CRC of these bytes, shape (n,), is that of as many zeros."""
    return crc32c(differences) == _of_zeros(len(differences))


@lru_cache(256)
def _of_zeros(size: int) -> int:
    return int(crc32c(bytes(size)))


#: What a last byte adds to the CRC: CRC is linear, so it is the difference between the CRC of this byte and that of a
#: zero.
_contributions = np.array([crc32c(bytes([byte])) ^ crc32c(b"\0") for byte in range(256)], np.uint32)


def contributions(count: int) -> Words:
    """What a byte adds to the CRC, shape (count or more * 256,): at 256 * k + byte, where k bytes follow it, for k
    below `count`.

    CRC is linear: where a record differs from another of its length, the checksums differ by the exclusive or of the
        contributions of the differing bits.
    """
    global _contributions  # grows to the longest record met, a kilobyte for each of its bytes
    while len(_contributions) < 256 * count:
        more = [_contributions[-256:]]
        for _ in range(max(count, 64)):
            more.append(more[-1] >> np.uint32(8) ^ _contributions[:256][more[-1] & np.uint32(0xFF)])
        _contributions = np.concatenate([_contributions, *more[1:]])
    return _contributions


def masked_of_lengths(window: NDArray[np.uint8]) -> Words:
    """The masked checksum of eight bytes at each place, for bytes of shape (n, 8)."""
    value = np.full(len(window), crc32c(bytes(8)), np.uint32)
    for column in range(8):
        value ^= contributions(8)[256 * (7 - column) : 256 * (8 - column)][window[:, column]]
    found: Words = (value >> np.uint32(15) | value << np.uint32(17)) + np.uint32(MASK_DELTA)
    return found
