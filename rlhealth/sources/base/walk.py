"""Walks a folder once and finds the files that may contain a run, by their names; it opens only regular files and
never loops.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError

#: Deeper folders are skipped and reported as left out. Each folder is entered once, so a loop of links ends
#: earlier.
DEEPEST = 500
#: After so many entries the walk ends with a note: the user probably named a whole disk.
MOST_ENTRIES = 1_000_000
#: Where Jupyter keeps a copy of each notebook.
COPIES = ".ipynb_checkpoints"
#: Folders in which no trainer writes a log.
PASSED_BY = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "node_modules",
        "site-packages",
        "__pycache__",
        COPIES,
        ".mypy_cache",
        ".pytest_cache",
    }
)

#: The suffix of a folder that --write-back wrote beside a run: it contains a verdict and no run.
OURS = ".rlhealth"

#: Kind of file -> pattern of its name. The first match is used; a reader checks files that only may be logs.
NAMES: dict[str, re.Pattern[str]] = {
    "tensorboard": re.compile(r"tfevents", re.IGNORECASE),
    "wandb": re.compile(r"\.wandb$", re.IGNORECASE),
    "trackio": re.compile(r"\.(db|sqlite3?)$", re.IGNORECASE),
    "swanlab": re.compile(r"\.swanlab$", re.IGNORECASE),
    "mlflow": re.compile(r"^meta\.yaml$"),
    "trainer_state": re.compile(r"^trainer_state.*\.json$", re.IGNORECASE),
    "jsonl": re.compile(r"\.(jsonl|jsonlines|jsonl\d|ndjson|ldjson)$", re.IGNORECASE),
    "json": re.compile(r"\.json$", re.IGNORECASE),
    "csv": re.compile(r"\.(csv|tsv)$", re.IGNORECASE),
    "notebook": re.compile(r"\.ipynb$", re.IGNORECASE),
    "evaluations": re.compile(r"^evaluations.*\.npz$", re.IGNORECASE),
    "numpy": re.compile(
        r"(?:^|[^a-z])(?:rewards?|returns?|scores?)(?:[^a-z].*)?\.(?:np[yz]|pkl|pickle)$"
        r"|(?:^|[^a-z])(?:train|training|history|logs?|metrics|results?|curves?|stats|statistics|progress)"
        r"(?:[^a-z].*)?\.(?:npz|pkl|pickle)$",
        re.IGNORECASE,
    ),
    "console": re.compile(r"\.(log|out|err|txt)$|^(stdout|stderr|std\.out|nohup)$", re.IGNORECASE),
}
#: What the names of arrays and pickles end with.
ARRAYS = (".npy", ".npz", ".pkl", ".pickle")
#: Kinds whose readers also take compressed and rotated files; other compressed files are reported as left out.
TEXTS = ("trainer_state", "jsonl", "json", "csv", "console")
PACKED = re.compile(r"\.(gz|bz2|xz|zst|lz4|zip|tar|tgz|7z|rar)$", re.IGNORECASE)
_INTERNAL = "debug-internal.log"
_OF_WANDB = frozenset({_INTERNAL, "debug.log", "debug-core.log"})
_NUMBERS = re.compile(r"(\d{1,1000})")
_UNPACKED_HERE = re.compile(r"\.(gz|bz2|xz)$", re.IGNORECASE)
#: Suffixes that a rotation adds: `.1`, `.2026-01-31`, `-20260131`, and that of the compression.
ROTATED = re.compile(
    r"(?<=[^.])(?P<age>\.\d{1,4}|[.-]\d{4}-?\d\d-?\d\d(?:[-_T]\d{2,6})?)(?:\.(?:gz|bz2|xz))?$", re.IGNORECASE
)


@dataclass
class WalkResult:
    """The files that a walk found.

    Attributes:
        files: paths by kind, each file once (by device and inode), in the order of their names.
        others: regular files whose names show no kind; some of them may still be logs.
        deeper: folders that are too deep to be read.
        copies: folders in which Jupyter keeps copies of notebooks; they are not entered.
        errors: folders that could not be read.
        entries: how many entries were read.
    """

    files: dict[str, list[Path]] = field(default_factory=dict)
    others: list[Path] = field(default_factory=list)
    deeper: list[Path] = field(default_factory=list)
    copies: list[Path] = field(default_factory=list)
    errors: list[RlhealthError] = field(default_factory=list)
    entries: int = 0


def kind_of(name: str) -> str | None:
    """The kind of log that a file of that name may be, or None; a text may be compressed (`.gz`) and rotated (`.1`)."""
    packed = PACKED.search(name)
    kind = None if packed else _kind(name)
    if kind is None and (bare := _UNPACKED_HERE.sub("", ROTATED.sub("", name))) != name:
        kind = _kind(bare)
        if kind not in TEXTS:
            return None
    return kind


def _kind(name: str) -> str | None:
    return next((kind for kind, pattern in NAMES.items() if pattern.search(name)), None)


def rotations(path: Path) -> list[Path]:
    """The older parts of a rotated log, the oldest first: `train.log.2.gz`, `train.log.1` before `train.log`."""
    try:
        beside = [one for one in path.parent.iterdir() if one.name.startswith(path.name) and one != path]
    except OSError:
        return []
    parts = [(found, one) for one in beside if (found := ROTATED.fullmatch(one.name, len(path.name))) and one.is_file()]
    return [one for _, one in sorted(parts, key=lambda part: _age(part[0]["age"]))]


def _age(text: str) -> tuple[int, int | str]:
    """A sort key that puts dates first, in order, then numbers, the highest of which is the oldest."""
    bare = text[1:]
    return (1, -int(bare)) if text[0] == "." and len(bare) <= 4 else (0, bare)


def without_rotated(files: list[Path]) -> list[Path]:
    """The files without those that are an older part of another one."""
    known = set(files)
    older: set[Path] = set()
    for path in files:
        bare = path.with_name(ROTATED.sub("", path.name)) if ROTATED.search(path.name) else path
        if bare != path and bare in known and _kind(bare.name) in ("jsonl", "csv", "console"):
            older.add(path)
    return [path for path in files if path not in older]


def walk(root: Path, tick: Callable[[int], None] | None = None) -> WalkResult:
    """Finds every file below `root`.

    Symbolic links are followed, each folder once, real folders before linked ones, so that `wandb/latest-run` is no
    second run. FIFOs, sockets and devices are skipped. `tick` is called from time to time with the number of entries so
    far.
    """
    found = WalkResult()
    seen: set[tuple[int, int]] = set()
    waiting: list[tuple[Path, int]] = [(root, 0)]
    linked: list[tuple[Path, int]] = []
    while waiting or linked:
        folder, depth = waiting.pop() if waiting else linked.pop(0)
        if not _is_new(folder, seen):
            continue
        for entry in _entries(folder, found):
            found.entries += 1
            if tick and found.entries % 1000 == 0:
                tick(found.entries)
            _sort(entry, depth, found, seen, waiting, linked)
        if found.entries >= MOST_ENTRIES:
            hint = "name the folder of the runs themselves"
            found.errors.append(
                RlhealthError(
                    f"{root}: more than {MOST_ENTRIES:,} files; the rest was not searched",
                    hint=hint,
                    location=str(root),
                )
            )
            break
    if "console" in found.files:
        found.files["console"] = _without_wandbs(found.files["console"])
    for paths in (*found.files.values(), found.others):
        paths.sort(key=lambda path: natural(str(path)))
    return found


def _without_wandbs(consoles: list[Path]) -> list[Path]:
    """The consoles without the logs that wandb keeps of itself: they tell its settings, and no training."""
    kept_by = {path.parent for path in consoles if path.name == _INTERNAL}
    return [path for path in consoles if not (path.name in _OF_WANDB and path.parent in kept_by)]


def natural(text: str) -> list[Any]:
    """A sort key that puts checkpoint-20 before checkpoint-100: texts and numbers in turn, beginning with a text."""
    parts: list[Any] = _NUMBERS.split(text)
    parts[1::2] = map(int, parts[1::2])
    return parts


def seen_from(root: Path, folder: Path) -> str:
    """The path of a folder below another one, with slashes; empty for that one itself and for what is not below it."""
    above, parts = root.parts, folder.parts
    return "/".join(parts[len(above) :]) if parts[: len(above)] == above else ""


def regular(path: Path) -> os.stat_result:
    """The stat of a regular file.

    Raises:
        RlhealthError: if there is none, or it is a pipe, a socket or a device, which must not be opened.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise RlhealthError(
            f"{path}: {reason(error)}", hint="check the spelling and the permissions", location=str(path)
        ) from error
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe, a socket or a device"
        hint = "name a file" if stat.S_ISDIR(found.st_mode) else "pipe it in and name -: … | rlhealth check -"
        raise RlhealthError(f"{path}: is {what}, not a file", hint=hint, location=str(path))
    return found


def reason(error: OSError) -> str:
    """The system's error message, in lower case and without the path: "permission denied"."""
    return (error.strerror or type(error).__name__).lower()


def _is_new(folder: Path, seen: set[tuple[int, int]]) -> bool:
    try:
        here = folder.stat()
    except OSError:
        return True  # listing it will say why
    key = (here.st_dev, here.st_ino)
    new = key not in seen
    seen.add(key)
    return new


def _entries(folder: Path, found: WalkResult) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        hint = "its runs, if there are any, were not judged"
        found.errors.append(RlhealthError(f"{folder}: {reason(error)}", hint=hint, location=str(folder)))


def _sort(
    entry: os.DirEntry[str],
    depth: int,
    found: WalkResult,
    seen: set[tuple[int, int]],
    waiting: list[tuple[Path, int]],
    linked: list[tuple[Path, int]],
) -> None:
    try:
        if entry.is_dir():
            if entry.name in PASSED_BY or entry.name.endswith(OURS):
                if entry.name == COPIES:
                    found.copies.append(Path(entry.path))
                return
            if depth >= DEEPEST:
                found.deeper.append(Path(entry.path))
            else:
                (linked if entry.is_symlink() else waiting).append((Path(entry.path), depth + 1))
            return
        kind = kind_of(entry.name)
        if not entry.is_file():
            return
        here = entry.stat()
    except OSError:  # a link to nothing, or gone since it was listed
        return
    key = (here.st_dev, here.st_ino)
    if key not in seen:
        seen.add(key)
        (found.others if kind is None else found.files.setdefault(kind, [])).append(Path(entry.path))
