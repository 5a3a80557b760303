"""trainer_state.json of transformers' Trainer: whole, renamed, cut, inside an output folder or its checkpoints."""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.growing import NoHoles, open_regular
from rlhealth.sources.json_rows import JsonRows
from rlhealth.sources.reader import Reader
from rlhealth.sources.rows import Rows
from rlhealth.sources.spelling import number, whole
from rlhealth.sources.walk import Found, walk

KIND = "trainer_state"
NAME = re.compile(r"^trainer_state.*\.json$")
#: Where the rows begin: in a trainer's state, or in a bare list of rows.
OPENING = re.compile(r'"log_history"\s*:\s*\[|\A\s*\[(?=\s*[{\]])')
SETTINGS = ("num_train_epochs", "train_batch_size", "save_steps", "eval_steps")
_CHECKPOINT = re.compile(r"^checkpoint-(\d+)$")
_GLOBAL_STEP = re.compile(rb'"global_step"\s*:\s*(\d{1,18})\b')
_NUMBERED = re.compile(rb'"(global_step|max_steps|num_train_epochs|epoch|episode)"\s*:\s*(-?\d[\d.eE+-]{0,30})')
_ANY_ROW = re.compile(r'[,\[]\s*(?=\{\s*")')
_HEAD, _TAIL = 1 << 16, 1 << 18  # bytes; what stands before and after the rows


class TrainerState:
    """Reads one trainer_state.json, again whenever the trainer has written it anew.

    Args:
        path: the file.
        older: states of earlier checkpoints of the same run, which hold the beginning of its history.
        name: what reports call the run.
    """

    def __init__(self, path: Path, older: int = 0, name: str | None = None) -> None:
        self.path = path
        self.run = Run(name or run_name(path), Place(KIND, str(path)), clean=None)
        if older:
            self.run.notes.append(f"the newest of {older + 1} saved states was read")
        self._rows = Rows(self._begin)
        self._seen: tuple[int, int, int] | None = None
        self._marks: list[int] = []

    def poll(self) -> bool:
        """Reads the file if it was written since; its new rows go into `run`, a history that was cut back by a resume is followed.

        Raises:
            RlhealthError: where the file cannot be read, or is no trainer's state.
        """
        with open_regular(self.path) as file:
            here = os.fstat(file.fileno())
            stamp = (here.st_ino, here.st_size, here.st_mtime_ns)
            if stamp == self._seen:
                return False
            rows = JsonRows(NoHoles(file), OPENING)
            changed = self._take(rows)
        self._seen = stamp
        self.run.modified = here.st_mtime
        self._finish(rows)
        return changed

    def _begin(self, number: int) -> Run:
        if number and self.run.first_step is not None:  # another run writes where this one wrote
            self.run.rewind(self.run.first_step)
        return self.run

    def _take(self, rows: JsonRows) -> bool:
        """Passes over the rows that were read before, and takes the rest."""
        marks: list[int] = []
        same = True
        new = 0
        for row in rows:
            if rows.lost and "step" not in row and "epoch" not in row:
                continue  # after damage anything may stand here
            marks.append(_mark(row))
            if same and len(marks) <= len(self._marks):
                if marks[-1] == self._marks[len(marks) - 1]:
                    continue
                same = False
            new += 1
            self._rows.take((row,))
        if not rows.found:
            raise RlhealthError(f"{self.path}: no log_history in it", hint="it is not a state that transformers' Trainer has saved", location=str(self.path))
        self._marks = marks
        return self._rows.flush() or new > 0

    def _finish(self, rows: JsonRows) -> None:
        run = self.run
        run.step_axis = "global_step" if run.step_axis == "step" else run.step_axis
        run.problems[:] = [problem for problem in run.problems if not problem.startswith(str(self.path.name))]
        if rows.lost:
            run.problems.append(f"{self.path.name}: {rows.lost} damaged {'entry' if rows.lost == 1 else 'entries'} of log_history passed over")
        if rows.cut:
            run.problems.append(f"{self.path.name}: the file ends inside log_history, after {len(self._marks)} entries")
        run.clean = False if rows.cut else None
        state = about(rows.head, rows.tail)
        run.config.update({key: state[key] for key in SETTINGS if number(state.get(key)) is not None})
        run.planned_steps = planned_steps(state, run) or run.planned_steps


