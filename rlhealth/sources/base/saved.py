"""A file that is saved as a whole, again and again: whether it has changed, and whether it is being saved now."""

from __future__ import annotations

import os
import time

STILL_WRITTEN = 5.0  # seconds since the last write in which what is not whole may be half written
#: What distinguishes a file that was saved again from the one that was read: inode, size and modification time.
Stamp = tuple[int, int, int]


def stamp_of(here: os.stat_result) -> Stamp:
    """The stamp of the file whose state that is."""
    return here.st_ino, here.st_size, here.st_mtime_ns


def is_being_written(modified: float) -> bool:
    """Whether a file that was written at `modified` (seconds since 1970) may be half written now."""
    return time.time() - modified < STILL_WRITTEN
