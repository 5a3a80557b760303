"""History that wandb's server exported: Parquet files of one run, a column a key, read in batches with pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.candidates import is_wandb_export
from rlhealth.sources.base.columns import ABSENT, NUMBER, Columns
from rlhealth.sources.base.history import AXES, Rows
from rlhealth.sources.base.parquet import lacking, plain
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.values import number
from rlhealth.sources.wandb.history import TRAINER, is_needed

KIND = "wandb_export"
INSTALL = "pip install 'rlhealth[parquet]'"
MOST_COLUMNS = 20_000
_AT_ONCE = 1000  # rows of a batch, which may hold thousands of columns
LARGEST_GROUP = 1 << 30  # bytes of one row group, as the file declares


class ExportReader:
    """Reads the exported files of one folder, which are the parts of one run; if one changes, reads all of them again.

    Args:
        paths: the files.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        place = self.paths[0] if len(self.paths) == 1 else self.paths[0].parent
        self.run = Run(place.stem if place.is_file() else place.name, Place(KIND, str(place)))
        self._seen: list[tuple[int, float]] = []

    def poll(self) -> bool:
        """Reads the files; False where none of them changed since.

        Raises:
            RlhealthError: if they cannot be read: no pyarrow that works, damaged.
        """
        now = [(one.st_size, one.st_mtime) for one in (path.stat() for path in self.paths)]
        if now == self._seen:
            return False
        if missing := lacking(INSTALL):
            place = self.run.place.location
            raise RlhealthError(f"{place}: {missing[0]}", hint=missing[1], location=place)
        from pyarrow import ArrowException, parquet

        self.run.clear()
        rows = Rows(self.run)
        for path in self._in_order(parquet, ArrowException):
            try:
                for columns in _columns(parquet.ParquetFile(path)):
                    rows.take_columns(columns)
            except (ArrowException, OSError, ValueError) as error:
                first = str(error).partition("\n")[0] or type(error).__name__
                said = f"{path.name}: damaged: {first[:200]}"
                self.run.problems.append(said)
        rows.flush()
        self.run.modified = max(moment for _, moment in now)
        self._seen = now
        if not self.run.series:
            why = self.run.problems[0] if self.run.problems else "no metrics in it"
            place = self.run.place.location
            raise RlhealthError(f"{place}: {why}", hint="export the run's history again", location=place)
        return True

    def _in_order(self, parquet: Any, damaged: type[Exception]) -> list[Path]:
        """The files, ordered by the first `_step` in each; their names may not show the order."""

        def first(path: Path) -> float:
            try:
                batch = next(parquet.ParquetFile(path).iter_batches(1, columns=["_step"]), None)
                return float(plain(batch.column(0)[0])) if batch is not None else float("inf")
            except (damaged, OSError, ValueError, TypeError, LookupError, OverflowError):  # no such column, no number
                return float("inf")

        return sorted(self.paths, key=lambda path: (first(path), path.name))


def _columns(file: Any) -> Iterator[Columns]:
    """The rows of a file in batches, without those of wandb's own keys that no metric needs."""
    if any(file.metadata.row_group(index).total_byte_size > LARGEST_GROUP for index in range(file.num_row_groups)):
        raise ValueError(f"rows of more than {LARGEST_GROUP >> 20:,} MiB in one group")
    names = [name for name in file.schema_arrow.names if _is_needed(name)][:MOST_COLUMNS]
    for batch in file.iter_batches(_AT_ONCE, columns=names):
        shape = len(batch.schema.names), batch.num_rows
        found = Columns(list(batch.schema.names), np.zeros(shape), np.full(shape, ABSENT, np.uint8), {})
        for index, column in enumerate(batch.columns):
            there = np.asarray(column.is_valid())
            if str(column.type) in ("double", "float") or str(column.type).startswith(("int", "uint")):
                found.values[index] = np.asarray(column.fill_null(0), np.float64)
                found.state[index, there] = NUMBER
                continue
            for place in np.flatnonzero(there).tolist():
                value = plain(column[place])
                known = number(value)
                if known is not None:
                    found.values[index, place], found.state[index, place] = known, NUMBER
                else:
                    found.odd.setdefault(place, {})[found.tags[index]] = value
        yield found


def _is_needed(name: str) -> bool:
    return name.startswith(("_", TRAINER)) or name in AXES or is_needed(name)


def readers(files: Iterable[Path], root: Path) -> list[Reader]:
    """A reader for the exported files of each folder, among the files that were found."""
    return [ExportReader(list(part)) for _, part in groupby(sorted(files), lambda path: path.parent)]


def find(path: Path) -> list[Reader]:
    """A reader for one exported file.

    Raises:
        RlhealthError: if it is none.
    """
    if not is_wandb_export(path):
        hint = "a Parquet file is read where wandb exported a run's history into it: with a column _step"
        raise RlhealthError(f"{path}: no history that wandb exported", hint=hint, location=str(path))
    return [ExportReader([path])]
