"""Printed rows: dicts, drawn tables, `step:1 - actor/kl:0.1`, `Loss: 0.1 | Reward: 2`, blocks of `name: 1.0`
lines."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from typing import Any

from rlhealth.metrics.languages import in_english
from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed_blocks import Blocks
from rlhealth.sources.rows.printed_boxes import TRIAL, Boxes
from rlhealth.sources.rows.printed_calls import CalledRewards
from rlhealth.sources.rows.printed_columns import Columns
from rlhealth.sources.rows.printed_dicts import LONGEST_BEFORE, LONGEST_LINE, WANDB_CUT, Dicts, dict_in, dict_of_a_name
from rlhealth.sources.rows.printed_line import LABEL, bare, evaluates, is_labelled, pairs, without_remark
from rlhealth.sources.rows.printed_lists import ListedRewards
from rlhealth.sources.rows.printed_rewording import reworded, without_slashes
from rlhealth.sources.rows.printed_series import PrintedSeries
from rlhealth.sources.rows.printed_steps import (
    PrintedStep,
    begins_with_count,
    begun_by,
    heading,
    heads_evaluation,
    steps_in,
)
from rlhealth.sources.rows.printed_tensors import BrokenTensors
from rlhealth.sources.rows.printed_warnings import Warnings
from rlhealth.sources.rows.printed_words import (
    leading_reward,
    mixed_pairs,
    reward_in_sentence,
    spaced_pairs,
)
from rlhealth.sources.rows.row_names import (
    PAID,
    has_step,
    is_learning,
    is_log_row,
    is_of_episode,
    names_reward,
    names_sample,
    names_step,
)

__all__ = ["Printed", "PrintedRow", "dict_in"]
MOST_REPEATS = 20  # rows of the same names below one heading: the epochs or mini-batches of an update
FEWEST_PAIRS = 2  # on a line with separators
LONGEST_PAIRS = 1 << 16  # characters of a line that is not a dict
_VERL = re.compile(r"\bstep:(\d+) - ")
_PROGRESS = re.compile(r"(?P<n>\d{1,15})/(?P<total>\d{1,15}) \[\d+:\d\d(?::\d\d)?<")
_BAR = re.compile(r"(?:^|:)\s{0,4}\d{1,3}%\|[^|]{0,200}\|")  # `Training:  12%|###   |`: progress, and no metric
_ASIDE = re.compile(r" \(([A-Za-z_]{2,40}) ([-+]?\d[\d.]{0,20})\)(?=: )")  # `Epoch 1/3 (reward 0.08):   1%|`
EPOCHS = frozenset({"epoch", "Epoch"})
LENGTHS = frozenset({"steps"}) | EPOCHS  # beside an episode
_GLUED = re.compile(r"\s{0,20}\d{1,3}%\|[^|]{0,200}\| (?P<n>\d{1,15})/(?P<total>\d{1,15}) \[[^\]]{5,80}\]\s*(?=\{|$)")
#: A reward at the end of a short line: `Batch: mean_reward=-0.025`, `Output 3: Mean over 61 episodes - Reward: 4.86`.
_ENDS_LINE = re.compile(r"\s*[A-Za-z][\w -]{0,60}(?::|\s-)\s[\w -]{0,60}[:=]\s?[-+]?\d[\d.]{0,20}\s*")
_NAMED_STEP = re.compile(
    r"[Ss]tep|[Ii]ter|[Ee]pisode|[Uu]pdate|[Ee]poch|[Rr]ollout|[Rr]ound|\b[Gg]ame|[Gg]eneration|STEP|ITER|EP|\b[Ee]pi?\b"
)


class PrintedRow(dict[str, Any]):
    """A row, and how it was printed.

    Attributes:
        form: "dict", "box", "steps" (verl's), "line" (several pairs), "block" (a pair a line), "bar" (beside a
            progress bar) or "warning" (of the trainer's own).
        rank: of the process that printed it, or the trial that it is of; "" if it is not given; with a colon if it is a
            bare number.
        is_cut: whether its end is missing.
        below_heading: whether its step is that of a heading above it.
        again: whether an earlier row below that heading had some of its names.
        is_listed: whether it is the rewards of a step that were printed as a list.
        names_sample: whether it names its sample, as rows of single rollouts do.
        bar: the progress of the bar on its line; None without one.
    """

    form = "dict"
    rank = ""
    is_cut = False
    below_heading = False
    again = False
    is_listed = False
    names_sample = False
    bar: int | None = None

    def of_evaluation(self) -> None:
        """Marks its metrics as those of an evaluation; step names are kept."""
        found = {name if names_step(name) or name.startswith("eval") else f"eval/{name}": self[name] for name in self}
        self.clear()
        self.update(found)


class Printed:
    """Finds rows in printed lines. Pass the lines in order; it keeps rows that have begun and not yet ended.

    A line that names only a step (`Learning iteration 3/1500`) is a heading for the rows below that have no step.
    """

    def __init__(self) -> None:
        self.cut = 0
        self._dicts = Dicts()
        self._boxes = Boxes()
        self._blocks = Blocks()
        self._columns = Columns()
        self._listed = ListedRewards()
        self._called = CalledRewards()
        self._series = PrintedSeries()
        self._warnings = Warnings()
        self._tensors = BrokenTensors()
        self._bar: PrintedStep | None = None
        self._evaluates = False
        self._step: PrintedStep | None = None
        self._heads_evaluation = False
        self._epoch: int | None = None
        self._said: set[str] = set()
        self._repeats = 0
        self._rank = ""

    @property
    def is_open(self) -> bool:
        """Whether something has begun that the next lines may continue."""
        is_begun = self._dicts.is_open or self._boxes.is_open or self._blocks.is_open or self._columns.is_open
        return is_begun or self._series.is_open or self._warnings.is_open or self._tensors.is_open

    @property
    def is_plain(self) -> bool:
        """Whether the next row stands alone: nothing has begun, and no heading, bar or process applies to it."""
        no_heading = self._step is None and self._epoch is None
        return not self.is_open and no_heading and self._bar is None and not self._rank

    def rows(self, line: str) -> Iterator[PrintedRow]:
        """The rows that end with this line."""
        if len(line) > LONGEST_LINE:
            return
        if len(line) >= WANDB_CUT or "\r" not in line:
            yield from self._rows(line.rstrip("\n"))
        else:
            for part in line.rstrip("\n").split("\r"):
                yield from self._rows(part)

    def end(self) -> Iterator[PrintedRow]:
        """The rows that the end of the text ends."""
        yield from self._made(self._boxes.end(), "box")
        yield from self._made(self._blocks.end(), "block")

    def _rows(self, line: str) -> Iterator[PrintedRow]:
        rank, text = bare(without_slashes(line))
        joined = self._tensors.joined(text)
        if joined is None:
            return
        text = joined
        self._evaluates = evaluates(line, line[: max(0, len(line) - len(text))])
        text = reworded(without_remark(in_english(text)))
        if rank != self._rank:
            yield from self.end()
            self._rank = rank
        text, warned = self._warnings.taken(text, line)
        if warned or self._warnings.is_open:
            yield from self._rows_before(text)
            yield from self._made([warned] if warned else (), "warning", is_log=True)
            return
        if text.startswith("-----"):
            is_called, ended = self._called.taken(text)
            yield from self._made([ended], "line")
            if is_called:
                return
        if series := self._series.row(text):
            yield from self._made([series], "box")
            return
        listed = self._listed.found(text)
        if listed is not None:
            group, sampled = listed
            for made in self._made([group], "line", sampled):
                made.is_listed = True
                yield made
            return
        if self._blocks.is_open and "{" in text and (several := dict_of_a_name(text)):
            yield from self._made(self._blocks.add(several), "block")
            return
        bar, self._bar = self._bar, self._bar if not text.strip() else _bar_in(text)
        if self._dicts.is_open or "{" in text:
            taken = yield from self._from_dicts(text, self._bar or bar)
            if taken:
                self._bar = None
                yield from self.end()
                return
        if len(text) > LONGEST_PAIRS:
            return
        step = heading(text) if _NAMED_STEP.search(text) else None
        is_below = self._step is not None and (step is None or step.name != self._step.name)
        if is_below and (spaced := self._blocks.spaced(text)):
            yield from self._made(self._blocks.add(spaced, is_spaced=True), "block")
            return
        if step is not None:
            yield from self.end()
            self._step, self._said, self._repeats = step, set(), 0
            self._heads_evaluation = heads_evaluation(text)
            self._epoch = step.count if step.name == "epoch" else step.epoch if step.epoch is not None else self._epoch
            return
        verl = _VERL.search(text)
        if verl:
            yield from self.end()
            yield from self._made([_verl(text[verl.start() :])], "steps", is_cut=len(text) >= WANDB_CUT, is_log=True)
            return
        progress = _PROGRESS.search(text) if "<" in text else None
        if progress is not None:
            for made in self._from_line(_BAR.sub(" | ", _ASIDE.sub(r" | \1: \2", text)), "bar"):
                made.bar = int(progress["n"])
                yield made
            return
        was_open = self._boxes.is_open
        yield from self._made(self._boxes.rows(text), "box", is_log=self._boxes.is_of_log)
        if was_open or self._boxes.is_open:
            return
        signs = ":" in text or "=" in text or "|" in text
        if not signs:
            yield from self._made(self._columns.rows(text), "box")
            if self._columns.is_open:
                return
        if self._blocks.takes(text):
            yield from self._made(self._blocks.rows(text), "block")
            return
        several = pairs(text) if signs or "·" in text else spaced_pairs(text)
        is_short = sum(not names_step(name) for name in several) < FEWEST_PAIRS
        is_counted = is_short and begins_with_count(text)
        if is_short and begun_by(text) is not None:
            for name, one in mixed_pairs(text).items():
                if name == "steps" or not names_step(name):
                    several.setdefault(name, one)
        if not several and "," in text and (is_counted or rank.endswith(LABEL)):
            several = pairs(text.replace(" -> ", ", "))
        if (not several or " with " in text or "mean/" in text) and PAID.search(text):
            several = reward_in_sentence(text) | several
        if "(" in text or len(several) < FEWEST_PAIRS:
            several = leading_reward(text) | several
        if is_labelled(text) and several:
            yield from self._made(self._blocks.add(several), "block")
            return
        if len(several) > 1 or (several and _NAMED_STEP.search(text) and steps_in(text)):
            yield from self._made(self._blocks.end(), "block")
            yield from self._from_line(text, "line", several)
        else:
            yield from self._made(self._blocks.rows(text), "block")
            if several and not self._blocks.is_open:
                yield from self._from_line(text, "line", several)

    def _rows_before(self, text: str) -> Iterator[PrintedRow]:
        """The rows of the text before a warning on its line, usually a progress bar; the warning stays open."""
        warnings, self._warnings = self._warnings, Warnings()
        yield from self._rows(text) if text.strip() else ()
        self._warnings = warnings

    def _from_dicts(self, text: str, bar: PrintedStep | None) -> Generator[PrintedRow, None, bool]:
        """Dicts that are printed on one line or on several. Returns (to `yield from`) whether the line was part of
        one."""
        found = False
        for row, is_cut in self._dicts.rows(text):
            row = row if found else self._pairs_before() | row
            found = found or not is_cut
            if not is_log_row(row):
                continue
            self.cut += is_cut
            step = None if has_step(row) else steps_in(self._dicts.before)
            if (
                bar is not None
                and step is None
                and is_learning(row)
                and not has_step(dict.fromkeys(row.keys() - EPOCHS))
            ):
                step = bar
            for made in self._made([row], "dict", step, is_cut):
                made.names_sample = not is_learning(made) and names_sample(self._dicts.text)
                yield made
        return found or self._dicts.is_open or len(text) >= WANDB_CUT

    def _pairs_before(self) -> dict[str, Any]:
        """The pairs before a dict that is itself a value: `loss: 0.5, norm: 0.1, rewards: {'mean': 0.3}`."""
        before = self._dicts.before
        is_pair = len(before) < LONGEST_BEFORE and "," in before and before.rstrip().endswith((":", "="))
        return pairs(before) if is_pair else {}

    def _from_line(self, text: str, form: str, several: dict[str, Any] | None = None) -> Iterator[PrintedRow]:
        row = pairs(text) if several is None else several
        step = steps_in(text) if _NAMED_STEP.search(text) else None
        if len(row) + (step is not None) > 1 or (names_reward(row) and (form == "bar" or _ENDS_LINE.fullmatch(text))):
            is_log = step is not None and step.name == "episode" and is_of_episode(row)
            for made in self._made([row], form, step, len(text) >= WANDB_CUT, is_log):
                made.names_sample = not is_learning(made) and names_sample(text)
                yield made

    def _made(
        self,
        rows: Iterable[dict[str, Any]],
        form: str,
        step: PrintedStep | None = None,
        is_cut: bool = False,
        is_log: bool = False,
    ) -> Iterator[PrintedRow]:
        for row in rows:
            if not is_log and not is_log_row(row):
                continue
            made = PrintedRow(row)
            made.form, made.rank, made.is_cut = form, made.pop(TRIAL, self._rank), is_cut
            if self._evaluates:
                made.of_evaluation()
            self._name_step(made, step)
            if made.below_heading and self._heads_evaluation:
                made.of_evaluation()
            self._name_epoch(made, step)
            yield made

    def _name_step(self, row: PrintedRow, step: PrintedStep | None) -> None:
        """Gives a row without a step the step of its line, or of the heading above it."""
        weaker = LENGTHS if step is not None and step.name == "episode" else EPOCHS
        if has_step(row) and not (step and all(name in weaker for name in row if names_step(name))):
            return
        if step is None and self._step is not None:
            row.again = bool(self._said & row.keys())
            self._repeats += row.again
            if self._repeats > MOST_REPEATS:
                self._step = None  # the heading does not apply to every row
            else:
                self._said |= row.keys()
                step, row.below_heading = self._step, True
        if step is not None:
            if step.name == "steps" and "Steps" in row:
                row[step.name] = row.pop("Steps")
            row.setdefault(step.name, step.count)
            if step.total is not None and step.name != "epoch":
                row.setdefault("total_steps", step.total)

    def _name_epoch(self, row: PrintedRow, step: PrintedStep | None) -> None:
        """Gives a row with a step the epoch of its line, or of the heading above it: the step may count within that
        epoch."""
        epoch = step.epoch if step is not None and step.epoch is not None else self._epoch
        if epoch is not None and has_step(row) and EPOCHS.isdisjoint(row):
            row["epoch"] = epoch


def _bar_in(text: str) -> PrintedStep | None:
    """The step of a progress bar as transformers draws it: without a description, followed by a dict or nothing."""
    found = _GLUED.match(text)
    return PrintedStep("step", int(found["n"]), int(found["total"])) if found and int(found["n"]) else None


def _verl(text: str) -> dict[str, Any]:
    """`step:1 - actor/kl_loss:0.1 - …` as a row; a last pair that wandb's length limit cut is left out."""
    parts = text.split(" - ")
    found: dict[str, Any] = {}
    for part in parts[:-1] if len(text) >= WANDB_CUT else parts:
        key, colon, value = part.strip().rpartition(":")
        if colon and number(value) is not None:
            found[key] = value
    return found
