"""The completions of a run on wandb's server: the tables among its files, read as those of an offline run."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlhealth.completions.batch import Batch
from rlhealth.completions.stores import CompletionFolder, Wanted
from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.run import Run

if TYPE_CHECKING:
    from rlhealth.sources.wandb.tables import RunTables, Table

#: Bytes of all tables of a run that are fetched.
MOST_BYTES = 512 << 20
_MOST_TRIES = 3  # polls in which a table is asked for
Name = tuple[re.Pattern[str], bool]


class OnlineTables(CompletionFolder):
    """The tables of an online run, listed again when the run has grown; each is fetched once.

    A poll fetches for at most the session's patience; the next poll continues.

    Args:
        run: whose tables they are.
        tables: where its server keeps them.
        names: the names that such tables have, the fullest first, and whether their number is the trainer's step.
    """

    def __init__(self, run: Run, tables: RunTables, names: Sequence[Name]) -> None:
        super().__init__(tables.folder, names[0][0], is_step=names[0][1])
        self.place = run.place.location
        self.run, self.tables, self.names = run, tables, names
        self._table_at: dict[Path, Table] = {}
        self._fault = ""
        self._left = 0
        self._until = 0.0
        self._bytes = 0
        self._tries: dict[Path, int] = {}
        self._over = False

    def poll(self, wanted: Wanted) -> Iterator[Batch]:
        """The batches of tables that were not read yet."""
        lasting = [one for one in self.problems if one != self._fetch_problem()]
        self._fault, self._left = "", 0
        self.problems = lasting
        self._until = time.monotonic() + self.tables.session.patience
        yield from super().poll(wanted)
        if problem := self._fetch_problem():
            self.problems.append(problem)

    def look_again(self) -> None:
        """Lists the tables again at the next poll."""
        self._listed = None

    def count(self) -> int:
        """How many tables of completions the run has, by one request where its summary names a table.

        Raises:
            RlhealthError: if the server does not list them.
        """
        return len(self._chosen(self.tables.listed(again=False))) if self.tables.may_have_any() else 0

    def _files(self) -> list[tuple[int, Path, tuple[int, int]]]:
        here = self.run.last_step, self.run.exit_code, self.run.heartbeat
        if repr(here) == self._listed and not self._waits:  # a heartbeat may be NaN
            return []
        try:
            listed = self.tables.listed()
        except RlhealthError as error:
            self._fault, self._waits = error.message, True
            return []
        self._listed, self._waits = repr(here), False
        found = self._chosen(listed)
        self._table_at.update({self.folder / one.name: one for _, one in found})
        return [(number, self.folder / one.name, (one.size, 0)) for number, one in found]

    def _chosen(self, listed: Sequence[Table]) -> list[tuple[int, Table]]:
        from rlhealth.sources.wandb.tables import MOST_TABLES  # late: it imports the SDK's session

        if len(listed) > MOST_TABLES:
            said = f"completions: {self.place}: more than {MOST_TABLES:,} tables, only the first were looked at"
            self.problems += [said] if said not in self.problems else []
        for name, is_step in self.names:
            found = sorted((int(match["n"]), one) for one in listed if (match := name.fullmatch(one.name)))
            if found:
                self.name, self.is_step = name, is_step
                return found
        return []

    def _whole(self, path: Path, number: int, state: tuple[int, int], *, newest: bool) -> list[Batch] | None:
        """The content of a table; None if it cannot be fetched now. Later tables wait too, so that steps come in
        order."""
        if self._over:
            return []
        if not self._fault and time.monotonic() > self._until:
            self._fault = f"{self.place}: no more time ({self.tables.session.patience:.0f} seconds)"
        if not self._fault:
            try:
                self._fetch(path)
                return super()._whole(path, number, state, newest=False)
            except Unavailable as error:
                self._tries[path] = self._tries.get(path, 0) + 1
                if self._tries[path] >= _MOST_TRIES:
                    self.problems.append(f"completions: {error.message}; not read")
                    return []
                self._fault = error.message
            except RlhealthError as error:
                self._over = isinstance(error, (_TooMany, _other_host()))
                self.problems.append(f"completions: {error.message}")
                return []
        self._left, self._waits = self._left + 1, True
        return None

    def _read(self, path: Path, number: int) -> list[Batch]:
        self._fetch(path)
        try:
            return super()._read(path, number)
        except RlhealthError as error:
            said = error.message.replace(str(path), f"{self.place}: {path.name}")
            raise RlhealthError(said, hint=error.hint, location=self.place) from None

    def _fetch(self, path: Path) -> None:
        if path.is_file():
            return
        table = self._table_at[path]
        if self._bytes + table.size > MOST_BYTES:
            said = f"{self.place}: more than {MOST_BYTES >> 20} MiB of tables; from {table.name} on they were not read"
            raise _TooMany(said, location=self.place)
        self.tables.fetch(table)
        self._bytes += table.size

    def _fetch_problem(self) -> str:
        left = f"; {self._left:,} tables were not read" if self._left else ""
        return f"completions: {self._fault}{left}" if self._fault else ""


class _TooMany(RlhealthError):
    """The tables of a run are more than are fetched."""


def _other_host() -> type[RlhealthError]:
    from rlhealth.sources.wandb.tables import OtherHost  # late: it imports the SDK's session

    return OtherHost
