"""Scripts: in which writing a text stands, by ranges of Unicode, coarse enough for "another language than the prompt's"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from rlhealth.run import Floats

#: First and last code point, and the script. Chinese, Japanese and Korean characters are told apart only where they differ.
RANGES = (
    (0x0041, 0x005A, "latin"), (0x0061, 0x007A, "latin"), (0x00C0, 0x024F, "latin"), (0x1E00, 0x1EFF, "latin"),
    (0x0370, 0x03FF, "greek"), (0x0400, 0x052F, "cyrillic"), (0x0530, 0x058F, "armenian"), (0x0590, 0x05FF, "hebrew"),
    (0x0600, 0x06FF, "arabic"), (0x0750, 0x077F, "arabic"), (0x08A0, 0x08FF, "arabic"), (0x0900, 0x097F, "devanagari"),
    (0x0980, 0x09FF, "bengali"), (0x0A00, 0x0DFF, "indic"), (0x0E00, 0x0E7F, "thai"), (0x0E80, 0x0EFF, "lao"),
    (0x0F00, 0x0FFF, "tibetan"), (0x1000, 0x109F, "burmese"), (0x10A0, 0x10FF, "georgian"), (0x1100, 0x11FF, "hangul"),
    (0x1200, 0x137F, "ethiopic"), (0x1780, 0x17FF, "khmer"), (0x3040, 0x30FF, "kana"), (0x3400, 0x4DBF, "han"),
    (0x4E00, 0x9FFF, "han"), (0xAC00, 0xD7AF, "hangul"), (0x20000, 0x2FA1F, "han"),
)  # fmt: skip
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
    """The share of the completions' letters that are of none of the prompts' scripts; Greek, the letters of formulas, counts as the prompts'.

    NaN where the prompts or the completions hold no letters.
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
    names = tuple(dict.fromkeys(script for _, _, script in RANGES))
    table = np.full(_LARGEST + 1, _NONE, np.uint8)
    for first, last, script in RANGES:
        table[first : last + 1] = names.index(script) + 1
    table[[0xD7, 0xF7]] = _NONE  # × and ÷
    return table, names
