"""Tables of a search over settings: each row is a run that was tried, and the table is no history of a run."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import groupby

from rlhealth.sources.rows.row_names import words

LOOKED_AT = 50  # rows
FEWEST = 2  # settings that change to and fro
_COUNT = re.compile(
    r"(?:^|[_ ])(?:(?:time|global)?_?steps?|iter(?:ation)?|epoch|episode|update|rollout|game|t)(?:$|_?num)"
)
_SETTING = re.compile(
    r"^(?:config/|params?/|hparams?/)?(?:lr|learning_rate|actor_lr|critic_lr|gamma|discount|tau|batch_size|buffer_size"
    r"|memory_size|hidden(?:_size|_dim|_units|_layers)?|layers|units|gae_lambda|lambda|n_steps|n_epochs|num_epochs|clip"
    r"|clip_range|ent_coef|entropy_coef|vf_coef|eps_decay|epsilon_decay|beta|kl_coef|temperature|group_size"
    r"|num_generations|dropout|target_update(?:_freq|_interval)?)$"
)


def is_search(lines: Sequence[str]) -> bool:
    """Whether a table has no column that counts steps, and several settings that go back to a value which they had
    before: a schedule does not, and a run has one value of each."""
    try:
        heads, *rows = csv.reader(lines[: LOOKED_AT + 1], delimiter=max(",\t;|", key=lines[0].count))
    except (csv.Error, ValueError, IndexError):
        return False
    names = [words(head) for head in heads]
    if any(map(_COUNT.search, names)):
        return False
    whole = [row for row in rows if len(row) == len(heads)]
    tried = [[row[place] for row in whole] for place, name in enumerate(names) if _SETTING.match(name)]
    return sum(map(_returns, tried)) >= FEWEST


def _returns(values: Sequence[str]) -> bool:
    """Whether a value comes again after another one."""
    held = [value for value, _ in groupby(values)]
    return len(set(held)) < len(held)
