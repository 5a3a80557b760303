"""Which printed rows of a console belong to the run: those of the best form, of one process, without single rollouts
and duplicates."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from rlhealth.sources.base.spelling import AXES, number
from rlhealth.sources.rows.printed_line import LABEL
from rlhealth.sources.rows.printed_row import PrintedRow
from rlhealth.sources.rows.printed_warnings import also_in_rows, faults
from rlhealth.sources.rows.row_names import has_step, is_learning, names_reward

REMEMBERED = 16  # recent rows among which a duplicate is searched
DIGITS = 6  # significant digits of a value that does not repeat by chance
#: A value with fewer bits than these can repeat by chance, whatever its digits: a share of samples (0.515625 of 64), or
#: a mean of numbers in half precision (2.4697265625).
BITS = 17
MANY = 8  # names beside a step: a row that is recognised alone
RARE = 0.05  # of the commonest form: settings printed once before the rows are no form of the log
REGULAR = 20  # rows with many names that are those of a log, however many rows of another form there are
FEWEST_LABELS = 3  # bare numbers after which steps are recognised
FEWEST = 2  # rows after which a form is recognised; the last row of a run may be a summary in another form

_COUNTS = frozenset(AXES)


class FormRank(IntEnum):
    """The rank of a form of rows, the best last."""

    SAMPLE = -1  # a single rollout: no form of the log
    WARNING = 0  # only the values that raised a warning
    BAR = 1
    LEARNING_BAR = 2
    LINE = 3
    DICT = 4
    LEARNING_LINE = 5
    LEARNING_DICT = 6


_BARS = (FormRank.BAR, FormRank.LEARNING_BAR)
_LEARNING = (FormRank.LEARNING_BAR, FormRank.LEARNING_LINE, FormRank.LEARNING_DICT)


def worth(row: PrintedRow) -> FormRank:
    """The rank of a row's form: dicts and boxes come from trainers, lines and bars from any code; rows about learning
    rank higher."""
    learns = is_learning(row)
    if row.form == "bar":
        return FormRank.LEARNING_BAR if learns else FormRank.BAR
    if row.form in ("dict", "box", "steps"):
        return FormRank.LEARNING_DICT if learns else FormRank.DICT
    return FormRank.LEARNING_LINE if learns else FormRank.LINE


@dataclass(frozen=True)
class Labels:
    """Bare numbers before rows, `3: loss 0.5`: numbers of processes repeat, numbers of steps only rise."""

    last: int = -1
    rises: int = 0
    fell: bool = False

    def after(self, label: int) -> Labels:
        """The state after another number."""
        return Labels(label, self.rises + (label > self.last), self.fell or label < self.last)

    @property
    def count_steps(self) -> bool:
        """Whether they are steps, as far as is known."""
        return self.rises >= FEWEST_LABELS and not self.fell


class RowChoice:
    """Judges rows one by one.

    Attributes:
        ranks: rows of other processes that were left out.
        trials: the trials of a search whose rows are read and left out, the first of which is read.
        twice: rows that were printed twice.
        samples: names of rows that are not about learning and occur several times below one heading.
        labels: the bare numbers before the rows.
        in_rows: the metrics of warnings that rows show too, each with the form of those rows.
        warned: the metrics that were read from warnings.
        has_guessed: whether a row was accepted that `samples` and `are_paid` may exclude once more rows are known.
    """

    def __init__(self, before: RowChoice | None = None) -> None:
        self.ranks = 0
        self.trials: dict[str, None] = {}
        self.twice = 0
        self.samples: frozenset[tuple[str, ...]] = before.samples if before else frozenset()
        self.labels: Labels = Labels(rises=before.labels.rises, fell=before.labels.fell) if before else Labels()
        self._were_paid = bool(before and before.are_paid)
        self.in_rows: frozenset[tuple[FormRank, str]] = before.in_rows if before else frozenset()
        self.warned: frozenset[str] = frozenset()
        self.has_guessed = False
        self._counts: Counter[FormRank] = Counter()
        self._wide: Counter[FormRank] = Counter()  # the rows of each form that have many names
        self._paid: set[FormRank] = set()  # the forms about learning that include a reward
        self._placed: set[FormRank] = set()  # the forms that name a step
        self._rank: str | None = None
        self._recent: deque[dict[str, object]] = deque(maxlen=REMEMBERED)
        self._drawn: tuple[int, dict[str, object]] = (0, {})
        self._warning: dict[str, object] = {}

    @property
    def are_paid(self) -> bool:
        """Whether rows about learning include a reward."""
        return self._were_paid or bool(self._paid)

    def judge(self, row: PrintedRow) -> FormRank | None:
        """The rank of the row; None if it is not one of the run."""
        if row.trial:
            self.trials[row.trial] = None
            if row.trial != next(iter(self.trials)):
                return None
        if row.rank:
            self._rank = row.rank if self._rank is None else self._rank
            if row.rank.endswith(LABEL):
                self.labels = self.labels.after(int(row.rank.removesuffix(LABEL)))
            elif row.rank != self._rank:
                self.ranks += 1
                return None
        if row.form == "warning":
            return self._judge_warning(row)
        if row.bar is not None and self._is_drawn_again(row, row.bar):
            return None
        is_others = row.rank.endswith(LABEL) and row.rank != self._rank and not self.labels.count_steps
        if not is_others and row in self._recent and any(_is_precise(name, value) for name, value in row.items()):
            self.twice += 1
            return None
        if row.names_sample:
            return FormRank.SAMPLE
        if row.is_listed:
            return FormRank.LINE  # beside rows of another form; alone, a list may be of anything
        self._recent.append(dict(row))
        found = worth(row)
        if tags := also_in_rows(row):
            self.in_rows |= {(found, tag) for tag in tags}
        if found in _LEARNING:
            if found not in self._paid and names_reward(row):
                self._paid.add(found)
        elif row.below_heading and row.again:
            self.samples |= {tuple(row)}
        self._count(found, row, 1)
        return found

    def _count(self, form: FormRank, row: Mapping[str, Any], times: int) -> None:
        """Counts a row of that form, or several of the same names."""
        is_wide = len(row) >= MANY
        is_placed = not _COUNTS.isdisjoint(row)
        if is_placed:
            self._placed.add(form)
        self._counts[form] += times * (FEWEST if is_wide and is_placed else 1)
        self._wide[form] += times * is_wide

    def accepts(self, best: FormRank, one: FormRank, row: PrintedRow) -> bool:
        """Whether a row of rank `one` is read if `best` is the best rank so far. A bare number before it is its step or
        its process; rows of other processes are left out."""
        if row.rank.endswith(LABEL):
            self.has_guessed = True
            if self.labels.count_steps:
                row.setdefault("steps", row.rank.removesuffix(LABEL))
            elif row.rank != self._rank:
                self.ranks += 1
                return False
        if one is FormRank.WARNING:
            return self._accepts_warning(best, row)
        if one == best:
            return True
        if one is FormRank.SAMPLE:
            return False
        if best is FormRank.LEARNING_BAR:
            return one is FormRank.LINE and self._has_their_reward(row)
        if best in _LEARNING and one not in _LEARNING and not (self._is_of_step(row) or _is_evaluation(row)):
            return False
        if best is FormRank.LEARNING_DICT:
            return one is FormRank.DICT or (one is FormRank.LINE and self._has_their_reward(row))
        if best is FormRank.LEARNING_LINE:
            return one not in (FormRank.BAR, FormRank.LEARNING_BAR)
        return best is FormRank.LINE and one > best

    def has_learnt(self, before: tuple[object, ...]) -> bool:
        """Whether rows were accepted that would not be accepted now; `before` is `known` at that time."""
        return self.has_guessed and self.known != before

    @property
    def known(self) -> tuple[object, ...]:
        """The state that decides which rows below a heading, or after a bare number, are accepted."""
        return self.samples, self.are_paid, self.labels.count_steps, self.in_rows

    def _judge_warning(self, row: PrintedRow) -> FormRank | None:
        """Python repeats a warning only if its text changed: the same text twice was printed by two handlers, or by two
        streams of a cell."""
        if row == self._warning:
            self.twice += 1
            return None
        self._warning = dict(row)
        self._counts[FormRank.WARNING] += 1
        return FormRank.WARNING

    def _accepts_warning(self, best: FormRank, row: PrintedRow) -> bool:
        """Whether a warning is read: alone, or beside lines or bars, which show only what the user chose to print.
        Dicts and tables come from trainers and are complete."""
        tags = row.keys() - _COUNTS
        if best is not FormRank.WARNING:
            self.has_guessed = True
            shown = {tag for form, tag in self.in_rows if (form in _BARS) == (best in _BARS)}
            if best in (FormRank.DICT, FormRank.LEARNING_DICT) or not tags <= faults() - shown:
                return False
        self.warned |= tags
        return True

    def _is_of_step(self, row: PrintedRow) -> bool:
        """Whether a row that is not about learning is of a whole step: it names a step; or it is the only one of its
        names below a heading, and has the reward that rows about learning lack."""
        if row.below_heading:
            found = not self.are_paid and tuple(row) not in self.samples
            self.has_guessed = self.has_guessed or found
            return found
        return has_step(row)

    def _has_their_reward(self, row: PrintedRow) -> bool:
        """Whether a line between a trainer's boxes or bars has the reward that these lack: a callback prints what an
        environment without a monitor does not tell the trainer."""
        found = not self.are_paid and names_reward(row)
        self.has_guessed = self.has_guessed or found
        return found

    def _is_drawn_again(self, row: PrintedRow, at: int) -> bool:
        """Whether a progress bar repeats its last values: tqdm draws new values at once, and again when the bar
        advances by one. Values that stay the same for longer count as logged again."""
        before, said = self._drawn
        if row == said and before <= at <= before + 1:
            return True
        self._drawn = at, dict(row)
        return False

    def judge_alike(self, rows: Sequence[dict[str, Any]]) -> bool:
        """Judges many dicts of the same names that are about learning. Returns False, and judges nothing, if one of
        them may have been printed twice."""
        if self._rank is not None:
            return False
        recent = {tuple(row.items()) for row in self._recent}
        distinct = {tuple(row.items()) for row in rows}
        if len(distinct) < len(rows) or not distinct.isdisjoint(recent):
            return False
        self._recent.extend(rows[-REMEMBERED:])
        if names_reward(rows[0]):
            self._paid.add(FormRank.LEARNING_DICT)
        self._count(FormRank.LEARNING_DICT, rows[0], len(rows))
        return True

    def best(self) -> FormRank | None:
        """The best form so far; None if there was no row. Lines with a reward rank above dicts without one, and below
        bars with a loss if they name no step, for a bar counts. Warnings are the best form only if there is nothing
        else, or only one row that is not about learning."""
        warnings = self._counts[FormRank.WARNING]
        held = [one for one in FormRank if self._counts[one] and one is not FormRank.WARNING]
        most = max((self._counts[one] for one in held if one not in _BARS), default=0)
        often = [one for one in held if self._counts[one] >= max(FEWEST, RARE * most) or self._wide[one] >= REGULAR]
        found = max(often or held, default=None)
        if (
            found is FormRank.LEARNING_DICT
            and found not in self._paid
            and FormRank.LEARNING_LINE in self._paid & {*often}
        ):
            found = FormRank.LEARNING_LINE
        if found is FormRank.LINE and found not in self._placed and FormRank.LEARNING_BAR in often:
            found = FormRank.LEARNING_BAR
        is_stray = found is None or (not often and found not in _LEARNING and warnings >= FEWEST)
        return FormRank.WARNING if warnings and is_stray else found


def _is_precise(name: str, value: object) -> bool:
    """Whether a number has so many digits that two rows do not share it by chance."""
    found = number(value)
    if found is None or found == int(found if abs(found) < 1e15 else 0) or "lr" in name or "learning_rate" in name:
        return False
    if (math.frexp(found)[0] * 2 ** (BITS - 1)).is_integer():
        return False
    return len(f"{found:.{DIGITS}g}".replace(".", "").replace("-", "").lstrip("0").partition("e")[0]) >= DIGITS


def _is_evaluation(names: Iterable[str]) -> bool:
    return any(name.lower().startswith(("eval", "val", "test")) for name in names)
