"""DVCLive's folder: `plots/metrics/<metric>.tsv` (`scalars/` before 1.0), with `step` and the value in each line;
params.yaml beside.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.appended import AppendedFiles, Parse, Point
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.settings_file import settings_file
from rlhealth.sources.base.spelling import clock, number, whole
from rlhealth.sources.base.values import training_config

KIND = "dvclive"
_CLOCK = "timestamp"


class DvcLive:
    """Reads the tables of one folder of DVCLive's; each line is read once.

    Args:
        metrics: the folder of the tables.
    """

    def __init__(self, metrics: Path) -> None:
        self.metrics = metrics
        self.folder = metrics.parent.parent if metrics.name == "metrics" else metrics.parent
        self._files = AppendedFiles(metrics, ".tsv", _parser)
        self.run = Run(self.folder.name, Place(KIND, str(self.folder)))

    def poll(self) -> bool:
        """Reads the new lines; True if there were any.

        Raises:
            RlhealthError: if the folder is gone, or holds no metric.
        """
        changed = self._files.read(self.run)
        self.run.modified = self._files.modified
        self.run.config = training_config(settings_file(self.folder / "params.yaml"))
        self.run.problems[:] = self._files.problems
        if not self.run.series:
            hint = "DVCLive writes a table a metric: step and value in each line"
            raise RlhealthError(f"{self.metrics}: no metrics in it", hint=hint, location=str(self.metrics))
        return changed


def folder_of(path: Path) -> Path | None:
    """The folder of tables that a file belongs to, where DVCLive wrote it; None if it is another table."""
    if path.suffix != ".tsv":
        return None
    for folder in path.parents:
        if folder.name == "scalars" or (folder.name == "metrics" and folder.parent.name == "plots"):
            return folder
    return None


def readers(files: Iterable[Path], root: Path) -> list[Reader]:
    """A reader for every folder of tables among files that were come across."""
    folders = dict.fromkeys(folder for path in files if (folder := folder_of(path)) is not None)
    return [DvcLive(folder) for folder in folders]


def find(path: Path) -> list[Reader]:
    """A reader for the folder that a table belongs to.

    Raises:
        RlhealthError: if it is no table of DVCLive's.
    """
    found = readers([path], path.parent)
    if not found:
        hint = "DVCLive's tables lie in plots/metrics/"
        raise RlhealthError(f"{path}: no table of DVCLive", hint=hint, location=str(path))
    return found


def _parser() -> Parse:
    """A parser of one table: its first line names the columns, of which one is the step, one may be the time."""
    names: list[str] = []

    def parse(cells: list[str]) -> Point | tuple[()] | None:
        if not names:
            names.extend(cells)
            return () if "step" in cells else None
        row = dict(zip(names, cells, strict=False))
        step = whole(row.get("step"))
        value = next((number(cell) for name, cell in row.items() if name not in ("step", _CLOCK)), None)
        if step is None or value is None:
            return None
        time = clock(row.get(_CLOCK))
        return step, value, time

    return parse
