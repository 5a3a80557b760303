"""A file that is rewritten as a whole at each save: whether it has changed, and whether it is being saved now."""

from __future__ import annotations

import os
import time

STILL_WRITTEN = 5.0  # seconds after the last write in which an incomplete file may still be written
#: Identifies one saved state of a file: inode, size and modification time.
Stamp = tuple[int, int, int]


def stamp_of(here: os.stat_result) -> Stamp:
    """The stamp of a file with that stat result."""
    return here.st_ino, here.st_size, here.st_mtime_ns


def is_being_written(modified: float) -> bool:
    """Whether a file that was written at `modified` (seconds since 1970) may be half written now."""
    return time.time() - modified < STILL_WRITTEN
