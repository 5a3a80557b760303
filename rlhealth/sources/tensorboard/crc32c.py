"""The masked CRC-32C with which TFRecord guards lengths and payloads: one record at a time, or one byte of many records at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
MASK_DELTA = 0xA282EAD8


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()
_LONGEST_IN_PYTHON = 1 << 16


def _in_python(payload: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in payload:
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


# optional: at the speed of memory, where the table takes a tenth of a microsecond a byte
google_crc32c = import_module("google_crc32c") if find_spec("google_crc32c") else None
crc32c: Callable[[bytes], int] = google_crc32c.value if google_crc32c else _in_python


def masked(payload: bytes) -> int:
    """The checksum as TFRecord stores it: rotated and shifted, so that a checksum of checksums stays a checksum."""
    value = crc32c(payload)
    return ((value >> 15 | value << 17) + MASK_DELTA) & 0xFFFFFFFF


def intact(payload: bytes, stored: int) -> bool:
    """Whether the payload fits its stored checksum. A long one is believed where only the table is at hand: a megabyte would cost it a tenth of a second."""
    return masked(payload) == stored or (crc32c is _in_python and len(payload) > _LONGEST_IN_PYTHON)


def unmasked(stored: Words) -> Words:
    """Stored checksums, shape (n,), as plain CRC-32C."""
    rotated = stored - np.uint32(MASK_DELTA)
    return rotated >> np.uint32(17) | rotated << np.uint32(15)


def vanishes(differences: NDArray[np.uint8]) -> bool:
    """Whether the CRC of these bytes, shape (n,), is that of as many zeros. False also where only the table is at hand, which would take too long to tell."""
    return crc32c is not _in_python and crc32c(differences) == _of_zeros(len(differences))  # type: ignore[arg-type]


@lru_cache(256)
def _of_zeros(size: int) -> int:
    return crc32c(bytes(size))


_contributions = np.asarray(_TABLE, np.uint32)


def contributions(count: int) -> Words:
    """What a byte adds to the CRC, shape (count or more * 256,): at 256 * k + byte, where k bytes follow it, for k below `count`.

    CRC is linear: where a record differs from another of its length, the checksums differ by the exclusive or of the contributions of the differing bits.
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
