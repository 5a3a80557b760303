"""Opens a log as UTF-8 text, whatever its compression and encoding: gzip, bzip2, xz, UTF-16 and UTF-32 with or without
a byte order mark.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from pathlib import Path
from typing import IO, Any

from rlhealth.errors import RlhealthError

#: First bytes of a compressed file -> the function that opens it.
_OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
#: The largest uncompressed size in bytes: it stops a gzip bomb.
LARGEST_UNPACKED = 1 << 30
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_LOOKED_AT = 1024  # bytes by which an encoding without a byte order mark is detected


def encoding_of(head: bytes) -> str | None:
    """The encoding of a text that is not plain UTF-8, by its first bytes: by its byte order mark, or by the positions
    of zero bytes.
    """
    for bom, name in _BOMS:
        if head.startswith(bom):
            return name
    part = head[: min(_LOOKED_AT, len(head) // 4 * 4)]
    if len(part) < 8 or b"\0" not in part:
        return None
    zeros = [part[offset::4].count(0) * 4 / len(part) for offset in range(4)]
    few, many = 0.2, 0.8
    for name, pattern in (
        ("utf-32-le", (False, True, True, True)),
        ("utf-32-be", (True, True, True, False)),
        ("utf-16-le", (False, True, False, True)),
        ("utf-16-be", (True, False, True, False)),
    ):
        if all(share > many if zero else share < few for share, zero in zip(zeros, pattern, strict=True)):
            return name
    return None


def is_packed(head: bytes) -> bool:
    """Whether a file with these first bytes is compressed in a way that can be read."""
    return any(head.startswith(magic) for magic in _OPENERS)


def text_of(head: bytes) -> str:
    """The first bytes of a file as text, decoded with its encoding."""
    return head.decode(encoding_of(head) or "utf-8", "replace")


class UnpackedFile:
    """A compressed file, read as its uncompressed bytes, in their original encoding.

    Attributes:
        ended_early: whether the compressed stream is incomplete, as in a file that is still written.
        trouble: what was wrong with the stream; empty if nothing was.
    """

    def __init__(self, file: IO[bytes], path: Path) -> None:
        file.seek(0)
        head = file.read(8)
        file.seek(0)
        self._file: IO[bytes] = next(opener(file) for magic, opener in _OPENERS.items() if head.startswith(magic))
        self.path = path
        self.ended_early = False
        self.trouble = ""
        self._done = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes; empty at the end, or if the stream is damaged or longer than `LARGEST_UNPACKED`."""
        if self.trouble or self.ended_early:
            return b""
        room = LARGEST_UNPACKED - self._done
        if not room:
            self.trouble = f"holds more than {LARGEST_UNPACKED >> 30} GiB unpacked; the rest was not read"
            return b""
        try:
            block = self._file.read(room if size < 0 else min(size, room))
        except EOFError:
            self.ended_early = True
            return b""
        except (OSError, zlib.error, lzma.LZMAError) as error:
            self.trouble = f"is damaged in its packed stream: {error}"
            return b""
        self._done += len(block)
        return block

    def seek(self, offset: int) -> int:
        """Goes back to the first byte, the only supported position."""
        self._file.seek(offset)
        self._done = offset
        return offset

    def tell(self) -> int:
        """How many bytes were read."""
        return self._done

    def fileno(self) -> int:
        """There is no file with these bytes."""
        raise OSError("packed")


class RecodedFile:
    """Text in another encoding, read as UTF-8."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file = file
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def read(self, size: int = -1) -> bytes:
        """The next bytes as UTF-8, more or fewer than `size`; none at the end."""
        while block := self._file.read(size):
            if text := self._decoder.decode(block):
                return text.encode("utf-8", "replace")
        return self._decoder.decode(b"", final=True).encode("utf-8", "replace")

    def seek(self, offset: int) -> int:
        """Goes back to the first byte."""
        self._decoder.reset()
        return int(self._file.seek(offset))

    def tell(self) -> int:
        """How many bytes of the file were read."""
        return int(self._file.tell())

    def fileno(self) -> int:
        """There is no file with these bytes."""
        raise OSError("recoded")


def as_text(file: IO[bytes], path: Path) -> Any:
    """The opened file, wrapped if it must be decompressed or converted to UTF-8.

    Raises:
        RlhealthError: if the compressed file cannot be opened at all.
    """
    head = file.read(_LOOKED_AT)
    file.seek(0)
    opened: Any = file
    if is_packed(head):
        try:
            opened = UnpackedFile(file, path)
            head = opened.read(_LOOKED_AT)
            opened.seek(0)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise RlhealthError(
                f"{path}: cannot be unpacked: {error}", hint="is it whole?", location=str(path)
            ) from None
    encoding = encoding_of(head)
    return opened if encoding in (None, "utf-8-sig") else RecodedFile(opened, str(encoding))
