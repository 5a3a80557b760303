"""Sources: every place where a run is written, found and read into `Run`."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run

if TYPE_CHECKING:
    from rlhealth.sources.reader import Reader
    from rlhealth.sources.walk import Found

#: Kind of place -> the module that reads it, in the order in which they are preferred where one run is in several.
SOURCES: dict[str, str] = {
    "tensorboard": "rlhealth.sources.tensorboard.reader",
    "wandb": "rlhealth.sources.wandb.file",
    "trackio": "rlhealth.sources.trackio.reader",
    "trainer_state": "rlhealth.sources.rows.trainer_state",
    "jsonl": "rlhealth.sources.rows.table",
    "json": "rlhealth.sources.rows.table",
    "csv": "rlhealth.sources.rows.table",
    "console": "rlhealth.sources.rows.table",
    "wandb-online": "rlhealth.sources.wandb.api",
}
#: What `--source` takes beside the kinds themselves.
TABLES = ("jsonl", "json", "csv", "console")
GROUPS: dict[str, tuple[str, ...]] = {"table": TABLES}
LOOKED_FOR = "looked for events.out.tfevents*, *.wandb, Trackio's *.db, trainer_state*.json, *.jsonl, *.csv and console logs, in it and below"
_MAGIC = ((b":W&B", "wandb"), (b"SQLite format 3\0", "trackio"))
Tick = Callable[[int, int], None]


class Unreadable:
    """What was found and cannot be read, so that it is not lost among the runs that can: its poll raises."""

    def __init__(self, error: RlhealthError) -> None:
        self.error = error
        self.run = Run(error.location or "unreadable", Place("unreadable", error.location))

    def poll(self) -> bool:
        """Raises the error that was met."""
        raise self.error


def find_readers(where: str | Path, *, source: str | None = None, reader: str = "fast") -> list[Reader]:
    """A reader for every run at `where`, in the order of their names; what could not be read comes last, as `Unreadable`.

    Args:
        where: a file; a folder; `wandb://entity/project/run` or the run's web address; `trackio://project/run`;
            `s3://bucket/runs` and what else fsspec knows; `-` for stdin.
        source: one kind of `SOURCES` (or "table"), where the runs were written to several.
        reader: how event files are read: "fast", or "tbparse".

    Raises:
        RlhealthError: where no run is found, saying what was looked for.
    """
    kinds = _kinds(source)
    where = str(where)
    if where == "-":
        from rlhealth.sources.rows import table

        return table.find_stdin(sys.stdin.buffer, _table_kind(kinds))
    if where.startswith(("wandb://", "https://", "http://")):
        return list(_module("wandb-online").find(where))
    if where.startswith("trackio://"):
        return list(_module("trackio").find(where))
    if "://" in where:
        from rlhealth.sources.remote import reader as remote

        return remote.find(where, source=source, reader=reader)
    path = Path(where).expanduser()
    if not path.exists() and not path.is_symlink():
        raise RlhealthError(f"{where}: no such file or folder", hint=_nearest(path), location=where)
    return _in_folder(path, kinds, reader) if path.is_dir() else _in_file(path, kinds, reader)


def open_all(
    where: str | Path, source: str | None = None, tick: Tick | None = None
) -> tuple[list[Run], list[RlhealthError]]:
    """Every run at `where`, read once, and what could not be read; one unreadable run never hides the others.

    `tick(done, total)` is called after each run. Raises RlhealthError where no run is found.
    """
    readers = find_readers(where, source=source)
    errors: list[RlhealthError] = []
    runs: list[Run] = []
    for done, reader in enumerate(readers, 1):
        try:
            reader.poll()
            runs.append(reader.run)
        except RlhealthError as error:
            errors.append(error)
        except (OSError, MemoryError) as error:
            location = reader.run.place.location
            errors.append(
                RlhealthError(
                    f"{location}: {error or type(error).__name__}",
                    hint="check that it still exists and is readable",
                    location=location,
                )
            )
        if tick:
            tick(done, len(readers))
    return runs, errors


def open_runs(where: str | Path, *, source: str | None = None) -> list[Run]:
    """Every run at `where`, read once.

    Raises:
        RlhealthError: where no run is found, or none of them can be read.
    """
    runs, errors = open_all(where, source)
    if not runs and errors:
        raise errors[0]
    return runs


def _kinds(source: str | None) -> tuple[str, ...]:
    if source is None:
        return tuple(SOURCES)
    kinds = GROUPS.get(source) or ((source,) if source in SOURCES else ())
    if not kinds:
        near = difflib.get_close_matches(source, [*SOURCES, *GROUPS], 1)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join([*SOURCES, *GROUPS])}"
        raise RlhealthError(f"--source {source}: no such source", hint=hint)
    return kinds


def _in_file(path: Path, kinds: tuple[str, ...], reader: str) -> list[Reader]:
    from rlhealth.sources.walk import kind_of

    kind = kinds[0] if len(kinds) == 1 else kind_of(path.name)
    if len(kinds) > 1 and kind not in ("tensorboard", "wandb", "trackio"):
        kind = _kind_by_bytes(path) or kind
    if kind in ("tensorboard", "wandb", "trackio"):
        return list(_module(kind).find(path, **_options(kind, reader)))
    from rlhealth.sources.rows import table

    return table.find(path, _table_kind(kinds))


def _table_kind(kinds: tuple[str, ...]) -> str | None:
    return kinds[0] if len(kinds) == 1 and kinds[0] in (*TABLES, "trainer_state") else None


def _kind_by_bytes(path: Path) -> str | None:
    """The tracker whose file this is, though its name does not say so."""
    from rlhealth.sources.growing import open_regular

    with open_regular(path) as file:
        head = file.read(64)
    if b"brain.Event:" in head:
        return "tensorboard"
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)


def _in_folder(path: Path, kinds: tuple[str, ...], reader: str) -> list[Reader]:
    from rlhealth.sources import grouping
    from rlhealth.sources.walk import natural, walk

    root = Path(os.path.abspath(path))  # noqa: PTH100 (resolve would follow links and change the names)
    found = walk(root)
    errors = list(found.errors)
    readers: list[Reader] = []
    for kind in ("tensorboard", "wandb", "trackio"):
        if kind in kinds and found.files.get(kind):
            readers += _tracked(kind, found.files[kind], root, errors, _options(kind, reader))
    readers += _tables(found, kinds, root, errors)
    errors += [one.error for one in readers if isinstance(one, Unreadable)]
    readers = [one for one in readers if not isinstance(one, Unreadable)]
    if not readers:
        raise errors[0] if errors else _no_runs(path, found, kinds)
    joined = sorted(grouping.join(readers, root, tuple(SOURCES)), key=lambda one: natural(one.run.name))
    return [*joined, *(Unreadable(error) for error in errors)]


def _tracked(
    kind: str, files: list[Path], root: Path, errors: list[RlhealthError], options: dict[str, str]
) -> list[Reader]:
    try:
        return list(_module(kind).readers(files, root, **options))
    except RlhealthError:
        pass  # one of them cannot be read; the others can
    found: list[Reader] = []
    for file in files:
        try:
            found += _module(kind).readers([file], root, **options)
        except RlhealthError as error:
            errors.append(error)
    return found


def _options(kind: str, reader: str) -> dict[str, str]:
    return {"reader": reader} if kind == "tensorboard" else {}


def _tables(found: Found, kinds: tuple[str, ...], root: Path, errors: list[RlhealthError]) -> list[Reader]:
    readers: list[Reader] = []
    if "trainer_state" in kinds and found.files.get("trainer_state"):
        readers += list(_module("trainer_state").find(root, found))
    if files := [file for kind in TABLES for file in found.files.get(kind, [])]:
        readers += [one for one in _module("csv").readers(files, errors) if one.run.place.kind in kinds]
    return readers


def _no_runs(path: Path, found: Found, kinds: tuple[str, ...]) -> RlhealthError:
    files = [file for kind in kinds for file in found.files.get(kind, [])]
    if not found.entries:
        return RlhealthError(
            f"{path}: the folder is empty", hint="name the folder into which the trainer logs", location=str(path)
        )
    if len(kinds) == 1 and len(found.files) > len(files):
        others = ", ".join(sorted(found.files))
        return RlhealthError(
            f"{path}: no runs of {kinds[0]} in it or below",
            hint=f"there are files of {others}: leave --source away",
            location=str(path),
        )
    hint = (
        f"{LOOKED_FOR}; {files[0].name} does not look like a log: name the file itself to read it"
        if files
        else LOOKED_FOR
    )
    return RlhealthError(f"{path}: no runs found in it or below", hint=hint, location=str(path))


def _nearest(path: Path) -> str:
    try:
        names = [one.name for one in path.parent.iterdir()]
    except OSError:
        return f"there is no folder {path.parent} either" if not path.parent.exists() else "check the spelling"
    near = difflib.get_close_matches(path.name, names, 1, 0.7)
    return f"did you mean {path.parent / near[0]}?" if near else "check the spelling, and the folder you are in"


def _module(kind: str) -> Any:
    try:
        return importlib.import_module(SOURCES[kind])
    except ImportError as error:
        raise RlhealthError(
            f"{kind} cannot be read here: {error}", hint=f"install it: pip install {error.name or 'rlhealth'}"
        ) from error
