"""Many launches side by side, distinguished by their first points: those that start at the same step continue none."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlhealth.sources.tensorboard.eventrecord import event
from rlhealth.sources.tensorboard.eventvalues import Scalar

_HEAD = 64 << 10  # bytes in which the first points of a file stand, behind its settings
_MOST_RECORDS = 400
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
    for path in paths:
        head = head_of(path)
        if head is None or (heads and head.step != heads[0][0].step):
            return None
        heads.append((head, path))
    if not frozenset.intersection(*(head.tags for head, _ in heads)):
        return None
    return [path for _, path in sorted(heads, key=lambda pair: (pair[0].time, str(pair[1])))]


def head_of(path: Path) -> Head | None:
    """How a file begins; None where it cannot be read, is damaged, or its first step does not end soon.

    Checksums are not looked at: the reader does that.
    """
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
                found = event(raw[offset + 12 : end], plugins)
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
