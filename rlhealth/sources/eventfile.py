"""One TensorBoard event file, including one that is still growing: each byte is read once, a torn end is waited for, damage is stepped over and counted."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rlhealth.run import Floats, Ints
from rlhealth.sources.crc32c import intact, masked, masked_of_lengths
from rlhealth.sources.eventrecord import Item, Scalar, event

BLOCK = 4 << 20
_HEADER = 12  # length, eight bytes, and its checksum, four
_FOOTER = 4  # checksum of the payload
_LARGEST = 1 << 31  # protobuf's own limit: a longer length is damage
_LARGEST_READ = 64 << 20  # no scalar is that long: images, models
_SCAN = 1 << 16


class Points:
    """The points of one tag in the order of the file, collected one by one or as arrays."""

    __slots__ = ("_chunks", "_steps", "_times", "_values")

    def __init__(self) -> None:
        self._chunks: list[tuple[Ints, Floats, Floats]] = []
        self._steps: list[int] = []
        self._values: list[float] = []
        self._times: list[float] = []

    def add(self, step: int, value: float, time: float) -> None:
        """Adds one point."""
        self._steps.append(step)
        self._values.append(value)
        self._times.append(time)

    def extend(self, steps: Ints, values: Floats, times: Floats) -> None:
        """Adds points as arrays, each of shape (k,)."""
        self._close()
        self._chunks.append((steps, values, times))

    def arrays(self) -> tuple[Ints, Floats, Floats]:
        """Steps, values and times, each of shape (n,)."""
        self._close()
        if len(self._chunks) == 1:
            return self._chunks[0]
        steps, values, times = zip(*self._chunks, strict=True)
        return np.concatenate(steps), np.concatenate(values), np.concatenate(times)

    def _close(self) -> None:
        if self._steps:
            self._chunks.append((np.asarray(self._steps, np.int64), np.asarray(self._values, np.float64), np.asarray(self._times, np.float64)))
            self._steps, self._values, self._times = [], [], []


@dataclass(slots=True)
class Batch:
    """What one stretch of the file holds. Where `restart` is a step, the writer started again there: what was logged from that step on is void."""

    points: dict[str, Points] = field(default_factory=dict)
    items: list[tuple[int, float, Item]] = field(default_factory=list)
    restart: int | None = None

    def of(self, tag: str) -> Points:
        """The points of that tag, made on first use."""
        found = self.points.get(tag)
        if found is None:
            found = self.points[tag] = Points()
        return found


class EventFile:
    """Reads a file from where it stopped the last time.

    Attributes:
        offset: the bytes read so far.
        lost: the byte at which each damaged record begins.
        records: the intact records so far.
        torn: whether the file, as read, ends inside a record.
    """

    def __init__(self, path: Path, *, offset: int = 0, block: int = BLOCK) -> None:
        self.path = path
        self.offset = offset
        self.lost: list[int] = []
        self.records = 0
        self.torn = False
        self._block = block
        self._held = b""
        self._searching = offset > 0
        self._lengths: dict[bytes, int] = {}
        self._known: dict[bytes, str] = {}
        self._plugins: dict[str, str] = {}
        self._batch = Batch()
        self._full: list[Batch] = []

    def read(self, until: int | None = None) -> Iterator[Batch]:
        """What is new, block by block, up to byte `until` (default: the end as it is now).

        Raises:
            OSError: if the file cannot be read.
        """
        size = self.path.stat().st_size
        if size < self.offset:  # replaced by a shorter one: what is there now is all new
            self.offset, self._held, self._searching = 0, b"", False
        until = size if until is None else min(until, size)
        if until <= self.offset:
            return
        with self.path.open("rb", buffering=0) as stream:
            stream.seek(self.offset)
            while self.offset < until:
                buffer, filled = self._fill(stream, until)
                if filled == len(self._held):
                    break
                self.offset += filled - len(self._held)
                used = self._walk(buffer, filled, self.offset - filled)
                self._held = bytes(memoryview(buffer)[used:filled])
                self._pass_over_giant(stream, until)
                yield from self._batches()
        self.torn = bool(self._held)

    def _fill(self, stream: object, until: int) -> tuple[bytearray, int]:
        held = len(self._held)
        room = min(max(self._block, self._wanted() - held), until - self.offset)
        buffer = bytearray(held + room)
        buffer[:held] = self._held
        return buffer, held + (stream.readinto(memoryview(buffer)[held:]) or 0)  # type: ignore[attr-defined]

    def _wanted(self) -> int:
        """Bytes that the record at hand needs in all."""
        if len(self._held) < _HEADER or self._searching:
            return 0
        return _HEADER + max(self._length(self._held[:_HEADER]), 0) + _FOOTER

    def _pass_over_giant(self, stream: object, until: int) -> None:
        wanted = self._wanted()
        if wanted > _LARGEST_READ and self.offset - len(self._held) + wanted <= until:
            self.offset += wanted - len(self._held)
            self._held = b""
            stream.seek(self.offset)  # type: ignore[attr-defined]

    def _batches(self) -> Iterator[Batch]:
        ready, self._full = [*self._full, self._batch], []
        self._batch = Batch()
        for batch in ready:
            if batch.points or batch.items or batch.restart is not None:
                yield batch

    def _length(self, header: bytes) -> int:
        """The length that a header tells, or -1 where it is damaged."""
        length = self._lengths.get(header)
        if length is None:
            length = int.from_bytes(header[:8], "little")
            if length >= _LARGEST or masked(header[:8]) != int.from_bytes(header[8:], "little"):
                return -1
            if len(self._lengths) < 10_000:
                self._lengths[header] = length
        return length

    def _walk(self, buffer: bytearray, size: int, base: int) -> int:
        """Takes every whole record of buffer[:size], which begins at byte `base` of the file; returns where the rest begins."""
        raw, at = memoryview(buffer), 0
        while size - at >= _HEADER:
            if self._searching:
                at, found = _next_header(buffer, at, size)
                if not found:
                    return at
                self._searching = False
            length = self._length(bytes(raw[at : at + _HEADER]))
            end = at + _HEADER + length + _FOOTER
            if length >= 0 and end > size:
                return at
            if length < 0 and not any(raw[at:size]) and base + size >= self.path.stat().st_size:
                return at  # zeros up to the end: room that was allotted and never written
            if length < 0 or not self._take(bytes(raw[at + _HEADER : end - _FOOTER]), struct.unpack_from("<I", buffer, end - _FOOTER)[0]):
                self.lost.append(base + at)
                self._searching = True
                at += 1
                continue
            self.records += 1
            at = end
        return at

    def _take(self, payload: bytes, checksum: int) -> bool:
        """Adds one record to the batch; False where it is damaged."""
        if not intact(payload, checksum):
            return False
        if len(payload) > 15 and payload[0] == 9 and payload[9] == 16:  # a time, then a step: the form of nearly every record
            at, step, shift = 10, 0, 0
            while at < 19 and payload[at] >= 0x80:
                step |= (payload[at] & 0x7F) << shift
                shift += 7
                at += 1
            step |= payload[at] << shift
            tag = self._known.get(payload[at + 1 : -4])
            if tag is not None and at < 19:
                self._batch.of(tag).add(step, struct.unpack_from("<f", payload, len(payload) - 4)[0], struct.unpack_from("<d", payload, 1)[0])
                return True
        return self._take_unusual(payload)

    def _take_unusual(self, payload: bytes) -> bool:
        try:
            found = event(payload, self._plugins)
        except ValueError:
            return False
        if found.restart and found.step > 0:
            self._full.append(self._batch)
            self._batch = Batch(restart=found.step)
        for item in found.items:
            if isinstance(item, Scalar):
                self._batch.of(item.tag).add(found.step, item.value, found.time)
            else:
                self._batch.items.append((found.step, found.time, item))
        if len(found.items) == 1 and found.time_at == 1 and found.step_at == 10 and len(self._known) < 100_000:
            only = found.items[0]
            if isinstance(only, Scalar) and only.at == len(payload) - 4 and only.kind == "<f4":
                self._known[payload[10 + found.step_bytes : -4]] = only.tag
        return True


def _next_header(buffer: bytearray, start: int, size: int) -> tuple[int, bool]:
    """Where the next record begins at or after `start`: its length fits its checksum. Where none does, the last place that is still to be searched."""
    raw = np.frombuffer(buffer, np.uint8, size)
    while size - start >= _HEADER:
        stop = min(start + _SCAN, size - _HEADER + 1)
        zero = raw[start : stop + 8] == 0
        high = zero[4:-4] & zero[5:-3] & zero[6:-2] & zero[7:-1]  # lengths below 2^32: four bytes of zeros
        places = np.flatnonzero(high[: stop - start]) + start
        if len(places):
            window = raw[places[:, None] + np.arange(_HEADER)]
            fits = places[masked_of_lengths(window[:, :8]) == window[:, 8:].copy().view("<u4")[:, 0]]
            if len(fits):
                return int(fits[0]), True
        start = stop
    return start, False
