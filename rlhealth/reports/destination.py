"""Where a report may be written: never over a log, nor among the logs of a tracker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.walk import kind_of
from rlhealth.system.files import is_same_file

if TYPE_CHECKING:
    from rlhealth.verdict.verdicts import Verdict


def refuse_logs(file: str, verdict: Verdict, flag: str = "-o") -> None:
    """Raises RlhealthError if what `flag` writes would take the place of a log that was judged, or of any tracker's
    file.
    """
    places = [run.run.place.file for run in verdict.runs]
    places += [one.location for one in verdict.errors] + [one.location for one in verdict.left_out]
    within = any(Path(one).is_dir() and is_same_file(Path(file).parent, one) for one in places if one)
    tracked = kind_of(Path(file).name) in ("tensorboard", "wandb", "trackio", "trainer_state")
    if (tracked and Path(file).exists()) or any(is_same_file(file, one) for one in places if one):
        what = "a log that is being read" if not within else "a log beside those that are being read"
        raise RlhealthError(f"{file}: this is {what}", hint=f"{flag} takes a file that is no log", location=file)
