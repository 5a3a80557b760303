"""Curves saved by numpy and pickle: `rewards.npy` and `rewards.pkl`, one number per episode, `rewards.npz`, named
arrays of this kind, and several of them in one array or table."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Floats, Place, Run, UnreadFile
from rlhealth.sources.arrays.curves import HINT, TEXTS, curves_in, curves_of
from rlhealth.sources.base.arrays import array_in, array_of
from rlhealth.sources.base.candidates import why_unread
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.pickled import LARGEST as LARGEST_PICKLE
from rlhealth.sources.base.pickled import ForeignObjectError, plain_value
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.headerless import FEWEST_OF_A_RUN, is_of_rewards, stem_of, tag_of
from rlhealth.sources.rows.json_tables import runs_of
from rlhealth.sources.rows.rows import Rows
from rlhealth.sources.rows.saved_arrays import SavedArrays

KIND = "numpy"
MOST_ARRAYS = 100  # of one archive
MOST_ROWS = 1 << 20  # numbers of one array, if there are several
_ZIP = b"PK"
_PICKLES = (".pkl", ".pickle")
#: Arrays that only a data set of transitions has: its rewards are those of single steps, and it is no run.
_OF_A_DATA_SET = frozenset(
    f"{before}{one}"
    for one in ("action", "actions", "obs", "observation", "observations", "state", "states", "terminal", "terminals")
    for before in ("", "next_")
) | {
    "trajectories",
    "demonstrations",
    "demos",
    "transitions",
    "dones",
    "done",
    "timeouts",
    "truncations",
    "images",
    "labels",
    "features",
}


class NoCurveError(ValueError):
    """Intact arrays, or values, that are no curve of a run."""


class Curve(SavedArrays):
    """Reads one such file.

    Args:
        number: which of the curves, where the file holds several.

    Attributes:
        count: of the curves in the file.
    """

    kind = KIND
    what = "curve"
    hint = "an array of one dimension, one number an episode or an update: numpy.save('rewards.npy', rewards)"

    def __init__(self, path: Path, number: int = 0) -> None:
        self.number, self.count = number, 1
        if path.suffix.lower() in TEXTS:
            self.hint = HINT
        super().__init__(path)

    def empty(self) -> Run:
        """A run without a point."""
        run = super().empty()
        if self.number:
            part = str(self.number + 1)
            run.name, run.place = f"{run.name}#{part}", Place(self.kind, str(self.path), part)
        return run

    def fill(self, run: Run, file: IO[bytes]) -> None:
        """Adds the numbers. Raises NoCurveError if they are no curve, or another of `DAMAGE` if the file is damaged."""
        rows = Rows(lambda _: run)
        start = file.read(2)
        file.seek(0)
        if start == _ZIP:
            _take_archive(rows, file, self.path)
        elif self.path.suffix.lower() in _PICKLES:
            _take_pickle(rows, file, self.path)
        else:
            values = self._chosen(run, file)
            rows.take_columns({tag_of(stem_of(self.path.name)): np.ma.masked_array(values)})
        rows.flush()
        if not run.series:
            raise NoCurveError("it holds no number")

    def _chosen(self, run: Run, file: IO[bytes]) -> Floats:
        """The numbers of this curve, shape (count,)."""
        suffix = self.path.suffix.lower()
        if suffix in TEXTS:
            curves = curves_in(file, suffix)
        else:
            values = array_of(file, self.path.name)
            curves = curves_of(values) if (flat := _flat(values)) is None else [flat]
        if len(curves) <= self.number:
            raise NoCurveError("it is no array of one dimension, and of no few rows or columns that are long")
        self.count = len(curves)
        if self.count > 1:
            said = f"curve {self.number + 1} of the {self.count} in {self.path.name}"
            run.notes.append(f"{said}: rows or columns, whichever are fewer, are read as runs")
        return curves[self.number]


def find(path: Path) -> list[Reader]:
    """A reader for each curve in a file that the user named.

    Raises:
        RlhealthError: if it cannot be read, or holds no curve.
    """
    first = Curve(path)
    first.poll()
    others = [Curve(path, number) for number in range(1, first.count)]
    for one in others:
        one.poll()
    return [first, *others]


def readers(
    files: Iterable[Path], errors: list[RlhealthError], left: list[UnreadFile], *, are_alone: bool
) -> list[Reader]:
    """Readers for the files of a folder. Files that cannot be read are added to `errors`. Files that are no curve of a
    run, and all files beside other logs, are added to `left`."""
    found: list[Reader] = []
    for path in files:
        is_called_so, is_pickle = is_of_rewards(stem_of(path.name)), path.suffix.lower() in _PICKLES
        if not is_called_so and not is_pickle and not _holds_rewards(path):
            if path.suffix.lower() == ".npz" and (why := why_unread(path)):
                left.append(UnreadFile(str(path), why))
            continue  # the weights of a reward model
        if not are_alone:
            said = "a pickle" if is_pickle else "an array of rewards"
            left.append(UnreadFile(str(path), f"{said} beside a log of training: name the file itself to read it"))
            continue
        if beside := _data_set_beside(path):
            left.append(UnreadFile(str(path), f"rewards of a data set, {beside} lies beside them"))
            continue
        try:
            curves = find(path)
        except RlhealthError as error:
            if isinstance(error.__cause__, NoCurveError) or (is_pickle and not is_called_so):
                left.append(UnreadFile(str(path), f"no curve of a run: {error.__cause__ or error}"))
            else:
                errors.append(error)
            continue
        if any(len(series) >= FEWEST_OF_A_RUN for one in curves for series in one.run.series.values()):
            found += curves
        else:
            left.append(UnreadFile(str(path), f"fewer than {FEWEST_OF_A_RUN} numbers: name the file itself to read it"))
    return found


def _take_archive(rows: Rows, file: IO[bytes], path: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        held = {one.filename.removesuffix(".npy"): one for one in archive.infolist()[:MOST_ARRAYS]}
        if not _OF_A_DATA_SET.isdisjoint(held):
            raise NoCurveError("transitions of a data set")
        named = [name for name in held if is_of_rewards(name)]
        if not named and len(held) == 1:
            named = list(held)
        if not named:
            raise NoCurveError("none of its arrays is called a reward")
        columns: dict[str, list[float]] = {}
        for name, member in held.items():
            try:
                values = _flat(array_in(archive, member))
            except ValueError:
                if name in named:
                    raise
                continue  # texts and objects beside the curve
            if values is not None and len(values) <= MOST_ROWS:
                own = stem_of(path.name) if len(held) == 1 and not is_of_rewards(name) else name
                columns[tag_of(own) if name in named else name] = values.tolist()
    for one in runs_of(columns)[:1]:
        rows.take(one.rows)


def _take_pickle(rows: Rows, file: IO[bytes], path: Path) -> None:
    try:
        found = plain_value(file.read(LARGEST_PICKLE + 1))
    except ForeignObjectError as error:
        raise NoCurveError(str(error)) from error
    stem = stem_of(path.name)
    if isinstance(found, list) and is_of_rewards(stem) and all(number(one) is not None for one in found):
        values = np.ma.masked_array([number(one) for one in found])
        rows.take_columns({tag_of(stem): values})
        return
    document = found if isinstance(found, dict) else {stem: found}
    if not _OF_A_DATA_SET.isdisjoint(document):
        raise NoCurveError("transitions of a data set")
    of_rewards = [
        one for one in runs_of(document, stem) if any(is_of_rewards(name) for row in one.rows[:1] for name in row)
    ]
    if not of_rewards:
        raise NoCurveError("none of its lists is called a reward")
    rows.take(of_rewards[0].rows)


def _flat(values: Floats) -> Floats | None:
    """An array with one dimension longer than one, as shape (count,); None for any other array."""
    flat: Floats = values.squeeze()
    return flat if flat.ndim == 1 and len(flat) else None


def _holds_rewards(path: Path) -> bool:
    """Whether an archive with another name, `history.npz`, has an array that is named after rewards."""
    if path.suffix.lower() != ".npz":
        return False
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            names = {one.filename.removesuffix(".npy") for one in archive.infolist()[:MOST_ARRAYS]}
    except (OSError, RlhealthError, zipfile.BadZipFile):
        return False
    return any(map(is_of_rewards, names)) and _OF_A_DATA_SET.isdisjoint(names)


def _data_set_beside(path: Path) -> str:
    """The name of an array in the same folder that only a data set has; "" if there is none."""
    try:
        beside = [one.name for one in path.parent.iterdir() if one.suffix == ".npy"]
    except OSError:
        return ""
    return next((name for name in sorted(beside) if name.rpartition(".")[0].lower() in _OF_A_DATA_SET), "")
