"""Tables of a search over settings: each row is a run that was tried, and the table is no history of a run."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import groupby, pairwise

from rlhealth.sources.rows.row_names import words

LOOKED_AT = 50  # rows
FEWEST = 2  # settings that change to and fro
_COUNT = re.compile(
    r"(?:^|[_ ])(?:(?:time|global)?_?steps?|iter(?:ation)?|epoch|episode|update|rollout|game|t)(?:$|_?num)"
)
#: Settings that stay as they are for a whole run, and those that a schedule or a controller may move.
_FIXED = re.compile(
    r"(?:gamma|discount|tau|batch_size|buffer_size|memory_size|hidden(?:_size|_dim|_units|_layers)?|layers|units|gae_lambda"
    r"|n_steps|n_epochs|num_epochs|vf_coef|eps_decay|epsilon_decay|group_size|num_generations|dropout"
    r"|target_update(?:_freq|_interval)?)"
)
_MOVED = re.compile(
    r"(?:(?:actor_|critic_)?lr|learning_rate|clip(?:_range)?|ent(?:ropy)?_coef|beta|kl_coef|temperature)"
)


def is_search(lines: Sequence[str]) -> bool:
    """Whether a table has no column that counts steps from row to row, and several settings that go back to a value
    which they had before, one of which no run changes on its way."""
    try:
        heads, *rows = csv.reader(lines[: LOOKED_AT + 1], delimiter=max(",\t;|", key=lines[0].count))
    except (csv.Error, ValueError, IndexError):
        return False
    names = [_last_of(head) for head in heads]
    columns = dict(zip(names, zip(*(row for row in rows if len(row) == len(heads)), strict=True), strict=False))
    if any(_COUNT.search(name) and not _FIXED.fullmatch(name) and _rises(column) for name, column in columns.items()):
        return False
    tried = [name for name, column in columns.items() if _is_setting(name) and _returns(column)]
    return len(tried) >= FEWEST and any(map(_FIXED.fullmatch, tried))


def names_setting(head: str) -> bool:
    """Whether a column holds a setting of the training: `discount`, `learning rate`."""
    return _is_setting(_last_of(head))


def _is_setting(name: str) -> bool:
    return bool(_FIXED.fullmatch(name) or _MOVED.fullmatch(name))


def _last_of(head: str) -> str:
    return words(head).rpartition("/")[2]


def _rises(values: Sequence[str]) -> bool:
    """Whether numbers rise at half of their rows or more, and fall much seldomer: `warmup_steps` of several runs do
    not."""
    try:
        numbers = [float(value) for value in values if value]
    except ValueError:
        return True  # a count in other words
    rises = sum(one < after for one, after in pairwise(numbers))
    falls = sum(one > after for one, after in pairwise(numbers))
    return 2 * rises >= len(numbers) - 1 and rises >= 3 * falls


def _returns(values: Sequence[str]) -> bool:
    """Whether a value comes again after another one."""
    held = [value for value, _ in groupby(values)]
    return len(set(held)) < len(held)
