"""A file of arrays that is rewritten as a whole at each save: it is read again after each change, and skipped while it
is being saved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.arrays import DAMAGE
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.saved import Stamp, is_being_written, stamp_of
from rlhealth.sources.rows.rewritten import bring_up_to_date
from rlhealth.sources.rows.textlog import run_name


class SavedArrays:
    """Reads one such file. Subclasses differ only in `fill`.

    Attributes:
        kind: of the place, one of `SOURCES`.
        what: the expected content of the file, for the error if it has other content.
        hint: what to try in that case.
    """

    kind = ""
    what = ""
    hint = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = self.empty()
        self._seen: Stamp | None = None

    def poll(self) -> bool:
        """Reads the file if it was saved since the last poll; True if its content grew or changed.

        Raises:
            RlhealthError: if it cannot be read, or has other content.
        """
        with open_regular(self.path) as file:
            here = os.fstat(file.fileno())
            stamp = stamp_of(here)
            if stamp == self._seen:
                return False
            found = self.empty()
            try:
                self.fill(found, file)
            except DAMAGE as error:
                if self.run.series and is_being_written(here.st_mtime):
                    return False  # it is being saved; the next poll reads it whole
                said = str(error).partition("\n")[0][:100] or type(error).__name__
                raise RlhealthError(
                    f"{self.path}: no {self.what} that can be read: {said}", hint=self.hint, location=str(self.path)
                ) from error
        self._seen, self.run.modified = stamp, here.st_mtime
        return bring_up_to_date(self.run, found)

    def empty(self) -> Run:
        """A run without a point."""
        return Run(run_name(self.path), Place(self.kind, str(self.path)))

    def fill(self, run: Run, file: IO[bytes]) -> None:
        """Adds the content of the file. Raises one of `DAMAGE` if it has other content."""
        raise NotImplementedError
