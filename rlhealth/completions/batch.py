"""Batch: the completions of one step, in columns; made from rows of whatever trainer wrote them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rlhealth.parsing.own_texts import read_texts
from rlhealth.run import Floats

#: Longer texts are cut here before they are measured and shown; their recorded length is that of the whole text.
LONGEST_TEXT = 1 << 18
#: Reward functions of one batch that are kept.
MOST_FUNCTIONS = 32
_LONGEST_NAME = 200
_WORDS = {"True": 1.0, "False": 0.0, "true": 1.0, "false": 0.0}


@dataclass
class Batch:
    """The completions of one step; every list has n entries, those of one prompt make up a group.

    Attributes:
        step: the trainer's step, as the rows give it; None if they do not.
        prompts, completions: the texts, cut at `LONGEST_TEXT` characters.
        lengths: of the whole completions, characters, shape (n,).
        functions: rewards by the name of the reward function, each of shape (n,); NaN for none.
        total: the reward that counts, shape (n,): the column that says so, or the sum of the functions.
        advantages: shape (n,), NaN if unknown.
        cut: 1 if a text was cut off at the longest length, 0 if not, NaN if unknown; shape (n,).
        shortened: how many texts were longer than `LONGEST_TEXT`.
        left_out: rows of the step that were not taken because there were too many.
    """

    step: int | None
    prompts: list[str]
    completions: list[str]
    lengths: Floats
    functions: dict[str, Floats]
    total: Floats
    advantages: Floats
    cut: Floats
    shortened: int = 0
    left_out: int = 0
    _groups: list[Any] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        return len(self.completions)

    @property
    def group_of(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The number of each completion's group, shape (n,): one a prompt, in the order in which prompts come."""
        if not self._groups:
            numbers: dict[str, int] = {}
            self._groups.append(np.asarray([numbers.setdefault(one, len(numbers)) for one in self.prompts], np.int64))
        found: np.ndarray[Any, np.dtype[np.int64]] = self._groups[0]
        return found

    def part(self, keep: np.ndarray[Any, Any]) -> Batch:
        """The rows whose numbers are in `keep`; the others count as left out."""
        numbers = keep.tolist()
        return Batch(
            step=self.step,
            prompts=[self.prompts[one] for one in numbers],
            completions=[self.completions[one] for one in numbers],
            lengths=self.lengths[keep],
            functions={name: values[keep] for name, values in self.functions.items()},
            total=self.total[keep],
            advantages=self.advantages[keep],
            cut=self.cut[keep],
            shortened=self.shortened,
            left_out=self.left_out + len(self) - len(numbers),
        )


@cache
def known() -> dict[str, list[str]]:
    """The names of columns, from columns.yaml."""
    found: dict[str, list[str]] = read_texts(Path(__file__).parent / "columns.yaml")
    return found


def holds_texts(columns: Iterable[str]) -> bool:
    """Whether a table with these columns is one of completions: there is a completion, and a prompt or a reward with
    it."""
    names = [str(one) for one in columns]
    if _named(names, "conversation") and _named(names, "total"):
        return True
    return _named(names, "completion") is not None and (
        _named(names, "prompt") is not None or _named(names, "total") is not None
    )


def batches(columns: Mapping[str, Sequence[Any]], step: int | None = None) -> list[Batch]:
    """The table as batches, one a step, in the order of the steps.

    Args:
        columns: by name, n values each.
        step: of rows that do not give theirs.
    """
    names = list(columns)
    of_step = _named(names, "step")
    if of_step is None:
        return [_batch(columns, step)]
    rows: dict[int | None, list[int]] = {}
    for number, value in enumerate(columns[of_step]):
        found = _number(value)
        rows.setdefault(int(found) if math.isfinite(found) and abs(found) < 1 << 62 else step, []).append(number)
    if len(rows) == 1:
        return [_batch(columns, next(iter(rows)))]
    return [
        _batch({name: [values[one] for one in numbers] for name, values in columns.items()}, at)
        for at, numbers in sorted(rows.items(), key=lambda one: -1 if one[0] is None else one[0])
    ]


def in_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; what a row does not have is None there."""
    found: dict[str, list[Any]] = {}
    count = 0
    for row in rows:
        for name, value in row.items():
            column = found.get(name)
            if column is None:
                if len(found) >= 10 * MOST_FUNCTIONS:
                    continue
                column = found[name] = []
            if len(column) < count:
                column.extend([None] * (count - len(column)))
            column.append(value)
        count += 1
    for column in found.values():
        column.extend([None] * (count - len(column)))
    return found


def text_of(value: Any) -> str:
    """A text, or a conversation as a text: one message is its content, several stand below one another with their
    roles."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, Mapping):
        value = [value]
    if isinstance(value, list | tuple) and value and all(isinstance(one, Mapping) for one in value):
        parts = [(str(one.get("role") or ""), _content(one)) for one in value]
        return parts[0][1] if len(parts) == 1 else "\n".join(f"{role}: {said}" for role, said in parts)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | tuple) else str(value)


