"""Console logs: the output of a trainer, mixed with any other output."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import IO, Literal

from rlhealth.errors import RlhealthError
from rlhealth.metrics import languages
from rlhealth.sources.base.counted import counted
from rlhealth.sources.base.values import hidden, training_config
from rlhealth.sources.rows.dense_dicts import FEWEST, dense_rows
from rlhealth.sources.rows.error_file import raised_beside
from rlhealth.sources.rows.json_columns import RowBlock, stretches
from rlhealth.sources.rows.last_words import TAIL, counts_on, raised_in
from rlhealth.sources.rows.printed import Printed
from rlhealth.sources.rows.printed_line import bare, pairs
from rlhealth.sources.rows.printed_row import PrintedRow
from rlhealth.sources.rows.printed_settings import PrintedSettings
from rlhealth.sources.rows.printed_warnings import of_warnings, signs
from rlhealth.sources.rows.row_choice import FormRank, RowChoice
from rlhealth.sources.rows.row_names import is_learning, is_log_name, is_log_row
from rlhealth.sources.rows.sampled import Sampled
from rlhealth.sources.rows.sampled import remarks as of_rollouts
from rlhealth.sources.rows.solved import solved_in
from rlhealth.sources.rows.textlog import TextLog
from rlhealth.sources.rows.wrapped_lines import Unwrapping, is_wrapped

MOST_HELD = 20_000  # rows that are kept until the form of the log is known
#: Bytes (in lower case) of which at least one is near every row. Lines far from all of them are skipped unread.
SIGNS = tuple(
    b"step: loss rew return score kl entropy grad epret advantage clipfrac accuracy runtime fps eval_ train_ "
    b"succ rwd ep_r fitness mean100 best".split()
)
COUNTERS = (
    b"step",
    b"iter",
    b"episode",
    b"update",
    b"epoch",
    b"rollout",
    b"round",
    b"ep ",
    b"ep\t",
    b"generation",
    b"gen ",
)
DENSE = 0.9  # of the lines of a block
AROUND = 64  # lines before and after such a line that are also read
GAP = 4  # empty lines and rules that a block may contain
LONGEST_HEADING = 400  # bytes of a line that is the heading of a row, or part of a table
_BEGIN_NUMBERS = frozenset(bytes([byte]) for byte in b"0123456789+-.nNiI")
_BRACES = (b"{", b"}")
NEAREST = 3  # lines shown of a file without rows
SHOWN = 100  # characters of such a line
LOOKED_AT = 1 << 20  # bytes of the file that are searched for them
MOST_LOOKED_AT = 1000  # lines among which they are chosen
FORMS = (
    "dicts {'loss': 0.1, …}, boxed tables, tables with a line of names, lines `step: 1 - loss: 0.1`, "
    "`loss=0.1, reward=2`, blocks of `name: number` lines, progress bars"
)


class ConsoleLog(TextLog):
    """Rows of any form among the lines of a console; every other line is skipped without a note."""

    kind = "console"

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        super().__init__(path, file)
        self.text.ends_at_return = True
        self._best: FormRank | None = None
        self._known: tuple[object, ...] = ()
        self._begin()

    def _begin(self) -> None:
        self._tail = b""
        self._raised = ""  # the exception that it ends with
        self._printed = Printed()
        self._choice = RowChoice()
        self._sampled = Sampled()
        self._held: list[tuple[FormRank, PrintedRow]] = []
        self._passed: deque[tuple[int, bytes]] = deque(maxlen=AROUND)
        self._before: PrintedRow | None = None
        self._reach = 0
        self._cut = 0
        self._settings = PrintedSettings()
        self._wrapping: Unwrapping | Literal[False] | None = None  # None before the first line

    def start_again(self) -> None:
        """The file was rewritten, or a better form of rows appeared."""
        super().start_again()
        self._begin()

    def read(self) -> bool:
        """Takes the rows of the new lines; the last line counts if its dict is closed."""
        before = self.text.offset
        self._read()
        best = self._choice.best()
        is_other = best != self._best or self._choice.has_learnt(self._known)
        if self._best is not None and best is not None and is_other and self.text.can_start_again:
            self._best, choice = best, self._choice
            self.start_again()
            self._choice = RowChoice(choice)
            self._read()
        self._best = best
        self._release()
        if self.text.offset == before or not self.rows.chosen:
            self._take(self._printed.end())
            self._best = self._choice.best()
            self._release()
        return self.text.offset > before

    def _read(self) -> None:
        for block in self.text.blocks():
            self._tail = (self._tail + block[-TAIL:])[-TAIL:]
            if self._wrapping is None:
                self._wrapping = Unwrapping() if is_wrapped(block[:LOOKED_AT].decode("utf-8", "replace")) else False
            self._read_block(self._wrapping.text(block) if self._wrapping else block)
        if self._wrapping:
            return
        if self.text.rest.rstrip().endswith(b"}") or (self.text.rest and self._is_whole(self.text.rest)):
            self._read_block(self.text.take_rest())

    def _is_whole(self, rest: bytes) -> bool:
        """Whether a line without a newline is complete nevertheless: it has the names of the previous row, and its last
        number has all decimals."""
        found = [row for row in Printed().rows(rest.decode("utf-8", "replace")) if row.form in ("line", "bar", "steps")]
        before = self._before
        if len(found) != 1 or not before or found[0].keys() != before.keys():
            return False
        name = next(reversed(found[0]))
        return "." in str(before[name]) and _decimals(found[0][name]) == _decimals(before[name])

    def is_torn(self) -> bool:
        """Whether the last line may be a row whose end is missing; a progress bar never ends its line."""
        rest = self.text.rest.strip().lower()
        return (
            not self._wrapping
            and bool(rest)
            and bool(signed_lines(rest, [rest]))
            and b"it/s" not in rest
            and b"s/it" not in rest
        )

    def _read_block(self, block: bytes) -> None:
        if not self._settings.is_done:
            self._settings.read(block)
        lines = block.splitlines()
        signs = signed_lines(block, lines)
        first, is_open, done = self.text.line, self._printed.is_open, 0
        look = 0 if self._best is FormRank.LEARNING_DICT else len(lines)  # where the search for dense rows begins
        for index, line in enumerate(lines):
            if index < done:
                continue
            signed = index in signs
            if index >= look and signed and not is_open and line.startswith(b"{'"):
                self._catch_up(first + index)
                done = index + self._take_dense(lines, index)
                if done > index:
                    self._reach = first + done - 1 + AROUND
                    continue
                look = index + FEWEST
            if signed or is_open or (len(line) < LONGEST_HEADING and _may_belong(line)):
                self.text.line = first + index + 1
                if not signed and not is_open and self._reach < index + first:
                    self._passed.append((first + index, line))
                    continue
                if signed:
                    self._reach = index + first + AROUND
                    self._catch_up(first + index)
                self._line(line)
                is_open = self._printed.is_open
        self.text.line = first + len(lines)

    def _take_dense(self, lines: list[bytes], start: int) -> int:
        """Takes the dicts of many lines at once, if only their numbers differ; returns how many."""
        if not self._printed.is_plain or not self._sampled.is_empty or not self.rows.chosen or self._held:
            return 0
        rows = dense_rows(lines, start)
        if not rows or not is_log_row(rows[0]) or not is_learning(rows[0]) or not self._choice.judge_alike(rows):
            return 0
        self._take(self._printed.end())
        self._before = PrintedRow(rows[-1])
        self._sampled.into(PrintedRow(rows[-1]))
        for piece in stretches(rows):
            if isinstance(piece, RowBlock):
                self.rows.take_columns(piece.table)
            else:
                self.rows.take(piece)
        return len(rows)

    def _catch_up(self, here: int) -> None:
        """Reads the lines before a sign that may belong to it."""
        last = here
        for at, line in self._passed:
            if at >= here - AROUND:
                if at > last + GAP:
                    self._take(self._printed.end())
                self._line(line)
                last = at
        self._passed.clear()
        if here > last + GAP:
            self._take(self._printed.end())

    def _line(self, line: bytes) -> None:
        self._take(self._printed.rows(line.decode("utf-8", "replace")))

    def _take(self, rows: Iterator[PrintedRow]) -> None:
        for row in rows:
            one = self._choice.judge(row)
            if one is None:
                continue
            self._before = row
            self._cut += row.is_cut
            if self._best is None:
                self._held.append((one, row))
                if len(self._held) >= MOST_HELD:
                    self._best = self._choice.best()
                    self._release()
            else:
                self.rows.take(self._taken(self._best, one, row))

    def _taken(self, best: FormRank, one: FormRank, row: PrintedRow) -> Iterator[PrintedRow]:
        """The row, if it is read, with the means of single rollouts before it; or what it adds to the previous step."""
        if self._choice.accepts(best, one, row):
            self._sampled.into(row)
            yield row
        elif (added := self._sampled.add(row)) is not None:
            yield added

    def _release(self) -> None:
        """Adds the kept rows to the run, now that the form of the log is known."""
        held, self._held = self._held, []
        if self._best is not None:
            best, self._known = self._best, self._choice.known
            self.rows.take([taken for one, row in held for taken in self._taken(best, one, row)])

    def problems(self) -> list[str]:
        """What could not be read, as sentences."""
        cut = "1 printed row is cut; what is whole in it was read"
        if self._cut > 1:
            cut = f"{self._cut:,} printed rows are cut; what is whole in them was read"
        first, *others = self._choice.trials or [""]
        trials = (
            f"{self.path.name}: of its {1 + len(others)} trials only {first} was read; "
            "to judge each, check the folder of its results (result.json, progress.csv)"
        )
        return [
            *super().problems(),
            *([f"{self.path.name}: {cut}"] if self._cut else []),
            *([trials] if others else []),
        ]

    def remarks(self) -> list[str]:
        """What was left out on purpose, as sentences."""
        left = self._choice
        ranks = counted(left.ranks, "row of another process was", "rows of other processes were")
        return [
            *super().remarks(),
            *of_rollouts(self._sampled),
            *([f"{ranks} left out; the first that printed was read"] if left.ranks else []),
            *([f"{counted(left.twice, 'row was', 'rows were')} printed twice and read once"] if left.twice else []),
        ]

    def _report(self) -> None:
        super()._report()
        if self._settings.found and not self.runs[0].config:
            self.runs[0].config = training_config(self._settings.found)
        for run in self.runs:
            run.excerpted = set(self._choice.warned & run.series.keys())
            notes = of_warnings(run.excerpted, is_all=run.excerpted == run.series.keys())
            run.notes += notes
            self._reported += notes
        tail = self._tail + self.text.rest
        said = tail.decode("utf-8", "replace")
        self._raised = self.newest.raised = raised_in(tail) or raised_beside(self.path)
        if self.newest.died_at_start and counts_on(said):
            self.newest.raised = ""  # its rows were not read, but there were some
        if solved := solved_in(said):
            self.newest.solved = solved
            self.newest.notes.append(f"its script says: {solved}")
            self._reported += self.newest.notes[-1:]

    def nothing(self) -> RlhealthError:
        """The error for a file without metrics: the exception before any row, or the lines most similar to a row, and
        which forms were searched for.
        """
        error = super().nothing()
        if not self.text.offset:
            return error
        if self._raised:
            return RlhealthError(
                f"{error}; it ends with {self._raised}",
                hint=f"if rows were printed before that, they have none of these forms: {FORMS}",
                location=error.location,
            )
        near = nearest(self.text.head(LOOKED_AT).decode("utf-8", "replace"))
        shown = "".join(f"; line {number}: {text}" for number, text in near)
        return RlhealthError(
            f"{error}" + (f"; nearest to a row{shown}" if near else ""),
            hint=f"looked for {FORMS}, each with a name that logs have (loss, reward, kl, entropy, grad_norm, …)",
            location=error.location,
        )


def nearest(text: str) -> list[tuple[int, str]]:
    """The first lines that are most similar to a row, with their numbers: first lines with a log name, then lines with
    any name and number."""
    found: list[tuple[bool, int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if (":" in line or "=" in line or "|" in line) and "%|" not in line and len(found) < MOST_LOOKED_AT:
            said = bare(line[:1000])[1]
            held = pairs(said)
            if held:
                found.append((not any(is_log_name(name) for name in held), number, hidden(said.strip())[:SHOWN]))
    return [(number, line) for _, number, line in sorted(sorted(found)[:NEAREST], key=lambda one: one[1])]


def _decimals(value: object) -> int:
    return len(str(value).partition(".")[2])


def signed_lines(block: bytes, lines: list[bytes]) -> set[int]:
    """The indices of those lines of a block that may be a row or the heading of one."""
    lower = block.lower()
    feeds_only = b"\r" not in lower
    places: list[int] = []
    for sign in (*SIGNS, *signs(), *languages.signs(lower)):
        found = list(_places(lower, sign, feeds_only))
        if feeds_only and len(found) > DENSE * len(lines):
            return set(range(len(lines)))  # nearly every line is a row: nothing is skipped
        places += found
    counters = [at for sign in COUNTERS for at in _places(lower, sign, feeds_only)]
    if not places and not counters:
        return set()
    # splitlines ends a line at \r, \n and \r\n alike: its lines begin where the text before them ends
    starts = list(accumulate((len(line) for line in block.splitlines(keepends=True)), initial=0))
    signed = {bisect_right(starts, at) - 1 for at in places}
    return signed | {index for at in counters if len(lines[index := bisect_right(starts, at) - 1]) < LONGEST_HEADING}


def _places(text: bytes, sign: bytes, feeds_only: bool) -> Iterator[int]:
    """The positions of a sign in a block; only one per line if all lines end in line feeds."""
    at = text.find(sign)
    while at >= 0:
        yield at
        end = text.find(b"\n", at) if feeds_only else -1
        at = text.find(sign, max(end, at + len(sign)))


def _may_belong(line: bytes) -> bool:
    """Whether a line without a sign may be part of a table, of a dict on several lines or of a block of `name: number`
    or `name number` lines."""
    if b"|" in line or b"\xe2" in line or b"<-" in line or line.rstrip()[-1:] in _BRACES:
        return True
    at = max(line.rfind(b":"), line.rfind(b"="))
    if at < 0:
        return b" " in line and line[line.rfind(b" ") + 1 :][:1] in _BEGIN_NUMBERS
    after = line[at + 1 :].lstrip()
    return at > len(line) - 40 and (after[:1] in _BEGIN_NUMBERS or (not after and at > 0))  # a number, or a title
