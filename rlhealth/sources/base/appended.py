"""One metric per file, one point per line, as in MLflow's folders and DVCLive: new lines of each file are added to the
run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.run import MOST_TAGS, Run
from rlhealth.sources.base.counted import counted
from rlhealth.sources.base.growing import GrowingFile

LONGEST_LINE = 1 << 16  # bytes; a point has about fifty
#: Step, value and wall time (seconds since 1970, or NaN) of a line; () for a heading, None if it holds no point.
Point = tuple[int, float, float]
Parse = Callable[[list[str]], Point | tuple[()] | None]


class AppendedFiles:
    """The files of one run's metrics; each byte is read once, as long as they only grow.

    Args:
        folder: below it each file is a metric, named by its path there.
        suffix: what the name of each file ends with, and is not part of the metric's name.
        make_parse: makes a parser of one file's lines, split into cells.
    """

    def __init__(self, folder: Path, suffix: str, make_parse: Callable[[], Parse]) -> None:
        self.folder = folder
        self._suffix = suffix
        self._make_parse = make_parse
        self._files: dict[str, tuple[GrowingFile, Parse]] = {}
        self.lost = 0
        self.modified = math.nan

    def read(self, run: Run) -> bool:
        """Reads new points; True if there were any.

        Raises:
            RlhealthError: if the folder is gone.
        """
        if not self.folder.is_dir():
            raise RlhealthError(
                f"{self.folder}: no such folder", hint="was the run deleted?", location=str(self.folder)
            )
        changed = False
        for path in sorted(self.folder.rglob(f"*{self._suffix}"))[:MOST_TAGS]:
            if not path.is_file():
                continue
            tag = path.relative_to(self.folder).as_posix().removesuffix(self._suffix)
            changed |= self._read_file(run, tag, path)
        return changed

    @property
    def problems(self) -> list[str]:
        """What could not be read, as sentences."""
        lines = counted(self.lost, "line", "lines")
        return [f"{self.folder.name}: {lines} passed over that hold no point"] if self.lost else []

    def _read_file(self, run: Run, tag: str, path: Path) -> bool:
        if tag not in self._files:
            self._files[tag] = (GrowingFile(path, None, LONGEST_LINE), self._make_parse())
        text, parse = self._files[tag]
        try:
            if text.was_rewritten():
                text.start_again()
                parse = self._make_parse()
                self._files[tag] = (text, parse)
                if tag in run.series and len(run.series[tag]):
                    run.series[tag].rewind(int(run.series[tag].steps[0]))
            points = [point for _, line in text.lines() if (point := self._point(line, parse))]
        except RlhealthError:  # gone since it was listed, or not to be read
            self.lost += 1
            return False
        self.modified = max(text.modified, self.modified) if math.isfinite(self.modified) else text.modified
        if points:
            run.add(tag, *(list(column) for column in zip(*points, strict=True)))
        return bool(points)

    def _point(self, line: bytes, parse: Parse) -> Point | tuple[()]:
        cells = line.decode("utf-8", "replace").split()
        point = parse(cells) if cells else ()
        self.lost += point is None
        return point or ()