def _content(message: Mapping[str, Any]) -> str:
    said = message.get("content")
    if isinstance(said, list | tuple):
        said = "\n".join(str(one.get("text") or "") if isinstance(one, Mapping) else str(one) for one in said)
    called = message.get("tool_calls")
    if called is not None and len(called):
        said = f"{said or ''}{json.dumps(list(called), ensure_ascii=False, default=str)}"
    return str(said) if said is not None else ""


def _batch(columns: Mapping[str, Sequence[Any]], step: int | None) -> Batch:
    names = list(columns)
    prompts, completions = _texts(columns, names)
    size = len(completions)
    functions = _functions(columns, names, size)
    said = _named(names, "total")
    total = _numbers(columns[said]) if said is not None else np.full(size, math.nan)
    if not np.isfinite(total).any() and functions:
        total = np.sum(list(functions.values()), axis=0)
    if not functions and np.isfinite(total).any():
        functions = {str(said): total}
    advantage = _named(names, "advantage")
    return Batch(
        step=step,
        prompts=[one[:LONGEST_TEXT] for one in prompts],
        completions=[one[:LONGEST_TEXT] for one in completions],
        lengths=np.asarray([getattr(one, "whole", len(one)) for one in completions], np.float64),
        functions=functions,
        total=total,
        advantages=_numbers(columns[advantage]) if advantage is not None else np.full(size, math.nan),
        cut=_cut(columns, names, size),
        shortened=sum(getattr(one, "whole", len(one)) > LONGEST_TEXT for one in completions),
    )


def _texts(columns: Mapping[str, Sequence[Any]], names: list[str]) -> tuple[list[str], list[str]]:
    said, asked = _named(names, "completion"), _named(names, "prompt")
    if said is not None:
        completions = [text_of(one) for one in columns[said]]
        return ([text_of(one) for one in columns[asked]] if asked is not None else [""] * len(completions)), completions
    talk = _named(names, "conversation")
    whole = columns[talk] if talk is not None else []
    parts = [(one[:-1], one[-1]) if isinstance(one, list) and one else ("", one) for one in whole]
    return [text_of(before) for before, _ in parts], [text_of(last) for _, last in parts]


def _functions(columns: Mapping[str, Sequence[Any]], names: list[str], size: int) -> dict[str, Floats]:
    """The columns that hold numbers in most rows, and that neither are nor are named like anything known."""
    used = {_named(names, what) for what in known() if what not in ("no_reward", "cut_words", "ground_truth")}
    found: dict[str, Floats] = {}
    for name in names:
        if name in used or len(name) > _LONGEST_NAME or _is_like(name, "no_reward"):
            continue
        column = columns[name]
        first = next((one for one in column if one is not None), None)
        if first is None or isinstance(first, bytes | Mapping | list | tuple):
            continue
        if isinstance(first, str) and _is_like(name, "ground_truth"):  # verl writes numpy's numbers as text
            continue
        values = _numbers(column)
        if np.isfinite(values).sum() * 2 >= size and len(found) < MOST_FUNCTIONS:
            found[name] = values
    return found


def is_function(name: str, what: str) -> bool:
    """Whether a reward function's name says that it pays for the form ("format") or for the answer ("answer")."""
    return _is_like(name, f"{what}_functions")


def _is_like(name: str, what: str) -> bool:
    return any(fnmatch(name.lower(), pattern) for pattern in known()[what])


def _named(names: list[str], what: str) -> str | None:
    """The first column of that meaning."""
    lower = {one.lower(): one for one in reversed(names)}
    return next((lower[one] for one in known().get(what, []) if one in lower), None)


def _cut(columns: Mapping[str, Sequence[Any]], names: list[str], size: int) -> Floats:
    flag, finish = _named(names, "cut"), _named(names, "finish")
    if flag is not None:
        return np.where((found := _numbers(columns[flag])) > 0, 1.0, found)
    if finish is None:
        return np.full(size, math.nan)
    words = set(known()["cut_words"])
    return np.asarray([math.nan if one is None else float(str(one).lower() in words) for one in columns[finish]])


def _numbers(column: Sequence[Any]) -> Floats:
    return np.asarray([_number(one) for one in column], np.float64)


def _number(value: Any) -> float:
    if isinstance(value, int | float):  # a bool is one
        try:
            return float(value)
        except OverflowError:
            return math.nan
    if isinstance(value, list | tuple) and len(value) == 1:
        return _number(value[0])
    if isinstance(value, str) and value in _WORDS:
        return _WORDS[value]
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return math.nan
