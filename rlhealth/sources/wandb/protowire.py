"""The part of protobuf's wire format that reading a record needs; wandb's own messages take half a second to import."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10  # bytes


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a serialised message, in the order in which they were written: number and value (an int, or bytes
    for text and messages).

    Raises:
        ValueError: if the bytes are no message; what came before was.
    """
    at, size = 0, len(data)
    while at < size:
        key, at = varint(data, at)
        kind, number = key & 7, key >> 3
        if kind == BYTES:
            length, at = varint(data, at)
            if at + length > size:
                raise ValueError("a field is longer than its message")
            yield number, data[at : at + length]
            at += length
        elif kind == VARINT:
            value, at = varint(data, at)
            yield number, value
        elif kind in (FIXED64, FIXED32):
            width = 8 if kind == FIXED64 else 4
            if at + width > size:
                raise ValueError("a field is longer than its message")
            yield number, int.from_bytes(data[at : at + width], "little")
            at += width
        else:
            raise ValueError(f"no such wire type: {kind}")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint at `at` and the place after it.

    Raises:
        ValueError: if it does not end.
    """
    value = shift = 0
    for byte in data[at : at + LONGEST_VARINT]:
        value |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            return value, at
    raise ValueError("a number does not end")


def signed(value: int, bits: int = 64) -> int:
    """A varint as the signed number that int32 and int64 mean by it."""
    value &= (1 << 64) - 1
    return (
        value - (1 << 64)
        if value >= 1 << 63
        else value
        if bits == 64
        else value - (1 << 32)
        if value >= 1 << 31
        else value
    )
