"""An SQLite database read while another process writes it: no lock is taken, and nothing is created or changed beside
it.

Opening a database "read-only" is not enough: in WAL mode SQLite then creates or writes `-shm` beside it, and a reader
that outlives the writer leaves `-wal` behind. So a database that nobody writes (it has no `-wal` and no `-journal`) is
opened as immutable, where it lies; one that is being written is copied to a temporary folder together with its log, and
the copy is opened. What has not changed since the
last poll is not copied again: between two checkpoints (SQLite makes one after about 4 MB of writes) only the log
    changes.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path
from urllib.parse import quote

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.saved import Stamp, stamp_of
from rlhealth.sources.base.temporary import ANOTHER, temporary_folder
from rlhealth.sources.base.walk import reason

MAGIC = b"SQLite format 3\0"
LARGEST_COPY = 16 << 30  # bytes
_ATTEMPTS = 5
#: What a damaged database raises; SQLite may quote the damage, which is then no text, or ask for as much memory as a
#: damaged length says.
DAMAGE = (sqlite3.Error, UnicodeDecodeError, MemoryError)
_LOGS = ("-wal", "-journal")
_LOG_HEADER = 32  # bytes of a -wal that change when it is started anew
Signature = tuple[Stamp | None, ...]


class SqliteCopy:
    """A database for reading, as it stands when `connection` is called.

    Attributes:
        signature: by which a change of its files is seen.
        damaged: whether it is cut short or its list of tables is broken, so that only some of it can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.signature: Signature = ()
        self.damaged = False
        self._connection: sqlite3.Connection | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._copied: Stamp | None = None

    def changed(self) -> bool:
        """Whether the files are not those that the connection shows."""
        return self._look() != self.signature

    def connection(self) -> sqlite3.Connection:
        """A connection that shows what is committed now.

        Raises:
            RlhealthError: if the file is gone, not to be read, no SQLite database, or too large to be copied.
            sqlite3.Error, UnicodeDecodeError: if it is damaged.
        """
        now = self._look()
        if self._connection is not None and now == self.signature:
            return self._connection
        with open_regular(self.path) as file:
            head = file.read(len(MAGIC))
        if head != MAGIC:
            what = "the file is empty" if not head else "not an SQLite database"
            raise RlhealthError(
                f"{self.path}: {what}", hint="a Trackio project is a file <project>.db", location=str(self.path)
            )
        self.close()
        self.damaged = False
        self._connection = self._copy() if self._is_written(now) else _open(self.path, "immutable=1")
        self.signature = now
        try:
            self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except DAMAGE:  # a file that is cut short, or one broken index among the tables, must not hide the rest
            self.damaged = True
            self._connection.execute(
                "PRAGMA writable_schema = 1"
            )  # makes SQLite continue; nothing can be written nevertheless
        return self._connection

    def close(self) -> None:
        """Lets go of the database; the copy goes with the object."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _look(self) -> Signature:
        found: list[Stamp | None] = []
        for suffix in ("", *_LOGS):
            try:
                here = Path(f"{self.path}{suffix}").stat()
                found.append(stamp_of(here))
            except OSError:
                found.append(None)
        return tuple(found)

    @staticmethod
    def _is_written(signature: Signature) -> bool:
        return any(log is not None and log[1] > 0 for log in signature[1:])

    def _copy(self) -> sqlite3.Connection:
        """Copies the database and its log so that they belong together: the log must be the same one before and
        after.
        """
        if self._folder is None:
            self._folder = temporary_folder(str(self.path))
        there = Path(self._folder.name) / "copy.db"
        try:
            for _ in range(_ATTEMPTS):
                log = self._log_header()
                self._copy_database(there)
                for suffix in _LOGS:
                    _copy_or_remove(Path(f"{self.path}{suffix}"), Path(f"{there}{suffix}"))
                Path(f"{there}-shm").unlink(missing_ok=True)
                if log == self._log_header():
                    return _open(there, "mode=ro" if log is not None else "mode=rw")
        except OSError as error:
            hint = f"a database that is being written is copied first: {ANOTHER}"
            raise RlhealthError(f"{self.path}: {reason(error)}", hint=hint, location=str(self.path)) from error
        hint = "try again, or wait for the run to pause"
        raise RlhealthError(
            f"{self.path}: it is written faster than it can be copied", hint=hint, location=str(self.path)
        )

    def _copy_database(self, there: Path) -> None:
        here = self.path.stat()
        if here.st_size > LARGEST_COPY:
            raise RlhealthError(
                f"{self.path}: {here.st_size >> 30} GB are too much to copy while it is written",
                hint="read it when the run has ended",
            )
        now = stamp_of(here)
        if now != self._copied or not there.exists():
            self._copied = None
            shutil.copyfile(self.path, there)
            self._copied = now if Path(f"{self.path}-wal").exists() else None

    def _log_header(self) -> bytes | None:
        try:
            with Path(f"{self.path}-wal").open("rb") as file:
                return file.read(_LOG_HEADER)
        except FileNotFoundError:
            return None


def _open(path: Path, mode: str) -> sqlite3.Connection:
    """A connection in which nothing can be written,."""
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?{mode}", uri=True, timeout=0, check_same_thread=False
    )
    connection.text_factory = _text
    connection.execute("PRAGMA query_only = 1")
    connection.execute("PRAGMA trusted_schema = 0")
    connection.execute("PRAGMA cell_size_check = 1")
    return connection


def _text(found: bytes) -> str:
    return found.decode("utf-8", "replace")


def _copy_or_remove(here: Path, there: Path) -> None:
    try:
        shutil.copyfile(here, there)
    except FileNotFoundError:
        there.unlink(missing_ok=True)
