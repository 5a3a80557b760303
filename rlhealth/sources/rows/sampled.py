"""Rows of single rollouts between the rows of steps: their mean is the step's, where the step itself tells no
reward."""

from __future__ import annotations

import re

from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed import PrintedRow
from rlhealth.sources.rows.row_names import has_step, is_log_name, words

_REWARD = re.compile(r"(?:^|[^a-z])(?:rewards?|rew|score|return|success|accuracy)(?:$|[^a-z])")


class Sampled:
    """Gathers rows of single rollouts, as a console printed them, until the row of a step comes.

    What no more than half of them tell stood in a text that was printed with one.

    Attributes:
        taken: rows whose mean was given to a step.
        left: rows that were gathered and given to none.
    """

    def __init__(self) -> None:
        self.taken = 0
        self.left = 0
        self._sums: dict[str, tuple[float, int]] = {}
        self._rows = 0

    def add(self, row: PrintedRow) -> None:
        """Gathers a row, if it tells a reward and belongs to no step itself."""
        held = {name: found for name, value in row.items() if _is_reward(name) and (found := number(value)) is not None}
        if not held or (has_step(row) and not row.names_sample):
            return
        self._rows += 1
        self.left += 1
        for name, value in held.items():
            total, count = self._sums.get(name, (0.0, 0))
            self._sums[name] = total + value, count + 1

    def into(self, row: PrintedRow) -> None:
        """Gives the means of what was gathered to the row of a step, unless it tells a reward of its own."""
        if not has_step(row):
            return
        if not any(_is_reward(name) for name in row):
            told = {name: total / count for name, (total, count) in self._sums.items() if 2 * count > self._rows}
            row.update({name: mean for name, mean in told.items() if name not in row})
            self.taken += self._rows
            self.left -= self._rows
        self._sums, self._rows = {}, 0


def _is_reward(name: str) -> bool:
    return is_log_name(name) and _REWARD.search(words(name)) is not None


def remarks(sampled: Sampled) -> list[str]:
    """What became of the rows of single rollouts, as sentences."""
    found = []
    if sampled.taken:
        found.append(f"{sampled.taken:,} rows of single rollouts were read as their mean at the next step")
    if sampled.left:
        found.append(f"{sampled.left:,} rows of single rollouts are no steps and were left out")
    return found
