"""The base of every text log: one file with one or several runs, problems that are reported once, and a reader for each
run.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import IO

from rlhealth.errors import RlhealthError
from rlhealth.metrics.free_names import known_ending
from rlhealth.run import Place, Run
from rlhealth.sources.base.counted import counted, out_of_order
from rlhealth.sources.base.growing import LONGEST_LINE, GrowingFile
from rlhealth.sources.base.walk import ROTATED, rotations
from rlhealth.sources.rows.headerless import is_known
from rlhealth.sources.rows.placed_rows import MOST_RUNS
from rlhealth.sources.rows.rows import Rows

PATIENCE = 600.0  # seconds without a write after which the newest step has all its samples
#: File names that do not name the run; its folder does.
PLAIN_NAMES = frozenset(
    {
        "progress",
        "history",
        "log",
        "logs",
        "logging",
        "metrics",
        "train_metrics",
        "training_log",
        "training_logs",
        "train_log",
        "trainer_log",
        "result",
        "results",
    }
    | {
        "trajectory",
        "train",
        "stdout",
        "output",
        "nohup",
        "pasted",
        "wandb-history",
        "verl_file_logger",
        "trainer_state",
        "monitor",
        "data",
        "-",
    }
)
_BOARD_NAME = re.compile(r"^(?:run-)?(?P<run>.*?)-?tag-(?P<tag>.+)$")
_PACKED = re.compile(r"\.(gz|bz2|xz)$", re.IGNORECASE)


class TextLog:
    """A growing text file read into one or more runs. Formats differ in `read` only.

    Attributes:
        kind: the format, one of `SOURCES`.
        longest: bytes of a line; a longer line is skipped.
        rows: turns rows into runs.
        followed: the runs that have a reader.
        bad: how many lines or cells could not be read, and the number of the first such line.
    """

    kind = "text"
    rotates = True
    longest = LONGEST_LINE

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        self.path = path
        self.text = GrowingFile(path, file, self.longest)
        self.rows = Rows(self.make)
        self.bad = 0
        self.first_bad = 0
        self.followed: list[Run] = []
        self._older_read = file is not None  # stdin has no older parts
        self._parts = ""  # the note on the older parts of a rotated log
        self._reported: list[str] = []

    @property
    def runs(self) -> list[Run]:
        """The runs in the file so far; at least one, which may be empty."""
        return self.rows.runs

    def make(self, number: int) -> Run:
        """An empty run, the `number`-th of the file."""
        name = self.runs[0].name if number else run_name(self.path)
        run = Run(
            name if not number else f"{name}#{number + 1}",
            Place(self.kind, str(self.path), str(number + 1) if number else ""),
            modified=self.text.modified if hasattr(self, "text") else float("nan"),
        )
        if number:
            run.notes.append(f"run {number + 1} in {self.path.name}: the steps start again there")
        return run

    def is_over(self) -> bool:
        """Whether the file was not written to for so long that no more rows of its newest step will come."""
        return time.time() - self.text.modified > PATIENCE

    def poll(self) -> bool:
        """Reads new content; True if there was any.

        Raises:
            RlhealthError: if the file cannot be read, or holds no log.
        """
        if self.text.was_rewritten():
            self.start_again()
        changed = self._read_older()
        changed = self.read() or changed
        changed = self.rows.flush(is_over=self.is_over()) or changed
        for run in self.runs:
            run.modified = self.text.modified
        self._report()
        if all(run.is_empty for run in self.runs):
            raise self.nothing()
        return changed

    def _read_older(self) -> bool:
        """Reads the rotated parts, the oldest first, as the beginning of this log."""
        if self._older_read:
            return False
        self._older_read = True
        newest, older = self.text, rotations(self.path) if self.rotates else []
        for path in older:
            self.text = GrowingFile(path, longest=self.longest)
            self.begin_part()
            self.read()
            newest.too_long += self.text.too_long
            newest.blanks += self.text.blanks
            newest.trouble = newest.trouble or self.text.trouble
        if older:
            self.begin_part()
            parts = "part" if len(older) == 1 else "parts"
            self._parts = f"{self.path.name}: read together with its {len(older)} older {parts}, {older[0].name} first"
        self.text = newest
        return bool(older)

    def begin_part(self) -> None:
        """Another part of a rotated log begins: a table has its header again."""

    def read(self) -> bool:
        """Takes the new lines into `rows`; True if there were any."""
        raise NotImplementedError

    def nothing(self) -> RlhealthError:
        """The error for a file without metrics."""
        problems = dict.fromkeys([*self.problems(), *(problem for run in self.runs for problem in run.problems)])
        lost = "".join(f"; {problem.removeprefix(self.path.name + ': ')}" for problem in problems)
        why = "is empty" if not self.text.offset else f"no metrics found in it (read as {self.kind}){lost}"
        return RlhealthError(
            f"{self.path}: {why}",
            hint="a log has rows of numbers with names: {'loss': 0.1, 'kl': 0.02, …}",
            location=str(self.path),
        )

    def start_again(self) -> None:
        """The file was rewritten: earlier content is dropped, and the run objects are reused."""
        self.text.start_again()
        self._older_read = False
        self.bad = self.first_bad = 0
        old = self.runs
        self.rows = Rows(lambda number: self._empty(old[number]) if number < len(old) else self.make(number))

    def _empty(self, run: Run) -> Run:
        if run.first_step is not None:
            run.forget(run.first_step)
        run.replaced.clear()
        run.resumed_at.clear()
        for series in run.series.values():
            series.overwritten.clear()
        return run

    def is_bad(self, line: int) -> None:
        """Counts a line that could not be read."""
        self.bad += 1
        self.first_bad = self.first_bad or line

    def problems(self) -> list[str]:
        """What could not be read, as sentences."""
        found = []
        if self.bad:
            lines = counted(self.bad, "line", "lines")
            found.append(
                f"{self.path.name}: {lines} skipped that could not be read, the first is line {self.first_bad}"
            )
        if self.text.blanks:
            stretches = "a stretch" if self.text.blanks == 1 else f"{self.text.blanks:,} stretches"
            found.append(f"{self.path.name}: {stretches} of zero bytes in the text; what stood there is lost")
        if self.rows.placed.beyond:
            found.append(
                f"{self.path.name}: more than {MOST_RUNS} runs in one file: "
                f"{counted(self.rows.placed.beyond, 'row of the others was', 'rows of the others were')} not read"
            )
        if self.text.trouble:
            found.append(f"{self.path.name}: {self.text.trouble}")
        if self.text.too_long:
            lines = counted(self.text.too_long, "line", "lines")
            found.append(f"{self.path.name}: {lines} skipped, longer than {self.longest >> 20} MiB")
        return found

    def is_torn(self) -> bool:
        """Whether the last line may be a row whose end is missing."""
        return bool(self.text.rest.strip())

    def remarks(self) -> list[str]:
        """Notes for the user on how the rows were read, as sentences."""
        placed = self.rows.placed
        repeated, stepless, late = placed.repeated, placed.stepless, placed.late
        found = []
        if late:
            found.append(out_of_order(late))
        if self.rows.averaged:
            found.append(f"{counted(self.rows.averaged, 'row was', 'rows were')} read as the mean of their step")
        if repeated:
            found.append(f"{counted(repeated, 'row says', 'rows say')} a step again; of each the last was kept")
        if stepless:
            named = counted(stepless, "row names no step and says", "rows name no step and say")
            found.append(f"{named} again what the row before said; left out")
        return found

    @property
    def newest(self) -> Run:
        """The last run that is not empty: the end of the file is about this run."""
        return next((run for run in reversed(self.runs) if run.series or run.histograms), self.runs[-1])

    def _report(self) -> None:
        last = self.newest
        for run in self.runs:
            run.clean, run.raised, run.solved = None, "", ""
            run.problems[:] = [problem for problem in run.problems if problem not in self._reported]
            run.notes[:] = [note for note in run.notes if note not in self._reported]
        problems = self.problems()
        last.problems += problems
        torn = self.is_torn()
        notes = [f"{self.path.name}: the last line is not whole; it is waited for"] if torn else []
        notes += [self._parts] if self._parts else []
        notes += self.remarks()
        last.notes += notes
        last.clean = False if torn else None
        self._reported = problems + notes


class TextLogRun:
    """The reader of one run of a text log; several readers may share a file, which is read once."""

    def __init__(self, log: TextLog, run: Run) -> None:
        self.log = log
        self.run = run
        self._size = -1
        log.followed.append(run)

    def appeared(self) -> list[TextLogRun]:
        """Readers for new runs in the file that have no reader yet."""
        return [
            TextLogRun(self.log, run)
            for run in self.log.runs
            if (run.series or run.histograms) and not any(run is one for one in self.log.followed)
        ]

    def poll(self) -> bool:
        """Reads new content of the file; True if this run has grown or changed since the last call."""
        self.log.poll()
        size = sum(len(one) + one.revision for one in self.run.series.values()) + sum(
            len(one) for one in self.run.histograms.values()
        )
        changed, self._size = size != self._size, size
        return changed


def board_tag(path: Path) -> str:
    """The tag in the name of a file that TensorBoard's page exported: `run-exp1-tag-train_loss.csv`, or
    `PPO_walker_7_ep_rew_mean.csv` if the user named the file. The page writes "_" for the slash of
    `Environment/Cumulative Reward`."""
    found = _BOARD_NAME.match(path.stem)
    if found is None:
        return known_ending(path.stem) or path.stem
    tag, parted = found["tag"], found["tag"].replace("_", "/", 1)
    return parted if not is_known(tag) and is_known(parted) else tag


def run_name(path: Path) -> str:
    """The name of the run in a file: the file's name, or the folder's if the file's is generic."""
    if str(path) == "-":
        return "stdin"
    bare = _PACKED.sub("", ROTATED.sub("", path.name))
    stem = bare.rsplit(".", 1)[0] if "." in bare.strip(".") else bare
    if stem.lower() in PLAIN_NAMES:
        folder = path.absolute().parent.name
        return folder or stem
    return stem
