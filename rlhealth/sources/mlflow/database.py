"""Runs in MLflow's SQLite database (`mlflow.db`, `mlruns.db`): read without a lock, also while a server writes it."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.run import MOST_TAGS, Place, Run
from rlhealth.sources.base.counted import counted
from rlhealth.sources.base.spelling import FURTHEST
from rlhealth.sources.base.values import training_config
from rlhealth.sources.mlflow.folder import EXIT_CODES, KIND, finite
from rlhealth.sources.trackio.sqlite_copy import DAMAGE, SqliteCopy

TABLES = frozenset({"runs", "metrics", "params", "experiments"})
BATCH = 20_000  # rows at once: bounds the memory
_RUNS = (
    "SELECT run_uuid, CAST(name AS TEXT) FROM runs WHERE lifecycle_stage = 'active' AND EXISTS "
    "(SELECT 1 FROM metrics WHERE metrics.run_uuid = runs.run_uuid) ORDER BY start_time"
)
_POINTS = (
    "SELECT rowid, key, value, timestamp, step, is_nan FROM metrics WHERE "
    "run_uuid = ? AND rowid > ? ORDER BY rowid LIMIT ?"
)


def is_mlflow(path: Path) -> bool:
    """Whether a file is a database of MLflow's."""
    database = SqliteCopy(path)
    try:
        rows = database.connection().execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except (RlhealthError, OSError, *DAMAGE):
        return False
    finally:
        database.close()
    return {str(name) for (name,) in rows} >= TABLES


class Database:
    """One database, shared by the readers of its runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.copy = SqliteCopy(path)

    def connection(self) -> sqlite3.Connection:
        """A connection that shows what is committed now.

        Raises:
            RlhealthError: if the file is gone, not to be read, or damaged beyond reading.
        """
        try:
            return self.copy.connection()
        except DAMAGE as error:
            raise self.broken(error) from None

    def runs(self) -> list[tuple[str, str]]:
        """Id and name of every run that has metrics and was not deleted, in the order of their starts.

        Raises:
            RlhealthError: if the database cannot be read.
        """
        try:
            found = self.connection().execute(_RUNS).fetchmany(MOST_TAGS)
        except DAMAGE as error:
            raise self.broken(error) from None
        return [(str(identifier), str(name or identifier)) for identifier, name in found]

    def broken(self, error: BaseException) -> RlhealthError:
        """What is said where the database cannot be read."""
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        hint = "copy it again, or restore it with: sqlite3 FILE .recover"
        return RlhealthError(f"{self.path}: damaged ({said})", hint=hint, location=str(self.path))


class MlflowRun:
    """Reads one run of a database; rows are read in the order in which they were written, each once."""

    def __init__(self, database: Database, identifier: str, name: str) -> None:
        self.database = database
        self.identifier = identifier
        self.run = Run(name, Place(KIND, str(database.path), identifier))
        self._last = -1
        self._seen: object = None
        self._lost = 0

    def poll(self) -> bool:
        """Reads the new rows; True if there were any.

        Raises:
            RlhealthError: if the database is gone, not to be read, or damaged.
        """
        connection = self.database.connection()
        if self._seen == self.database.copy.signature:
            return False
        self._seen = self.database.copy.signature
        before = self._last
        try:
            while rows := connection.execute(_POINTS, (self.identifier, self._last, BATCH)).fetchall():
                self._last = int(rows[-1][0])
                self._take(rows)
            self._describe(connection)
        except DAMAGE as error:
            self.run.problems[:] = [f"{self.database.path.name}: damaged; some rows may be lost"]
            if not self.run.series:
                raise self.database.broken(error) from None
        return self._last != before

    def _take(self, rows: list[tuple[Any, ...]]) -> None:
        columns: dict[str, tuple[list[int], list[float], list[float]]] = {}
        for _, key, value, timestamp, step, is_nan in rows:
            sound = isinstance(step, int) and abs(step) < FURTHEST and isinstance(value, int | float)
            if not sound or not isinstance(key, str) or (key not in columns and len(columns) >= MOST_TAGS):
                self._lost += 1
                continue
            steps, values, times = columns.setdefault(key, ([], [], []))
            steps.append(step)
            values.append(math.nan if is_nan else finite(float(value)))
            times.append(timestamp / 1000 if isinstance(timestamp, int | float) else math.nan)
        for key, column in columns.items():
            self.run.add(key, *column)

    def _describe(self, connection: sqlite3.Connection) -> None:
        state = connection.execute("SELECT status FROM runs WHERE run_uuid = ?", (self.identifier,)).fetchone()
        self.run.exit_code = EXIT_CODES.get(str(state[0])) if state else None
        parameters = connection.execute("SELECT key, value FROM params WHERE run_uuid = ?", (self.identifier,))
        self.run.config = training_config({str(key): value for key, value in parameters.fetchmany(MOST_TAGS)})
        self.run.problems[:] = (
            [f"{counted(self._lost, 'row', 'rows')} passed over that hold no point"] if self._lost else []
        )