class Plan:
    """The planned number of steps that a saved state tells, for a run that was read elsewhere; only the ends of the file are read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def steps(self, run: Run) -> int | None:
        """The planned steps, or None where the state does not say, or is another run's."""
        head, tail = self._ends()
        before, after = head.partition(b'"log_history"')[0], tail.rpartition(b"]")[2]
        if b"max_steps" not in after:  # a list stands behind the rows
            after = tail[max(0, tail.rfind(b'"logging_steps"')) :]
        state = {key.decode(): json.loads(value) for key, value in _NUMBERED.findall(before + after)}
        return planned_steps(state, run) if self.is_of(run) else None

    def is_of(self, run: Run) -> bool:
        """Whether nothing that the state's last rows tell speaks against their being the run's."""
        tail = self._ends()[1]
        return _agree(JsonRows(io.BytesIO(tail), OPENING if b'"log_history"' in tail else _ANY_ROW), run)

    def _ends(self) -> tuple[bytes, bytes]:
        try:
            with open_regular(self.path) as file:
                head = file.read(_HEAD)
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                return head, file.read(_TAIL)
        except (RlhealthError, OSError):
            return b"", b""


def _agree(rows: Iterable[Mapping[str, Any]], run: Run) -> bool:
    """Whether the rows of a state tell what the run tells at the same steps."""
    compared = alike = 0
    for row in rows:
        step = whole(row.get("step"))
        if step is None:
            continue
        for tag, value in row.items():
            series = run.series.get(f"train/{tag}", run.series.get(tag))
            told = number(value)
            if tag == "step" or series is None or told is None or not math.isfinite(told):
                continue
            at = int(np.searchsorted(series.steps, step))
            if at < len(series) and series.steps[at] == step:
                compared += 1
                alike += math.isclose(series.values[at], told, rel_tol=1e-3, abs_tol=1e-4)
    return not compared or 2 * alike > compared


def find(where: Path, found: Found | None = None) -> list[Reader]:
    """A reader for each run that has a saved state at or below `where`; of the checkpoints of one run, the newest is read."""
    if where.is_file():
        return [TrainerState(where)]
    groups: dict[Path, list[Path]] = {}
    for path in (found or walk(where)).files.get(KIND, []):
        if NAME.match(path.name):
            groups.setdefault(output_folder(path), []).append(path)
    return [_newest(paths) for paths in groups.values()]


def output_folder(path: Path) -> Path:
    """The trainer's output folder, given the path of a state in it or in one of its checkpoints."""
    return path.parent.parent if _CHECKPOINT.match(path.parent.name) else path.parent


def run_name(path: Path) -> str:
    """What a run is called: its output folder; the file too, where the folder does not say it."""
    folder = output_folder(path.absolute())
    return folder.name or path.stem


def about(head: str, tail: str) -> dict[str, Any]:
    """What a state says beside its rows, from the text before and after them."""
    for text in (f"{head}]{tail}", f"{head}]}}"):
        try:
            state = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return state if isinstance(state, dict) else {}
    return {}


def planned_steps(state: Mapping[str, Any], run: Run) -> int | None:
    """The number of steps the trainer meant to take, in the steps that the rows count.

    The PPO trainer of TRL (its state has `episode`) counts optimiser steps in `max_steps` and updates in `global_step` up to 0.13; the share of
    the planned epochs that has passed tells the updates in every version.
    """
    most = whole(state.get("max_steps"))
    if "episode" in state:
        epochs, passed, step = (number(state.get(key)) for key in ("num_train_epochs", "epoch", "global_step"))
        if epochs and passed and step:
            return round(epochs / passed * step)
        return None
    return most if most and most > 0 else None


def _newest(paths: list[Path]) -> TrainerState:
    """The state that goes furthest; of equals, the one outside a checkpoint folder."""
    best = max(paths, key=lambda path: (saved_step(path), not _CHECKPOINT.match(path.parent.name), path.name))
    return TrainerState(best, older=len(paths) - 1)


def saved_step(path: Path) -> int:
    """The step at which a state was saved: its `global_step`, or the number of its checkpoint, or -1."""
    try:
        with open_regular(path) as file:
            found = _GLOBAL_STEP.search(file.read(_HEAD))
    except (RlhealthError, OSError):
        found = None
    checkpoint = _CHECKPOINT.match(path.parent.name)
    return int(found[1]) if found else int(checkpoint[1]) if checkpoint else -1


def _mark(row: Mapping[str, Any]) -> int:
    """By this a row is known again; json makes every NaN of one process the same object, so that it equals itself here."""
    try:
        return hash(tuple(row.values()))
    except TypeError:
        return hash(repr(row))
