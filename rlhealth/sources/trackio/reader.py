"""Trackio: the runs of a project in its SQLite database, also while it is being written."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.history import Rows
from rlhealth.sources.base.reader import Reader, Unreadable
from rlhealth.sources.base.values import training_config
from rlhealth.sources.base.walk import regular, walk
from rlhealth.sources.trackio.project import ALERT, NotTrackio, Project, loads
from rlhealth.sources.trackio.row_columns import columns_of
from rlhealth.sources.trackio.sqlite_copy import DAMAGE, MAGIC
from rlhealth.sources.trackio.sqlite_salvage import NEWEST, Salvage

ADDRESS = "trackio://"
SMALLEST_ROW = 16  # bytes
BATCH, BATCH_SIZE = 2000, 8 << 20  # rows and bytes at once: bounds the memory
_METRICS = f"CASE WHEN length(metrics) < {16 << 20} THEN metrics END"  # what is longer is no row of metrics
_EPOCH_ONLY = frozenset({"train/epoch"})
_BESIDE = frozenset({"train/global_step", "_step", "_timestamp"})
Row = tuple[int, str, int, bytes | str | None]


class TrackioReader:
    """Reads one run of a project; rows are read in the order of their ids, each once.

    The row that transformers writes when training has ended holds nothing but the epoch: such a last row gives
    `Run.clean` True.
    """

    def __init__(self, project: Project, name: str, run_id: str | None, *, alone: bool = True) -> None:
        self.project = project
        self.name = name
        self.run_id = run_id
        self.alone = alone
        self.only = False
        self.run = Run(name, Place("trackio", str(project.path), "" if alone else name))
        self._rows = Rows(self.run)
        self._last_id = -1
        self._seen: object = None
        self._lost = 0
        self._unreadable = 0
        self._ended = False

    def poll(self) -> bool:
        """Reads the new rows; True if there were any.

        Raises:
            RlhealthError: if the database is gone, locked away, damaged beyond reading, or not Trackio's.
        """
        connection = self.project.connection()
        if self._seen == self.project.database.signature:
            return False
        self._seen = self.project.database.signature
        before = self._last_id
        for rows in self._new_rows(connection):
            self._take(rows)
        self._rows.flush()
        self._describe(connection)
        return self._last_id != before

    def appeared(self) -> list[Reader]:
        """Readers for the runs that have begun in the database, and that are not read yet; none if this run alone
        was asked for."""
        if self.only:
            return []
        new: list[Reader] = [
            TrackioReader(self.project, name, run_id, alone=False) for name, run_id in self.project.appeared()
        ]
        for one in new:
            if self.run.name != self.name:  # it was named by its folder
                one.run.name = f"{self.run.name.removesuffix(f'/{self.name}')}/{one.run.name}"
        return new

    def _new_rows(self, connection: sqlite3.Connection) -> Iterator[list[Row]]:
        first = self._last_id + 1
        where, keys = self.project.where(self.name, self.run_id, through_index=not first and not self.alone)
        statement = (
            f"SELECT id, timestamp, step, {_METRICS} FROM metrics WHERE id BETWEEN ? AND ? AND {where} ORDER BY id"  # noqa: S608 (names are ours)
        )
        try:
            cursor = connection.execute(statement, (first, NEWEST, *keys))
            yield from _batches(cursor)
        except DAMAGE:
            where, keys = self.project.where(self.name, self.run_id)
            statement = (
                f"SELECT id, timestamp, step, {_METRICS} FROM metrics NOT INDEXED "  # noqa: S608
                f"WHERE id BETWEEN ? AND ? AND {where} ORDER BY id"
            )
            rest = Salvage(connection, statement, keys, self._last_id + 1, self.project.newest_id(connection))
            yield from rest
            most = (
                sum(here[1] for here in self.project.database.signature if here) // SMALLEST_ROW
            )  # a damaged counter may say anything
            self._lost += min(max(rest.lost, 1), most)  # at least one: nobody knows how much followed

    def _take(self, rows: list[Row]) -> None:
        found: list[dict[str, Any]] = []
        for identifier, timestamp, step, metrics in rows:
            row = loads(metrics)
            self._last_id = max(self._last_id, identifier)
            if not isinstance(row, dict):
                self._unreadable += 1
                continue
            row["_step"] = step
            row["_timestamp"] = _seconds(timestamp)
            found.append(row)
        if found:
            self._ended = found[-1].keys() - _BESIDE == _EPOCH_ONLY
            columns = columns_of(found)
            if columns is not None:
                self._rows.take_columns(columns)
            else:
                for row in found:
                    self._rows.take(row)

    def _describe(self, connection: sqlite3.Connection) -> None:
        run = self.run
        if self._rows.axis is None:
            run.step_axis = "step"
        run.clean = True if self._ended and len(run.series) > 1 else None
        # an empty log file beside the database only says that somebody looked into it
        run.modified = max(
            (here[2] / 1e9 for here in self.project.database.signature if here is not None and here[1]),
            default=math.nan,
        )
        try:
            trainer = run.config.get("trainer_class")
            run.config = training_config(self.project.config(connection, self.name, self.run_id))
            if trainer:
                run.config.setdefault("trainer_class", trainer)
            alerts = self.project.alerts(connection, self.name, self.run_id)
        except DAMAGE:
            alerts = []
            self._lost = self._lost or 1
        run.notes = [note for note in run.notes if not note.startswith(ALERT)] + alerts
        run.problems = run.refusals
        if self.project.database.damaged and not self._lost:
            run.problems.append("the database is damaged or cut short; nothing shows what it lost")
        if self._lost:
            run.problems.append(
                f"the database is damaged: {self._lost:,} row{'s' if self._lost > 1 else ''} at least could not be read"
            )
        if self._unreadable:
            run.problems.append(f"{self._unreadable:,} row{'s' if self._unreadable > 1 else ''} left out: not JSON")


def find(where: Path | str) -> list[Reader]:
    """A reader for every run at a path (a database, or a folder) or an address (`trackio://project`, `trackio://project/run`).

    Raises:
        RlhealthError: if there is no such project or run, or its database cannot be read.
    """
    if isinstance(where, str) and where.startswith(ADDRESS):
        return _at_address(where)
    path = Path(where)
    if path.is_dir():
        return readers(walk(path).files.get("trackio", []), path)
    regular(path)
    return _in_project(Project(path))


def readers(files: Iterable[Path], root: Path) -> list[Reader]:
    """A reader for every run in those of these files that are Trackio's, which lie below `root`; one that cannot be
    read says so when polled."""
    found: list[Reader] = []
    for path in files:
        try:
            found += _in_project(Project(path))
        except NotTrackio:
            continue
        except RlhealthError as error:
            if _looks_like_trackio(path):
                found.append(Unreadable(error))
    return found


def folder() -> Path:
    """Where Trackio keeps its projects: $TRACKIO_DIR, else `trackio` in the Hugging Face cache."""
    if os.environ.get("TRACKIO_DIR"):
        return Path(os.environ["TRACKIO_DIR"])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(os.environ.get("HF_HOME") or cache).expanduser() / "trackio"


def _batches(cursor: Iterable[Row]) -> Iterator[list[Row]]:
    rows: list[Row] = []
    size = 0
    for row in cursor:
        rows.append(row)
        size += len(row[3]) if isinstance(row[3], str | bytes) else 0
        if len(rows) == BATCH or size > BATCH_SIZE:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _in_project(project: Project) -> list[Reader]:
    runs = project.taken()
    return [TrackioReader(project, name, run_id, alone=len(runs) == 1) for name, run_id in runs]


def _at_address(where: str) -> list[Reader]:
    project, _, wanted = unquote(where.removeprefix(ADDRESS)).strip("/").partition("/")
    safe = (
        "".join(letter for letter in project if letter.isalnum() or letter in "-_") or "default"
    )  # as Trackio names its files
    path = folder() / f"{safe}.db"
    if not path.is_file():
        there = ", ".join(sorted(one.stem for one in folder().glob("*.db"))[:20]) if folder().is_dir() else ""
        hint = f"there are {there}" if there else "set TRACKIO_DIR to the folder of the projects, or name the .db file"
        raise RlhealthError(f"{where}: no project {project!r} in {folder()}", hint=hint, location=where)
    found = _in_project(Project(path))
    chosen = [one for one in found if isinstance(one, TrackioReader) and wanted in ("", one.name, one.run_id)]
    if not chosen:
        names = ", ".join(one.run.name for one in found[:20])
        raise RlhealthError(f"{where}: no run {wanted!r} in this project", hint=f"there are {names}", location=where)
    for one in chosen:
        one.only = bool(wanted)
    return list(chosen)


def _looks_like_trackio(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            is_sqlite = file.read(len(MAGIC)) == MAGIC
    except OSError:
        is_sqlite = False
    return is_sqlite or path.parent.name == "trackio" or path.with_suffix(".lock").exists()


@lru_cache(4)  # rows are written in batches, which share a time
def _seconds(timestamp: object) -> float:
    try:
        return datetime.fromisoformat(str(timestamp)).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan
