"""Where a run's completions are: beside its logs, in its tracker, or where the user says."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rlhealth.completions.stores import CompletionFile, CompletionFolder, Store, TrackioTables
from rlhealth.completions.tables import INSTALL
from rlhealth.errors import RlhealthError
from rlhealth.run import Run
from rlhealth.sources.base.parquet import lacking
from rlhealth.sources.discovery import registry
from rlhealth.sources.discovery.grouping import home

if TYPE_CHECKING:
    from rlhealth.sources.trackio.project import Project

PARQUET = re.compile(r"completions_(?P<n>\d{1,12})\.parquet")
LINES = re.compile(r"(?:\w+_)?(?P<n>\d{1,12})\.jsonl")
#: wandb's tables of completions, by the name under which trainers log them, and whether their rows lack the step.
TABLES = (("completions", False), ("samples", False), ("game_log", True))
_TABLE_FOLDER = Path("files", "media", "table")
_MOST_FOLDERS = 200
#: Settings that say where the texts go (verl), as the last part of a flat name.
_SETTINGS = ("rollout_data_dir",)


def find(run: Run, project: Project | None = None, *, asked: bool = False) -> tuple[list[Store], list[str]]:
    """The stores of a run, the fullest first, and a sentence for each that cannot be read here.

    TRL's parquet files come first: they hold every row. A tracker's tables may hold one row per prompt. `project` is
    the database of a run in Trackio, where it is open already. The tables of an online run are fetched only where the
    user asked for completions (`asked`); else they are counted, by one request.
    """
    kind, location = run.place.kind, run.place.location
    if is_online(run):
        return _online(run, asked)
    if "://" in location or kind in ("wandb-online", "monitor", "unreadable"):
        return [], []
    path = Path(run.place.file if kind == "trackio" else location)
    if not path.exists():
        return [], []
    output = home(path if path.is_dir() else path.parent)
    found: list[Store] = []
    notes: list[str] = []
    parquet = output / "completions"
    if _holds(parquet, PARQUET):
        if missing := lacking(INSTALL):
            notes.append(f"completions: {parquet} was not read: {missing[0]}; {missing[1]}")
        else:
            found.append(CompletionFolder(parquet, PARQUET))
    if kind == "wandb":
        found += _of_wandb(path.parent / _TABLE_FOLDER)
    if kind == "trackio":
        from rlhealth.sources.trackio.project import Project  # late: it opens a database, which most runs lack

        found += _of_trackio(project or Project(path), run.place.part)
    found += [CompletionFolder(folder, LINES) for folder in _of_lines(run, output)]
    if kind == "jsonl" and not found and _holds_both(path):
        found.append(CompletionFile(path))
    return found, notes


def _holds_both(log: Path) -> bool:
    """Whether the rows of a run's log are its completions, with the step and the texts under known names."""
    from rlhealth.completions.batch import holds_texts, known  # late: of few runs are the rows looked at
    from rlhealth.sources.rows.completion_log import columns_of_texts

    columns = {name.lower() for name in columns_of_texts(log)}
    return bool(columns) and holds_texts(columns) and not columns.isdisjoint(known()["step"])


def is_online(run: Run) -> bool:
    """Whether a run lies on wandb's server."""
    return run.place.kind == "wandb" and registry.is_online(run.place.location)


def _online(run: Run, asked: bool) -> tuple[list[Store], list[str]]:
    from rlhealth.completions.online import OnlineTables  # late: most runs are on this machine
    from rlhealth.sources.wandb.tables import RunTables

    place = run.place.location
    try:
        tables = OnlineTables(run, RunTables(place), [(_table(name), is_step) for name, is_step in TABLES])
        count = 0 if asked else tables.count()
    except RlhealthError as error:
        return [], [f"completions: {error.message}"]
    if asked:
        return [tables], []
    said = f"completions: {count:,} tables on the server were not read; --completions reads them"
    return [], [said] if count else []


def named(place: str) -> Store:
    """The store at a place that the user named: a folder with a file per step, or one file.

    Raises:
        RlhealthError: if there is none.
    """
    path = Path(place).expanduser()
    if path.is_dir():
        for folder in (path, path / "completions", path / _TABLE_FOLDER):
            for pattern in (PARQUET, LINES, *(_table(name) for name, _ in TABLES)):
                if _holds(folder, pattern):
                    if pattern is PARQUET:
                        _check_parquet(place)
                    return CompletionFolder(folder, pattern, is_step=pattern in (PARQUET, LINES, _table("game_log")))
        one = sorted(file for file in path.iterdir() if file.suffix in (".parquet", ".jsonl", ".ndjson"))
        if len(one) == 1:
            path = one[0]
        else:
            hint = "it takes a folder with completions_<step>.parquet or <step>.jsonl, or one .parquet or .jsonl file"
            raise RlhealthError(f"--completions {place}: no completions in this folder", hint=hint, location=place)
    if not path.is_file():
        raise RlhealthError(f"--completions {place}: no such file or folder", hint="check the spelling", location=place)
    if path.suffix == ".parquet":
        _check_parquet(place)
    return CompletionFile(path)


def _of_wandb(folder: Path) -> list[Store]:
    for name, is_step in TABLES:
        if _holds(folder, _table(name)):
            return [CompletionFolder(folder, _table(name), is_step=is_step)]
    return []


def _table(name: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(name)}_(?P<n>\d{{1,12}})_[0-9a-f]+\.table\.json")


def _of_trackio(project: Project, name: str) -> list[Store]:
    try:
        runs = project.runs()
    except RlhealthError:
        return []
    mine = [one for one in runs if not name or one[0] == name]
    return [TrackioTables(project, *mine[0])] if len(mine) == 1 else []


def _of_lines(run: Run, output: Path) -> list[Path]:
    """The folders of JSON lines, one a step, that a setting names or that lie in the output folder."""
    said = [
        value
        for key, value in run.config.items()
        if key.rpartition(".")[2] in _SETTINGS and isinstance(value, str) and value
    ]
    found = [folder for one in said for folder in (Path(one), output / one) if _holds(folder, LINES)]
    if found:
        return found[:1]
    try:
        with os.scandir(output) as entries:
            folders = [
                Path(entry.path) for _, entry in zip(range(_MOST_FOLDERS), entries, strict=False) if entry.is_dir()
            ]
    except OSError:
        return []
    return [one for one in sorted(folders) if "val" not in one.name and "eval" not in one.name and _holds(one, LINES)][
        :1
    ]


def _holds(folder: Path, name: re.Pattern[str]) -> bool:
    """Whether the folder has a file of that name."""
    try:
        with os.scandir(folder) as entries:
            return any(name.fullmatch(entry.name) for entry in entries)
    except OSError:
        return False


def _check_parquet(place: str) -> None:
    if missing := lacking(INSTALL):
        raise RlhealthError(f"--completions {place}: {missing[0]}", hint=missing[1], location=place)
