"""A project of Trackio's: which runs its database holds, and the settings and alerts of each."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.values import hidden
from rlhealth.sources.trackio.sqlite_copy import DAMAGE, SqliteCopy
from rlhealth.sources.trackio.sqlite_salvage import Salvage

MOST_ALERTS = 20
LONGEST_ALERT = 300  # characters
ALERT = "the training script's alert"


class Project:
    """One database of Trackio's, which may hold several runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = SqliteCopy(path)
        self._columns: dict[str, set[str]] = {}
        self._known: dict[tuple[str, str | None], None] = {}
        self._known_to = -1
        self._seen: object = None

    def connection(self) -> sqlite3.Connection:
        """What the database holds now.

        Raises:
            RlhealthError: if it cannot be read, or is not Trackio's.
        """
        try:
            connection = self.database.connection()
            if not self._columns:
                for table in ("metrics", "configs", "alerts"):
                    self._columns[table] = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        except DAMAGE as error:
            self._columns = {}
            raise damaged(self.path, error) from error
        if not {"run_name", "step", "metrics", "timestamp"} <= self._columns["metrics"]:
            self._columns = {}
            if self.database.damaged:
                raise damaged(self.path, "its table of metrics cannot be found")
            hint = "Trackio's databases have a table metrics"
            raise NotTrackio(f"{self.path}: not a database of Trackio's", hint=hint, location=str(self.path))
        return connection

    def taken(self) -> list[tuple[str, str | None]]:
        """Names and ids of the runs, all of which the caller will read: only others are returned by `appeared` from
        then on.

        Raises:
            RlhealthError: as `runs` does.
        """
        found = self.runs()
        self._known, self._known_to = dict.fromkeys(found), self.newest_id(self.connection())
        self._seen = self.database.signature
        return found

    def runs(self) -> list[tuple[str, str | None]]:
        """Names and ids of the runs, in the order in which they began.

        Raises:
            RlhealthError: if it cannot be read, is not Trackio's, or holds no run.
        """
        connection = self.connection()
        found: dict[tuple[str, str | None], None] = {}
        for table in ("metrics", "configs"):
            if "run_name" in self._columns[table]:
                for name, run_id, _ in self._runs_in(connection, table):
                    found[str(name), run_id] = None
        if not found:
            hint = "a run that was killed early, or whose disk was full, leaves such a database"
            raise RlhealthError(
                f"{self.path}: no run in this Trackio project: its tables are empty", hint=hint, location=str(self.path)
            )
        return list(found)

    def appeared(self) -> list[tuple[str, str | None]]:
        """Names and ids of the runs that have begun since the runs were last taken; only the rows that are new are
        looked at."""
        try:
            connection = self.connection()
            if self.database.signature == self._seen:
                return []
            self._seen = self.database.signature
            key = "run_id" if "run_id" in self._columns["metrics"] else "NULL"
            rows = connection.execute(
                f"SELECT run_name, {key}, min(id), max(id) FROM metrics WHERE id > ? "  # noqa: S608
                f"GROUP BY run_name, {key} ORDER BY 3",
                (self._known_to,),
            ).fetchall()
        except (RlhealthError, *DAMAGE):  # its readers tell
            return []
        self._known_to = max((last for *_, last in rows), default=self._known_to)
        new = [one for one in dict.fromkeys((str(name), run_id) for name, run_id, *_ in rows) if one not in self._known]
        self._known |= dict.fromkeys(new)
        return new

    def _runs_in(self, connection: sqlite3.Connection, table: str) -> list[tuple[str, str | None, int]]:
        """Name, id and first row of each run; from a damaged table, of those that it still gives."""
        key = "run_id" if "run_id" in self._columns[table] else "NULL"
        failure: object = "it is cut short"
        if not self.database.damaged:  # an index of a damaged one may name runs that never were
            try:
                return connection.execute(
                    f"SELECT run_name, {key}, min(id) FROM {table} GROUP BY run_name, {key} ORDER BY 3"  # noqa: S608
                ).fetchall()
            except DAMAGE as error:
                failure = error
        statement = (
            f"SELECT run_name, {key}, min(id) FROM {table} NOT INDEXED WHERE id BETWEEN ? AND ? "  # noqa: S608
            f"GROUP BY run_name, {key} ORDER BY 3"
        )
        found = [row for rows in Salvage(connection, statement, (), 0, self.newest_id(connection)) for row in rows]
        named = [(name, run_id, first) for name, run_id, first in found if isinstance(name, str) and "\0" not in name]
        if not named and table == "metrics":
            raise damaged(self.path, failure)
        return named

    def where(self, name: str, run_id: str | None, *, through_index: bool = False) -> tuple[str, tuple[str, ...]]:
        """A condition that selects the rows of one run, and its values: by the index on runs, or by reading in the
        order of ids."""
        plus = "" if through_index else "+"
        return (f"{plus}run_id = ?", (run_id,)) if run_id is not None else (f"{plus}run_name = ?", (name,))

    def config(self, connection: sqlite3.Connection, name: str, run_id: str | None) -> dict[str, Any]:
        """The settings of a run; those of its last start where it was resumed."""
        if "config" not in self._columns["configs"]:
            return {}
        where, keys = self.where(name, run_id if "run_id" in self._columns["configs"] else None)
        found = connection.execute(
            f"SELECT config FROM configs WHERE {where} ORDER BY id DESC LIMIT 1",  # noqa: S608
            keys,
        ).fetchone()
        settings = loads(found[0]) if found else {}
        return settings if isinstance(settings, dict) else {}

    def newest_id(self, connection: sqlite3.Connection) -> int:
        """The id of the newest row, or -1, even where the table is damaged."""
        for statement in ("SELECT seq FROM sqlite_sequence WHERE name = 'metrics'", "SELECT max(id) FROM metrics"):
            try:
                found = connection.execute(statement).fetchone()
            except DAMAGE:
                continue
            if found and isinstance(found[0], int):
                return found[0]
        return -1

    def alerts(self, connection: sqlite3.Connection, name: str, run_id: str | None) -> list[str]:
        """What the training script itself raised, a sentence each, newest last."""
        if not {"title", "text", "level", "step"} <= self._columns["alerts"]:
            return []
        where, keys = self.where(name, run_id if "run_id" in self._columns["alerts"] else None)
        statement = f"SELECT level, step, title, text FROM alerts WHERE {where} ORDER BY id DESC LIMIT {MOST_ALERTS}"  # noqa: S608
        rows: Sequence[tuple[str, int | None, str, str | None]] = connection.execute(statement, keys).fetchall()
        return [_alert(*row) for row in reversed(rows)]


class NotTrackio(RlhealthError):
    """An SQLite database of another program."""


def damaged(path: Path, error: object) -> RlhealthError:
    """What to say where a database gives nothing at all."""
    return RlhealthError(
        f"{path}: {str(error)[:200]}",
        hint="the database is damaged; sqlite3's .recover may save some of it",
        location=str(path),
    )


def _alert(level: str, step: int | None, title: str, text: str | None) -> str:
    said = f"{title}: {text}" if text else str(title)
    at = "" if step is None else f" at step {step}"
    return f"{ALERT}{at} ({level}): {hidden(said[:LONGEST_ALERT])}"


def loads(text: bytes | str | None) -> Any:
    """A JSON value, or None if it is none."""
    if text is None:
        return None
    try:
        return orjson.loads(text)
    except (ValueError, TypeError):
        pass  # NaN, for one, which Python's own parser reads
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
