"""Folders for copies of files that cannot be read in place: private, below the system's temporary folder, and deleted
after use.
"""

from __future__ import annotations

import tempfile

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.walk import reason

ANOTHER = "point TMPDIR to a folder that can be written and has room, such as /dev/shm"


def temporary_folder(where: str, prefix: str = "rlhealth-") -> tempfile.TemporaryDirectory[str]:
    """A new folder.

    Args:
        where: what needs it.
        prefix: how its name begins.

    Raises:
        RlhealthError: if there is none that can be written.
    """
    try:
        return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    except OSError as error:
        raise no_room(where, error) from None


def no_room(where: str, error: OSError) -> RlhealthError:
    """The error if there is no temporary folder, or no space in it."""
    why = (
        "no temporary folder can be written"
        if isinstance(error, FileNotFoundError)
        else f"no temporary folder: {reason(error)}"
    )
    return RlhealthError(f"{where}: {why}", hint=ANOTHER, location=where)
