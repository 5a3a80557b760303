"""Which event files make up one run: a launch, and what it was resumed as."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlhealth.sources.base.walk import seen_from
from rlhealth.sources.tensorboard.eventextent import Extent, begins_like, extent_or_none, process, same_settings
from rlhealth.sources.tensorboard.eventheads import starts_alike
from rlhealth.sources.tensorboard.eventsettings import holds_settings_only

_CLOCK_SLACK = 60.0  # seconds by which the clocks of two machines may differ
_DATED = re.compile(
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\d\d_\d\d-\d\d-\d\d|20\d\d-?\d\d-?\d\d[-_T ]?\d\d[-_:]?\d\d",
    re.IGNORECASE,
)
_GENERIC = {"runs", "logs", "log", "tb", "tensorboard", "tensorboard_logs", "events", "tb_logs"}


@dataclass
class Launches:
    """The files of one run, in order; what they cover, where discovery had to look; and the place and the name under
    which the user knows it.

    `parts` are files of single curves in sub-folders, and what is put behind their tag.
    """

    files: list[Path]
    extent: Extent = field(default_factory=Extent)
    parts: list[tuple[Path, str]] = field(default_factory=list)
    place: Path = Path()
    name: str = ""
    notes: list[str] = field(default_factory=list)


def is_dated(folder: Path) -> bool:
    """Whether the folder is named after the time of a launch."""
    return bool(_DATED.match(folder.name))


def place(folder: Path) -> Path:
    """Where a run may continue that has files in `folder`: there, or in dated folders beside it."""
    return folder.parent if is_dated(folder) else folder


def continues(run: Launches, path: Path, new: Extent) -> bool:
    """Whether a later file continues with the run: not from the beginning, and not while the run was still being
    written.

    In another folder it must start within the run's range or right after it, under the same arguments.
    """
    old, last = run.extent, run.files[-1]
    here = path.parent == last.parent
    shared = old.first_steps.keys() & new.first_steps.keys()
    if here and (not shared or not old.first_steps):
        return True
    if not shared:
        return False
    start, began = min(new.first_steps[tag] for tag in shared), min(old.first_steps[tag] for tag in shared)
    if begins_like(old.first_steps, new) or (
        new.first_time < old.last_time - _CLOCK_SLACK and process(path) != process(last)
    ):
        return False
    reach = old.last_step + max(2 * max(old.every, new.every, 1), (old.last_step - began) // 10)
    return here or (start <= reach and same_settings(old.settings, new.settings))


def join(run: Launches, path: Path, new: Extent) -> None:
    """Adds a later file to the run."""
    old = run.extent
    run.files.append(path)
    run.extent = Extent(
        min(old.first_time, new.first_time),
        max(old.last_time, new.last_time),
        new.last_step if new.first_steps else old.last_step,
        min(old.every or new.every, new.every or old.every),
        {**new.first_steps, **old.first_steps},
        {**old.settings, **new.settings},
    )


def launches(files: Iterable[Path], root: Path) -> list[Launches]:
    """The runs that these event files are, named after their folders as seen from `root`."""
    folders: dict[Path, list[Path]] = {}
    for path in files:
        folders.setdefault(path.parent, []).append(path)
    parts = dict(_parts(folders))
    places: dict[Path, list[Path]] = {}
    for folder, paths in folders.items():
        if folder not in parts and not (holds_settings_only(folder) and folder.parent in folders):
            places.setdefault(place(folder), []).extend(paths)
    found = [run for paths in places.values() for run in _runs_in(paths)]
    for folder, (above, curve) in parts.items():
        writers = {process(path) for path in folders[folder]}
        for run in found:
            if any(path.parent == above and process(path) in writers for path in run.files):
                run.parts += [(path, curve) for path in folders[folder]]
    _name(found, root)
    return found


def _parts(folders: Mapping[Path, list[Path]]) -> Iterator[tuple[Path, tuple[Path, str]]]:
    """Folders that `add_scalars` made below a run's: each holds one curve, under the main tag, from which the folder
    takes its name. tensorboardX does not say which process wrote a file: it is asked where one run alone lies above.
    """
    known = {str(folder): folder for folder in folders}
    for folder, paths in folders.items():
        writers: set[str] = set()
        for above in _above(str(folder), known):
            writers = writers or {process(path) for path in paths}
            is_told = "" not in writers
            if (is_told or len(folders[above]) == 1) and writers <= {process(path) for path in folders[above]}:
                below = folder.relative_to(above).as_posix()
                tags = {tag for path in paths for tag in extent_or_none(path).first_steps}
                starts = [
                    start
                    for tag in tags
                    for start in ((tag.replace("/", "_") + "_", tag + "/") if is_told else (tag + "/",))
                    if below.startswith(start)
                ]
                if len(tags) == len(starts) == 1:
                    yield folder, (above, below[len(starts[0]) :])
                    break


def _above(folder: str, known: Mapping[str, Path]) -> Iterator[Path]:
    """The folders above one that are known, the nearest first."""
    while (above := os.path.dirname(folder)) != folder:  # noqa: PTH120 (ten times as fast, and asked for every folder)
        if above in known:
            yield known[above]
        folder = above


def _runs_in(paths: list[Path]) -> list[Launches]:
    """The runs among files that lie in one folder or in dated folders beside each other."""
    if len(paths) == 1:
        return [Launches(paths)]  # nothing to distinguish: the file is not opened yet
    if alike := starts_alike(paths):
        return [Launches([path]) for path in alike]
    looked = sorted(
        ((path, extent_or_none(path)) for path in paths),
        key=lambda pair: (not pair[1].first_steps, pair[1].first_time, str(pair[0])),
    )
    runs = _Found()
    for path, new in looked:
        beside = runs.beside(path)
        if (
            not new.first_steps and beside
        ):  # a launch that died before it logged anything, or has just begun: it is taken up when it does
            beside[-1].notes.append(f"{path.name} holds no scalars and was left out")
            continue
        fits = [run for run in runs.worth_a_look(path, new) if continues(run, path, new)]
        if fits:
            run = max(fits, key=lambda run: run.extent.last_time)
            runs.forget(run)
            join(run, path, new)
            runs.add(run)
        else:
            runs.add(Launches([path], new))
    return runs.all


class _Found:
    """The runs found so far, by folder and by how they begin, so that hundreds of dated folders are joined in linear
    time: a launch that starts where they started continues none of those that begin alike.
    """

    def __init__(self) -> None:
        self.all: list[Launches] = []
        self._order: dict[int, int] = {}
        self._by_folder: dict[Path, list[Launches]] = {}
        self._by_start: dict[frozenset[tuple[str, int]], list[Launches]] = {}

    def add(self, run: Launches) -> None:
        """Takes up a run, or one that has grown."""
        if id(run) not in self._order:
            self._order[id(run)] = len(self.all)
            self.all.append(run)
        for held in self._places(run):
            held.append(run)

    def forget(self, run: Launches) -> None:
        """Leaves a run out of what is looked up, before it grows."""
        for held in self._places(run):
            held.remove(run)

    def beside(self, path: Path) -> list[Launches]:
        """The runs whose last file lies in the folder of this one, in the order in which they were found."""
        return self._ordered(self._by_folder.get(path.parent, ()))

    def worth_a_look(self, path: Path, new: Extent) -> list[Launches]:
        """The runs that a file may continue: those beside it, and elsewhere those that it does not begin like."""
        found = {id(run): run for run in self._by_folder.get(path.parent, ())}
        for starts, runs in self._by_start.items():
            if runs and not begins_like(dict(starts), new):
                found |= {id(run): run for run in runs}
        return self._ordered(found.values())

    def _ordered(self, runs: Iterable[Launches]) -> list[Launches]:
        return sorted(runs, key=lambda run: self._order[id(run)])

    def _places(self, run: Launches) -> tuple[list[Launches], list[Launches]]:
        starts = frozenset(run.extent.first_steps.items())
        return self._by_folder.setdefault(run.files[-1].parent, []), self._by_start.setdefault(starts, [])


def home(folder: Path) -> Path:
    """The folder that a person would name: without the dated folder and the `runs` that transformers puts below it."""
    if is_dated(folder) and folder.parent.name in _GENERIC:
        folder = folder.parent
    return folder.parent if folder.name in _GENERIC else folder


def _name(found: list[Launches], root: Path) -> None:
    lasts = [run.files[-1].parent for run in found]
    short = [_seen_from(root, home(folder), len(found)) for folder in lasts]
    named, ending = Counter(short), Counter(lasts)
    for run, last, name in zip(found, lasts, short, strict=True):
        first = last if len(run.files) == 1 else run.files[0].parent
        is_one = all(path.parent == first for path in run.files[1:])
        run.place, run.name = first if is_one else first.parent, name
        if named[name] > 1:
            run.name = _seen_from(root, last, len(found))
            if ending[last] > 1:
                run.place = run.files[0]
                run.name += "/" + run.files[0].name.split("tfevents.", 1)[-1]


def _seen_from(root: Path, folder: Path, count: int) -> str:
    below = seen_from(root, folder)
    if not below:
        return folder.name
    return f"{root.name}/{below}" if count == 1 and root.name not in _GENERIC else below
