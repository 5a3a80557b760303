"""A file of arrays that is saved anew, as a whole, again and again: read whenever it has changed, waited for while
it is being saved."""

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
    """Reads one such file. What is in it differs in `fill` only.

    Attributes:
        kind: of the place, one of `SOURCES`.
        what: what the file should hold, for the error where it does not.
        hint: what to try then.
    """

    kind = ""
    what = ""
    hint = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = self.empty()
        self._seen: Stamp | None = None

    def poll(self) -> bool:
        """Reads the file if it was saved since; True if it says more or other than before.

        Raises:
            RlhealthError: if it cannot be read, or holds something else.
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
        """Adds what the file holds. Raises one of `DAMAGE` where it holds something else."""
        raise NotImplementedError
