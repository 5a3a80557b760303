"""What an object store says of an object, in the words of each store: its size, its time, and whether a file of this
machine can have its name."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

_LATEST = 1 << 37  # seconds since 1970, in the year 6325: a time beyond it is none


def size_of(found: dict[str, Any]) -> int:
    """The bytes of an object; 0 if the store does not say."""
    try:
        return max(0, int(found.get("size") or 0))
    except (TypeError, ValueError, OverflowError):
        return 0


def may_be_written(path: Path) -> bool:
    """Whether a file may have this name here, and no folder has it, nor a file the name of one of its folders."""
    try:
        os.lstat(path.with_name(f".{path.name}.new"))  # as it is called while it is written
    except FileNotFoundError:
        return not path.is_dir()
    except (OSError, ValueError):
        return False
    return not path.is_dir()


def modified(found: dict[str, Any]) -> float:
    """When an object was written, seconds since 1970; 0 if the store does not say."""
    said = next((found[key] for key in ("LastModified", "mtime", "updated", "last_modified") if found.get(key)), None)
    if isinstance(said, str):
        try:
            said = datetime.fromisoformat(said)
        except ValueError:
            return 0.0
    try:
        seconds = said.timestamp() if isinstance(said, datetime) else float(said or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return seconds if 0 < seconds < _LATEST else 0.0
