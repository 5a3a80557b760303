"""Stores: the places in which a run keeps its completions, read step by step as they grow, and asked again for one step
to show."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rlhealth.completions import tables
from rlhealth.completions.batch import Batch, batches, holds_texts, in_columns
from rlhealth.errors import RlhealthError
from rlhealth.sources.base.growing import GrowingFile

if TYPE_CHECKING:
    from rlhealth.sources.trackio.project import Project

#: Seconds without a write after which a file counts as complete.
SETTLED = 10.0
_LARGEST_ROW = 256 << 20  # bytes of a row of Trackio's
_TRACKIO_TABLE = "trackio.table"
_WITH_TABLE = (
    f"CASE WHEN length(metrics) < {_LARGEST_ROW} AND instr(CAST(metrics AS TEXT), '{_TRACKIO_TABLE}') THEN metrics END"
)
Wanted = Callable[[int], bool]


class Store(Protocol):
    """Where the texts of a run lie.

    Attributes:
        place: a path or an address, for messages.
        problems: what could not be read, one sentence per problem.
    """

    place: str
    problems: list[str]

    def poll(self, wanted: Wanted) -> Iterator[Batch]:
        """The batches that are new since the last poll, in order; `wanted` is asked with the number of each, from 0."""
        ...

    def steps(self) -> list[int]:
        """The steps that were met so far, in order."""
        ...

    def at(self, step: int) -> Batch | None:
        """The texts of that step, read anew; None if there are none."""
        ...


class CompletionFolder:
    """A folder with a file per step: TRL's parquet files, wandb's tables, verl's JSON lines.

    Args:
        folder: where they lie.
        name: matches the name of such a file; its group `n` is the number by which they are ordered.
        is_step: whether that number is the trainer's step, for rows without a step.
    """

    def __init__(self, folder: Path, name: re.Pattern[str], *, is_step: bool = True) -> None:
        self.folder, self.name, self.is_step = folder, name, is_step
        self.place = str(folder)
        self.problems: list[str] = []
        self._states: dict[Path, tuple[int, int]] = {}
        self._path_at: dict[int, tuple[Path, int]] = {}
        self._listed: object = None
        self._waits = False
        self._size = 0

    def poll(self, wanted: Wanted) -> Iterator[Batch]:
        """The batches of new files; the newest one waits for the next poll where it is not whole yet."""
        files = self._files()
        for place, (number, path, state) in enumerate(files):
            if self._states.get(path) == state:
                continue
            if not wanted(place):
                self._states[path] = state
                if self.is_step:
                    self._path_at[number] = path, number
                continue
            found = self._whole(path, number, state, newest=place == len(files) - 1)
            if found is None:
                continue
            self._states[path] = state
            self._size = sum(map(len, found))
            for one in found:
                if one.step is not None:
                    self._path_at[one.step] = path, number
                    yield one

    def steps(self) -> list[int]:
        """The steps of the files that were met."""
        return sorted(self._path_at)

    def at(self, step: int) -> Batch | None:
        """The texts of that step."""
        if step not in self._path_at:
            return None
        try:
            found = self._read(*self._path_at[step])
        except RlhealthError:
            return None
        return next((one for one in found if one.step == step), None)

    def look_again(self) -> None:
        """Looks at every file again at the next poll: the run went back, and files may be written anew in their
        places."""
        self._listed = None

    def _files(self) -> list[tuple[int, Path, tuple[int, int]]]:
        try:
            listed = self.folder.stat().st_mtime_ns
            if listed == self._listed and not self._waits:
                return []
            self._listed, self._waits = listed, False
            found = []
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if (match := self.name.fullmatch(entry.name)) and entry.is_file():
                        here = entry.stat()
                        found.append((int(match["n"]), Path(entry.path), (here.st_size, here.st_mtime_ns)))
        except OSError:
            return []
        return sorted(found)

    def _whole(self, path: Path, number: int, state: tuple[int, int], *, newest: bool) -> list[Batch] | None:
        """What a file holds; None if it is being written. Lines are whole when there are as many as in the file
        before."""
        fresh = newest and _is_fresh(state)
        try:
            found = self._read(path, number)
        except RlhealthError as error:
            if fresh:
                self._waits = True
                return None
            self.problems.append(f"completions: {error.message}")
            return []
        if fresh and path.suffix == ".jsonl" and sum(map(len, found)) < max(self._size, 1):
            self._waits = True
            return None
        return found

    def _read(self, path: Path, number: int) -> list[Batch]:
        try:
            return tables.read(path, number if self.is_step else None)
        except tables.NoCompletions:
            return []


class CompletionFile:
    """A file with the texts of many steps; JSON lines that grow are read on from where the last poll stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = str(path)
        self.problems: list[str] = []
        self._state: tuple[int, int] | None = None
        self._lines = GrowingFile(path)
        self._rows: list[dict[str, Any]] = []
        self._met: dict[int, None] = {}

    def poll(self, wanted: Wanted) -> Iterator[Batch]:
        """The batches of steps that were not met before; the newest step waits while the file grows."""
        try:
            here = self.path.stat()
        except OSError:
            return
        state = here.st_size, here.st_mtime_ns
        if state == self._state and not self._rows:
            return
        try:
            found = tables.read(self.path) if self.path.suffix == ".parquet" else self._new_lines(state)
        except RlhealthError as error:
            found = []
            self._say(error.message)
        self._state = state
        if any(one.step is None for one in found):
            self._say(f"{self.path}: rows without a step were left out")
        for one in found:
            if one.step is not None and one.step not in self._met:
                self._met[one.step] = None
                if wanted(len(self._met) - 1):
                    yield one

    def steps(self) -> list[int]:
        """The steps that were met."""
        return sorted(self._met)

    def at(self, step: int) -> Batch | None:
        """The texts of that step."""
        try:
            return next((one for one in tables.read(self.path) if one.step == step), None)
        except RlhealthError:
            return None

    def _new_lines(self, state: tuple[int, int]) -> list[Batch]:
        if self._lines.was_rewritten():
            self._lines.start_again()
            self._rows = []
        for _, line in self._lines.lines():
            if len(self._rows) < tables.MOST_ROWS and (row := tables.row_of(line)) is not None:
                self._rows.append(row)
        if not _is_fresh(state) and (row := tables.row_of(self._lines.take_rest())) is not None:
            self._rows.append(row)
        columns = in_columns(self._rows)
        if not self._rows:
            return []
        tables.check(columns, self.path)
        found = batches(columns)
        if _is_fresh(state) and found and found[-1].step is not None:
            newest = found.pop()
            self._rows = self._rows[-len(newest) :]
        else:
            self._rows = []
        return found

    def _say(self, message: str) -> None:
        if f"completions: {message}" not in self.problems:
            self.problems.append(f"completions: {message}")


