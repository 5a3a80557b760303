"""trainer_state.json of transformers' Trainer: complete, renamed or truncated, in an output folder or its
checkpoints."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.growing import SparseFile, open_regular
from rlhealth.sources.base.packed import as_text
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.saved import Stamp, stamp_of
from rlhealth.sources.base.spelling import number
from rlhealth.sources.base.walk import WalkResult, walk
from rlhealth.sources.rows.json_columns import RowBlock
from rlhealth.sources.rows.json_rows import JsonRows
from rlhealth.sources.rows.placed_rows import MOST_RUNS
from rlhealth.sources.rows.rewritten import bring_up_to_date
from rlhealth.sources.rows.rows import Rows
from rlhealth.sources.rows.saved_arguments import saved_trainer
from rlhealth.sources.rows.trainer_plan import HEAD, OPENING, about, planned_steps

KIND = "trainer_state"
SETTINGS = ("num_train_epochs", "train_batch_size", "save_steps", "eval_steps")
_CHECKPOINT = re.compile(r"^checkpoint-(\d+)$")
_GLOBAL_STEP = re.compile(rb'"global_step"\s*:\s*(\d{1,18})\b')


class TrainerState:
    """Reads one trainer_state.json, again after each time that the trainer writes it.

    Args:
        path: the file.
        folder: the trainer's output folder, in which newer checkpoints are followed; None to read only this file.
        older: how many earlier checkpoints of the same run have a state, with the beginning of its history.
    """

    def __init__(self, path: Path, folder: Path | None = None, older: int = 0) -> None:
        self.path = path
        self._folder = folder
        self._looked: dict[Path, int] = {}
        self.run = Run(run_name(path), Place(KIND, str(path)), clean=None)
        if older:
            self.run.notes.append(f"the newest of {older + 1} saved states was read")
        self._seen: Stamp | None = None

    def poll(self) -> bool:
        """Reads the file if it was written since the last poll. Its new rows are added to `run`; if a resume cut the
        history back, so is the run's.

        Raises:
            RlhealthError: if the file cannot be read, or is no trainer's state.
        """
        self._follow()
        with open_regular(self.path) as file:
            here = os.fstat(file.fileno())
            stamp = stamp_of(here)
            if stamp == self._seen:
                return False
            rows = JsonRows(SparseFile(as_text(file, self.path)), OPENING)
            found, entries = self._read(rows)
        self._seen = stamp
        changed = bring_up_to_date(self.run, found)
        self.run.modified = here.st_mtime
        self._finish(rows, entries)
        return changed

    def _follow(self) -> None:
        """Switches to the state of a newer checkpoint."""
        if self._folder is None:
            return
        try:
            states = {path: path.stat().st_mtime_ns for path in _states_in(self._folder)}
        except OSError:  # deleted between the two looks
            return
        if states and states != self._looked:
            self._looked = states
            newest = max(states, key=_rank)
            if newest != self.path and (_rank(newest) > _rank(self.path) or self.path not in states):
                self.path = newest
                self.run.place = Place(KIND, str(newest))

    def _read(self, rows: JsonRows) -> tuple[Run, int]:
        """The run in the file, and how many entries it has."""
        run, entries = Run(self.run.name, self.run.place), 0

        def begin(number: int) -> Run:
            if number and run.first_step is not None:  # another run writes to the same place
                run.rewind(run.first_step)
            return run

        into = Rows(begin)
        for piece in rows.pieces():
            if isinstance(piece, RowBlock):
                into.take_columns(piece.table)
                entries += piece.rows
                continue
            for row in piece:
                if not rows.lost or "step" in row or "epoch" in row:  # after damage, any text may follow
                    into.take((row,))
                    entries += 1
        if not rows.found:
            raise RlhealthError(
                f"{self.path}: no log_history in it",
                hint="it is not a state that transformers' Trainer has saved",
                location=str(self.path),
            )
        into.flush(is_over=True)
        placed = into.placed
        if placed.late:
            run.notes.append(
                f"{placed.late:,} entries came out of order: they are kept at their own steps, and nothing was replaced"
            )
        if placed.beyond:
            run.problems.append(
                f"the steps start again more than {MOST_RUNS} times: {placed.beyond:,} entries were not read"
            )
        return run, entries

    def _finish(self, rows: JsonRows, entries: int) -> None:
        run = self.run
        run.step_axis = "global_step" if run.step_axis == "step" else run.step_axis
        run.problems[:] = [problem for problem in run.problems if not problem.startswith(str(self.path.name))]
        if rows.lost:
            run.problems.append(
                f"{self.path.name}: {rows.lost} damaged {'entry' if rows.lost == 1 else 'entries'} "
                "of log_history skipped"
            )
        if rows.cut:
            run.problems.append(f"{self.path.name}: the file ends inside log_history, after {entries} entries")
        run.clean = False if rows.cut else None
        run.trainer = run.trainer or saved_trainer(self.path.parent, output_folder(self.path))
        state = about(rows.head, rows.tail)
        run.config.update({key: state[key] for key in SETTINGS if number(state.get(key)) is not None})
        run.planned_steps = planned_steps(state) or run.planned_steps


def find(where: Path, found: WalkResult | None = None) -> list[Reader]:
    """A reader for each run with a saved state at or below `where`; of the checkpoints of one run, the newest is
    read.
    """
    if where.is_file():
        return [TrainerState(where)]
    groups: dict[Path, list[Path]] = {}
    for path in (found or walk(where)).files.get(KIND, []):
        groups.setdefault(output_folder(path), []).append(path)
    return [_newest(paths) for paths in groups.values()]


def output_folder(path: Path) -> Path:
    """The trainer's output folder, given the path of a state in it or in one of its checkpoints."""
    return path.parent.parent if _CHECKPOINT.match(path.parent.name) else path.parent


def run_name(path: Path) -> str:
    """The name of a run: its output folder, and the file if the folder is not enough."""
    folder = output_folder(path.absolute())
    return folder.name or path.stem


def _newest(paths: list[Path]) -> TrainerState:
    """The state with the highest step; of equals, the one outside a checkpoint folder."""
    best = max(paths, key=_rank)
    return TrainerState(best, output_folder(best) if best.name == "trainer_state.json" else None, older=len(paths) - 1)


def _rank(path: Path) -> tuple[int, bool, str]:
    return (saved_step(path), not _CHECKPOINT.match(path.parent.name), path.name)


def _states_in(folder: Path) -> list[Path]:
    """The states where transformers saves them: in the output folder, and in its two newest checkpoints."""
    try:
        checkpoints = sorted((int(found[1]), one) for one in folder.iterdir() if (found := _CHECKPOINT.match(one.name)))
        folders = [folder, *(one for _, one in checkpoints[-2:])]
        return [path for one in folders if (path := one / "trainer_state.json").is_file()]
    except OSError:
        return []


def saved_step(path: Path) -> int:
    """The step at which a state was saved: its `global_step`, or the number of its checkpoint, or -1."""
    try:
        with open_regular(path) as file:
            found = _GLOBAL_STEP.search(file.read(HEAD))
    except (RlhealthError, OSError):
        found = None
    checkpoint = _CHECKPOINT.match(path.parent.name)
    return int(found[1]) if found else int(checkpoint[1]) if checkpoint else -1
