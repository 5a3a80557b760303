"""A text file that may still grow: each byte is read once, complete lines are returned, and an incomplete line is
read later.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.packed import UnpackedFile, encoding_of, is_packed
from rlhealth.sources.base.walk import reason, regular

BLOCK = 1 << 20
#: A longer line is skipped and counted, unless a format sets another limit.
LONGEST_LINE = 64 << 20
_ZEROS = re.compile(rb"\0{2,}")
_HEAD = 256  # bytes by which a file is recognised


def open_regular(path: Path) -> IO[bytes]:
    """Opens a regular file only: a pipe would block forever, and a device might do anything.

    Raises:
        RlhealthError: if it is not one or cannot be opened.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        file = os.fdopen(os.open(path, flags), "rb")
    except OSError as error:
        regular(path)  # says better what it is, where it is no file
        raise RlhealthError(f"{path}: {reason(error)}", hint="check the permissions", location=str(path)) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        regular(path)
        raise RlhealthError(f"{path}: is not a regular file", hint="name a file", location=str(path))
    return file


class SparseFile:
    """A file whose holes are skipped, so that they cost no time (a sparse file of 100 GB may be only a hole)."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def read(self, size: int) -> bytes:
        """The next bytes; if they are all zero, skips to the next written bytes that the system reports."""
        while True:
            block = self.file.read(size)
            if not block or block[0] or block[-1] or block.count(0) < len(block):
                return block
            if not self._jump():
                return block

    def _jump(self) -> bool:
        here = self.file.tell()
        try:
            there = os.lseek(self.file.fileno(), here, os.SEEK_DATA)
        except (
            AttributeError,
            OSError,
            ValueError,
        ):  # no such thing on this system, or nothing but a hole up to the end
            try:
                there = os.fstat(self.file.fileno()).st_size if hasattr(os, "SEEK_DATA") else here
            except (OSError, ValueError):
                return False
        self.file.seek(there)
        return there > here


class GrowingFile:
    """Reads new content of a file, as complete lines.

    Attributes:
        longest: bytes of a line; a longer line is skipped.
        offset: bytes read so far.
        line: lines returned so far.
        rest: the last line, as long as it has no newline.
        too_long: lines that were skipped for their length.
        blanks: stretches of zeros in the text: a disk or a copy lost the content there.
        trouble: what was wrong with a compressed file; empty if nothing was.
        modified: when the file was last written, seconds since 1970.
        ends_at_return: whether a carriage return also ends a line, as progress bars write it.
    """

    def __init__(self, path: Path, file: IO[bytes] | None = None, longest: int = LONGEST_LINE) -> None:
        self.path = path
        self.longest = longest
        self.ends_at_return = False
        self._file = file
        self.modified = float("nan")
        self.start_again()

    def start_again(self) -> None:
        """Resets the state: the next read begins at the first byte."""
        self.offset = 0
        self.line = 0
        self.rest = b""
        self.too_long = 0
        self.blanks = 0
        self.trouble = ""
        self._stamp: tuple[int, int] | None = None  # of a packed file, which is read as a whole
        self._skipping = False
        self._head = b""
        self._inode: tuple[int, int] | None = None
        self._decoder: codecs.IncrementalDecoder | None = None

    def was_rewritten(self) -> bool:
        """Whether the file was replaced, is shorter, or begins differently."""
        if self._file is not None or self._inode is None:
            return False
        with open_regular(self.path) as file:
            here = os.fstat(file.fileno())
            if self._stamp is not None:
                return self._stamp != (here.st_size, here.st_mtime_ns)
            return (
                (here.st_dev, here.st_ino) != self._inode
                or here.st_size < self.offset
                or file.read(len(self._head)) != self._head
            )

    @property
    def can_start_again(self) -> bool:
        """Whether the text can be read a second time: stdin cannot, unless it was kept."""
        return self._file is None or self._file.seekable()

    def head(self, size: int) -> bytes:
        """The first bytes of the file, without a change of the state."""
        if self._file is None:
            with open_regular(self.path) as file:
                return file.read(size)
        here = self._file.tell()
        self._file.seek(0)
        head = self._file.read(size)
        self._file.seek(here)
        return head

    def blocks(self) -> Iterator[bytes]:
        """New content, in pieces that end with a line; `rest` keeps an incomplete line."""
        if self._file is not None:
            if not self.offset:
                self._file.seek(0)
            yield from self._blocks(self._file)
            return
        with open_regular(self.path) as file:
            here = os.fstat(file.fileno())
            self.modified, self._inode = here.st_mtime, (here.st_dev, here.st_ino)
            if self._stamp is not None:
                return
            if not self.offset and is_packed(file.read(8)):
                self._stamp = here.st_size, here.st_mtime_ns
                unpacked = UnpackedFile(file, self.path)
                yield from self._blocks(unpacked, packed=True)
                self.trouble = unpacked.trouble
                return
            if here.st_size > self.offset:
                file.seek(self.offset)
                yield from self._blocks(file)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """New content line by line, each with its number, from 1."""
        for block in self.blocks():
            for line in block.split(b"\n")[:-1]:
                self.line += 1
                yield self.line, line

    def take_rest(self) -> bytes:
        """The last line without a newline, as if it were complete."""
        rest, self.rest = self.rest, b""
        return rest

    def _blocks(self, file: IO[bytes] | UnpackedFile, packed: bool = False) -> Iterator[bytes]:
        source: SparseFile | UnpackedFile = SparseFile(file) if not isinstance(file, UnpackedFile) else file
        from_path = self._file is None and not packed
        while block := source.read(BLOCK):
            if not self.offset:
                self._begin(block)
            if from_path and file.tell() - len(block) > self.offset:
                block = b"\0\0" + block  # a hole was skipped
            self.offset = file.tell() if from_path else self.offset + len(block)
            if self._decoder is not None:
                block = self._decoder.decode(block).encode("utf-8", "replace")
            end = block.rfind(b"\n") + 1
            if self.ends_at_return:
                end = max(end, block.rfind(b"\r") + 1)
            if not end:
                self._wait(block)
                continue
            whole, rest = block[:end], block[end:]
            if self._skipping:
                ends = [at for sign in (b"\n", b"\r") if (at := whole.find(sign)) >= 0]
                whole = whole[(min(ends) if self.ends_at_return else whole.index(b"\n")) + 1 :]
                self._skipping = False
            elif self.rest:
                whole = self.rest + whole
            self.rest = rest
            if whole:
                yield self._without_zeros(whole) if b"\0" in whole else whole

    def _without_zeros(self, text: bytes) -> bytes:
        """The text without zeros. The texts on both sides of several zeros are not joined, because that would create
        numbers that nobody logged.
        """
        text, stretches = _ZEROS.subn(b"\n", text)
        self.blanks += stretches
        return text.replace(b"\0", b"")

    def _begin(self, block: bytes) -> None:
        self._head = block[:_HEAD]
        encoding = encoding_of(block)  # PowerShell writes UTF-16 for `>`
        if encoding is not None:
            self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def _wait(self, block: bytes) -> None:
        if self._skipping:
            return
        self.rest += block
        if len(self.rest) > self.longest:
            self.rest = b""
            self._skipping = True
            self.too_long += 1
            self.line += 1