class TrackioTables:
    """The tables that a trainer logged to Trackio, in the rows of its metrics."""

    def __init__(self, project: Project, name: str, run_id: str | None) -> None:
        self.project, self.name, self.run_id = project, name, run_id
        self.place = str(project.path)
        self.problems: list[str] = []
        self._last = -1
        self._signature: object = None
        self._row_at: dict[int, int] = {}

    def poll(self, wanted: Wanted) -> Iterator[Batch]:
        """The batches of new rows."""
        from rlhealth.sources.trackio.sqlite_copy import DAMAGE  # late: most runs have no database

        try:
            connection = self.project.connection()
            if self.project.database.signature == self._signature:
                return
            self._signature = self.project.database.signature
            where, keys = self.project.where(self.name, self.run_id)
            statement = f"SELECT id, {_WITH_TABLE} FROM metrics WHERE id > ? AND {where} ORDER BY id"  # noqa: S608 (names are ours)
            for identifier, metrics in connection.execute(statement, (self._last, *keys)):
                self._last = identifier
                for one in _trackio(metrics) if metrics is not None else ():
                    if one.step is not None:
                        self._row_at[one.step] = identifier
                        if wanted(len(self._row_at) - 1):
                            yield one
        except (RlhealthError, *DAMAGE):  # the run's own reader says so
            return

    def steps(self) -> list[int]:
        """The steps that were met."""
        return sorted(self._row_at)

    def at(self, step: int) -> Batch | None:
        """The texts of that step."""
        if step not in self._row_at:
            return None
        from rlhealth.sources.trackio.sqlite_copy import DAMAGE

        try:
            row = (
                self.project.connection()
                .execute("SELECT metrics FROM metrics WHERE id = ?", (self._row_at[step],))
                .fetchone()
            )
        except (RlhealthError, *DAMAGE):
            return None
        return next((one for one in _trackio(row[0]) if one.step == step), None) if row else None


def _trackio(metrics: bytes | str) -> list[Batch]:
    from rlhealth.sources.trackio.project import loads

    row: Any = loads(metrics)
    if not isinstance(row, dict):
        return []
    for value in row.values():
        if isinstance(value, dict) and value.get("_type") == _TRACKIO_TABLE:
            columns = in_columns(tables.rows_of(value.get("_value")))
            if holds_texts(columns):
                return batches(columns)
    return []


def _is_fresh(state: tuple[int, int]) -> bool:
    """Whether a file was written to a moment ago, so that its end may be missing."""
    return 0 <= time.time() - state[1] / 1e9 < SETTLED
