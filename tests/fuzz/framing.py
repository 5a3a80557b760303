"""Records of event files and of `.wandb` files taken apart and framed again with right checksums, so that what lies
behind the checksums is reached.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from rlhealth.sources.tensorboard.crc32c import masked

SEPARATOR = b"\xff\xfe--\xfe\xff"  # between the records of an input, for it is one string of bytes
WANDB_HEADER = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
BLOCK = 32768


def event_spans(raw: bytes) -> list[tuple[int, int]]:
    """Where each record of an undamaged event file begins and ends."""
    found, at = [], 0
    while at + 12 <= len(raw):
        (length,) = struct.unpack_from("<Q", raw, at)
        if at + 16 + length > len(raw):
            break
        found.append((at, at + 16 + length))
        at += 16 + length
    return found


def event_payloads(raw: bytes) -> list[bytes]:
    """The payloads of the records of an undamaged event file."""
    return [raw[start + 12 : end - 4] for start, end in event_spans(raw)]


def event_record(payload: bytes) -> bytes:
    """A payload as a record of an event file."""
    head = struct.pack("<Q", len(payload))
    return head + struct.pack("<I", masked(head)) + payload + struct.pack("<I", masked(payload))


def event_file(raw: bytes) -> bytes:
    """An event file of the payloads in `raw`, which `SEPARATOR` parts."""
    return b"".join(event_record(payload) for payload in raw.split(SEPARATOR))


def wandb_file(raw: bytes) -> bytes:
    """A `.wandb` file of the records in `raw`, which `SEPARATOR` parts."""
    return wandb_log(raw.split(SEPARATOR))


def wandb_log(records: Iterable[bytes]) -> bytes:
    """A `.wandb` file of those records."""
    return WANDB_HEADER + wandb_frames(records)


def wandb_frames(records: Iterable[bytes], position: int = len(WANDB_HEADER)) -> bytes:
    """The records as LevelDB frames them, for a file that is `position` bytes long so far."""
    written = bytearray()
    for record in records:
        at, begun = 0, False
        while not begun or at < len(record):
            room = BLOCK - (position + len(written)) % BLOCK
            if room < 7:
                written += bytes(room)
                continue
            part = record[at : at + room - 7]
            last = at + len(part) == len(record)
            kind = (4 if begun else 1) if last else (3 if begun else 2)
            written += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part
            at, begun = at + len(part), True
    return bytes(written)


def wandb_spans(log: bytes) -> list[tuple[int, int, bytes]]:
    """Where each record of an undamaged `.wandb` file begins and ends, and the record."""
    found, parts, at, start = [], b"", len(WANDB_HEADER), -1
    while at + 7 <= len(log):
        room = BLOCK - at % BLOCK
        if room < 7:
            at += room
            continue
        _, length, kind = struct.unpack_from("<IHB", log, at)
        if at + 7 + length > len(log):
            break
        start = at if start < 0 else start
        parts += log[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            found.append((start, at, parts))
            parts, start = b"", -1
    return found
