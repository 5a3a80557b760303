"""The record log of a `.wandb` file: LevelDB's framing after wandb's own header, read on from the last poll."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Ints
from rlhealth.sources.base.decimals import MARGIN
from rlhealth.sources.base.growing import SparseFile, open_regular
from rlhealth.sources.base.walk import reason
from rlhealth.sources.wandb.protowire import varint

HEADER = (
    7  # of the file: ":W&B", a 16-bit magic number, a version; of each fragment: crc32 of type and data, length, type
)
BLOCK = 32768
CHUNK = 64 * BLOCK  # bytes read at once: what is made of them stays in the processor's own memory
FRAGMENT = struct.Struct("<IHB")
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
LONGEST_RECORD = 64 << 20  # bytes; wandb's rows are a few kB
SEARCHED = 256 << 20  # bytes of checksum that one poll spends on finding the next whole fragment inside damaged blocks
MOST_REPORTED = 20  # damaged places that are reported one by one
_PAD = bytes(MARGIN)


class Records(NamedTuple):
    """Some records of a log in their order: `buffer[start[i]:end[i]]` is the i-th, a serialised `Record`."""

    buffer: bytes
    start: Ints
    end: Ints


class Replaced(Exception):
    """The file was replaced, or is shorter than what was already read."""


class RecordLog:
    """The records of one growing `.wandb` file; each byte is read once, however often the file is polled.

    Attributes:
        chunk: bytes read at once.
        position: bytes of the file that were read.
        modified: when the file was last written, seconds since 1970.
        magic, tracker, suffix: what the file begins with, who writes it, how its name ends; other trackers frame their
            records alike.
    """

    magic = b":W&B"
    tracker = "wandb"
    suffix = "wandb"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.chunk = CHUNK
        self.position = 0
        self._file: tuple[int, int] | None = None
        self.modified = float("nan")
        self._held = b""  # the beginning of a fragment whose end is not written yet
        self._parts: list[bytes] = []  # the fragments of a record whose last is not read yet
        self._damage: list[str] = []
        self._lost_from: int | None = None
        self._number = 0  # of the last whole record before a damage
        self._search = SEARCHED
        self._begin(b"", 0)

    @property
    def torn(self) -> bool:
        """Whether the file ends inside a record, as that of a killed run does, and a live one between two writes."""
        return bool(self._parts) or bool(self._held.strip(b"\0"))

    @property
    def damage(self) -> list[str]:
        """A sentence for each damaged place, in the order of the file."""
        reported = self._damage[:MOST_REPORTED]
        if len(self._damage) > MOST_REPORTED:
            reported.append(f"and {len(self._damage) - MOST_REPORTED:,} more damaged places")
        if self._lost_from is not None:
            reported.append(f"damaged from byte {self._lost_from:,} to the end of what is written")
        return reported

    def read(self) -> Iterator[Records]:
        """Yields the new records, those of about `CHUNK` bytes at a time.

        Raises:
            RlhealthError: if the file cannot be read, or is not a `.wandb` file.
            Replaced: if it is another file than was read so far.
        """
        self._search = SEARCHED
        with open_regular(self.path) as file:
            try:
                here = os.fstat(file.fileno())
                if here.st_size < self.position or self._file not in (None, (here.st_dev, here.st_ino)):
                    raise Replaced
                self.modified, self._file = here.st_mtime, (here.st_dev, here.st_ino)
                file.seek(self.position)
                while (records := self._next(file)) is not None:
                    yield records
            except OSError as error:
                raise RlhealthError(
                    f"{self.path}: {reason(error)}", hint="check the disk", location=str(self.path)
                ) from error

    def _next(self, file: IO[bytes]) -> Records | None:
        new = SparseFile(file).read(self.chunk - self.position % BLOCK)
        if not new:
            return None
        here = file.tell() - len(new)
        if here != self.position:  # a gap was skipped
            self._lose(self.position - len(self._held))
            self._held = b""
        self._begin(b"".join((_PAD, self._held, new, _PAD)), here - len(self._held) - MARGIN)
        at = self._after_header() if self._base == -MARGIN else MARGIN
        self.position = here + len(new)
        written = False
        while at < self._total and not written:
            at, written = self._block(at)
        self._held = self._chunk[at : self._total]
        return self._records()

    def __getstate__(self) -> dict[str, object]:
        """Everything but the view of a chunk, which cannot be pickled; the next read creates it again."""
        return {**self.__dict__, "_view": None}

    def _begin(self, chunk: bytes, base: int) -> None:
        self._chunk = chunk
        self._view = memoryview(chunk)
        self._base = base  # the place in the file of the first byte of the chunk
        self._total = len(chunk) - MARGIN
        self._start: list[int] = []
        self._end: list[int] = []
        self._joined = bytearray()  # records that span blocks, behind the chunk

    def _records(self) -> Records:
        buffer = b"".join((self._chunk, self._joined, _PAD)) if self._joined else self._chunk
        if self._start:
            self._number = _number(buffer[self._start[-1] : self._end[-1]][:12])
        return Records(buffer, np.asarray(self._start, np.int64), np.asarray(self._end, np.int64))

    def _after_header(self) -> int:
        """Where the first fragment is, or the first byte where not even the header is written yet."""
        at = MARGIN + HEADER
        if self._total < at:
            return MARGIN
        if self._chunk[MARGIN : MARGIN + 4] != self.magic:
            if not self._whole(at) and not self._holds_fragments():
                hint = f"a {self.tracker} run is a file run-<id>.{self.suffix}"
                raise RlhealthError(
                    f"{self.path}: not a {self.tracker} record log (it does not begin with '{self.magic.decode()}')",
                    hint=hint,
                    location=str(self.path),
                )
            self._damage.append("the header of the file is damaged; the records after it were read")
        return at

    def _holds_fragments(self) -> bool:
        """Whether there is a whole fragment in the chunk: then this is a log, even if its beginning is damaged."""
        starts = [MARGIN, *range(MARGIN + BLOCK, self._total, BLOCK)]
        return any(
            self._whole(at) or self._following(at, min(at + BLOCK, self._total)) is not None
            for at in starts
            if at + HEADER <= self._total
        )

    def _block(self, at: int) -> tuple[int, bool]:
        """Takes the fragments of the block at `at`: where it stopped, and whether that is because the rest is not
        written yet.
        """
        room = BLOCK - (self._base + at) % BLOCK
        stop = min(self._total, at + room)
        view, unpack, crc32 = self._view, FRAGMENT.unpack_from, zlib.crc32
        start, end = self._start.append, self._end.append
        plain = not self._parts and self._lost_from is None
        while at + HEADER <= stop:
            checksum, length, kind = unpack(view, at)
            after = at + HEADER + length
            if after > stop or not FULL <= kind <= LAST or crc32(view[at + 6 : after]) != checksum:
                following = self._following(at, stop)
                if following is None and after > stop and after <= self._block_end(at) and FULL <= kind <= LAST:
                    return at, True
                self._lose(self._base + at)
                plain, at = False, stop if following is None else following
            elif kind == FULL and plain:  # nearly always
                start(at + HEADER)
                end(after)
                at = after
            else:
                self._take(at, after, kind)
                plain, at = not self._parts, after
        return (stop, False) if stop == self._block_end(at) or at >= stop else (at, True)

    def _block_end(self, at: int) -> int:
        return at + BLOCK - (self._base + at) % BLOCK

    def _take(self, at: int, after: int, kind: int) -> None:
        """Joins the fragments of a record that spans blocks; a record without its beginning or its end is lost."""
        if kind in (MIDDLE, LAST) and not self._parts:
            self._lose(self._base + at)
            return
        if kind in (FULL, FIRST) and self._parts:
            self._lose(self._base + at)
        part = bytes(self._view[at + HEADER : after])
        if self._lost_from is not None:
            self._describe_loss(self._base + at, part)
        self._parts.append(part)
        if kind in (FULL, LAST):
            self._start.append(len(self._chunk) + len(self._joined))
            self._joined += b"".join(self._parts)
            self._end.append(len(self._chunk) + len(self._joined))
            self._parts = []
        elif sum(map(len, self._parts)) > LONGEST_RECORD:
            self._lose(self._base + at)

    def _lose(self, place: int) -> None:
        self._parts = []
        if self._lost_from is None:
            self._lost_from = place
            if self._start:
                begin, end = self._start[-1], self._end[-1]
                size = len(self._chunk)
                self._number = _number(
                    self._chunk[begin:end][:12]
                    if begin < size
                    else bytes(self._joined[begin - size : begin - size + 12])
                )

    def _describe_loss(self, place: int, record: bytes) -> None:
        """Reports what was lost before `place`, where an intact `record` begins; wandb numbers its records."""
        assert self._lost_from is not None
        lost = _number(record[:12]) - self._number - 1
        what = f"{lost:,} record{'s' if lost > 1 else ''}" if 0 < lost <= place else "a record" if lost else "no record"
        self._damage.append(
            f"damaged at byte {self._lost_from:,}: {what} lost, {place - self._lost_from:,} bytes skipped"
        )
        self._lost_from = None

    def _whole(self, at: int) -> bool:
        """Whether a fragment with the right checksum lies at `at`."""
        stop = min(self._total, self._block_end(at))
        if at + HEADER > stop:
            return False
        checksum, length, kind = FRAGMENT.unpack_from(self._view, at)
        after = at + HEADER + int(length)
        return FULL <= kind <= LAST and after <= stop and zlib.crc32(self._view[at + 6 : after]) == int(checksum)

    def _following(self, at: int, stop: int) -> int | None:
        """Where the next whole fragment of the block begins, after a damaged one at `at`; None if there is none."""
        after = at + HEADER + int.from_bytes(self._view[at + 4 : at + 6], "little")
        if after < stop and self._whole(after):  # only its data is damaged
            return after
        block = np.frombuffer(self._chunk, np.uint8)[at + 1 : stop].astype(np.int64)
        if len(block) < HEADER:
            return None
        place = np.arange(len(block) - HEADER + 1)
        length = block[4 : len(place) + 4] + 256 * block[5 : len(place) + 5]
        kind = block[6 : len(place) + 6]
        for candidate in np.flatnonzero(
            (kind >= FULL) & (kind <= LAST) & (place + HEADER + length <= len(block))
        ).tolist():
            if self._search <= 0:
                return None
            self._search -= HEADER + int(length[candidate])
            if self._whole(at + 1 + candidate):
                return int(at + 1 + candidate)
        return None


def _number(record: bytes) -> int:
    """The number that wandb gave a record (field 1, a varint), or 0."""
    try:
        return varint(record, 1)[0] if record[:1] == b"\x08" else 0
    except ValueError:
        return 0
