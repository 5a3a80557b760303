"""Several places at once: files that are parts of one run are joined, what cannot be read keeps its place, names are unique."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.sources import SOURCES, Unreadable, find_readers
from rlhealth.sources.reader import Reader
from rlhealth.sources.walk import kind_of

_IN_PARTS = ("tensorboard", "wandb")  # a resumed run of these may lie in several files


def find_all(places: Sequence[str | Path], *, source: str | None = None) -> list[Reader]:
    """A reader for every run at and below each place; what cannot be read is among them, as `Unreadable`.

    Event files, or wandb files, that are named one by one are read together, so that the parts of a resumed run are
    one run here as they would be in a folder.
    """
    said = [str(place) for place in places]
    parts = {kind: [one for one in said if kind_of(Path(one).name) == kind and Path(one).is_file()] for kind in _IN_PARTS} if source is None else {}
    together = {kind: files for kind, files in parts.items() if len(files) > 1}
    found: list[Reader] = []
    for kind, files in together.items():
        try:
            paths = [Path(os.path.abspath(file)) for file in files]  # noqa: PTH100 (resolve would follow links and change the names)
            found += importlib.import_module(SOURCES[kind]).readers(paths, Path(os.path.commonpath(paths)))
        except RlhealthError:
            together[kind] = []  # one of them cannot be read; each is tried by itself
    joined = {file for files in together.values() for file in files}
    for place in said:
        if place in joined:
            continue
        try:
            found += find_readers(place, source=source)
        except RlhealthError as error:
            found.append(Unreadable(error))
    return found
