"""TensorBoard: a run from one event file or from all that its launches wrote, read on from where the last poll
stopped.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.walk import NAMES, reason, regular, walk
from rlhealth.sources.tensorboard import eventruns
from rlhealth.sources.tensorboard.eventbatch import Batch
from rlhealth.sources.tensorboard.eventextent import extent, process
from rlhealth.sources.tensorboard.eventfile import EventFile
from rlhealth.sources.tensorboard.eventruns import Launches
from rlhealth.sources.tensorboard.eventsettings import NeighbourFiles, in_text, named
from rlhealth.sources.tensorboard.eventvalues import Bins, Settings, Text
from rlhealth.sources.tensorboard.onestep import OneStep

#: Names the reader of event files where a caller does not: "fast" or "tbparse".
READER_VARIABLE = "RLHEALTH_READER"
READERS = ("fast", "tbparse")


def find(path: Path, *, reader: str | None = None) -> list[TensorboardReader]:
    """A reader for every run at `path`: an event file, or a folder with runs in it or anywhere below.

    Raises:
        RlhealthError: if `path` is no regular file and no folder.
    """
    if path.is_dir():
        return readers(walk(path).files.get("tensorboard", []), path, reader=reader)
    regular(path)
    path = _absolute(path)
    return [TensorboardReader(Launches([path], place=path, name=eventruns.home(path.parent).name), reader=reader)]


def readers(files: Iterable[Path], root: Path, *, reader: str | None = None) -> list[TensorboardReader]:
    """A reader for every run that these event files are; names are as seen from `root`, and only there new files are
    taken up.
    """
    files, root = [_absolute(path) for path in files], _absolute(root)
    together: dict[Path, list[Path]] = {}
    for path in files:
        together.setdefault(eventruns.place(path.parent), []).append(path)
    known: dict[Path, frozenset[Path]] = {}
    for beside in together.values():
        known |= dict.fromkeys(beside, frozenset(beside))
    return [
        TensorboardReader(run, root, known=known[run.files[-1]], reader=reader)
        for run in eventruns.launches(files, root)
    ]


def _absolute(path: Path) -> Path:
    said = str(path)
    made = os.path.abspath(said)  # noqa: PTH100 (resolve would follow links and change the names)
    return path if made == said else Path(made)


class TensorboardReader:
    """One run. With each poll it reads the new bytes of its files, and takes up new files in which the run continues.

    Args:
        launches: the run's files.
        root: where new files are looked for, in folders of the run; nowhere without it.
        known: files that were found beside the run's and belong to other runs.
        reader: "fast", or "tbparse", which reads a file whole whenever it has grown; default: what the environment
            says, else "fast".
    """

    def __init__(
        self, launches: Launches, root: Path | None = None, *, known: Iterable[Path] = (), reader: str | None = None
    ) -> None:
        self._launches = launches
        self._root = root
        self._others = known if isinstance(known, frozenset) else frozenset(known)  # shared by hundreds of readers
        self._known = {*launches.files, *(path for path, _ in launches.parts)}
        self._open = _opener(reader)
        self._files: list[EventFile] = [self._open(path) for path in launches.files]
        self._parts = [(self._open(path), curve) for path, curve in launches.parts]
        self._beside: NeighbourFiles | None = None
        self._waiting = ""
        self._entered: set[Path] = set()
        self._listed: dict[Path, int] = {}
        self._beginning: list[Path] = []
        self._one_step = OneStep()
        self.run = Run(launches.name, Place("tensorboard", str(launches.place)), notes=list(launches.notes))

    def poll(self) -> bool:
        """Reads what is new; True if anything was.

        Raises:
            RlhealthError: if no file of the run can be read, or none is an event file.
        """
        self._take_up_new_files()
        self._drop_replaced()
        errors: list[RlhealthError] = []
        new = False
        for number, file in enumerate(self._files):
            try:
                for batch in file.read():
                    self._take(batch, number)
                    new = True
            except OSError as error:
                hint = "check that it still exists and that you may read it"
                errors.append(RlhealthError(f"{file.path}: {reason(error)}", hint=hint, location=str(file.path)))
                continue
            if file.lost and not file.records:
                hint = "its name says tfevents, its bytes do not: copy it again from where it was written"
                errors.append(
                    RlhealthError(f"{file.path}: not a TensorBoard event file", hint=hint, location=str(file.path))
                )
        if len(errors) == len(self._files):
            raise errors[0]
        new |= self._take_parts()
        self._beside = self._beside or self._look_beside()
        self.run.config.update(self._beside.settings([file.path for file in self._files]))
        self.run.versions.update(self._beside.versions())
        self._collect_problems(errors)
        return new

    def _drop_replaced(self) -> None:
        """Begins anew where a file has become shorter: another run was written in its place."""
        if any(_size(file.path) < file.offset for file in self._files):
            self.run.clear()
            self._entered.clear()
            self._one_step = OneStep()
            self._files = [self._open(file.path) for file in self._files]
            self.run.notes.append("an event file became shorter and was read again from its start")

    def _look_beside(self) -> NeighbourFiles:
        folder = self._files[-1].path.parent
        return NeighbourFiles(folder, [folder, eventruns.home(folder)])

    def _take(self, batch: Batch, number: int) -> None:
        run = self.run
        arrays = {tag: points.arrays() for tag, points in batch.points.items()}
        if batch.restart is not None:
            run.rewind(batch.restart)
            self._entered.add(self._files[number].path)
        elif arrays:
            self._enter(number, [int(steps.min()) for tag, (steps, _, _) in arrays.items() if tag in run.series])
        for tag, (steps, values, times) in self._one_step.placed(arrays, run).items():
            run.add(tag, steps, values, times)
        for step, time, item in batch.items:
            if isinstance(item, Bins):
                run.histogram(item.tag).add(step, item.edges, item.counts, time)
            elif isinstance(item, Text):
                run.config.update(in_text(item))
            elif isinstance(item, Settings):
                run.config.update(named(item.values))

    def _take_parts(self) -> bool:
        new = False
        for file, curve in self._parts:
            with contextlib.suppress(OSError):  # one curve less is no reason to leave the run unread
                for batch in file.read():
                    for tag, points in batch.points.items():
                        self.run.add(tag if tag == curve else f"{tag}/{curve}", *points.arrays())
                    new = True
        return new

    def _enter(self, number: int, begins: list[int]) -> None:
        """With the first points of a later launch the run goes back to where that one began; `begins` are its first
        steps of tags that are known.
        """
        path = self._files[number].path
        if path in self._entered:
            return
        self._entered.add(path)
        writer = process(path)
        if number and begins and not (writer and writer == process(self._files[number - 1].path)):
            self.run.rewind(min(begins))

    def _take_up_new_files(self) -> None:
        """A resumed launch writes a new file: in the same folder, or in a new dated folder beside it."""
        for path in self._new_files():
            try:
                new = extent(path)
            except OSError:
                continue
            if not new.first_steps:
                self._listed.pop(path.parent, None)  # it has just begun: look again
                continue
            self._known.add(path)
            self._measure()
            if eventruns.continues(self._launches, path, new):
                eventruns.join(self._launches, path, new)
                self._files.append(self._open(path))
                self._beside = self._look_beside()

    def _new_files(self) -> list[Path]:
        folder = self._files[-1].path.parent
        if self._root is None or not folder.is_relative_to(self._root):
            return []
        try:
            if folder != self._root and eventruns.is_dated(folder) and self._has_changed(folder.parent):
                taken = {path.parent for path in self._known | self._others}
                self._beginning = [
                    one
                    for one in folder.parent.iterdir()
                    if eventruns.is_dated(one) and one not in taken and one.is_dir()
                ]
            folders = [*self._beginning, folder] if self._has_changed(folder) else self._beginning
            found = [path for one in folders for path in one.iterdir() if NAMES["tensorboard"].search(path.name)]
            return sorted(
                path for path in found if path not in self._known and path not in self._others and path.is_file()
            )
        except OSError:
            return []

    def _has_changed(self, folder: Path) -> bool:
        """Whether files came into the folder or went since the last time."""
        before, self._listed[folder] = self._listed.get(folder), folder.stat().st_mtime_ns
        return before != self._listed[folder]

    def _measure(self) -> None:
        """The extent of what was read: more than discovery saw, which looks only where there is something to report
        apart.
        """
        extent = self._launches.extent
        for tag, one in self.run.series.items():
            if len(one):
                extent.first_steps[tag] = int(one.steps[0])
                extent.last_step = max(extent.last_step, int(one.steps[-1]))
                extent.last_time = max(extent.last_time, float(one.times[-1]))
                apart = int(one.steps[1] - one.steps[0]) if len(one) > 1 else 0
                extent.every = min(extent.every or apart, apart or extent.every)
        extent.settings = extent.settings or dict(self.run.config)

    def _collect_problems(self, errors: list[RlhealthError]) -> None:
        run = self.run
        run.problems = [error.message for error in errors] + run.refusals
        for file in self._files:
            if file.lost and file.records:
                records = "1 damaged record" if len(file.lost) == 1 else f"{len(file.lost)} damaged records"
                run.problems.append(f"{records} skipped at byte {file.lost[0]} of {file.path.name}")
        if self._waiting in run.notes:
            run.notes.remove(self._waiting)
        if not run.series:
            path = self._files[-1].path
            what = "holds no scalars" if self._files[-1].offset else "is empty"
            self._waiting = f"{path.name} {what}: nothing was logged yet, or training ended before it logged anything"
            run.notes.append(self._waiting)
        run.clean = False if self._files[-1].torn else None
        run.modified = max(
            (modified for file in self._files if (modified := _modified(file.path))), default=float("nan")
        )


def _size(path: Path) -> float:
    try:
        return path.stat().st_size
    except OSError:
        return float("inf")  # reading it will say why


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return float("-inf")


def _opener(reader: str | None) -> type[EventFile]:
    chosen = reader or os.environ.get(READER_VARIABLE) or "fast"
    if chosen not in READERS:
        raise RlhealthError(f"no such reader of event files: {chosen}", hint=f"one of {', '.join(READERS)}")
    if chosen == "fast":
        return EventFile
    from rlhealth.sources.tensorboard.tbparse_file import (
        TbparseFile,  # late: it imports pandas, tensorboard and, where it is installed, TensorFlow
    )

    return TbparseFile
