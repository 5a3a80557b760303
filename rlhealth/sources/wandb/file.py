"""Offline wandb runs: `run-<id>.wandb`, finished, killed or still growing, and the run that continues in a second file
after a resume.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.history import AXES, Rows
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.values import is_metric, training_config
from rlhealth.sources.base.walk import regular, walk
from rlhealth.sources.wandb import parts as wandb_parts
from rlhealth.sources.wandb.columns import columns_of
from rlhealth.sources.wandb.items import row_of
from rlhealth.sources.wandb.keys import Keys
from rlhealth.sources.wandb.log import BLOCK, RecordLog, Records, Replaced
from rlhealth.sources.wandb.records import CONFIG, RUN, RecordContents, Settings, sort

PEEKED = 8 * BLOCK  # bytes of each file that are read to see which files are one run
_RUN_FOLDER = re.compile(r"(?:offline-)?run-.+")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)==(\S+)")
_LARGEST_REQUIREMENTS = 1 << 20


class WandbFileReader:
    """Reads one run from its `.wandb` file, or from several where it was killed and resumed, in the order of their
    starts.

    The exit record gives `Run.exit_code` and `Run.clean`; a file that ends inside a record gives `clean` False, which a
    killed run leaves forever and a live one between two writes (`Run.modified` distinguishes them).

    Args:
        paths: the files of the run.
        known: all files that were found in the folder, so that a file that appears later and continues this run is read
            too; None to read only `paths`.
    """

    def __init__(self, *paths: Path, known: Iterable[Path] | None = None) -> None:
        self.paths = paths
        self._known = None if known is None else {path.parent.name for path in known}
        self._candidates: dict[str, WandbFileReader] = {}
        self.run = Run(paths[0].stem.removeprefix("run-"), Place("wandb", str(paths[0])))
        self._begin()

    def _begin(self) -> None:
        self.settings = Settings()
        self._logs = [RecordLog(path) for path in self.paths]
        self._part = 0
        self._rows = Rows(self.run)
        self._keys = Keys(_is_kept)
        self._last_number = 0
        self._unreadable = 0
        self._peeked = False

    def poll(self) -> bool:
        """Reads what is new; True if there was anything new.

        Raises:
            RlhealthError: if none of the files can be read.
        """
        try:
            new = self._read()
        except Replaced:
            self.run.clear()
            self._begin()
            self.run.notes.append("the file was replaced while it was read; it was read again from its beginning")
            new = self._read()
        return new

    def peek(self) -> None:
        """Reads the beginning of the first file; the next poll does not read it again.

        Raises:
            RlhealthError: if it cannot be read.
        """
        log = self._logs[0]
        log.chunk = PEEKED
        records = next(log.read(), None)
        log.chunk = RecordLog(log.path).chunk
        if records is not None:
            self._take(records)
            self._rows.flush()
            self._peeked = True

    def _read(self) -> bool:
        before = [log.position for log in self._logs]
        failed: list[RlhealthError] = []
        for index in range(self._part, len(self._logs)):
            try:
                for records in self._logs[index].read():
                    if index > self._part:
                        self._next_part(index)
                    self._take(records)
            except RlhealthError as error:
                failed.append(error)
        self._rows.flush()
        if len(failed) == len(self._logs) - self._part and not any(log.position for log in self._logs):
            raise failed[0]
        new = self._peeked or before != [log.position for log in self._logs]
        self._peeked = False
        if new:
            self._settle()
        elif self.settings.exit_code is None and self._known is not None:
            self._look_for_a_continuation()
        self._collect_problems([error.message for error in failed])
        return new

    def _look_for_a_continuation(self) -> None:
        """The run has logged nothing new: checks whether it was resumed into a new file."""
        try:
            names = {one.name for one in self.paths[0].parent.parent.iterdir() if _RUN_FOLDER.fullmatch(one.name)}
        except OSError:
            return
        for name in sorted(names - (self._known or set())):
            found = [*(self.paths[0].parent.parent / name).glob("run-*.wandb")]
            candidate = self._candidates.setdefault(name, WandbFileReader(found[0])) if found else None
            try:
                if candidate is None or not (candidate.poll() or candidate.run.series):
                    continue
            except RlhealthError:
                continue
            if candidate.run.series:  # now it is known
                self._known = (self._known or set()) | {name}
                del self._candidates[name]
                if wandb_parts.goes_on(self, candidate):
                    self.paths += candidate.paths
                    self._logs.append(RecordLog(candidate.paths[0]))

    def _next_part(self, index: int) -> None:
        self._part = index
        self._last_number = 0
        self.settings.exit_code = None
        self._rows.begin_part()

    def _take(self, records: Records) -> None:
        found = sort(records)
        self._unreadable += found.unreadable
        for index in found.other:
            try:
                kind = self.settings.take(records.buffer[records.start[index] : records.end[index]])
            except ValueError:
                self._unreadable += 1
                continue
            if kind in (CONFIG, RUN):
                self._configure()
        if len(found.start):
            self._take_history(records.buffer, found)

    def _take_history(self, buffer: bytes, found: RecordContents) -> None:
        ordered = (
            found.number[0] > self._last_number and bool(np.all(found.number[1:] > found.number[:-1]))
        ) or not found.number.any()
        columns = columns_of(self._keys, buffer, found.start, found.end) if ordered else None
        if columns is not None:
            self._rows.take_columns(columns)
        else:
            for start, end, number in zip(found.start.tolist(), found.end.tolist(), found.number.tolist(), strict=True):
                try:
                    self._rows.take(row_of(buffer[start:end]), late=0 < number <= self._last_number)
                except ValueError:
                    self._unreadable += 1
                self._last_number = max(self._last_number, number)
        self._last_number = max(self._last_number, int(found.number.max()))

    def _configure(self) -> None:
        trainer = self.run.config.get("trainer_class")
        self.run.config = training_config(self.settings.config)
        if trainer:
            self.run.config.setdefault("trainer_class", trainer)
        self.run.name = self.settings.name or self.settings.run_id or self.run.name
        self.run.versions = {**self.settings.versions, **_requirements(self._logs[self._part].path)}

    def _settle(self) -> None:
        """Sets what is known about the run so far."""
        self._rows.end(self.settings.summary)
        self.run.exit_code = self.settings.exit_code
        log = self._logs[self._part]
        self.run.clean = True if self.settings.exit_code is not None else False if log.torn else None
        self.run.modified = log.modified
        if not self.run.versions:
            self.run.versions = dict(self.settings.versions)

    def _collect_problems(self, failures: list[str]) -> None:
        several = len(self._logs) > 1
        problems = [
            f"{log.path.name}: {sentence}" if several else sentence for log in self._logs for sentence in log.damage
        ]
        if self._unreadable:
            problems.append(f"{self._unreadable:,} record{'s' if self._unreadable > 1 else ''} left out: not wandb's")
        self.run.problems = problems + failures + self.run.refusals


def find(path: Path) -> list[Reader]:
    """A reader for every wandb run at `path`, a file or a folder; files that are one resumed run make one reader.

    Raises:
        RlhealthError: if `path` is no regular file and no folder.
    """
    if path.is_dir():
        return readers(walk(path).files.get("wandb", []), path)
    regular(path)
    return [WandbFileReader(path)]


def readers(files: Iterable[Path], root: Path) -> list[Reader]:
    """A reader for every run in these files, which lie below `root`.

    Two files in one `wandb` folder are one run if they have the same run id, or if the later one has the same output
    folder and settings and begins at a later step than the earlier one did: that is how a training that was resumed
    from a checkpoint looks.
    """
    folders: dict[Path, list[Path]] = {}
    for path in files:
        folders.setdefault(path.parent.parent, []).append(path)
    return [WandbFileReader(*parts, known=together) for together in folders.values() for parts in _parts(together)]


def _parts(paths: list[Path]) -> list[list[Path]]:
    """The files of each run among those of one folder."""
    if len(paths) == 1:
        return [paths]
    readers = [WandbFileReader(path) for path in paths]
    for reader in readers:
        try:
            reader.peek()
        except (RlhealthError, Replaced):
            continue  # the poll will say why
    return [[part.paths[0] for part in run] for run in wandb_parts.join(readers)]


def _requirements(path: Path) -> dict[str, str]:
    """Library versions from `files/requirements.txt`, which the SDK writes beside the record log."""
    file = path.parent / "files" / "requirements.txt"
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_REQUIREMENTS:
            return {}
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    return {found[1].lower(): found[2] for line in lines if (found := _REQUIREMENT.match(line))}


def _is_kept(tag: str) -> bool:
    """Whether a tag is read: a metric, or what a metric is logged against."""
    return is_metric(tag) or tag in (*AXES, "_step", "_timestamp")
