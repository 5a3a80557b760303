"""Many launches side by side, distinguished by their first points: those that start at the same step continue none."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlhealth.sources.tensorboard.eventrecord import Event, event
from rlhealth.sources.tensorboard.eventvalues import Scalar, signed, varint

_HEAD = 64 << 10  # bytes in which the first points of a file stand, behind its settings
_MOST_RECORDS = 400
_MOST_KNOWN = 4096  # tags
FEWEST = 8  # launches; of fewer, more is looked at than their first points


@dataclass(frozen=True)
class Head:
    """How a launch begins: the step and the time of its first points, and their tags."""

    step: int
    time: float
    tags: frozenset[str]


def starts_alike(paths: Sequence[Path]) -> list[Path] | None:
    """The files, the earliest first, where each has its own folder and all log the same tag first, at the same step.

    A launch that continues another one starts behind it, so that these are as many runs. None where that cannot be
    known, or where a file has no points yet.
    """
    if len(paths) < FEWEST or len({path.parent for path in paths}) < len(paths):
        return None
    heads: list[tuple[Head, Path]] = []
    known: dict[bytes, str] = {}
    for path in paths:
        head = head_of(path, known)
        if head is None or (heads and head.step != heads[0][0].step):
            return None
        heads.append((head, path))
    if not frozenset.intersection(*(head.tags for head, _ in heads)):
        return None
    return [path for _, path in sorted(heads, key=lambda pair: (pair[0].time, str(pair[1])))]


def head_of(path: Path, known: dict[bytes, str] | None = None) -> Head | None:
    """How a file begins; None where it cannot be read, is damaged, or its first step does not end soon.

    Checksums are not looked at: the reader does that. `known`: the tags of records of one number, by all that such a
    record holds but its time, its step and the number; launches of one script log the same tags.
    """
    known = {} if known is None else known
    try:
        with path.open("rb") as file:
            raw = file.read(_HEAD)
    except OSError:
        return None
    tags: set[str] = set()
    step, time, offset, plugins = None, 0.0, 0, dict[str, str]()
    for _ in range(_MOST_RECORDS):
        if offset + 12 > len(raw):
            return None
        end = offset + 12 + struct.unpack_from("<Q", raw, offset)[0]
        if end + 4 > len(raw):
            return None
        if b"_hparams_" not in raw[offset:end] and b"/text_summary" not in raw[offset:end]:
            try:
                found = _seen_before(raw[offset + 12 : end], known) or _event(raw[offset + 12 : end], plugins, known)
            except (ValueError, struct.error, IndexError):
                return None
            points = [item.tag for item in found.items if isinstance(item, Scalar)]
            if found.restart or (points and step is not None and found.step < step):
                return None
            if points and step is not None and found.step > step:
                return Head(step, time, frozenset(tags))
            if points:
                step, time = found.step, time or found.time
                tags.update(points)
        offset = end + 4
    return None


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
