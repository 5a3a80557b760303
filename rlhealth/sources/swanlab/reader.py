"""SwanLab's record log: framed as wandb's is, each record a protobuf message, of which scalars, the run's name and its
end are read.

Field numbers are those of SwanLab 0.10's `swanlab.record.v1.Record`: 10 the start of the run (4 its name), 11 its end
(1 the state: 1 is success), 13 a point: 1 the metric, 2 the step, 4 the time (1 seconds, 2 nanoseconds), 5 a message
with the value, absent where it is 0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.points import Points
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.settings_file import settings_file
from rlhealth.sources.base.spelling import FURTHEST
from rlhealth.sources.base.values import training_config
from rlhealth.sources.wandb.log import RecordLog, Replaced
from rlhealth.sources.wandb.protowire import fields, signed

KIND = "swanlab"
START, END, SCALAR = 10, 11, 13
SUCCESS = 1


class SwanLog(RecordLog):
    """The records of a `.swanlab` file."""

    magic = b":SWL"
    tracker = "SwanLab"
    suffix = "swanlab"


class SwanLab:
    """Reads one `.swanlab` file; each record is read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = Run(path.stem, Place(KIND, str(path)))
        self._log = SwanLog(path)
        self._points = Points(self.run)
        self._unreadable = 0

    def poll(self) -> bool:
        """Reads the new records; True if there were any.

        Raises:
            RlhealthError: if the file cannot be read, or is not SwanLab's.
        """
        try:
            changed = self._read()
        except Replaced:
            self._log = SwanLog(self.path)
            if self.run.first_step is not None:
                self.run.rewind(self.run.first_step)
            changed = self._read() or True
        run = self.run
        run.modified = self._log.modified
        run.clean = False if self._log.torn else None
        run.config = training_config({key: _plain(value) for key, value in self._settings().items()})
        bad = f"{self._unreadable:,} records skipped that could not be read"
        run.problems[:] = [*self._log.damage, *([bad] if self._unreadable else [])]
        return changed

    def _read(self) -> bool:
        changed = False
        for records in self._log.read():
            for start, end in zip(records.start.tolist(), records.end.tolist(), strict=True):
                try:
                    changed |= self._take(records.buffer[start:end])
                except (ValueError, struct.error):
                    self._unreadable += 1
            self._points.move()
        return changed

    def _take(self, record: bytes) -> bool:
        for number, value in fields(record):
            if not isinstance(value, bytes):
                continue
            if number == SCALAR:
                self._point(value)
                return True
            if number == START:
                self.run.name = _text(value, 4) or self.run.name
            elif number == END:
                self.run.exit_code = 0 if dict(fields(value)).get(1) == SUCCESS else 1
                return True
        return False

    def _point(self, message: bytes) -> None:
        point = dict(fields(message))
        tag, step, value = point.get(1, b""), point.get(2, 0), point.get(5, b"")
        if not isinstance(tag, bytes) or not isinstance(step, int) or not isinstance(value, bytes):
            raise ValueError("no point")
        step = signed(step)
        if abs(step) >= FURTHEST:
            raise ValueError("no step")
        bits = dict(fields(value)).get(1, 0)
        number = struct.unpack("<d", bits.to_bytes(8, "little"))[0] if isinstance(bits, int) else math.nan
        self._points.put(tag.decode("utf-8", "replace"), number, step, _seconds(point.get(4)))

    def _settings(self) -> dict[str, object]:
        return settings_file(self.path.parent / "files" / "config.yaml")


def find(path: Path) -> list[Reader]:
    """A reader for the run in a file."""
    return readers([path], path.parent)


def readers(files: Iterable[Path], root: Path) -> list[Reader]:
    """A reader for each of the files, named by the run's own name.

    Raises:
        RlhealthError: if one of them cannot be read.
    """
    found: list[Reader] = []
    for path in files:
        reader = SwanLab(path)
        reader.poll()
        if not reader.run.series:
            hint = "SwanLab writes it where mode is offline or local"
            raise RlhealthError(f"{path}: no metrics in it", hint=hint, location=str(path))
        found.append(reader)
    return found


def _plain(value: object) -> object:
    """A setting without the description and the order that SwanLab keeps with it."""
    return (
        value["value"]
        if isinstance(value, dict) and "value" in value and set(value) <= {"value", "desc", "sort"}
        else value
    )


def _text(message: bytes, number: int) -> str:
    found = dict(fields(message)).get(number)
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else ""


def _seconds(message: object) -> float:
    """A timestamp of protobuf's, as seconds since 1970; NaN if there is none."""
    if not isinstance(message, bytes):
        return math.nan
    parts = dict(fields(message))
    seconds, nanoseconds = parts.get(1, 0), parts.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanoseconds, int) or seconds > 1 << 40:
        return math.nan
    return seconds + nanoseconds / 1e9
