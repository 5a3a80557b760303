"""The exception that ended a process, from the last lines of its console."""

from __future__ import annotations

import re
from collections import defaultdict
from os import SEEK_END
from pathlib import Path

from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.packed import encoding_of
from rlhealth.sources.base.values import said_by_exception
from rlhealth.sources.rows.printed import Printed
from rlhealth.sources.rows.printed_line import bare
from rlhealth.sources.rows.row_names import is_learning

TAIL = 16 << 10  # bytes
_FIRST = 256  # bytes, which show the encoding
_WIDEST = 4  # bytes of a character; PowerShell writes two for each
MOST_AFTER = 40  # lines that launchers, trackers and other processes may print after it
_OPENS = "Traceback (most recent call last)"
#: A line of a traceback, whose first lines somebody who pasted the console left out.
_FRAME = re.compile(r'\s*File "[^"\n]{1,300}", line \d{1,7}, in \S')
_FEWEST_FRAMES = 2
_RAISED = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt)\b.{0,200}")
#: Ray's exception of a task quotes the tracebacks of other processes; the one that they all come from stands last.
_OF_RAY = "RayTaskError("
#: What a script prints of an exception that it caught itself: `Exception occurred during training: …`.
_CAUGHT = re.compile(
    r"\W{0,8}(?:(?:an? )?(?:unexpected |fatal )?(?:error|exception)(?: (?:occurr?ed|raised|encountered))?"
    r" (?:during|in|while) (?:the )?(?:\w{2,12} )?training(?: loop)?"
    r"|training (?:failed|crashed|aborted)(?: with (?:an )?(?:error|exception))?)\s?: \S.{2,200}",
    re.IGNORECASE,
)
#: A bar of tqdm, with how many of how many are done.
_BAR = re.compile(r"\d{1,3}%\|[^|]{0,300}\| (\d{1,12})/(\d{1,12}) \[")
#: What a line counts that a training counts.
_COUNTED = re.compile(
    r"\b(?:epoch|episode|step|iteration|iter|update|batch|round|game)s?\b[\s:#=\[(]{0,8}(\d{1,12})", re.IGNORECASE
)
FEWEST_COUNTED = 10  # different numbers; settings and the first step are a few
_UNFORMATTED = "Unexpected exception formatting exception. Falling back to standard exception"
_MOST_AFTER_CAUGHT = 3  # lines; after more of them it went on


def tail_of(console: Path) -> bytes:
    """The last `TAIL` bytes of a console, in UTF-8. Raises RlhealthError or OSError where it cannot be read."""
    with open_regular(console) as file:
        encoding = encoding_of(file.read(_FIRST))
        start = max(0, file.seek(0, SEEK_END) - TAIL)
        file.seek(start - start % _WIDEST)
        tail: bytes = file.read(TAIL)
    return tail if encoding is None else tail.decode(encoding, "replace").encode()


def raised_in(tail: bytes) -> str:
    """The exception whose traceback a console ends with, such as `RuntimeError: CUDA error`, without keys; empty if
    training continued after it, or if there is none.

    Args:
        tail: the last `TAIL` bytes of the console.
    """
    text = tail.decode("utf-8", "replace")
    lines = [bare(line)[1] for line in text.splitlines()] if _OPENS in text or ", line " in text else []
    opened = max((index for index, line in enumerate(lines) if _OPENS in line), default=None)
    if opened is None:
        frames = [index for index, line in enumerate(lines) if _FRAME.match(line)]
        if len(frames) < _FEWEST_FRAMES:
            return caught_in(text)
        opened = frames[0]
    raised = [index for index in range(opened, len(lines)) if _RAISED.match(lines[index])]
    if not raised:
        return ""
    place = raised[-1] if _OF_RAY in lines[raised[0]] else raised[0]
    after = [line for line in lines[place + 1 :] if line.strip()]
    if len(after) > MOST_AFTER or _goes_on(after, lines[: opened + 1]):
        return ""
    return said_by_exception(lines[place].strip())


def caught_in(text: str) -> str:
    """What the last lines of a text say of an exception that ended training and that the script caught, without keys;
    empty if they say nothing of one."""
    lines = [line for line in text[-TAIL:].splitlines() if line.strip()][-_MOST_AFTER_CAUGHT:]
    for place, line in enumerate(lines):
        if (caught := _CAUGHT.fullmatch(bare(line)[1].strip())) is not None:
            return "" if any(map(_is_of_a_row, lines[place + 1 :])) else said_by_exception(caught[0].strip())
    return ""


def counts_on(text: str) -> bool:
    """Whether lines of a text count what a training counts: it had gone on for a while, even if none of them could be
    read as a row. Of 50 labelled notebooks and consoles that died before their first row none counts to five."""
    return len(set(_COUNTED.findall(text))) >= FEWEST_COUNTED


def unformatted_in(text: str) -> str:
    """The exception that IPython could not format and printed as Python does, without keys; empty if there is none. It
    stands before the one that formatting it raised."""
    _, failed, after = text.partition(_UNFORMATTED)
    raised = next(filter(_RAISED.match, after.splitlines()), "") if failed else ""
    return said_by_exception(raised.strip()) if raised else ""


def _goes_on(after: list[str], before: list[str]) -> bool:
    """Whether the lines after an exception are of a training that continued. When its process exits, tqdm draws a bar
    once more, with a count that it may not have drawn yet."""
    drawn: defaultdict[str, set[str]] = defaultdict(set)
    for line in after:
        if (bar := _BAR.search(line)) is not None:
            drawn[bar[2]].add(bar[1])
        elif _is_of_a_row(line):
            return True
    known = {bar[2] for line in before if (bar := _BAR.search(line)) is not None} if drawn else set()
    return any(len(counts) > 1 or total not in known for total, counts in drawn.items())


def _is_of_a_row(line: str) -> bool:
    """Whether a line is a row of training, or begins one."""
    return line.startswith(("{'", '{"')) or any(is_learning(row) for row in Printed().rows(line))
