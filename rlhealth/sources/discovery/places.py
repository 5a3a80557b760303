"""Several places at once: files that are parts of one run are joined, what cannot be read keeps its place, names are
unique.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.run import UnreadFile
from rlhealth.sources.base.reader import Reader, Unreadable
from rlhealth.sources.base.walk import kind_of
from rlhealth.sources.discovery.find import find_readers
from rlhealth.sources.discovery.registry import SOURCES, is_online, kinds_of
from rlhealth.system.process import seldom_collecting

_IN_PARTS = ("tensorboard", "wandb")  # a resumed run of these may lie in several files


@dataclass(frozen=True)
class RunSelection:
    """Which of the runs that are found are read, and how.

    Attributes:
        source: the tracker to read where a run was written by several.
        reader: "fast", or "tbparse" for event files of unusual plugins.
        last: of a project in wandb, only so many of its newest runs.
        state: of a project in wandb, only the runs in this state.
        at_once: how many requests wandb's server may get at the same time.
    """

    source: str | None = None
    reader: str = "fast"
    last: int | None = None
    state: str | None = None
    at_once: int | None = None


def find_all(
    places: Sequence[str | Path], choice: RunSelection | None = None, left: list[UnreadFile] | None = None
) -> list[Reader]:
    """A reader for every run at and below each place; what cannot be read is among them, as `Unreadable`.

    Event files, or wandb files, that are named one by one are read together, so that the parts of a resumed run are
    one run here as they would be in a folder. Files that look like logs and are not read go to `left`.

    Raises:
        RlhealthError: for a source that there is not: no place is at fault.
    """
    choice = choice or RunSelection()
    kinds_of(choice.source)
    with seldom_collecting():  # ten thousand readers are a fifth sooner there
        return _find_all([str(place) for place in places], choice, left)


def _find_all(said: list[str], choice: RunSelection, left: list[UnreadFile] | None) -> list[Reader]:
    parts = (
        {kind: [one for one in said if kind_of(Path(one).name) == kind and Path(one).is_file()] for kind in _IN_PARTS}
        if replace(choice, at_once=None) == RunSelection()
        else {}
    )
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
            found += _find(place, choice, left)
        except RlhealthError as error:
            found.append(Unreadable(error))
    return found


def _find(place: str, choice: RunSelection, left: list[UnreadFile] | None) -> list[Reader]:
    if is_online(place):
        online = importlib.import_module(SOURCES["wandb-online"])
        return list(online.find(place, last=choice.last, state=choice.state, at_once=choice.at_once))
    return find_readers(place, source=choice.source, reader=choice.reader, left=left)
