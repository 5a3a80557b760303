"""Rows that a program printed: Python dicts, boxed tables, `step:1 - actor/kl:0.1`, tables of a notebook, `name/metric: 1.0` lines."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import Any

from rlhealth.sources.base.spelling import AXES, number

LONGEST_LINE = 1 << 20  # characters; nobody prints longer rows
MOST_LINES = 400  # of one printed dict
#: The last part of a name by which a printed dict is known as a log row: settings are printed too.
TELLING = frozenset(
    {
        "loss",
        "reward",
        "rewards",
        "kl",
        "entropy",
        "grad_norm",
        "epoch",
        "runtime",
        "train_runtime",
        "score",
        "scores",
        "return",
        "returns",
        "approxkl",
    }
    | {
        "approx_kl",
        "clipfrac",
        "clip_fraction",
        "reward_std",
        "reward_mean",
        "mean_reward",
        "ep_rew_mean",
        "ep_rewmean",
        "accuracy",
        "ppo_kl",
        "kl_mean",
    }
    | {"episode_reward", "pg_loss"}
)
_OPENING = re.compile(r"\{\s*(?=['\"])")
_BRACES = re.compile(r"[{}]")
_PAIR = re.compile(
    r"(?P<q>['\"])(?P<key>[^'\"\n]{1,4096})(?P=q)\s*:\s*"
    r"(?:['\"](?P<quoted>[^'\"\n]{0,200})['\"]|(?P<value>[A-Za-z_][\w.]{0,60}\([^()\n]{0,200}\)|[^\s,{}\[\]()'\"]{1,60}))\s*(?=[,}]|$)"
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_BAR = re.compile(r"[|│┃]")
_RULE = re.compile(r"^\s*[-+=─━┌┐└┘├┤╭╮╰╯┼┬┴]{5,}\s*$")
_UNDERLINE = re.compile(r"[\s|:-]*+$")
_VERL = re.compile(r"\bstep:(\d+) - ")
_NAMED = re.compile(r"^\s*+(?P<key>[A-Za-z_][\w.@-]*+(?:/[\w.@ -]++)++)\s*+[:=]\s*+(?P<value>\S{1,60})\s*+$")
_EQUAL = re.compile(r"(?:^|[\s,|])(?P<key>[A-Za-z_][\w./@-]{0,200})\s*=\s*(?P<value>[^\s,|=]{1,60})(?=[\s,|]|$)")


def dict_in(text: str, cut: bool = False) -> dict[str, Any] | None:
    """The log row that is printed in `text` as a dict, Python's or JSON's, or None; nothing is evaluated. With `cut`, its end may be missing."""
    opening = _OPENING.search(text)
    if opening is None:
        return None
    end = _closing(text, opening.start())
    if end is None and not cut:
        return None
    body = text[opening.start() : end]
    if body[1:].lstrip()[:1] == '"' and end is not None:
        try:
            row = json.loads(body)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            return row
    found: dict[str, Any] = {}
    for pair in _PAIR.finditer(body):
        value = pair["value"] if pair["value"] is not None else pair["quoted"]
        spelt = None if value == "None" else number(value)
        if spelt is not None or value == "None" or pair["key"] in AXES:
            found[pair["key"]] = spelt if spelt is not None or value == "None" else value
    return found or None


def is_telling(row: dict[str, Any]) -> bool:
    """Whether a printed dict is a row of a log: it has a number under a name that logs have."""
    numbers = [key for key, value in row.items() if number(value) is not None or isinstance(value, dict)]
    return (
        any(
            _last_part(key) in TELLING
            or key.startswith(("rewards/", "eval_", "train_"))
            or _last_part(key).endswith("loss")
            for key in numbers
        )
        or "data" in row
    )


def _last_part(key: str) -> str:
    return key.rsplit("/", 1)[-1].strip().lower()


def _closing(text: str, start: int) -> int | None:
    """Where the brace that opens at `start` is closed, one past it; None where it is not."""
    depth = 0
    for brace in _BRACES.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return None


class Printed:
    """Finds rows in printed lines. Feed it lines in order; it keeps what is begun and not yet ended."""

    def __init__(self) -> None:
        self.cut = 0
        self._dict: list[str] = []
        self._box: dict[str, Any] = {}
        self._heading = ""
        self._columns: list[str] = []
        self._line = ""
        self._named: dict[str, Any] = {}

    def rows(self, line: str) -> Iterator[dict[str, Any]]:
        """The rows that end with this line."""
        if len(line) > LONGEST_LINE:
            return
        if "\x1b" in line:
            line = _ANSI.sub("", line)
        for part in line.split("\r") if "\r" in line else (line,):
            yield from self._rows(part)

    def end(self) -> Iterator[dict[str, Any]]:
        """The rows that the end of the text ends."""
        if self._box:
            yield from self._end_box()
        if self._named:
            yield self._named
            self._named = {}

    def _rows(self, line: str) -> Iterator[dict[str, Any]]:
        if self._dict or "{" in line:
            taken = yield from self._dicts(line)
            if taken:
                return
        named = _NAMED.match(line)
        if named and number(named["value"]) is not None:
            if named["key"] in self._named:
                yield self._named
                self._named = {}
            self._named[named["key"]] = named["value"]
            return
        if self._named:
            yield self._named
            self._named = {}
        verl = _VERL.search(line)
        if verl:
            yield _pairs(line[verl.start() :])
        elif _box(line) or _RULE.match(line) or self._box:
            yield from self._boxes(line)
        elif "|" in line or "\t" in line or self._columns:
            yield from self._table(line)
        elif line.count("=") > 2:
            row = {pair["key"]: pair["value"] for pair in _EQUAL.finditer(line) if number(pair["value"]) is not None}
            if len(row) > 2 and is_telling(row):
                yield row
        self._line = line

    def _dicts(self, line: str) -> Generator[dict[str, Any], None, bool]:
        """Dicts that are printed on one line or on several. Returns (to `yield from`) whether the line was theirs."""
        if self._dict and not _goes_on(self._dict, line):
            begun = dict_in("\n".join(self._dict), cut=True)
            self.cut += begun is not None and is_telling(begun)
            self._dict = []
        text = "\n".join([*self._dict, line])
        opening = _OPENING.search(text)
        if opening is None:
            self._dict = []
            return False
        end = _closing(text, opening.start())
        if end is None:
            self._dict = [*self._dict, line] if len(self._dict) < MOST_LINES and len(text) <= LONGEST_LINE else []
            return True
        self._dict = []
        while opening is not None and end is not None:
            row = dict_in(text[opening.start() : end])
            if row is not None and is_telling(row):
                yield row
            opening = _OPENING.search(text, end)
            end = _closing(text, opening.start()) if opening else None
        return True

    def _boxes(self, line: str) -> Iterator[dict[str, Any]]:
        pair = _box(line)
        if pair is None:
            yield from self._end_box()
            return
        indent, key, value = pair
        if not value and key.endswith("/"):
            self._heading = key
        elif number(value) is not None:
            self._box[f"{self._heading}{key}" if indent > 1 else key] = value

    def _end_box(self) -> Iterator[dict[str, Any]]:
        if len(self._box) > 1:
            yield self._box
        self._box, self._heading = {}, ""

    def _table(self, line: str) -> Iterator[dict[str, Any]]:
        between = "|" if "|" in line else "\t"
        cells = [cell.strip() for cell in line.strip().strip("|").split(between)]
        if "--" in line and _UNDERLINE.match(line):
            self._columns = [cell.strip() for cell in self._line.strip().strip("|").split("|")]
        elif between == "\t" and cells[0] in AXES and len(cells) > 1:
            self._columns = cells
        elif self._columns and len(cells) == len(self._columns) and number(cells[0]) is not None:
            yield {key: value for key, value in zip(self._columns, cells, strict=True) if number(value) is not None}
        else:
            self._columns = []


def _goes_on(begun: list[str], line: str) -> bool:
    """Whether a line may belong to a dict that is printed on several lines."""
    if _OPENING.search(line) is None:
        return any(sign in line for sign in "'\"}")
    text = "\n".join([*begun, line])
    opening = _OPENING.search(text)
    return opening is not None and _closing(text, opening.start()) is not None


def _box(line: str) -> tuple[int, str, str] | None:
    """The indent, the key and the value of a line of a boxed table, `|    kl | 0.1 |`; None where it is none."""
    cells = _BAR.split(line.strip(), 4)
    if len(cells) != 4 or cells[0] or cells[3]:
        return None
    key = cells[1].lstrip()
    return len(cells[1]) - len(key), key.rstrip(), cells[2].strip()


def _pairs(text: str) -> dict[str, Any]:
    """`step:1 - actor/kl:0.1 - …` as a row."""
    found: dict[str, Any] = {}
    for part in text.split(" - "):
        key, colon, value = part.strip().rpartition(":")
        if colon and number(value) is not None:
            found[key] = value
    return found
