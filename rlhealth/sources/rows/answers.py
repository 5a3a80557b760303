"""Tables of answers, a row each and no step: an evaluation, or what was sampled while nobody wrote down when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlhealth.sources.base.spelling import PROGRESS, number
from rlhealth.sources.rows.row_names import words

ANSWERS = "answer"  # what the rows of such a table count
_ASKED = re.compile(r"(?:^|_)(?:prompts?|questions?|problems?|instructions?|query|queries)(?:_|$)")
_ANSWERED = re.compile(
    r"(?:^|_)(?:completions?|responses?|answers?|generations?|generated|outputs?|predictions?|ground_truth)(?:_|$)"
)


def are_answers(rows: Sequence[Mapping[str, Any]], texts: Iterable[str]) -> bool:
    """Whether rows are answers, each beside what was asked, by the columns that hold texts: in the rows, and those of
    `texts`, which they lack. Nothing counts steps, episodes or epochs."""
    if any(PROGRESS & row.keys() for row in rows):
        return False
    held = (name for row in rows for name, value in row.items() if isinstance(value, str) and number(value) is None)
    spelt = [words(name) for name in {*texts, *held}]
    return any(map(_ASKED.search, spelt)) and any(map(_ANSWERED.search, spelt))
