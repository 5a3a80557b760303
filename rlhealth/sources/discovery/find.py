"""Finds every run at a path or an address: a reader for each, and a place for what cannot be read."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rlhealth.errors import RlhealthError
from rlhealth.run import Run, UnreadFile
from rlhealth.sources.base.reader import Reader, Unreadable
from rlhealth.sources.base.spelling import EPISODE, EVALUATED
from rlhealth.sources.discovery.registry import SOURCES, TABLES, TRACKERS, is_online, kinds_of, source_module

if TYPE_CHECKING:
    from rlhealth.sources.base.walk import WalkResult

LOOKED_FOR = (
    "looked for events.out.tfevents*, *.wandb, wandb's exported *.parquet, Trackio's and MLflow's *.db, mlruns/, "
    "*.swanlab, DVCLive's tables, trainer_state*.json, *.jsonl, *.csv, *.ipynb, rewards.npy, rewards.pkl, "
    "evaluations.npz and console logs, in it and below"
)
_BESIDE = "beside a log of training: name the file itself to read it"


def find_readers(
    where: str | Path, *, source: str | None = None, reader: str = "fast", left: list[UnreadFile] | None = None
) -> list[Reader]:
    """A reader for every run at `where`, in the order of their names; what could not be read comes last, as
    `Unreadable`.

    Args:
        where: a file; a folder; `wandb://entity/project/run` or the run's web address; `trackio://project/run`;
            `s3://bucket/runs` and what else fsspec knows; `-` for stdin.
        source: one kind of `SOURCES` (or "table"), where the runs were written to several.
        reader: how event files are read: "fast", or "tbparse".
        left: takes the files of a folder that look like logs and are not read, each with its reason.

    Raises:
        RlhealthError: if no run is found, saying what was looked for.
    """
    kinds = kinds_of(source)
    where = str(where)
    if where == "-":
        from rlhealth.sources.rows import table

        return table.find_stdin(sys.stdin.buffer, _table_kind(kinds))
    if is_online(where):
        return list(source_module("wandb-online").find(where))
    if where.startswith("trackio://"):
        return list(source_module("trackio").find(where))
    if "://" in where:
        from rlhealth.sources.remote import reader as remote

        return remote.find(where, find_readers, source=source, reader=reader, left=left)
    path = _named(where)
    return _in_folder(path, kinds, reader, left) if path.is_dir() else _in_file(path, kinds, reader)


def _named(where: str) -> Path:
    """The path of that name. Raises RlhealthError where there is none, or the system takes no such name."""
    try:
        path = Path(where).expanduser()
        there = path.exists() or path.is_symlink()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a folder that is closed, nobody's home
        said = getattr(error, "strerror", None) or str(error)
        short = where[:200]
        raise RlhealthError(
            f"{short}: cannot be read: {said.lower().rstrip('.')}", hint="check the spelling", location=short
        ) from None
    if not there:
        raise RlhealthError(f"{where}: no such file or folder", hint=_nearest(path), location=where)
    return path


def _in_file(path: Path, kinds: tuple[str, ...], reader: str) -> list[Reader]:
    from rlhealth.sources.base.candidates import kind_by_bytes
    from rlhealth.sources.base.walk import ARRAYS, kind_of

    kind = kinds[0] if len(kinds) == 1 else kind_of(path.name)
    if len(kinds) > 1 and kind not in TRACKERS:
        kind = kind_by_bytes(path) or kind or ("numpy" if path.name.lower().endswith(ARRAYS) else None)
    if len(kinds) > 1:
        found = _by_content({kind: [path]}, kinds, is_named=True) if kind in ("trackio", "csv", "json") else {}
        kind = next(iter(found), kind)
    if kind in (*TRACKERS, "notebook", "numpy", "evaluations"):
        return list(source_module(kind).find(path, **_options(kind, reader)))
    from rlhealth.sources.rows import table

    return table.find(path, _table_kind(kinds))


def _table_kind(kinds: tuple[str, ...]) -> str | None:
    return kinds[0] if len(kinds) == 1 and kinds[0] in (*TABLES, "trainer_state") else None


def _in_folder(path: Path, kinds: tuple[str, ...], reader: str, left: list[UnreadFile] | None) -> list[Reader]:
    from rlhealth.sources.base import candidates
    from rlhealth.sources.base.walk import natural, walk
    from rlhealth.sources.discovery import grouping, snapshots

    root = Path(os.path.abspath(path))  # noqa: PTH100 (resolve would follow links and change the names)
    found = walk(root)
    errors = list(found.errors)
    left = [] if left is None else left
    left += [UnreadFile(str(one), "a folder too deep to be looked into") for one in found.deeper]
    tracked, texts, unread = candidates.others(found.others)
    left += unread
    for kind, files in tracked.items():
        found.files[kind] = sorted([*found.files.get(kind, []), *files], key=lambda one: natural(str(one)))
    if texts:
        found.files.setdefault("console", []).extend(texts)
    found.files = _by_content(found.files, kinds)
    readers: list[Reader] = []
    for kind in TRACKERS:
        if kind in kinds and found.files.get(kind):
            readers += _tracked(kind, found.files[kind], root, errors, _options(kind, reader))
    if tables := _tables(found, kinds, root, errors, left):
        readers = [*readers, *_without_documents(tables, readers, left)]
        readers = _without(readers, _is_monitor, "episodes of one environment", left)
        readers = _without(readers, _is_evaluation, "the episodes of an evaluation", left)
    errors += [one.error for one in readers if isinstance(one, Unreadable)]
    readers = [one for one in readers if not isinstance(one, Unreadable)]
    if arrays := found.files.get("numpy") if "numpy" in kinds else None:
        readers += source_module("numpy").readers(arrays, errors, left, are_alone=not readers)
    readers = snapshots.without_older(readers, left)
    if evaluations := found.files.get("evaluations") if "evaluations" in kinds else None:
        if readers:
            left += [UnreadFile(str(one), f"evaluations {_BESIDE}") for one in evaluations]
        else:
            readers += source_module("evaluations").readers(evaluations, errors)
    if not readers and "jsonl" in kinds:
        readers += _logs_of_texts(found.files.get("jsonl", []), errors, left)
    if not readers and "console" in kinds:
        readers += source_module("console").died_at_start(found.files.get("console", []))
    if not readers:
        raise errors[0] if errors else _no_runs(path, found, kinds)
    joined = sorted(grouping.join(readers, root, tuple(SOURCES)), key=lambda one: natural(one.run.name))
    return [*joined, *(Unreadable(error) for error in errors)]


def _without_documents(tables: list[Reader], tracked: list[Reader], left: list[UnreadFile]) -> list[Reader]:
    """The tables without the JSON documents that lie where a tracker logged: what somebody gathered of a run is no run
    beside it."""
    folders = [Path(one.run.place.location) for one in tracked if not isinstance(one, Unreadable)]
    folders = [one if one.is_dir() else one.parent for one in folders]
    kept = []
    for one in tables:
        path = Path(one.run.place.file)
        if not getattr(getattr(one, "log", None), "is_gathered", False) or not any(map(path.is_relative_to, folders)):
            kept.append(one)
        elif all(path != Path(other.location) for other in left):
            left.append(UnreadFile(str(path), f"lists in a JSON document, {_BESIDE}"))
    return kept


def _without(
    readers: list[Reader], is_beside: Callable[[Run], bool], what: str, left: list[UnreadFile]
) -> list[Reader]:
    """The readers without those that hold something else about the runs, where there are logs of the runs
    themselves."""
    others: list[Reader] = []
    beside: list[Reader] = []
    for one in readers:
        (beside if not isinstance(one, Unreadable) and is_beside(one.run) else others).append(one)
    if all(isinstance(one, Unreadable) for one in others):
        return readers
    said = f"{what}, {_BESIDE}"
    files = dict.fromkeys(one.run.place.file for one in beside)
    left += [UnreadFile(file, said) for file in files]
    return others


def _is_monitor(run: Run) -> bool:
    """Whether a run has the episodes of a single environment."""
    return run.series.keys() >= EPISODE


def _is_evaluation(run: Run) -> bool:
    """Whether a run has the episodes of an evaluation."""
    return run.step_axis == EVALUATED


def _by_content(
    files: dict[str, list[Path]], kinds: tuple[str, ...], *, is_named: bool = False
) -> dict[str, list[Path]]:
    """The files by kind, where a name alone does not say: a database may be MLflow's, a table one metric of DVCLive's,
    or, if `kinds` has numpy's, the curves of several runs, in a table that is called after rewards or that the user
    named."""
    found = {kind: list(paths) for kind, paths in files.items()}
    moved: dict[str, list[Path]] = {}
    if found.get("csv"):
        from rlhealth.sources.dvclive.reader import folder_of

        moved["dvclive"] = [path for path in found["csv"] if folder_of(path) is not None]
    if found.get("trackio"):
        from rlhealth.sources.mlflow.reader import is_mlflow

        moved["mlflow"] = [path for path in found["trackio"] if is_mlflow(path)]
    texts = [path for kind in ("csv", "json") for path in found.get(kind, ())]
    if texts and "numpy" in kinds:
        from rlhealth.sources.arrays.curves import holds_curves
        from rlhealth.sources.rows.headerless import is_of_rewards, stem_of

        named = [path for path in texts if is_named or is_of_rewards(stem_of(path.name))]
        moved["numpy"] = [path for path in named if holds_curves(path)]
    for kind, paths in moved.items():
        if paths:
            for others in found.values():
                others[:] = [path for path in others if path not in paths]
            found.setdefault(kind, []).extend(paths)
    return {kind: paths for kind, paths in found.items() if paths}


def _tracked(
    kind: str, files: list[Path], root: Path, errors: list[RlhealthError], options: dict[str, str]
) -> list[Reader]:
    try:
        return list(source_module(kind).readers(files, root, **options))
    except RlhealthError:
        pass  # one of them cannot be read; the others can
    found: list[Reader] = []
    for file in files:
        try:
            found += source_module(kind).readers([file], root, **options)
        except RlhealthError as error:
            errors.append(error)
    return found


def _options(kind: str, reader: str) -> dict[str, str]:
    return {"reader": reader} if kind == "tensorboard" else {}


def _tables(
    found: WalkResult, kinds: tuple[str, ...], root: Path, errors: list[RlhealthError], left: list[UnreadFile]
) -> list[Reader]:
    readers: list[Reader] = []
    if "trainer_state" in kinds and found.files.get("trainer_state"):
        readers += list(source_module("trainer_state").find(root, found))
    if files := [file for kind in TABLES for file in found.files.get(kind, [])]:
        from rlhealth.sources.rows.rollouts import without_texts  # late, as every tracker's module

        found_tables = source_module("csv").readers(without_texts(files), errors, left)
        readers += [one for one in found_tables if one.run.place.kind in kinds]
    if "notebook" in kinds and found.files.get("notebook"):
        readers += source_module("notebook").readers(found.files["notebook"], errors)
    return readers


def _logs_of_texts(files: list[Path], errors: list[RlhealthError], left: list[UnreadFile]) -> list[Reader]:
    """Readers for files of completions with their rewards, for want of another log."""
    from rlhealth.sources.rows import completion_log, table

    readers: list[Reader] = []
    for file in files:
        if completion_log.columns_of_texts(file):
            try:
                found = table.find(file, "jsonl")
            except RlhealthError as error:
                errors.append(error)
                continue
            for one in found:
                one.run.notes.append("read from its completions: no other log was found")
            readers += found
            left[:] = [one for one in left if one.location != str(file)]
    return readers


def _no_runs(path: Path, found: WalkResult, kinds: tuple[str, ...]) -> RlhealthError:
    from rlhealth.sources.base import candidates

    files = [file for kind in kinds for file in found.files.get(kind, [])]
    if not found.entries:
        return RlhealthError(
            f"{path}: the folder is empty", hint="name the folder into which the trainer logs", location=str(path)
        )
    if (path / ".aim").is_dir():
        return RlhealthError(
            f"{path}: an Aim repository, whose store rlhealth does not read",
            hint="export a run's metrics with Aim's SDK (metric.dataframe()) as a CSV file: step,metric,value",
            location=str(path),
        )
    if len(kinds) == 1 and len(found.files) > len(files):
        others = ", ".join(sorted(found.files))
        return RlhealthError(
            f"{path}: no runs of {kinds[0]} in it or below",
            hint=f"there are files of {others}: leave --source away",
            location=str(path),
        )
    array = next((one for one in found.others if one.suffix.lower() == ".npy"), None)
    texts = (one for one in found.others if one.suffix.lower() in candidates.NOTES)
    note = next(filter(candidates.why_unread, texts), None)
    copies = (one for folder in found.copies for one in sorted(folder.glob("*-checkpoint.ipynb")))
    copy = next(
        (one for one in copies if not (one.parents[1] / f"{one.stem.removesuffix('-checkpoint')}.ipynb").exists()), None
    )
    hint = LOOKED_FOR
    if copy is not None:
        hint = f"Jupyter keeps a copy of a notebook that is not here: name {copy} itself to read it"
    elif note is not None:
        hint = f"{note.name} holds rows of a log among its text: name the file itself to read it"
    elif files:
        hint += f"; {files[0].name} does not look like a log: name the file itself to read it"
    elif array is not None:
        hint += f"; {array.name} is not called after rewards: name the file itself to read it"
    return RlhealthError(f"{path}: no runs found in it or below", hint=hint, location=str(path))


def _nearest(path: Path) -> str:
    try:
        names = [one.name for one in path.parent.iterdir()]
    except OSError:
        return f"there is no folder {path.parent} either" if not path.parent.exists() else "check the spelling"
    near = difflib.get_close_matches(path.name, names, 1, 0.7)
    return f"did you mean {path.parent / near[0]}?" if near else "check the spelling, and the folder you are in"
