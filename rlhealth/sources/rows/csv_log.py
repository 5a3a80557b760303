"""CSV logs through pandas: SB3's progress.csv, exports of the wandb and TensorBoard web pages, long tables, and any
table with a header.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.metrics.languages import in_english
from rlhealth.run import MOST_TAGS, Run
from rlhealth.sources.base.counted import counted
from rlhealth.sources.base.saved import is_being_written
from rlhealth.sources.base.settings_file import settings_file
from rlhealth.sources.base.spelling import BLANKS, number
from rlhealth.sources.base.values import training_config
from rlhealth.sources.rows.commented import COMMENTS, header_in, last_comment
from rlhealth.sources.rows.csv_cells import Cells, Table, without_summaries
from rlhealth.sources.rows.csv_columns import columns, evaluations_apart, text_writers, texts_of
from rlhealth.sources.rows.headerless import algorithm_of, are_numbered, numbered_header, with_commas
from rlhealth.sources.rows.json_parts import names_by_file
from rlhealth.sources.rows.metric_files import has_one_metric, tag_alone
from rlhealth.sources.rows.row_names import is_log_name, names_step
from rlhealth.sources.rows.rows import Rows
from rlhealth.sources.rows.search_table import is_search
from rlhealth.sources.rows.textlog import TextLog, board_tag

if TYPE_CHECKING:
    import pandas as pd

#: TensorBoard's page exports one tag per file, with these columns (here in lower case, without spaces).
BOARD = ["walltime", "step", "value"]
#: wandb's page exports a column for each run and metric, with their minimum and maximum over the binned steps.
_BOUND = re.compile(r"__(MIN|MAX)$")
#: wandb's table of runs has one row per run: no history.
RUN_TABLE = {"Name", "State", "Created"}
LONG = ("tag", "metric", "variable", "key")
LONGEST_CELL = 1 << 20
HYDRA_ABOVE = 4  # folders: csv/version_0/ below the folder of the run, or less
LOOKED_AT = 4096  # bytes that show whether the decimal separator is a comma
_COMMA = re.compile(rb"(?<=\d),(?=\d)")


class CsvLog(TextLog):
    """A table with a header: each row is a step, or (long format) each row is a point.

    Args:
        names: the columns' names, for a file without a header.
        tag: of the only metric in it, in a file with the columns step and value.
    """

    kind = "csv"
    longest = 4 << 20  # bytes of a line: 100,000 numbers of 20 digits take half of it

    def __init__(self, path: Path, file: IO[bytes] | None = None, names: Sequence[str] = (), tag: str = "") -> None:
        super().__init__(path, file)
        self._tag = tag
        self._comment = ""  # the newest above the header
        self._only = ""  # the tag of the only metric below the newest header
        self._algorithm = ""  # that its only column is named after
        self._given = list(names)
        self._names: list[str] = list(names)
        self._comma = ","
        self._decimal_comma: bool | None = None  # None until the first row
        self._columns = 0
        self._open = b""
        self._torn = self._first_torn = 0
        self._newest = b""  # line
        self._summaries = 0
        self._several: dict[str, Rows] = {}
        self._writers: str | None = None  # None until the first rows
        self._numbered: dict[str, int] = {}
        self._exports: list[CsvLog] = []

    def make(self, number: int) -> Run:
        """An empty run, with the settings that Lightning or Hydra keep beside a `metrics.csv`."""
        run = super().make(number)
        if self.path.name == "metrics.csv" and not number:
            run.config = training_config(_settings_beside(self.path))
        return run

    @property
    def runs(self) -> list[Run]:
        """The runs in the file: one after another, or side by side in an export of wandb's page."""
        return [run for rows in self._several.values() for run in rows.runs] or self.rows.runs

    def add_export(self, path: Path, names: Sequence[str] = (), tag: str = "") -> None:
        """Adds another metric of the same run, which is in a separate file."""
        other = CsvLog(path, names=names, tag=tag)
        other.rows = self.rows
        self._exports.append(other)

    def start_again(self) -> None:
        """The file was rewritten: SB3 does so to extend the header when a new metric appears."""
        super().start_again()
        self.begin_part()
        self._torn = self._first_torn = self._summaries = 0
        for run in self.runs:
            self._empty(run)
        self._several = {name: Rows(lambda _, run=rows.runs[0]: run) for name, rows in self._several.items()}  # type: ignore[misc]

    def begin_part(self) -> None:
        """The next part of a rotated table has its own header."""
        self._names, self._open, self._comment, self._columns = list(self._given), b"", "", 0
        self._newest = b""

    def read(self) -> bool:
        """Takes the new rows; also the last line, if it has all its cells and the file is not being written."""
        before = self.text.offset
        for block in self.text.blocks():
            block = self._open + block
            self._open = b""
            if block.count(b'"') % 2 and len(block) < LONGEST_CELL:  # a quoted cell continues in the next block
                cut = block.rfind(b"\n", 0, block.rfind(b'"')) + 1
                block, self._open = block[:cut], block[cut:]
            if block:
                self._take(block)
        if self._open and not is_being_written(self.text.modified):  # the quote will not be closed any more
            block, self._open = self._open, b""
            self._take(block)
        if self._is_whole(self.text.rest):
            self._take(self.text.take_rest() + b"\n")
        for rows in self._several.values():
            rows.flush(is_over=self.is_over())
        more = [export.read() for export in self._exports]
        return self.text.offset > before or any(more)

    def remarks(self) -> list[str]:
        """How the rows were read, as sentences."""
        taken = f"the column {self._algorithm} is named after an algorithm, and is read as its rewards"
        lines = counted(self._summaries, "line that sums", "lines that sum")
        summed = f"{lines} up the training, in other columns, left out"
        said = ((taken, self._algorithm), (summed, self._summaries))
        return super().remarks() + [one for one, so in said if so]

    def problems(self) -> list[str]:
        """What was lost in reading, as sentences."""
        waiting = f"{self.path.name}: a quote behind line {self.text.line} is not closed; what follows it is waited for"
        wide = f"{self.path.name}: it has {self._columns:,} columns, of which the first {MOST_TAGS:,} were read"
        lines = counted(self._torn, "line", "lines")
        torn = (
            f"{self.path.name}: {lines} read without a quote that is never closed, the first is line {self._first_torn}"
        )
        return super().problems() + [
            one for one, so in ((waiting, self._open), (torn, self._torn), (wide, self._columns > MOST_TAGS)) if so
        ]

    def _is_whole(self, rest: bytes) -> bool:
        """Whether a line without a newline is a row: it has all its cells, and the file was not written to for a
        while.
        """
        if is_being_written(self.text.modified):
            return False
        cells = (with_commas(rest) if self._given else rest).count(self._comma.encode()) + 1
        return bool(rest.strip()) and bool(self._names) and cells == len(self._names) and rest.rstrip()[-1:].isdigit()

    def _take(self, block: bytes) -> None:
        if not self._names:
            block = self._read_header(block)
        if not block:
            return
        if self._given:
            block = with_commas(block)
        if self._decimal_comma is None:
            self._decimal_comma = (
                self._comma == ";" and b"." not in block[:LOOKED_AT] and _COMMA.search(block[:LOOKED_AT]) is not None
            )
        if self._decimal_comma:  # as spreadsheets in many countries write them
            block = _COMMA.sub(b".", block)
        block, summaries = without_summaries(block, self._newest, self._columns, self._comma)
        self._newest = block[block.rfind(b"\n", 0, -1) + 1 :] or self._newest
        self._summaries += summaries
        self.text.line += summaries
        cells = Table(self._names, max(self._columns, len(self._names)), self._comma).read(block)
        self._count(cells)
        if cells.frame is not None and len(cells.frame):
            self._take_rows(cells.frame)

    def _take_rows(self, frame: pd.DataFrame) -> None:
        if self._only:
            *times, step, value = self._names
            self._take_points(frame.assign(tag=self._only), "tag", step, value, times[0] if times else None)
        elif (tag := next((name for name in LONG if name in self._names), None)) and {"step", "value"} <= set(
            self._names
        ):
            self._take_points(
                frame, tag, "step", "value", next((name for name in ("time", "wall_time") if name in self._names), None)
            )
        elif self._several:
            self._take_side_by_side(frame)
        else:
            if self._writers is None:
                self._writers = text_writers(frame)
            table = evaluations_apart(columns(frame), frame)
            if self._writers and self._writers in frame:  # an index that pandas writes has no name
                table[self._writers] = self._numbers_of(texts_of(frame[self._writers]).tolist())
            self.rows.take_columns(table)

    def _numbers_of(self, names: list[str]) -> Any:
        """The numbers of agents or algorithms, shape (rows,), in order of first appearance, from 1."""
        for name in names:
            self._numbered.setdefault(name, len(self._numbered) + 1)
        return np.ma.masked_array([float(self._numbered[name]) for name in names])

    def _count(self, cells: Cells) -> None:
        """Adds up the lines that could not be read."""
        if cells.lost:
            self.bad += cells.lost
            self.first_bad = self.first_bad or self.text.line + cells.first_lost
        if cells.torn:
            self._torn += cells.torn
            self._first_torn = self._first_torn or self.text.line + cells.first_torn
        self.text.line += cells.lines

    def _read_header(self, block: bytes) -> bytes:
        """Removes the header from the first block and decides what its columns are.

        Raises:
            RlhealthError: if there is no header, or the table is not a history.
        """
        if self.text.too_long:
            hint = "name a table whose first line names its columns, such as step,reward,kl"
            raise self._refused(f"the first line is longer than {self.longest >> 20} MiB", hint)
        found = COMMENTS.match(block)
        end = found.end() if found else 0
        line, _, rest = block[end:].partition(b"\n")
        text = line.decode("utf-8", "replace").strip("\r")
        self.text.line += block.count(b"\n", 0, end)
        self._comment = last_comment(block[:end].decode("utf-8", "replace").splitlines()) or self._comment
        header = header_in(self._comment, text)
        if header:
            text, rest = header, block[end:]
        text = in_english(text)
        self._comma = max(",\t;|", key=text.count)
        try:
            cells = [cell.strip() for cell in next(csv.reader([text], delimiter=self._comma), [])]
        except csv.Error:  # a bare carriage return, or a cell of more than 128 KiB
            cells = [cell.strip(' "') for cell in text.split(self._comma)]
        if not cells:
            return b""
        lines = [text, *rest[:LOOKED_AT].decode("utf-8", "replace").splitlines()[:-1]]
        cells = numbered_header(self.path.name, lines) or cells
        self._algorithm = algorithm_of(self.path.name, lines)
        if are_numbered(cells):
            hint = f"replace its first line by one that names its {len(cells)} columns, such as step,reward,kl"
            raise self._refused("its columns are numbered, and nothing says what they are", hint)
        if _are_values(cells):
            named = "column, such as reward" if len(cells) == 1 else f"{len(cells)} columns, such as step,reward,kl"
            hint = f"add a first line that names its {named}"
            raise self._refused("the table has no header line", hint)
        if set(cells) >= RUN_TABLE:
            hint = "export the history of a run: open a chart's menu, Export, CSV"
            raise self._refused("a table of runs, one row a run, and not a history", hint)
        if is_search(lines):
            hint = "check the logs of the runs that it sums up"
            raise self._refused("a table of settings that were tried, one row a run, and not a history", hint)
        self._only = ""
        if [cell.replace(" ", "").lower() for cell in cells] == BOARD:
            self._only = board_tag(self.path)
        elif has_one_metric(text):
            self._only = self._tag or tag_alone(self.path.stem)
        self._names, self._columns = _unique(names_by_file(self.path.name, cells[:MOST_TAGS])), len(cells)
        self._decimal_comma = None
        side_by_side = [name for name in cells if " - " in name]
        if side_by_side and len(side_by_side) >= len(cells) - 2:
            for name in dict.fromkeys(name.rpartition(" - ")[0] for name in side_by_side):
                self._several.setdefault(name, Rows(lambda _, name=name: self._named(name)))  # type: ignore[misc]
        self.text.line += 0 if header else 1
        return rest

    def _refused(self, said: str, hint: str) -> RlhealthError:
        return RlhealthError(f"{self.path}: {said}", hint=hint, location=str(self.path))

    def _named(self, name: str) -> Run:
        run = self.make(0)
        run.name = name
        return run

    def _take_side_by_side(self, frame: pd.DataFrame) -> None:
        shared = columns(frame[[name for name in self._names if " - " not in name]])
        for run, rows in self._several.items():
            own = {
                name: name.rpartition(" - ")[2]
                for name in self._names
                if name.rpartition(" - ")[0] == run and not _BOUND.search(name)
            }
            rows.take_columns(shared | columns(frame[list(own)].rename(columns=own)))

    def _take_points(self, frame: pd.DataFrame, tag: str, step: str, value: str, clock: str | None) -> None:
        table = columns(frame.drop(columns=[tag]))
        steps, values = table.get(step), table.get(value)
        if steps is None or values is None:
            return
        times = table[clock] if clock and clock in table else np.full(len(frame), np.nan)
        known = np.isfinite(steps) & (np.abs(steps) < 2**62)
        runs = texts_of(frame["run"]) if "run" in self._names else np.full(len(frame), "")
        tags = texts_of(frame[tag])
        named = tags != ""
        if not named.all():
            self.bad += int((~named).sum())
            self.first_bad = self.first_bad or self.text.line - len(frame) + int(np.argmin(named)) + 1
        for run, name in dict.fromkeys(zip(runs[named].tolist(), tags[named].tolist(), strict=True)):
            here = known & (runs == run) & (tags == name)
            rows = self.rows if not run else self._several.setdefault(run, Rows(lambda _, run=run: self._named(run)))  # type: ignore[misc]
            rows.run.add(name, steps[here].astype(np.int64), values[here], times[here])


def _settings_beside(path: Path) -> dict[str, Any]:
    """The settings in Lightning's hparams.yaml, or in the run's Hydra folder."""
    found = settings_file(path.with_name("hparams.yaml"))
    for folder in path.absolute().parents[:HYDRA_ABOVE]:
        found = found or settings_file(folder / ".hydra" / "config.yaml")
    return found


def _are_values(cells: Sequence[str]) -> bool:
    """Whether a first line holds values and no names: nothing but numbers, or mostly numbers beside words that name no
    metric and no step (`0,0,move_right,-4.07,160`)."""
    words = [cell for cell in cells if number(cell) is None and cell.lower() not in BLANKS]
    return not words or (len(cells) > 3 * len(words) and not any(is_log_name(one) or names_step(one) for one in words))


def _unique(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            names[index] = f"{name} ({seen[name]})"
    return names
