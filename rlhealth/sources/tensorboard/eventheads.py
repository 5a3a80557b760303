"""Many launches side by side, distinguished by their first points: those that start at the same step continue none."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlhealth.sources.tensorboard.eventrecord import Event, event
from rlhealth.sources.tensorboard.eventvalues import Scalar, signed, varint

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_HEAD = 64 << 10  # bytes in which the first points of a file stand, behind its settings
_MOST_RECORDS = 400
_MOST_KNOWN = 4096  # tags
FEWEST = 8  # launches; of fewer, more is looked at than their first points


class Head(NamedTuple):
    """How a launch begins: the step and the time of its first points, and their tags."""

    step: int
    time: float
    tags: frozenset[str]


class Pattern(NamedTuple):
    """The bytes with which a launch begins, up to the end of its first step, as the next launch of a script writes them
    again: all but times, numbers and checksums.

    Attributes:
        written: shape (n,).
        fixed: 255 where the next launch has the same byte, else 0; shape (n,).
        head: how that launch begins.
        at: where the time of its first point stands.
    """

    written: Bytes
    fixed: Bytes
    head: Head
    at: int

    def head_of(self, raw: bytes) -> Head | None:
        """How a launch with these first bytes begins; None where they are others."""
        size = len(self.written)
        if len(raw) < size:
            return None
        other = np.frombuffer(raw, np.uint8, size)
        if ((other ^ self.written) & self.fixed).any():
            return None
        time = float(struct.unpack_from("<d", raw, self.at)[0])
        return Head(self.head.step, time, self.head.tags) if time else None


@dataclass
class SeenBefore:
    """What the launches before had in common.

    Attributes:
        tags: of records of one number, by all that such a record holds but its time, its step and the number.
        pattern: of the latest launch that was looked at record by record.
    """

    tags: dict[bytes, str] = field(default_factory=dict)
    pattern: Pattern | None = None


def starts_alike(paths: Sequence[Path]) -> list[Path] | None:
    """The files, the earliest first, where each has its own folder and all log the same tag first, at the same step.

    A launch that continues another one starts behind it, so that these are as many runs. None where that cannot be
    known, or where a file has no points yet.
    """
    if len(paths) < FEWEST or len({path.parent for path in paths}) < len(paths):
        return None
    heads: list[tuple[Head, Path]] = []
    known = SeenBefore()
    for path in paths:
        head = head_of(path, known)
        if head is None or (heads and head.step != heads[0][0].step):
            return None
        heads.append((head, path))
    if not frozenset.intersection(*{head.tags for head, _ in heads}):
        return None
    return [path for _, path in sorted(heads, key=lambda pair: (pair[0].time, str(pair[1])))]


def head_of(path: Path, known: SeenBefore | None = None) -> Head | None:
    """How a file begins; None where it cannot be read, is damaged, or its first step does not end soon.

    Checksums are not looked at: the reader does that. `known`: of launches before; those of one script write alike.
    """
    known = SeenBefore() if known is None else known
    try:
        with path.open("rb", buffering=0) as file:
            raw = file.read(_HEAD)
    except OSError:
        return None
    if known.pattern is not None and (found := known.pattern.head_of(raw)):
        return found
    known.pattern = None
    return _looked_through(raw, known)


def _looked_through(raw: bytes, known: SeenBefore) -> Head | None:
    """How a launch with these first bytes begins, record by record."""
    tags: set[str] = set()
    step, time, offset, first, plugins = None, 0.0, 0, 0, dict[str, str]()
    free: list[tuple[int, int]] = []  # what the next launch may write otherwise
    for _ in range(_MOST_RECORDS):
        if offset + 12 > len(raw):
            return None
        begin = offset + 12
        end = begin + struct.unpack_from("<Q", raw, offset)[0]
        if end + 4 > len(raw):
            return None
        free += (offset + 8, begin), (end, end + 4)
        if b"_hparams_" not in raw[offset:end] and b"/text_summary" not in raw[offset:end]:
            body = raw[begin:end]
            try:
                found = _seen_before(body, known.tags) or _event(body, plugins, known.tags)
            except (ValueError, struct.error, IndexError):
                return None
            if body[:1] == b"\x09" and len(body) >= 9:
                free.append((begin + 1, begin + 9))
            points = [item.tag for item in found.items if isinstance(item, Scalar)]
            if len(found.items) == 1 and points and body[_step_of(body)[1] : -4] in known.tags:
                free.append((end - 4, end))
            if found.restart or (points and step is not None and found.step < step):
                return None
            if points and step is not None and found.step > step:
                head = Head(step, time, frozenset(tags))
                known.pattern = _pattern(raw[: end + 4], free, head, first + 1) if raw[first] == 9 else None
                return head
            if points:
                first = first or begin
                step, time = found.step, time or found.time
                tags.update(points)
        offset = end + 4
    return None


def _pattern(raw: bytes, free: Sequence[tuple[int, int]], head: Head, at: int) -> Pattern:
    fixed = np.full(len(raw), 255, np.uint8)
    for start, end in free:
        fixed[start:end] = 0
    return Pattern(np.frombuffer(raw, np.uint8), fixed, head, at)


def _event(body: bytes, plugins: dict[str, str], known: dict[bytes, str]) -> Event:
    """An event; if it is one number at its end, what stands before the number is remembered."""
    found = event(body, plugins)
    if len(found.items) == 1 and isinstance(found.items[0], Scalar) and found.items[0].at == len(body) - 4:
        _, rest = _step_of(body)
        if rest and found.items[0].kind == "<f4" and len(known) < _MOST_KNOWN:
            known[body[rest:-4]] = found.items[0].tag
    return found


def _seen_before(body: bytes, known: dict[bytes, str]) -> Event | None:
    """The event of a record that differs from an earlier one in its time, its step and its number only."""
    step, rest = _step_of(body)
    tag = known.get(body[rest:-4]) if rest else None
    if tag is None:
        return None
    return Event(time=struct.unpack_from("<d", body, 1)[0], step=step, items=[Scalar(tag, 0.0)])


def _step_of(body: bytes) -> tuple[int, int]:
    """The step of a record that begins with its time, and where the rest of it begins; (0, 0) for any other."""
    if body[:1] != b"\x09" or len(body) < 14:
        return 0, 0
    if body[9] != 0x10:
        return 0, 9 if body[9] == 0x2A else 0  # no step is step 0
    step, rest = varint(body, 10)
    return signed(step), rest
