"""The tables among the files of an online run: listed in one request, fetched one by one, from its server only."""

from __future__ import annotations

import hashlib
import itertools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rlhealth.errors import RlhealthError
from rlhealth.sources.wandb.address import parse
from rlhealth.sources.wandb.one_host import stopped
from rlhealth.sources.wandb.quiet import private_folder
from rlhealth.sources.wandb.session import Session, session_for

FOLDER = "media/table/"
#: Tables of a run that are looked at, and bytes of one: an answer of the server is cut off at twice as many.
MOST_TABLES = 5_000
LARGEST_TABLE = 32 << 20
_AT_ONCE = 500  # names in one answer
_LONGEST_NAME = 200


class Table(NamedTuple):
    """One table: its name below `media/table/`, and its size in bytes."""

    name: str
    size: int


class RunTables:
    """The tables of the run at `address`; fetched tables stay in a private folder until this process ends.

    Attributes:
        folder: where fetched tables lie; their names hold a digest of what is in them.
    """

    def __init__(self, address: str) -> None:
        self.address = parse(address)
        self._session = session_for(self.address, None)
        place = hashlib.sha256(f"{self._session.server} {self.address}".encode()).hexdigest()[:32]
        self.folder = Path(private_folder()) / "tables" / place
        self._files: dict[str, Any] = {}

    @property
    def session(self) -> Session:
        """The session with the run's server."""
        return self._session

    def may_have_any(self) -> bool:
        """Whether the run's summary, which holds what was last logged under each name, names a table; sends no
        request."""
        summary = self._session.known_run(self.address).summary_metrics
        values = summary.values() if isinstance(summary, Mapping) else ()
        return any(isinstance(one, Mapping) and str(one.get("path", "")).startswith(FOLDER) for one in values)

    def listed(self, *, again: bool = True) -> list[Table]:
        """The tables that the run has now, at most `MOST_TABLES` and one.

        Args:
            again: whether a server that fails is asked again, for as long as the session is patient.

        Raises:
            RlhealthError: if the server does not list them.
        """

        hosted = self._session.known_run(self.address)

        def ask(_: Any) -> dict[str, tuple[Table, Any]]:
            files = hosted.files(pattern=f"{FOLDER}%.table.json", per_page=_AT_ONCE)
            found = {}
            for one in itertools.islice(files, MOST_TABLES + 1):
                name = str(one.name).removeprefix(FOLDER)
                if len(name) <= _LONGEST_NAME and "/" not in name and one.name == FOLDER + name:
                    found[name] = Table(name, int(one.size)), one
            return found

        def once() -> dict[str, tuple[Table, Any]]:
            return self._session.once(ask, str(self.address))

        found = self._session.with_retries(once) if again else once()
        self._files = {name: file for name, (_, file) in found.items()}
        return [table for table, _ in found.values()]

    def fetch(self, table: Table) -> Path:
        """The file of a listed table, fetched unless it is already here.

        Raises:
            Unavailable: if it cannot be had now.
            RlhealthError: if it cannot be had: too large, on another host, not whole.
        """
        path = self.folder / table.name
        if path.is_file():
            return path
        place = f"{self.address}: {table.name}"
        if table.size > LARGEST_TABLE:
            raise RlhealthError(f"{place}: larger than {LARGEST_TABLE >> 20} MiB, not read", location=place)
        if table.name not in self._files:
            raise RlhealthError(f"{place}: no longer there", location=place)
        before = stopped(self._session.server)
        try:
            self._session.with_retries(lambda: self._session.once(lambda _: self._download(table, path), place))
        except RlhealthError:
            if stopped(self._session.server) > before:
                said = f"{self.address}: the server refers to another host for its tables, which is not asked"
                raise OtherHost(said, location=str(self.address)) from None
            raise
        return path

    def _download(self, table: Table, path: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=private_folder()) as folder:
            self._files[table.name].download(root=folder, replace=True).close()
            came = Path(folder, FOLDER, table.name)
            if came.stat().st_size != table.size:
                raise RlhealthError(f"{self.address}: {table.name}: not whole", location=str(self.address))
            came.replace(path)


class OtherHost(RlhealthError):
    """The tables are on a host that is not the run's server."""
