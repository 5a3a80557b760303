"""Tables of answers, one per row, without a step: an evaluation, or samples whose step was not logged."""

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
    """Whether rows are answers, each beside its prompt, by their text columns: those in the rows, and those in `texts`,
    which the rows lack. No column counts steps, episodes or epochs."""
    if any(PROGRESS & row.keys() for row in rows):
        return False
    held = (name for row in rows for name, value in row.items() if isinstance(value, str) and number(value) is None)
    spelt = [words(name) for name in {*texts, *held}]
    return any(map(_ASKED.search, spelt)) and any(map(_ANSWERED.search, spelt))
