"""Damage: how bytes are cut, flipped, blanked, repeated, swapped and spliced, from a seeded random source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

Damage = Callable[[Random, bytes], bytes]
NUMBERS = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    1 << 31,
    (1 << 32) - 1,
    1 << 60,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)
LARGEST = 1 << 16  # bytes of an input: more shows nothing new and takes longer


def cut(random: Random, raw: bytes) -> bytes:
    """Keeps the beginning."""
    return raw[: random.randrange(len(raw) + 1)]


def flip_bit(random: Random, raw: bytes) -> bytes:
    """Turns one bit over."""
    if not raw:
        return raw
    at = random.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << random.randrange(8)]) + raw[at + 1 :]


def blank(random: Random, raw: bytes) -> bytes:
    """Zeros a block, as a disk that lost it does."""
    start, end = stretch(random, raw)
    return raw[:start] + bytes(end - start) + raw[end:]


def scramble(random: Random, raw: bytes) -> bytes:
    """Random bytes over a block."""
    start, end = stretch(random, raw)
    return raw[:start] + random.randbytes(end - start) + raw[end:]


def drop(random: Random, raw: bytes) -> bytes:
    """Takes a block out."""
    start, end = stretch(random, raw)
    return raw[:start] + raw[end:]


def repeat(random: Random, raw: bytes) -> bytes:
    """Writes a block twice."""
    start, end = stretch(random, raw)
    return raw[:end] + raw[start:end] + raw[end:]


def swap(random: Random, raw: bytes) -> bytes:
    """Changes two blocks that follow one another."""
    start, end = stretch(random, raw)
    middle = random.randrange(start, end + 1)
    return raw[:start] + raw[middle:end] + raw[start:middle] + raw[end:]


def insert(random: Random, raw: bytes) -> bytes:
    """Random bytes in between."""
    at = random.randrange(len(raw) + 1)
    return raw[:at] + random.randbytes(random.randrange(1, 40)) + raw[at:]


def many(random: Random, raw: bytes) -> bytes:
    """Thousands of one character in between: what looks at each of them from each of them takes for ever."""
    at = random.randrange(len(raw) + 1)
    return (
        raw[:at]
        + random.choice((b" ", b" ", b"\n", b"\t", b"-", b"|", b"/", b"1", b",", b"{", b"'", b'"', b"a", b"\\"))
        * random.randrange(1000, 20_000)
        + raw[at:]
    )


def number(random: Random, raw: bytes) -> bytes:
    """A number at the edge of its type, in four or eight bytes."""
    at = random.randrange(len(raw) + 1)
    size = random.choice((1, 2, 4, 8))
    value = random.choice(NUMBERS) & ((1 << 8 * size) - 1)
    return raw[:at] + value.to_bytes(size, "little") + raw[at + size :]


DAMAGES: tuple[Damage, ...] = (cut, flip_bit, blank, scramble, drop, repeat, swap, insert, many, number)


def stretch(random: Random, raw: bytes) -> tuple[int, int]:
    """Where a block begins and ends; mostly a short one."""
    start = random.randrange(len(raw) + 1)
    most = len(raw) - start
    length = min(most, random.choice((1, 2, 4, 8, 16, 64, 256, 4096)))
    return start, start + random.randint(0, length)


def word(random: Random, raw: bytes, words: Sequence[bytes]) -> bytes:
    """A word of the format, put in or put over what was there."""
    at, chosen = random.randrange(len(raw) + 1), random.choice(words)
    return raw[:at] + chosen + raw[at + random.choice((0, len(chosen), random.randrange(1 + len(chosen)))) :]


def splice(random: Random, raw: bytes, other: bytes) -> bytes:
    """The beginning of one, the end of another."""
    return raw[: random.randrange(len(raw) + 1)] + other[random.randrange(len(other) + 1) :]


def mutated(random: Random, seeds: Sequence[bytes], words: Sequence[bytes] = ()) -> bytes:
    """One of the seeds, damaged one to six times; now and then nothing but random bytes."""
    if random.random() < 0.01:
        return random.randbytes(random.randrange(200))
    raw = random.choice(seeds)
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        chance = random.random()
        if words and chance < 0.4:
            raw = word(random, raw, words)
        elif chance < 0.45:
            raw = splice(random, raw, random.choice(seeds))
        else:
            raw = random.choice(DAMAGES)(random, raw)
    return raw[:LARGEST]
