"""The plain, slow way to read damaged record logs, against which the readers are held: try every byte."""

from __future__ import annotations

import struct
import zlib

import google_crc32c

from tests.fuzz.framing import BLOCK, WANDB_HEADER


def event_payloads(raw: bytes) -> list[bytes]:
    """The payload of every record whose two checksums hold, in the order of the file."""
    found, at = [], 0
    while at + 16 <= len(raw):
        end = _event_end(raw, at)
        if end:
            found.append(raw[at + 12 : end - 4])
        at = end or at + 1
    return found


def _event_end(raw: bytes, at: int) -> int:
    (length,) = struct.unpack_from("<Q", raw, at)
    end = at + 16 + length
    whole = (
        end <= len(raw)
        and _stored(raw, at + 8) == _masked(raw[at : at + 8])
        and _stored(raw, end - 4) == _masked(raw[at + 12 : end - 4])
    )
    return end if whole else 0


def _stored(raw: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", raw, at)[0])


def _masked(raw: bytes) -> int:
    value = google_crc32c.value(raw)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def wandb_records(raw: bytes) -> list[bytes]:
    """Every record of a `.wandb` file all fragments of which are intact and follow one another."""
    found: list[bytes] = []
    parts: list[bytes] | None = None
    for begin in range(0, len(raw), BLOCK):
        at, stop = max(begin, len(WANDB_HEADER)), min(begin + BLOCK, len(raw))
        while at + 7 <= stop:
            checksum, length, kind = struct.unpack_from("<IHB", raw, at)
            end = at + 7 + length
            if end > stop or not 1 <= kind <= 4 or zlib.crc32(raw[at + 6 : end]) != checksum:
                at, parts = at + 1, None
                continue
            data, at = raw[at + 7 : end], end
            if kind in (1, 2):
                parts = [data]
            elif parts is not None:
                parts.append(data)
            if kind in (1, 4) and parts is not None:
                found.append(b"".join(parts))
            if kind in (1, 4):
                parts = None
    return found
