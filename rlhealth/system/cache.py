"""Plain values made once from rlhealth's own files and kept in the user's cache folder; it may be removed at any time.

A kept value lies beside the bytes it was made from, and counts only while these are the same: it cannot be stale. It is
written in marshal's format, which holds values and runs nothing, and read only from a regular file of this user that
nobody else may write. Where anything is wrong with it, the value is made anew, and nothing is said.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import stat
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlhealth import __version__

_HEADER = b"rlhealth cache 1\n"
_LARGEST = 64 << 20  # bytes; the rules take half a megabyte
_ENDING = ".rlhealth-cache"
_KEPT = 30 * 86_400  # seconds; older ones, of installations that may be gone, are removed when a new one is written


def cached(name: str, sources: Mapping[str, bytes], make: Callable[[], Any]) -> Any:
    """The value that `make` gives, kept under `name` for the next process.

    Args:
        name: what it is called among rlhealth's own, such as `rules`.
        sources: all that it is made from, by file; a kept value made from anything else is not used.
        make: makes it: of numbers, texts, bytes, None, tuples, lists and dicts.
    """
    place = _place(name)
    found = _read(place, sources) if place else None
    if found is not None:
        return found[0]
    value = make()
    if place:
        _write(place, sources, value)
    return value


def read_bytes(file: str) -> bytes:
    """The content of a file; nothing where it cannot be read."""
    try:
        with open(file, "rb", buffering=0) as stream:  # noqa: PTH123 (a hundred files at every start)
            return stream.read()
    except OSError:
        return b""


def folder() -> Path | None:
    """Where this user's values are kept: $RLHEALTH_CACHE_DIR, else in the user's cache folder; None for nowhere."""
    chosen = os.environ.get("RLHEALTH_CACHE_DIR")
    if chosen is not None:
        return Path(chosen).absolute() if chosen else None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local")
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        base = base.expanduser()
    except RuntimeError:  # nobody's process
        return None
    return base / "rlhealth" if base.is_absolute() else None


def _place(name: str) -> Path | None:
    """The file of a value: each version, Python and installation has its own, so that they do not take turns."""
    where = folder()
    installation = zlib.crc32(os.fsencode(__file__))
    ending = f"{__version__}-{sys.implementation.cache_tag}-{installation:08x}{_ENDING}"
    return None if where is None else where / f"{name}-{ending}"


def _read(place: Path, sources: Mapping[str, bytes]) -> tuple[Any] | None:
    """The value that was kept, in a tuple of its own; None where there is none that can be relied on."""
    try:
        opened = os.open(place, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):
        return None
    try:
        with os.fdopen(opened, "rb", buffering=0) as stream:
            raw = stream.read() if _is_own(os.fstat(opened)) else b""
        body = memoryview(raw)[len(_HEADER) + 4 :]
        if not raw.startswith(_HEADER) or raw[len(_HEADER) : len(_HEADER) + 4] != _sum_of(body):
            return None
        made_from, value = marshal.loads(body)  # noqa: S302 (loads values only, and of this user's own file)
    except (OSError, ValueError, TypeError, EOFError, MemoryError):
        return None
    return (value,) if made_from == sources else None


def _is_own(found: os.stat_result) -> bool:
    """Whether it is a file of a likely size that this user wrote and nobody else can write."""
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
        return False
    return not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)


def _sum_of(body: memoryview | bytes) -> bytes:
    return zlib.crc32(body).to_bytes(4, "big")


def _write(place: Path, sources: Mapping[str, bytes], value: Any) -> None:
    """Keeps a value, whole or not at all: written beside its place and renamed."""
    import tempfile  # late: once for each new version

    part = None
    with contextlib.suppress(OSError, ValueError):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        body = marshal.dumps((dict(sources), value))
        handle, part = tempfile.mkstemp(_ENDING, dir=place.parent)  # for this user only
        with os.fdopen(handle, "wb") as stream:
            stream.write(_HEADER + _sum_of(body) + body)
        Path(part).replace(place)
        _remove_old(place.parent)
        return
    with contextlib.suppress(OSError):
        if part is not None:
            Path(part).unlink()


@functools.cache  # once a process: a first start keeps dozens of values, and the folder may hold thousands
def _remove_old(where: Path) -> None:
    """Removes values that were kept long ago, and parts of a writer that was killed; nothing that is not ours."""
    oldest = time.time() - _KEPT
    for one in where.iterdir():
        if one.name.endswith(_ENDING):
            with contextlib.suppress(OSError):
                if one.lstat().st_mtime < oldest:
                    one.unlink()
