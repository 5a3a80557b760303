"""Notebooks: finds the runs that a notebook shows, and reads it again each time it is saved."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.saved import Stamp, is_being_written, stamp_of
from rlhealth.sources.notebooks.code import Code, read_code
from rlhealth.sources.notebooks.document import Document, documents
from rlhealth.sources.notebooks.joining import NotebookRun, died_at_start, runs_of
from rlhealth.sources.notebooks.printed_names import PrintedNames
from rlhealth.sources.notebooks.table import plain
from rlhealth.sources.rows.printed_warnings import of_warnings
from rlhealth.sources.rows.rewritten import bring_up_to_date
from rlhealth.sources.rows.rows import Rows

KIND = "notebook"
#: The largest notebook in bytes; a larger one holds pictures or videos, and takes several times its size in memory.
LARGEST = 256 << 20
#: A notebook with log rows contains at least one of these words; any other is skipped.
_LOG_WORDS = (b"Training Loss", b"reward", b"loss", b"Loss", b"ep_rew_mean", b"Reward", b"return", b"Return", b"core")
HINT = "a notebook keeps its log in the outputs of its cells: run it and save it, or name the trainer's output folder"


class Notebook:
    """One notebook, read completely each time it changes.

    Attributes:
        runs: the runs that it shows; they stay the same objects and grow.
        followed: those that have a reader.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: list[Run] = []
        self.followed: list[Run] = []
        self._seen: Stamp | None = None

    def poll(self) -> bool:
        """Reads the notebook if it was saved since the last poll; True if its runs changed.

        Raises:
            RlhealthError: if it cannot be read, or holds no run.
        """
        with open_regular(self.path) as file:
            here = os.fstat(file.fileno())
            stamp = stamp_of(here)
            if stamp == self._seen:
                return False
            if here.st_size > LARGEST:
                hint = "clear the pictures out of it, or name the trainer's output folder"
                raise self._error(f"larger than {LARGEST >> 20} MiB", hint)
            raw = file.read(here.st_size)
        found, is_whole = _read(raw, self)
        if self.runs and not is_whole and is_being_written(here.st_mtime):
            return False  # it is being saved; the next poll reads it whole
        self._seen = stamp
        changed = self._bring_up_to_date(found, here.st_mtime)
        if all(run.is_empty for run in self.runs):
            raise self._error(_why(raw), HINT)
        return changed

    def _bring_up_to_date(self, found: list[Run], modified: float) -> bool:
        changed = False
        for index, run in enumerate(found):
            run.modified = modified
            if index == len(self.runs):
                self.runs.append(run)
                changed = True
                continue
            known = self.runs[index]
            changed |= bring_up_to_date(known, run)
            changed |= (known.raised, known.solved, known.clean) != (run.raised, run.solved, run.clean)
            known.config, known.excerpted = run.config, run.excerpted
            known.versions, known.trainer = run.versions, run.trainer
            known.raised, known.solved, known.clean, known.modified = run.raised, run.solved, run.clean, modified
        for gone in self.runs[len(found) :]:  # its output was cleared
            if gone.first_step is not None:
                gone.rewind(gone.first_step)
                changed = True
        return changed

    def make(self, number: int) -> Run:
        """An empty run, the `number`-th of the notebook, from 0."""
        name = self.path.name.rsplit(".", 1)[0] or self.path.name
        place = Place(KIND, str(self.path), str(number + 1) if number else "")
        return Run(name if not number else f"{name}#{number + 1}", place)

    def _error(self, why: str, hint: str) -> RlhealthError:
        return RlhealthError(f"{self.path}: {why}", hint=hint, location=str(self.path))


class NotebookRunReader:
    """The reader of one run of a notebook; several may share it."""

    def __init__(self, notebook: Notebook, run: Run) -> None:
        self.notebook = notebook
        self.run = run
        self._size = -1
        notebook.followed.append(run)

    def appeared(self) -> list[NotebookRunReader]:
        """Readers for the runs in the notebook that have no reader yet."""
        return [
            NotebookRunReader(self.notebook, run)
            for run in self.notebook.runs
            if run.series and not any(run is one for one in self.notebook.followed)
        ]

    def poll(self) -> bool:
        """Reads the notebook if it was saved again; True if this run grew or changed since the last call."""
        self.notebook.poll()
        size = sum(len(one) + one.revision for one in self.run.series.values())
        changed, self._size = size != self._size, size
        return changed


def find(path: Path) -> list[Reader]:
    """A reader for every run in a notebook that the user named.

    Raises:
        RlhealthError: if it cannot be read, or holds no run.
    """
    notebook = Notebook(path)
    notebook.poll()
    return [NotebookRunReader(notebook, run) for run in notebook.runs if not run.is_empty]


def readers(files: Iterable[Path], errors: list[RlhealthError]) -> list[Reader]:
    """Readers for the notebooks found in a folder that show a run; what cannot be read is added to `errors`."""
    found: list[Reader] = []
    for path in files:
        notebook = Notebook(path)
        try:
            notebook.poll()
        except RlhealthError as error:
            if error.hint != HINT:  # a notebook without a log is not reported
                errors.append(error)
            continue
        found += [NotebookRunReader(notebook, run) for run in notebook.runs if not run.is_empty]
    return found


def _why(raw: bytes) -> str:
    if not raw.strip():
        return "is empty"
    return "no training table and no printed rows in its outputs" if b'"cell' in raw else "is no notebook"


