"""Tables of the episodes of an evaluation, `eval_results.csv` with `policy,episode,reward`: they are counted on one by
one, and nothing is learned between them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from rlhealth.sources.base.spelling import whole
from rlhealth.sources.rows.row_names import is_learning, words

_COUNTS = frozenset({"episode", "Episode", "ep", "Ep"})
_COUNTS_EVALUATED = frozenset({"eval_episode", "evaluation_episode", "test_episode"})
#: A file's name. `test` alone is no evaluation: people so name a training that they try out.
_NAMED = re.compile(
    r"(?:^|[^a-z])(?:eval|evaluations?|benchmark|test_(?:performance|results?|episodes?|rewards?|scores?))(?:[^a-z]|$)",
    re.IGNORECASE,
)
_EXPLORES = re.compile(r"(?:^|_)(?:eps|epsilon|exploration_rate|temperature|train\w*)(?:_|$)")
FEWEST = 3  # rows


def are_evaluated(rows: Sequence[Mapping[str, Any]], axis: str | None, location: str) -> bool:
    """Whether the first rows of a file are episodes of an evaluation: the file or the column that counts is named after
    one, its rows count episodes without a gap, and no column is about learning. Evaluations between the episodes of a
    training have gaps.
    """
    names = {name for row in rows for name in row}
    counter = next(iter(names & _COUNTS_EVALUATED), None)
    if counter is None and axis in _COUNTS and _NAMED.search(PurePath(location).stem):
        counter = axis
    if counter is None or len(rows) < FEWEST:
        return False
    if is_learning(names) or any(_EXPLORES.search(words(name)) for name in names):
        return False
    counts = [count for row in rows if (count := whole(row.get(counter))) is not None]
    return len(counts) == len(rows) and all(b in (a, a + 1, counts[0]) for a, b in pairwise(counts))
