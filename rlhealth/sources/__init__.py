"""Sources: every place where a run is written, found and read into `Run`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from rlhealth.run import Run
    from rlhealth.sources.reader import Reader

#: Kind of place -> the module that reads it, in the order in which they are preferred where one run is in several.
SOURCES: dict[str, str] = {
    "tensorboard": "rlhealth.sources.tensorboard",
    "wandb": "rlhealth.sources.wandb_file",
    "trackio": "rlhealth.sources.trackio",
    "trainer_state": "rlhealth.sources.trainer_state",
    "jsonl": "rlhealth.sources.table",
    "json": "rlhealth.sources.table",
    "csv": "rlhealth.sources.table",
    "console": "rlhealth.sources.table",
    "wandb-online": "rlhealth.sources.wandb_api",
}
#: What `--source` takes beside the kinds themselves.
GROUPS: dict[str, tuple[str, ...]] = {"table": ("jsonl", "json", "csv", "console")}

LOOKED_FOR = "looked for events.out.tfevents*, *.wandb, Trackio *.db, trainer_state*.json, *.jsonl, *.csv, console logs"


def find_readers(where: str, *, source: str | None = None, errors: list[RlhealthError] | None = None) -> list[Reader]:
    """A reader for every run at `where`, none of them read yet.

    Args:
        where: a file; a folder; `wandb://entity/project/run` or the run's web address; `trackio://project/run`; `-` for stdin.
        source: one kind of `SOURCES` (or "table"), where the runs were written to several.
        errors: takes what could not be read (folders without permission, broken files) while the rest is found.

    Raises:
        RlhealthError: where no run is found, saying what was looked for.
    """
    raise NotImplementedError


def open_all(where: str, source: str | None = None, tick: Callable[[int, int], None] | None = None) -> tuple[list[Run], list[RlhealthError]]:
    """Every run at `where`, read once, and what could not be read; one unreadable run never hides the others.

    `tick(done, total)` is called after each run. Raises RlhealthError where no run is found.
    """
    errors: list[RlhealthError] = []
    readers = find_readers(where, source=source, errors=errors)
    runs: list[Run] = []
    for done, reader in enumerate(readers, 1):
        try:
            reader.poll()
            runs.append(reader.run)
        except RlhealthError as error:
            errors.append(error)
        if tick:
            tick(done, len(readers))
    return runs, errors


def open_runs(where: str, *, source: str | None = None) -> list[Run]:
    """Every run at `where`, read once.

    Raises:
        RlhealthError: where no run is found, or none of them can be read.
    """
    runs, errors = open_all(where, source)
    if not runs and errors:
        raise errors[0]
    return runs


def _module(kind: str) -> Any:
    return importlib.import_module(SOURCES[kind])


def _folder(path: Path) -> None:
    return None
