"""One JSON file per step, `step_0001.json`, `step_0002.json`, …: the files of a folder with the same name and rising
numbers are the rows of one run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.spelling import AXES, whole
from rlhealth.sources.base.walk import natural
from rlhealth.sources.rows.json_parts import is_of_a_record
from rlhealth.sources.rows.row_names import is_log_name
from rlhealth.sources.rows.rows import Rows

FEWEST = 5  # files of a run
LARGEST = 256 << 10  # bytes of one file
_NUMBERED = re.compile(r"(?P<of>.*?)(?P<number>\d+)\.json", re.IGNORECASE)
_COUNTS = (*(one for one in AXES if one != "steps"), "epoch")


class JsonSteps:
    """Reads the files of one run, each once, and new files as they appear."""

    def __init__(self, folder: Path, of: str) -> None:
        self._folder = folder
        self._of = of
        name = of.rstrip("_-. ") or folder.name
        self.run = Run(name, Place("json", str(folder / f"{of}*.json")))
        self._rows = Rows(lambda _: self.run)
        self._seen: set[str] = set()

    def poll(self) -> bool:
        """Reads the new files; True if there were any."""
        new = [path for path in self._folder.iterdir() if path.name not in self._seen and _is_of(path, self._of)]
        rows = [row for path in sorted(new, key=lambda one: natural(one.name)) if (row := _row(path)) is not None]
        self._seen |= {path.name for path in new}
        self._rows.take(rows)
        return self._rows.flush()


def apart(files: Iterable[Path]) -> tuple[list[Reader], list[Path]]:
    """Readers for the files that are the steps of runs, and the other files."""
    groups: dict[tuple[Path, str], list[Path]] = {}
    others: list[Path] = []
    for path in files:
        named = _NUMBERED.fullmatch(path.name)
        if named:
            groups.setdefault((path.parent, named["of"]), []).append(path)
        else:
            others.append(path)
    found: list[Reader] = []
    for (folder, of), paths in groups.items():
        if not _are_steps(sorted(paths, key=lambda one: natural(one.name))):
            others += paths
            continue
        one = JsonSteps(folder, of)
        one.poll()
        found.append(one)
    return found, others


def _are_steps(paths: list[Path]) -> bool:
    """Whether the first, the middle and the last file are rows of one log: their steps rise and they name a metric."""
    if len(paths) < FEWEST:
        return False
    rows = [_row(path) for path in (paths[0], paths[len(paths) // 2], paths[-1])]
    axis = next((name for name in _COUNTS if all(row is not None and name in row for row in rows)), None)
    if axis is None:
        return False
    counts = [whole(row[axis]) for row in rows if row is not None and any(map(is_log_name, row))]
    rises = all(None not in pair and pair[0] < pair[1] for pair in pairwise(counts))  # type: ignore[operator]
    return len(counts) == len(rows) and rises


def _row(path: Path) -> dict[str, Any] | None:
    """The numbers of a file that is one object, without the lists in it; None for any other file."""
    try:
        with open_regular(path) as file:
            text = file.read(LARGEST + 1)
        row = orjson.loads(text) if len(text) <= LARGEST else None
    except (OSError, RlhealthError, ValueError):
        return None
    if not isinstance(row, dict) or is_of_a_record(row):
        return None
    return {name: value for name, value in row.items() if not isinstance(value, list)}


def _is_of(path: Path, of: str) -> bool:
    named = _NUMBERED.fullmatch(path.name)
    return named is not None and named["of"] == of
