"""Files that are written whole or not at all: a full disk, a kill or a second writer leaves the good file as it was."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Writes a file beside the one that is meant, syncs it and puts it in its place; a pipe or a device is written as
    it is.

    Raises:
        OSError: if it cannot be written; what was there is as it was.
    """
    with replaced(path) as place, place.open("w", encoding="utf-8", newline="") as out:
        out.write(text)


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """The place to write a file to: beside the one that is meant, synced and renamed over it if nothing was raised.

    A pipe or a device is its own place.

    Raises:
        OSError: if it cannot be written; what was there is as it was.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        before = target.stat()
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        yield target
        return
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied", str(path))
    import tempfile  # late: most reports go to standard output

    handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
    os.close(handle)
    place = Path(name)
    try:
        yield place
        _sync(place)
        place.chmod(stat.S_IMODE(before.st_mode) if before is not None else _usual_mode())
        place.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            place.unlink()
        raise
    with contextlib.suppress(OSError):  # not every system opens a folder
        _sync(target.parent)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keeps other processes that ask for the same file waiting: a lock on its folder, which leaves nothing behind.

    Where the system knows no such lock, nobody waits.
    """
    try:
        import fcntl

        folder = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def is_same_file(one: str | Path, other: str | Path) -> bool:
    """Whether two names are of one file that is there."""
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 (takes text too)
    except (OSError, ValueError):
        return False


def _usual_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(place: Path) -> None:
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
