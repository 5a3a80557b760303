"""evaluations.npz of Stable-Baselines3's EvalCallback: the returns and lengths of each evaluation's episodes, by step
of the training.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Floats, Run
from rlhealth.sources.base.arrays import array_in
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.spelling import FURTHEST
from rlhealth.sources.rows.saved_arrays import SavedArrays

KIND = "evaluations"
#: Arrays of the file, and the tags under which their means are read.
TAGS = {name: f"evaluations/{name}" for name in ("results", "ep_lengths", "successes")}
#: What people's own callbacks call them; the first that is there is read.
CALLED = {"results": ("results", "rewards", "episode_rewards", "returns")}
#: The tag of the standard error that each evaluation's mean return has, by the returns of its episodes.
ERROR = "evaluations/error"
STEPS = "timesteps"
FEWEST = 3  # episodes of an evaluation by which its error is known
NOTE = "rewards of evaluations alone; what the training itself logged is not in this file"


class Evaluations(SavedArrays):
    """Reads one such file; the callback saves it anew after each evaluation."""

    kind = KIND
    what = "evaluations"
    hint = "EvalCallback of Stable-Baselines3 writes timesteps and results"

    def empty(self) -> Run:
        """A run without a point, which says what is in no such file."""
        run = super().empty()
        run.step_axis = STEPS
        run.notes.append(NOTE)
        return run

    def fill(self, run: Run, file: IO[bytes]) -> None:
        """Adds the mean over the episodes of each evaluation. Raises ValueError and its like where there is none."""
        with zipfile.ZipFile(file) as archive:
            held = {one.filename.removesuffix(".npy"): one for one in archive.infolist()[:100]}
            steps = array_in(archive, held[STEPS]).ravel()
            if not len(steps) or not np.all(np.isfinite(steps)) or np.any(np.abs(steps) >= FURTHEST):
                raise ValueError("its steps are none")
            order = np.argsort(steps, kind="stable")
            whole, unknown = steps[order].astype(np.int64), np.full(len(steps), np.nan)
            for array, tag in TAGS.items():
                name = next((one for one in CALLED.get(array, (array,)) if one in held), None)
                if name is None:
                    continue
                episodes = array_in(archive, held[name])
                run.add(tag, whole, _means(episodes, len(steps))[order], unknown)
                if array == "results" and episodes.ndim == 2 and episodes.shape[1] >= FEWEST:
                    run.add(ERROR, whole, _errors(episodes)[order], unknown)
        if TAGS["results"] not in run.series:
            raise ValueError("no results in it")


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


def _means(episodes: Floats, count: int) -> Floats:
    """The mean of each evaluation, shape (count,), of episodes with shape (count, episodes)."""
    if episodes.shape[:1] != (count,) or episodes.ndim > 2 or not episodes.size:
        raise ValueError(f"an array of shape {episodes.shape} for {count} steps")
    found: Floats = episodes if episodes.ndim == 1 else episodes.mean(axis=1)
    return found


def _errors(episodes: Floats) -> Floats:
    """The standard error of each mean, shape (count,), by the spread of its episodes, shape (count, episodes)."""
    with np.errstate(invalid="ignore", over="ignore"):  # of returns that are not finite there is none
        found: Floats = episodes.std(axis=1, ddof=1) / np.sqrt(episodes.shape[1])
    return found
