"""TensorBoard: a run from one event file or from all that its launches wrote, read on from where the last poll stopped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run, flat
from rlhealth.sources import eventruns
from rlhealth.sources.eventbatch import Batch
from rlhealth.sources.eventfile import EventFile
from rlhealth.sources.eventrecord import Bins, Settings, Text
from rlhealth.sources.walk import NAMES, reason, regular, walk

_MODEL_CARD = "README.md"
_VERSION = re.compile(r"^\s*[-*]\s*(TRL|Transformers|Pytorch|PyTorch|Datasets|Tokenizers|PEFT)\s*:\s*v?(\d[\w.+-]*)\s*$", re.MULTILINE | re.IGNORECASE)
_LARGEST_SIDE_FILE = 1 << 20


def find(path: Path, *, reader: str = "fast") -> list[TensorboardReader]:
    """A reader for every run at `path`: an event file, or a folder with runs in it or anywhere below.

    Raises:
        RlhealthError: where `path` is no regular file and no folder.
    """
    if path.is_dir():
        return readers(walk(path).files.get("tensorboard", []), path, reader=reader)
    regular(path)
    return readers([path], path.parent, reader=reader)


def readers(files: Iterable[Path], root: Path, *, reader: str = "fast") -> list[TensorboardReader]:
    """A reader for every run that these event files are; names are as seen from `root`."""
    files = [Path(os.path.abspath(path)) for path in files]  # noqa: PTH100 (resolve would follow links and change the names)
    known = set(files)
    return [TensorboardReader(run, known=known, reader=reader) for run in eventruns.launches(files, Path(os.path.abspath(root)))]  # noqa: PTH100


class TensorboardReader:
    """One run. With each poll it reads the new bytes of its files and takes up files in which the run goes on.

    Args:
        launches: the run's files, or the path of its only one.
        known: files that were found beside it and belong to other runs.
        reader: "fast", or "tbparse", which reads every file whole at every poll.
    """

    def __init__(self, launches: eventruns.Launches | Path, *, known: Iterable[Path] = (), reader: str = "fast") -> None:
        if isinstance(launches, Path):
            launches = eventruns.Launches([launches.absolute()], eventruns.Extent(), name=eventruns.home(launches.absolute().parent).name)
        self._launches = launches
        self._known = {*known, *launches.files, *launches.besides}
        self._reader = reader
        self._files = [EventFile(path) for path in launches.files]
        self._besides = [EventFile(path) for path in launches.besides]
        self._entered: set[Path] = set()
        self._listed: dict[Path, int] = {}
        self._side_files: dict[Path, int] = {}
        folders = {path.parent for path in launches.files}
        place = (
            launches.files[0]
            if len(launches.files) == 1 and "tfevents" in launches.name
            else folders.pop()
            if len(folders) == 1
            else launches.files[0].parent.parent
        )
        self.run = Run(launches.name, Place("tensorboard", str(place)))

    def poll(self) -> bool:
        """Reads what is new; True where anything was.

        Raises:
            RlhealthError: where no file of the run can be read, or none is an event file.
        """
        self._look_around()
        errors: list[RlhealthError] = []
        new = False
        for number, file in enumerate(self._files):
            try:
                for batch in self._batches(file):
                    self._take(batch, file, number)
                    new = True
            except OSError as error:
                hint = "check that it still exists and that you may read it"
                errors.append(RlhealthError(f"{file.path}: {reason(error)}", hint=hint, location=str(file.path)))
                continue
            if file.lost and not file.records:
                hint = "its name says tfevents, its bytes do not: copy it again from where it was written"
                errors.append(RlhealthError(f"{file.path}: not a TensorBoard event file", hint=hint, location=str(file.path)))
        if len(errors) == len(self._files):
            raise errors[0]
        self._take_side_files()
        self._note([error.message for error in errors])
        return new

    def _batches(self, file: EventFile) -> Iterable[Batch]:
        return file.read()

    def _take(self, batch: Batch, file: EventFile, number: int) -> None:
        run = self.run
        arrays = {tag: points.arrays() for tag, points in batch.points.items()}
        if batch.restart is not None:
            run.rewind(batch.restart)
        elif number and arrays and file.path not in self._entered:
            shared = [int(steps.min()) for tag, (steps, _, _) in arrays.items() if tag in run.series]
            other_process = eventruns.process(file.path) != eventruns.process(self._files[number - 1].path) or not eventruns.process(file.path)
            if shared and other_process:
                run.rewind(min(shared))
        if arrays:
            self._entered.add(file.path)
        for tag, (steps, values, times) in arrays.items():
            run.add(tag, steps, values, times)
        for step, time, item in batch.items:
            if isinstance(item, Bins):
                run.histogram(item.tag).add(step, item.edges, item.counts, time)
            elif isinstance(item, Text):
                run.config.update(eventruns.settings_in(item, step))
            elif isinstance(item, Settings):
                self._settle(item.values)

    def _settle(self, values: dict[str, Any]) -> None:
        self.run.config.update({name.replace("/", "."): value for name, value in flat(values).items()})

    def _look_around(self) -> None:
        """Takes up event files that appeared since: a resumed launch writes a new one, here or in a new dated folder beside."""
        last = self._files[-1].path.parent
        for folder in [last, last.parent] if eventruns.is_dated(last) else [last]:
            for path in self._new_files(folder, dated=folder != last):
                try:
                    new = eventruns.extent(path)
                except OSError:
                    continue
                if not new.first_steps:
                    continue
                self._known.add(path)
                if not self._launches.extent.first_steps:
                    self._measure()
                if eventruns.continues(self._launches, path, new):
                    eventruns.join(self._launches, path, new)
                    self._files.append(EventFile(path))

    def _measure(self) -> None:
        """The extent of what was read, which discovery had no need to look at."""
        extent = self._launches.extent
        for tag, one in self.run.series.items():
            if len(one):
                extent.first_steps[tag] = int(one.steps[0])
                extent.last_step = max(extent.last_step, int(one.steps[-1]))
                extent.last_time = max(extent.last_time, float(one.times[-1]))
                extent.every = max(extent.every, int(one.steps[-1] - one.steps[-2]) if len(one) > 1 else 1)
        extent.settings = dict(self.run.config)

    def _new_files(self, folder: Path, *, dated: bool) -> list[Path]:
        try:
            changed = folder.stat().st_mtime_ns
            if dated is False and self._listed.get(folder) == changed:
                return []
            first = folder not in self._listed
            self._listed[folder] = changed
            found = []
            for entry in os.scandir(folder):
                path = folder / entry.name
                if dated and entry.is_dir() and eventruns.is_dated(path) and path != self._files[-1].path.parent:
                    found += [inner for inner in path.iterdir() if NAMES["tensorboard"].search(inner.name) and inner.is_file()]
                elif not dated and NAMES["tensorboard"].search(entry.name) and entry.is_file():
                    found.append(path)
                elif not dated and entry.is_dir() and eventruns.holds_settings_only(path):
                    self._take_beside(path)
        except OSError:
            return []
        return sorted(path for path in found if path not in self._known) if not first or self._known else []

    def _take_beside(self, folder: Path) -> None:
        for path in folder.iterdir():
            if path.name == "hparams.yml":
                self._side_files.setdefault(path, 0)
            elif NAMES["tensorboard"].search(path.name) and path not in self._known:
                self._known.add(path)
                self._besides.append(EventFile(path))

    def _take_side_files(self) -> None:
        """Hyper-parameters beside the run, and versions in the model card that trainers leave at its end."""
        for file in self._besides:
            try:
                for batch in file.read():
                    for _, _, item in batch.items:
                        if isinstance(item, Settings):
                            self._settle(item.values)
            except OSError:
                continue
        for path in [path for path in self._side_files if path.name == "hparams.yml"]:
            text = self._changed_text(path)
            if text:
                self._settle(_yaml(text))
        folder = self._files[-1].path.parent
        for card in dict.fromkeys([folder / _MODEL_CARD, eventruns.home(folder) / _MODEL_CARD]):
            for name, version in _VERSION.findall(self._changed_text(card)):
                self.run.versions[name.lower()] = version

    def _changed_text(self, path: Path) -> str:
        """The text of a small file, or nothing where it is absent or as it was."""
        try:
            found = path.stat()
            if self._side_files.get(path) == found.st_mtime_ns or found.st_size > _LARGEST_SIDE_FILE or not path.is_file():
                return ""
            self._side_files[path] = found.st_mtime_ns
            return path.read_text("utf-8", "replace")
        except OSError:
            return ""

    def _note(self, problems: list[str]) -> None:
        run = self.run
        for file in self._files:
            if file.lost and file.records:
                count = len(file.lost)
                records = "1 damaged record" if count == 1 else f"{count} damaged records"
                problems.append(f"{records} skipped at byte {file.lost[0]} of {file.path.name}")
        run.problems = problems
        run.clean = False if self._files[-1].torn else None
        run.modified = max((modified for file in self._files if (modified := _modified(file.path))), default=float("nan"))


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _yaml(text: str) -> dict[str, Any]:
    import yaml  # late: most runs leave no such file

    class Plain(yaml.SafeLoader):
        """Without aliases, with which a small file can unfold into gigabytes."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not followed")
            return super().compose_node(parent, index)

    try:
        found = yaml.load(text, Plain)  # noqa: S506 (a SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}
