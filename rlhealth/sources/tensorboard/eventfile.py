"""One TensorBoard event file, including one that is still growing: each byte is read once, a torn end is waited for,
damage is stepped over and counted.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rlhealth.sources.tensorboard.crc32c import intact, masked, masked_of_lengths
from rlhealth.sources.tensorboard.eventbatch import Batch, Decoder
from rlhealth.sources.tensorboard.eventblock import FOOTER, HEADER, Pattern, Rhythm

BLOCK = 2 << 20
_LARGEST = 1 << 31  # protobuf's own limit: a longer length is damage
_LARGEST_READ = 64 << 20  # no scalar is that long: images, models
_SCAN = 1 << 16
_PATIENCE = 4  # times in a row that a remembered pattern is tried in vain before a file does without it
_MOST_PATTERNS = 512
_MOST_ALIKE = 8
_PATTERNS: dict[int, list[Pattern]] = {}  # by the number of their last record; shared by all files, as the numbers are


class EventFile:
    """Reads a file from where it stopped the last time.

    Attributes:
        offset: the bytes read so far.
        lost: the byte at which each damaged record begins.
        records: the intact records so far.
        torn: whether the file, as read, ends inside a record.
    """

    def __init__(self, path: Path, *, offset: int = 0, block: int = BLOCK, vectorised: bool = True) -> None:
        self.path = path
        self.offset = offset
        self.lost: list[int] = []
        self.records = 0
        self.torn = False
        self._block = block
        self._held = b""
        self._searching = offset > 0
        self._lengths: dict[bytes, int] = {}
        self._decoder = Decoder()
        self._rhythm = Rhythm()
        self._vectorised = vectorised
        self._pattern: Pattern | None = None
        self._refused: dict[Pattern, int] = {}

    def read(self, until: int | None = None) -> Iterator[Batch]:
        """What is new, block by block, up to byte `until` (default: the end as it is now).

        Raises:
            OSError: if the file cannot be read.
        """
        found = self.path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        until = found.st_size if until is None else min(until, found.st_size)
        if until <= self.offset:
            return
        with self.path.open("rb", buffering=0) as stream:
            stream.seek(self.offset)
            buffer = bytearray()
            while (until := self._over_a_hole(stream, until)) > self.offset and self._wanted() <= _LARGEST_READ:
                buffer, filled = self._fill(stream, until, buffer)
                if filled == len(self._held):
                    break
                self.offset += filled - len(self._held)
                used = self._walk(buffer, filled, self.offset - filled, more=self.offset < until)
                self._held = bytes(memoryview(buffer)[used:filled])
                self._pass_over_giant(stream, until)
                yield from self._decoder.taken()
        self.torn = bool(self._held)

    def _fill(self, stream: BinaryIO, until: int, buffer: bytearray) -> tuple[bytearray, int]:
        """A buffer, the given one if it is large enough, that begins with what is held and continues with new bytes;
        and how many it holds.
        """
        held = len(self._held)
        size = held + min(max(self._block, self._wanted() - held), until - self.offset)
        if len(buffer) < size:
            buffer = bytearray(size)
        buffer[:held] = self._held
        return buffer, held + (stream.readinto(memoryview(buffer)[held:size]) or 0)  # type: ignore[attr-defined]

    def _over_a_hole(self, stream: BinaryIO, until: int) -> int:
        """Jumps over what was never written, which a file of 100 GB may have for nothing; returns where to stop: a
        hole at the end is waited for.
        """
        try:
            there = os.lseek(stream.fileno(), self.offset, os.SEEK_DATA)
            hole = os.lseek(stream.fileno(), there, os.SEEK_HOLE)
        except OSError as error:
            return self.offset if error.errno == errno.ENXIO else until
        except AttributeError:  # no such thing on this system
            return until
        if there > self.offset:
            if not self._searching:
                self.lost.append(self.offset - len(self._held))
            self._searching, self._pattern, self._held, self.offset = True, None, b"", there
        try:
            os.lseek(stream.fileno(), hole, os.SEEK_DATA)
        except OSError:  # nothing but a hole up to the end
            until = min(until, hole)
        stream.seek(self.offset)
        return until

    def _wanted(self) -> int:
        """Bytes that the record at hand needs in all."""
        if len(self._held) < HEADER or self._searching:
            return 0
        return HEADER + max(self._length(self._held[:HEADER]), 0) + FOOTER

    def _pass_over_giant(self, stream: BinaryIO, until: int) -> None:
        wanted = self._wanted()
        if wanted > _LARGEST_READ and self.offset - len(self._held) + wanted <= until:
            self.offset += wanted - len(self._held)
            self._held = b""
            stream.seek(self.offset)

    def _length(self, header: bytes) -> int:
        """The length in a header, or -1 if the header is damaged."""
        length = self._lengths.get(header)
        if length is None:
            length = int.from_bytes(header[:8], "little")
            if length >= _LARGEST or masked(header[:8]) != int.from_bytes(header[8:], "little"):
                return -1
            if len(self._lengths) < 10_000:
                self._lengths[header] = length
        return length

    def _walk(self, buffer: bytearray, size: int, base: int, *, more: bool) -> int:
        """Takes every whole record of buffer[:size], which begins at byte `base` of the file; returns where the rest
        begins.
        """
        raw, at = memoryview(buffer), 0
        self._rhythm.forget()
        if self._pattern is not None:
            at = self._rounds(self._pattern, buffer, at, size)
        while size - at >= HEADER:
            if self._searching:
                at, found = _next_header(buffer, at, size)
                if not found:
                    return at
                self._searching = False
            length = self._length(bytes(raw[at : at + HEADER]))
            end = at + HEADER + length + FOOTER
            if length >= 0 and end > size and (more or not _overtaken(buffer, at + HEADER, size)):
                return at
            if length < 0 and not more and not any(raw[at:size]):
                return at  # zeros up to the end: room that was allotted and is not yet written
            number = (
                self._take(bytes(raw[at + HEADER : end - FOOTER]), struct.unpack_from("<I", buffer, end - FOOTER)[0])
                if length >= 0 and end <= size
                else -1
            )
            if number < 0:
                self.lost.append(base + at)
                self._searching, self._pattern = True, None
                self._rhythm.forget()
                at += 1
                continue
            at = self._go_on(number, buffer, end, size) if number and self._vectorised else end
            if self._pattern is not None and more and size - at < self._pattern.stride:
                return at  # the rest of this round comes with the next block
        return at

    def _take(self, payload: bytes, checksum: int) -> int:
        """Takes one record; the number of its kind, or -1 if it is damaged."""
        if not intact(payload, checksum):
            return -1
        try:
            number = self._decoder.take(payload)
        except ValueError:
            return -1
        self.records += 1
        self._pattern = None
        if not number:
            self._rhythm.forget()
        return number

    def _go_on(self, number: int, buffer: bytearray, end: int, size: int) -> int:
        """Behind a record that ends at buffer[end], tries to take many at once: in a pattern that held before, or in
        the round that has just come again.
        """
        period = self._rhythm.note(number, end)
        for pattern in _PATTERNS.get(number, ()):
            if self._refused.get(pattern, 0) < _PATIENCE and pattern.follows(self._rhythm):
                at = self._rounds(pattern, buffer, end, size)
                if at > end:
                    return at
        if not period:
            return end
        numbers, start = self._rhythm.last(period), self._rhythm.start(period)
        pattern = Pattern(
            bytes(memoryview(buffer)[start:end]), [self._decoder.kinds.layouts[one] for one in numbers], numbers
        )
        at = self._rounds(pattern, buffer, end, size)
        if at == end:
            self._rhythm.failed()
        return at

    def _rounds(self, pattern: Pattern, buffer: bytearray, at: int, size: int) -> int:
        """Takes as many rounds of the pattern as stand at buffer[at:size]; returns where they end."""
        rounds = pattern.take(buffer, at, size, self._decoder.batch)
        if not rounds:
            if size - at >= pattern.fewest * pattern.stride:
                self._refused[pattern] = self._refused.get(pattern, 0) + 1
            return at
        self._rhythm.held()
        self._refused.pop(pattern, None)
        self._pattern = pattern
        self.records += rounds * pattern.period
        _remember(pattern)
        return at + rounds * pattern.stride


def _remember(pattern: Pattern) -> None:
    """Keeps a pattern that held."""
    if len(_PATTERNS) >= _MOST_PATTERNS:
        _PATTERNS.clear()
    alike = _PATTERNS.setdefault(pattern.numbers[-1], [])
    if pattern not in alike:
        alike.append(pattern)
        alike.sort(key=lambda one: -one.period)  # the longest first: a short one may be the end of a long one
        del alike[_MOST_ALIKE:]


def _overtaken(buffer: bytearray, start: int, size: int) -> bool:
    """Whether a whole record stands where a record that is not whole would continue: its end was lost, and it is not
    waited for.
    """
    while True:
        at, found = _next_header(buffer, start, size)
        if not found:
            return False
        end = at + HEADER + int.from_bytes(buffer[at : at + 8], "little") + FOOTER
        if end <= size and intact(
            bytes(buffer[at + HEADER : end - FOOTER]), struct.unpack_from("<I", buffer, end - FOOTER)[0]
        ):
            return True
        start = at + 1


def _next_header(buffer: bytearray, start: int, size: int) -> tuple[int, bool]:
    """Where the next record begins at or after `start`: its length fits its checksum. Where none does, the last
    place that is still to be searched.
    """
    raw = np.frombuffer(buffer, np.uint8, size)
    while size - start >= HEADER:
        stop = min(start + _SCAN, size - HEADER + 1)
        zero = raw[start : stop + 8] == 0
        high = zero[4:-4] & zero[5:-3] & zero[6:-2] & zero[7:-1]  # lengths below 2^32: four bytes of zeros
        places = np.flatnonzero(high[: stop - start]) + start
        if len(places):
            window = raw[places[:, None] + np.arange(HEADER)]
            fits = places[masked_of_lengths(window[:, :8]) == window[:, 8:].copy().view("<u4")[:, 0]]
            if len(fits):
                return int(fits[0]), True
        start = stop
    return start, False
