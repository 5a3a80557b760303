"""Tables of single steps in an environment, one per row: what was observed, what was done, what it earned. A data set,
or the trace of an episode, in which nothing is learned from row to row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlhealth.sources.rows.row_names import is_learning, words

TRANSITIONS = "step in an environment"  # what the rows of such a table count
_DONE_IN_IT = re.compile(r"(?:^|[/_])actions?(?:_type|_name|_idx|_id)?$")
_OBSERVED = re.compile(r"(?:^|_)(?:obs|observations?|next_obs|next_states?)(?:$|[/_])")
_ENDED = re.compile(r"(?:^|[/_])(?:done|dones|terminated|truncated|terminal)$")
_EXPLORES = re.compile(r"(?:^|_)(?:eps|epsilon|exploration)")


def are_transitions(rows: Sequence[Mapping[str, Any]], texts: Iterable[str]) -> bool:
    """Whether rows are single steps in an environment, by the names of their columns and of those in `texts`, which the
    rows lack: an action, and an observation or a flag that ends the episode, beside nothing about learning."""
    names = {name for row in rows for name in row} | {*texts}
    spelt = [words(name) for name in names]
    is_one = any(map(_DONE_IN_IT.search, spelt)) and any(
        _OBSERVED.search(name) is not None or _ENDED.search(name) is not None for name in spelt
    )
    return is_one and not is_learning(names) and not any(map(_EXPLORES.search, spelt))
