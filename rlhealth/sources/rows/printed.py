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
from rlhealth.sources.rows.printed_dicts import LONGEST_BEFORE, LONGEST_LINE, WANDB_CUT, Dicts, dict_of_a_name
from rlhealth.sources.rows.printed_headings import EPOCHS, Heading
from rlhealth.sources.rows.printed_line import LABEL, bare, evaluates, is_labelled, pairs, without_remark
from rlhealth.sources.rows.printed_lists import ListedRewards
from rlhealth.sources.rows.printed_rewording import reworded, without_slashes
from rlhealth.sources.rows.printed_row import PrintedRow
from rlhealth.sources.rows.printed_series import PrintedSeries
from rlhealth.sources.rows.printed_steps import (
    PrintedStep,
    begins_with_count,
    begun_by,
    heading,
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
from rlhealth.sources.rows.solved import says_solved

#: The rows that a line ends, and whether it was one of the form.
Taken = Generator[PrintedRow, None, bool]

FEWEST_PAIRS = 2  # on a line with separators
LONGEST_PAIRS = 1 << 16  # characters of a line that is not a dict
_RESULT = re.compile(r"Result for (?P<trial>[\w.-]{1,200}):\s*")  # Ray's heading of a trial's result
_VERL = re.compile(r"\bstep:(\d+) - ")
_PROGRESS = re.compile(r"(?P<n>\d{1,15})/(?P<total>\d{1,15}) \[\d+:\d\d(?::\d\d)?<")
_BAR = re.compile(r"(?:^|:)\s{0,4}\d{1,3}%\|[^|]{0,200}\|")  # `Training:  12%|###   |`: progress, and no metric
_ASIDE = re.compile(r" \(([A-Za-z_]{2,40}) ([-+]?\d[\d.]{0,20})\)(?=: )")  # `Epoch 1/3 (reward 0.08):   1%|`
_GLUED = re.compile(r"\s{0,20}\d{1,3}%\|[^|]{0,200}\| (?P<n>\d{1,15})/(?P<total>\d{1,15}) \[[^\]]{5,80}\]\s*(?=\{|$)")
#: A reward at the end of a short line: `Batch: mean_reward=-0.025`, `Output 3: Mean over 61 episodes - Reward: 4.86`.
_ENDS_LINE = re.compile(r"\s*[A-Za-z][\w -]{0,60}(?::|\s-)\s[\w -]{0,60}[:=]\s?[-+]?\d[\d.]{0,20}\s*")
_NAMED_STEP = re.compile(
    r"[Ss]tep|[Ii]ter|[Ee]pisode|[Uu]pdate|[Ee]poch|[Rr]ollout|[Rr]ound|\b[Gg]ame|[Gg]eneration|STEP|ITER|EP|\b[Ee]pi?\b"
)


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
        self._heading = Heading()
        self._rank = ""
        self._trial = ""

    @property
    def is_open(self) -> bool:
        """Whether something has begun that the next lines may continue."""
        is_begun = self._dicts.is_open or self._boxes.is_open or self._blocks.is_open or self._columns.is_open
        is_begun = is_begun or self._columns.may_go_on
        return is_begun or self._series.is_open or self._warnings.is_open or self._tensors.is_open

    @property
    def is_plain(self) -> bool:
        """Whether the next row stands alone: nothing has begun, and no heading, bar or process applies to it."""
        no_heading = self._heading.step is None and self._heading.epoch is None
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
        is_evaluation = evaluates(line, line[: max(0, len(line) - len(text))])
        if is_evaluation and self._blocks.is_open and not self._evaluates:
            yield from self.end()  # what stands above a line of an evaluation is not of it
        self._evaluates = is_evaluation
        text = reworded(without_remark(in_english(text)))
        if rank != self._rank:
            yield from self.end()
            self._rank = rank
        if "\n" in text:  # it heads the lines below it, and is the first of them
            for part in text.split("\n"):
                yield from self._rows(part)
            return
        text, warned = self._warnings.taken(text, line)
        if warned or self._warnings.is_open:
            yield from self._rows_before(text)
            yield from self._made([warned] if warned else (), "warning", is_log=True)
            return
        if says_solved(text):
            yield from self.end()
            return
        if text.startswith("Result for ") and (result := _RESULT.fullmatch(text)) is not None:
            yield from self.end()
            self._trial = result["trial"]
            return
        for form in (self._as_group, self._as_dicts, self._as_heading, self._as_steps, self._as_table):
            taken = yield from form(text)
            if taken:
                return
        yield from self._as_pairs(text)

    def _as_group(self, text: str) -> Taken:
        """What a reward function or pandas prints: calls of it, a Series, the rewards of a step as a list."""
        if text.startswith("-----"):
            is_called, ended = self._called.taken(text)
            yield from self._made([ended], "line")
            if is_called:
                return True
        if series := self._series.row(text):
            yield from self._made([series], "box")
            return True
        listed = self._listed.found(text)
        if listed is None:
            return False
        group, sampled = listed
        for made in self._made([group], "line", sampled):
            made.is_listed = True
            yield made
        return True

    def _as_dicts(self, text: str) -> Taken:
        """Dicts that are printed on one line or on several, beside or below a bar, and one within a block."""
        if self._blocks.is_open and "{" in text and (several := dict_of_a_name(text)):
            yield from self._made(self._blocks.add(several), "block")
            return True
        bar, self._bar = self._bar, self._bar if not text.strip() else _bar_in(text)
        if self._dicts.is_open or "{" in text:
            taken = yield from self._from_dicts(text, self._bar or bar)
            if taken:
                self._bar = None
                yield from self.end()
                return True
        return len(text) > LONGEST_PAIRS

    def _as_heading(self, text: str) -> Taken:
        """A line that names only a step; pairs that stand below one without a sign between them."""
        step = heading(text) if _NAMED_STEP.search(text) else None
        if self._heading.applies_to(step) and (spaced := self._blocks.spaced(text)):
            yield from self._made(self._blocks.add(spaced, is_spaced=True), "block")
            return True
        if step is None:
            return False
        yield from self.end()
        self._heading.begin(text, step)
        return True

    def _as_steps(self, text: str) -> Taken:
        """verl's line of a step, and pairs beside a progress bar."""
        verl = _VERL.search(text)
        if verl:
            yield from self.end()
            yield from self._made([_verl(text[verl.start() :])], "steps", is_cut=len(text) >= WANDB_CUT, is_log=True)
            return True
        progress = _PROGRESS.search(text) if "<" in text else None
        if progress is None:
            return False
        for made in self._from_line(_BAR.sub(" | ", _ASIDE.sub(r" | \1: \2", text)), "bar"):
            yield from self._made(self._blocks.end(), "block")
            made.bar = int(progress["n"])
            yield made
        return True

    def _as_table(self, text: str) -> Taken:
        """Boxes, columns below a line of names, and blocks of a pair a line."""
        was_open = self._boxes.is_open
        yield from self._made(self._boxes.rows(text), "box", is_log=self._boxes.is_of_log)
        if was_open or self._boxes.is_open:
            return True
        if not _has_sign(text):
            yield from self._made(self._columns.rows(text), "box")
            if self._columns.is_open:
                return True
        if not self._blocks.takes(text):
            return False
        yield from self._made(self._blocks.rows(text), "block")
        return True

    def _as_pairs(self, text: str) -> Iterator[PrintedRow]:
        """Names and numbers on one line."""
        several = self._pairs_of(text)
        if is_labelled(text) and several:
            yield from self._made(self._blocks.add(several), "block")
        elif len(several) > 1 or (several and _NAMED_STEP.search(text) and steps_in(text)):
            yield from self._made(self._blocks.end(), "block")
            yield from self._from_line(text, "line", several)
        else:
            yield from self._made(self._blocks.rows(text), "block")
            if several and not self._blocks.is_open:
                yield from self._from_line(text, "line", several)

    def _pairs_of(self, text: str) -> dict[str, Any]:
        """The names and numbers of a line, in whichever of their forms it has."""
        several = pairs(text) if _has_sign(text) or "·" in text else spaced_pairs(text)
        is_short = sum(not names_step(name) for name in several) < FEWEST_PAIRS
        is_counted = is_short and begins_with_count(text)
        if is_short and begun_by(text) is not None:
            for name, one in mixed_pairs(text).items():
                if name == "steps" or not names_step(name):
                    several.setdefault(name, one)
        if not several and "," in text and (is_counted or self._rank.endswith(LABEL)):
            several = pairs(text.replace(" -> ", ", "))
        if (not several or " with " in text or "mean/" in text) and PAID.search(text):
            several = reward_in_sentence(text) | several
        if "(" in text or len(several) < FEWEST_PAIRS:
            several = leading_reward(text) | several
        return several

    def _rows_before(self, text: str) -> Iterator[PrintedRow]:
        """The rows of the text before a warning on its line, usually a progress bar; the warning stays open."""
        warnings, self._warnings = self._warnings, Warnings()
        yield from self._rows(text) if text.strip() else ()
        self._warnings = warnings

    def _from_dicts(self, text: str, bar: PrintedStep | None) -> Taken:
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
            made.form, made.rank, made.is_cut = form, self._rank, is_cut
            made.trial = made.pop(TRIAL, self._trial if form == "block" else "")
            if self._evaluates:
                made.of_evaluation()
            self._heading.name(made, step)
            yield made


def _has_sign(text: str) -> bool:
    """Whether a line has a sign that stands between a name and its number, or between pairs."""
    return ":" in text or "=" in text or "|" in text


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
