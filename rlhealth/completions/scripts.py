"""Scripts: in which writing a text stands, by ranges of Unicode, coarse enough for "another language than the
prompt's"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from rlhealth.run import Floats

#: Scripts and their ranges of code points. Chinese and Japanese share han.
RANGES = {
    "latin": "41-5A 61-7A C0-24F 1E00-1EFF",
    "greek": "370-3FF",
    "cyrillic": "400-52F",
    "armenian": "530-58F",
    "hebrew": "590-5FF",
    "arabic": "600-6FF 750-77F 8A0-8FF",
    "devanagari": "900-97F",
    "bengali": "980-9FF",
    "indic": "A00-DFF",
    "thai": "E00-E7F",
    "lao": "E80-EFF",
    "tibetan": "F00-FFF",
    "burmese": "1000-109F",
    "georgian": "10A0-10FF",
    "hangul": "1100-11FF AC00-D7AF",
    "ethiopic": "1200-137F",
    "khmer": "1780-17FF",
    "kana": "3040-30FF",
    "han": "3400-4DBF 4E00-9FFF 20000-2FA1F",
}
#: Letters of formulas, which no prose is written in.
FORMULAS = frozenset({"greek"})
_LARGEST = 0x2FFFF
_NONE = 0
#: A script that makes up less of the prompts' letters is not one of theirs.
LEAST = 0.01


def letters(texts: Sequence[str]) -> Floats:
    """How many letters of each script the texts hold, shape (number of scripts + 1,); the first are no letters."""
    table, names = _table()
    joined = "".join(texts).encode("utf-32-le", "replace")
    codes = np.minimum(np.frombuffer(joined, np.uint32), _LARGEST)
    return np.bincount(table[codes], minlength=len(names) + 1).astype(np.float64)


def outside(prompts: Sequence[str], completions: Sequence[str]) -> float:
    """The share of the completions' letters that are of none of the prompts' scripts; Greek, the letters of formulas,
    counts as the prompts'.

    NaN if the prompts or the completions hold no letters.
    """
    _, names = _table()
    asked, said = letters(prompts)[1:], letters(completions)[1:]
    if not asked.sum() or not said.sum():
        return float("nan")
    theirs = (asked >= LEAST * asked.sum()) | np.asarray([one in FORMULAS for one in names])
    return float(said[~theirs].sum() / said.sum())


@cache
def _table() -> tuple[np.ndarray[Any, np.dtype[np.uint8]], tuple[str, ...]]:
    """The number of the script of each code point, 0 for none, and the scripts' names from 1 on."""
    table = np.full(_LARGEST + 1, _NONE, np.uint8)
    for number, ranges in enumerate(RANGES.values(), start=1):
        for one in ranges.split():
            first, last = (int(code, 16) for code in one.split("-"))
            table[first : last + 1] = number
    table[[0xD7, 0xF7]] = _NONE  # × and ÷
    return table, tuple(RANGES)
