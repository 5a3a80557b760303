"""evaluations.npz of Stable-Baselines3's EvalCallback: the returns and lengths of each evaluation's episodes, by step
of the training.
"""

from __future__ import annotations

import io
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Floats, Place, Run
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.saved import Stamp, is_being_written, stamp_of
from rlhealth.sources.base.spelling import FURTHEST
from rlhealth.sources.rows.rewritten import bring_up_to_date
from rlhealth.sources.rows.textlog import run_name

KIND = "evaluations"
#: Arrays of the file, and the tags under which their means are read.
TAGS = {name: f"evaluations/{name}" for name in ("results", "ep_lengths", "successes")}
STEPS = "timesteps"
LARGEST = 64 << 20  # bytes of one array: 10 episodes in each of 800,000 evaluations
HINT = "EvalCallback of Stable-Baselines3 writes timesteps and results"
NOTE = "rewards of evaluations alone; what the training itself logged is not in this file"
#: What zipfile, zlib and numpy raise at a damaged file.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    ValueError,
    TypeError,
    EOFError,
    LookupError,
    ArithmeticError,
    RuntimeError,
)
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Evaluations:
    """Reads one such file, as a whole whenever it has changed: the callback saves it anew after each evaluation."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = self._empty()
        self._seen: Stamp | None = None

    def poll(self) -> bool:
        """Reads the file if it was saved since; True if it says more or other than before.

        Raises:
            RlhealthError: if it cannot be read, or holds no evaluations.
        """
        with open_regular(self.path) as file:
            here = os.fstat(file.fileno())
            stamp = stamp_of(here)
            if stamp == self._seen:
                return False
            found = self._empty()
            try:
                _fill(found, file)
            except _DAMAGE as error:
                if self.run.series and is_being_written(here.st_mtime):
                    return False  # it is being saved; the next poll reads it whole
                said = str(error).partition("\n")[0][:100] or type(error).__name__
                raise RlhealthError(
                    f"{self.path}: no evaluations that can be read: {said}", hint=HINT, location=str(self.path)
                ) from error
        self._seen, self.run.modified = stamp, here.st_mtime
        return bring_up_to_date(self.run, found)

    def _empty(self) -> Run:
        run = Run(run_name(self.path), Place(KIND, str(self.path)))
        run.step_axis = STEPS
        run.notes.append(NOTE)
        return run


def find(path: Path) -> list[Reader]:
    """The reader of a file that somebody named.

    Raises:
        RlhealthError: if it cannot be read, or holds no evaluations.
    """
    found = Evaluations(path)
    found.poll()
    return [found]


def readers(files: Iterable[Path], errors: list[RlhealthError]) -> list[Reader]:
    """Readers for the files, come across in a folder; what cannot be read goes to `errors`."""
    found: list[Reader] = []
    for path in files:
        try:
            found += find(path)
        except RlhealthError as error:
            errors.append(error)
    return found


def _fill(run: Run, file: IO[bytes]) -> None:
    """Adds the mean over the episodes of each evaluation. Raises ValueError and its like where there is none."""
    with zipfile.ZipFile(file) as archive:
        held = {one.filename.removesuffix(".npy"): one for one in archive.infolist()[:100]}
        steps = _array(archive, held[STEPS]).ravel()
        if not len(steps) or not np.all(np.isfinite(steps)) or np.any(np.abs(steps) >= FURTHEST):
            raise ValueError("its steps are none")
        for name, tag in TAGS.items():
            if name in held:
                means = _means(_array(archive, held[name]), len(steps))
                order = np.argsort(steps, kind="stable")
                run.add(tag, steps[order].astype(np.int64), means[order], np.full(len(steps), np.nan))
    if TAGS["results"] not in run.series:
        raise ValueError("no results in it")


def _means(episodes: Floats, count: int) -> Floats:
    """The mean of each evaluation, shape (count,), of episodes with shape (count, episodes)."""
    if episodes.shape[:1] != (count,) or episodes.ndim > 2 or not episodes.size:
        raise ValueError(f"an array of shape {episodes.shape} for {count} steps")
    found: Floats = episodes if episodes.ndim == 1 else episodes.mean(axis=1)
    return found


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Floats:
    """One array of numbers. No more memory is taken than its bytes are; Python objects are never unpickled."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is packed in a way that numpy does not use")
    with archive.open(member) as packed:
        raw = packed.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise ValueError(f"{member.filename} is larger than {LARGEST >> 20} MiB")
    text = io.BytesIO(raw)
    read_header: Any = _HEADERS.get(np.lib.format.read_magic(text))
    if read_header is None:
        raise ValueError(f"{member.filename} is of an unknown version")
    try:
        shape, is_fortran, dtype = read_header(text)
    except (tokenize.TokenError, SyntaxError, TypeError, AttributeError, MemoryError, RecursionError) as error:
        raise ValueError(f"{member.filename} has a damaged header") from error
    if dtype.kind not in "iufb":
        raise ValueError(f"{member.filename} holds {dtype}, no plain numbers")
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if any(size < 0 for size in shape) or count * dtype.itemsize > len(raw) - text.tell():
        raise ValueError(f"{member.filename} is shorter than it says")
    values = np.frombuffer(raw, dtype, count, text.tell()).astype(np.float64)
    return values.reshape(shape, order="F" if is_fortran else "C")