def _read(raw: bytes, notebook: Notebook) -> tuple[list[Run], bool]:
    """The runs in these bytes, and whether all of the notebook could be read."""
    if not any(word in raw for word in _LOG_WORDS):
        return [], True
    best: tuple[int, list[Run], bool] = (-1, [], True)
    for document in documents(raw):
        code = read_code(document.cells)
        logged = runs_of(document, code)
        runs: list[Run] = []
        for one in logged:
            runs += _runs(one, code, notebook, len(runs))
        if not logged:
            runs = _died_at_start(document, code, notebook)
        for index, run in enumerate(runs):
            if run.raised and any(_goes_further(later, run) for later in runs[index + 1 :]):
                run.raised = ""
                run.notes.append("a later run in this notebook started again and has more steps")
            run.problems += [f"{notebook.path.name}: {problem}" for problem in document.problems]
        points = sum(one.points for one in logged)
        if points > best[0]:
            best = (points, runs, document.is_whole)
    return best[1], best[2]


def _goes_further(later: Run, run: Run) -> bool:
    """Whether a run logs everything that an earlier run did, and more rows: the user fixed the error and ran it
    again."""
    longest = [max(map(len, one.series.values())) for one in (later, run)]
    return run.series.keys() <= later.series.keys() and longest[0] > longest[1]


def _runs(source: NotebookRun, code: Code, notebook: Notebook, before: int) -> list[Run]:
    """The runs in the tables of a `NotebookRun`; printed rows may be of several runs, one after another."""
    axis = source.parts[0].axis
    rows = Rows(lambda number: notebook.make(before + number), steps=axis or None)
    for part in source.parts:
        rows.take(_as_returned(part.rows, code.printed))
    rows.flush(is_over=True)
    runs = [run for run in rows.runs if run.series]
    for index, run in enumerate(runs):
        run.step_axis = {"Step": "global_step", "step": "global_step", "Epoch": "epoch"}.get(axis, run.step_axis)
        run.versions.update(code.versions)
        _describe(run, source, is_last=index == len(runs) - 1)
    return runs


def _as_returned(rows: list[dict[str, float]], printed: PrintedNames) -> list[dict[str, float]]:
    """Rows under the trainer's names, where the code prints what it returned under others; a row that has both stays
    as it is."""
    tags = {tag for row in rows for tag in row}
    own = {tag: name for tag in tags if (name := printed.of(tag)) != tag}
    if not own:
        return rows
    named = [{own.get(tag, tag): value for tag, value in row.items()} for row in rows]
    return [new if len(new) == len(row) else row for new, row in zip(named, rows, strict=True)]


def _died_at_start(document: Document, code: Code, notebook: Notebook) -> list[Run]:
    """The run of which the notebook shows nothing but the exception that ended it."""
    start = died_at_start(document, code)
    if start is None:
        return []
    run = notebook.make(0)
    trainer, run.raised = start
    run.trainer, run.config = trainer.name, dict(trainer.settings)
    run.versions.update(code.versions)
    return [run] if run.died_at_start else []


def _note_excerpts(run: Run, source: NotebookRun) -> None:
    """Notes the metrics that the notebook shows at only some of the steps."""
    shown = set().union(*(part.excerpted for part in source.parts))
    run.excerpted = {tag for tag in run.series if plain(tag) in shown}
    if run.excerpted:
        names = ", ".join(sorted(run.excerpted)[:3]) + (", …" if len(run.excerpted) > 3 else "")
        run.notes.append(f"the notebook shows {names} at only some of the steps")


def _describe(run: Run, source: NotebookRun, is_last: bool) -> None:
    """Adds what the progress bar, the code and an exception say about the run."""
    last = source.parts[-1]
    cells = list(dict.fromkeys(part.cell for part in source.parts))
    where = f"cell {cells[0]}" if len(cells) == 1 else f"cells {', '.join(map(str, cells))}"
    run.notes.append(f"read from the output of {where}")
    run.notes += source.notes
    if any(part.is_cut for part in source.parts):
        run.notes.append(f"rows or columns are left out of the output of {where}; they are missing here")
    _note_excerpts(run, source)
    warned = run.series.keys() & set().union(*(part.warned for part in source.parts))
    run.excerpted |= warned
    run.notes += of_warnings(warned, is_all=warned == run.series.keys())
    trainer = source.trainer
    if trainer is not None:
        run.trainer = trainer.name
        run.config = dict(trainer.settings)
    if run.step_axis not in ("global_step", "epoch"):
        run.config.pop("max_steps", None)  # steps are row numbers here
    if last.total and source.parts[0].axis:
        run.planned_steps = last.total
        asked = run.config.pop("max_steps", None)
        if run.step_axis == "global_step" and isinstance(asked, int | float) and asked > 0:
            if asked == last.total:
                run.config["max_steps"] = asked
            else:
                run.notes.append(
                    f"the code says max_steps={asked:g}, the progress bar {last.total}: "
                    "the code was changed after the run"
                )
        if last.done is not None and last.done >= last.total:
            run.clean = True
    if is_last and source.solved:
        run.solved = source.solved
        run.notes.append(f"its script says: {source.solved}")
    if source.error and is_last and run.clean is None:
        run.notes.append(f"its cell ended with {source.error}")
        run.raised = source.error
