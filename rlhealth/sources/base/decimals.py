"""Many decimal numbers in one buffer of bytes, read at once into float64 with numpy, each exactly as Python's float()
would read it.

The digits are taken eight at a time as one 64-bit word (Lemire, "Number parsing at a gigabyte per second", 2021,
section 5). The division by a power of ten is done with 64 bits of mantissa where the machine has them; of its results
only one that lies exactly half-way between two float64 could round wrongly, and that one is left to the caller, as is
whatever is not a plain number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlhealth.run import Floats, Ints

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

#: How many bytes the buffer must hold before the first number and after the last: room enough to look at any 255 bytes
#: without asking where it ends.
MARGIN = 512

_U = np.uint64
_ZEROS, _OVER_NINE, _HIGH = _U(0x3030303030303030), _U(0x7676767676767676), _U(0x8080808080808080)
_DOTS, _ONES = _U(0x2E2E2E2E2E2E2E2E), _U(0x0101010101010101)
_PAIRS, _SCALE_HIGH, _SCALE_LOW = _U(0x000000FF000000FF), _U(0x000F424000000064), _U(0x0000271000000001)
_TENS = np.array([10**k for k in range(20)], np.uint64)
_LONG = np.finfo(np.longdouble).nmant == 63  # x86: 64 bits of mantissa; elsewhere fewer, or emulated
_Wide = np.longdouble if _LONG else np.float64
_LARGEST_TEN = 27 if _LONG else 22  # the largest power of ten that the type holds exactly
_POWERS = np.cumprod(np.concatenate([[_Wide(1)], np.full(_LARGEST_TEN, 10, _Wide)]), dtype=_Wide)
_MINUS, _PLUS, _DOT, _E, _BIG_E = 45, 43, 46, 101, 69


def words_of(buffer: Bytes) -> Words:
    """The eight bytes from each place of the buffer on, as one little-endian word: shape (n-7,), a view."""
    return np.ndarray((len(buffer) - 7,), "<u8", buffer=buffer.data, strides=(1,))


def decimals(buffer: Bytes, words: Words, start: Ints, length: Ints) -> tuple[Floats, Flags]:
    """The numbers written at `start`, each `length` bytes long: values, shape (n,), and whether each was read; the rest
    are the caller's.

    Args:
        buffer: at least `MARGIN` bytes lie before the first number and after the last.
        words: `words_of(buffer)`.
        start: shape (n,).
        length: shape (n,), each at least 1.
    """
    negative = buffer[start] == _MINUS
    first = start + negative
    end = start + length
    mantissa, places, read = _mantissa(buffer, words, first, end)
    odd = np.flatnonzero(~read)
    if len(odd):
        power, has_power = _exponent(buffer, end[odd])
        odd, power = odd[has_power], power[has_power]
        if len(odd):
            mantissa[odd], places[odd], read[odd] = _mantissa(buffer, words, first[odd], end[odd] - 4)
            places[odd] -= power
    values, exact = _scaled(mantissa, places)
    np.negative(values, out=values, where=negative)
    return values, read & exact


def _mantissa(buffer: Bytes, words: Words, first: Ints, end: Ints) -> tuple[Words, Ints, Flags]:
    """All digits as one integer, how many of them stand behind the point, and whether it is `digits` or
    `digits.digits` and fits 64 bits.
    """
    size = end - first
    whole = np.where(buffer[first + 1] == _DOT, 1, 0)
    unsettled = np.flatnonzero((whole == 0) | (size < 3))
    if len(unsettled):
        whole[unsettled] = _point(words, first[unsettled], size[unsettled])
    places = np.maximum(size - whole - 1, 0)
    low, read = _digits(words, end, places)
    high = (buffer[first] - np.uint8(48)).astype(np.uint64)
    read &= (high < 10) & (size > 0) & ((whole == size) | (places > 0))
    longer = np.flatnonzero(whole > 1)
    if len(longer):
        high[longer], fine = _digits(words, first[longer] + whole[longer], whole[longer])
        read[longer] &= fine
    read &= (high == 0) | (whole + places <= 19)
    return high * _TENS[np.minimum(places, 19)] + low, places, read


def _point(words: Words, first: Ints, size: Ints) -> Ints:
    """How many bytes stand before the point, or `size` if there is none in the first 16."""
    found = size.copy()
    for offset in (8, 0):
        word = words[first + offset] ^ _DOTS
        dots = (word - _ONES) & ~word & _HIGH
        lowest = dots & (~dots + _U(1))
        bit = (
            lowest.astype(np.float64).view(np.int64) >> 52
        ) - 1023  # of a power of two, the exponent is the place of its bit
        place = offset + bit // 8
        found = np.where((dots != 0) & (place < size), place, found)
    return found


def _digits(words: Words, end: Ints, count: Ints) -> tuple[Words, Flags]:
    """The integer that the `count` digits before `end` write, and whether they are digits and it fits 64 bits."""
    value, read = _eight(words, end - 8, np.minimum(count, 8))
    for done in (8, 16):
        more = np.flatnonzero(count > done)
        if not len(more):
            break
        part, fine = _eight(words, end[more] - done - 8, np.minimum(count[more] - done, 8))
        if done == 16:
            fine &= part < 1000
        value[more] += part * _TENS[done]
        read[more] &= fine
    return value, read & (count <= 24)


def _eight(words: Words, at: Ints, count: Ints) -> tuple[Words, Flags]:
    """The integer that the last `count` of the eight bytes at `at` write, and whether they are digits."""
    unwanted = (64 - 8 * count).astype(np.uint64)
    digits = words[at]
    digits ^= _ZEROS
    digits >>= unwanted
    digits <<= unwanted
    bad = digits + _OVER_NINE
    bad |= digits
    bad &= _HIGH
    pairs = digits * _U(10)
    pairs += digits >> _U(8)
    value = (pairs & _PAIRS) * _SCALE_HIGH
    value += ((pairs >> _U(16)) & _PAIRS) * _SCALE_LOW
    value >>= _U(32)
    return value, bad == 0


def _exponent(buffer: Bytes, end: Ints) -> tuple[Ints, Flags]:
    """The power of ten of a number that ends in `e+dd` or `e-dd`, as Go and Python write it, and whether it does."""
    letter, sign = buffer[end - 4], buffer[end - 3]
    tens, ones = buffer[end - 2] - np.uint8(48), buffer[end - 1] - np.uint8(48)
    power = tens.astype(np.int64) * 10 + ones
    there = ((letter == _E) | (letter == _BIG_E)) & ((sign == _PLUS) | (sign == _MINUS)) & (tens < 10) & (ones < 10)
    return np.where(sign == _MINUS, -power, power), there


def _scaled(mantissa: Words, places: Ints) -> tuple[Floats, Flags]:
    """`mantissa` / 10**`places`, and whether that is correctly rounded."""
    wide: Any = mantissa.astype(_Wide)
    exact = np.abs(places) <= _LARGEST_TEN
    wide /= _POWERS[np.clip(places, 0, _LARGEST_TEN)]
    upwards = np.flatnonzero(places < 0)
    if len(upwards):
        wide[upwards] *= _POWERS[np.clip(-places[upwards], 0, _LARGEST_TEN)]
    if _LONG:
        half_way = (wide.view(np.uint64)[::2] & _U(0x7FF)) == _U(0x400)
        return wide.astype(np.float64), exact & ~half_way
    return wide.astype(np.float64), exact & (mantissa < _U(2**53))
