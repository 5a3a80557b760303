"""Rows of single rollouts between the rows of steps: their mean is used for a step whose own row has no reward."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from rlhealth.sources.base.counted import counted
from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed_row import PrintedRow
from rlhealth.sources.rows.row_names import has_step, is_learning, is_log_name, names_step, words

_REWARD = re.compile(r"(?:^|[^a-z])(?:rewards?|rew|score|return|success|accuracy)(?:$|[^a-z])")


class Sampled:
    """Collects printed rows of single rollouts until the row of a step arrives.

    A name in at most half of the rows comes from a text that was printed with one of them, and is left out.

    Attributes:
        taken: rows whose mean was added to a step.
        steps: how many steps got a mean.
        left: rows that were collected but added to no step.
    """

    def __init__(self) -> None:
        self.taken = 0
        self.steps = 0
        self.left = 0
        self._sums: dict[str, tuple[float, int]] = {}
        self._rows = 0
        self._step: dict[str, Any] | None = None  # the previous row of a step; None before the first
        self._come_after = False

    @property
    def is_empty(self) -> bool:
        """Whether no rows of single rollouts wait for their step."""
        return not self._rows

    def add(self, row: PrintedRow) -> PrintedRow | None:
        """Collects a row, if it has a reward and belongs to no step itself.

        Returns:
            What it adds to the previous step, if such rows follow their step rather than precede it.
        """
        held = {name: found for name, value in row.items() if _is_reward(name) and (found := number(value)) is not None}
        if not held or (has_step(row) and not row.names_sample):
            return None
        if not self._rows and not self.taken and self._step is not None:
            self._come_after = True
        self._rows += 1
        self.left += 1
        for name, value in held.items():
            total, count = self._sums.get(name, (0.0, 0))
            self._sums[name] = total + value, count + 1
        if not self._come_after or not self._step:
            return None
        self.taken += 1
        self.steps += self._rows == 1
        self.left -= 1
        return PrintedRow(self._step | self._means())

    def into(self, row: PrintedRow) -> None:
        """Adds the means of the collected rows to the row of a step, unless that row has a reward itself."""
        if not has_step(row) or not is_learning(row):  # settings are printed beside a count of steps too
            return
        if _name_reward(tuple(row)):
            self._step = {}
        else:
            self._step = {name: value for name, value in row.items() if names_step(name) or name == "total_steps"}
            if not self._come_after and self._rows:
                row.update({name: mean for name, mean in self._means().items() if name not in row})
                self.taken += self._rows
                self.steps += 1
                self.left -= self._rows
        self._sums, self._rows = {}, 0

    def _means(self) -> dict[str, float]:
        return {name: total / count for name, (total, count) in self._sums.items() if 2 * count > self._rows}


@lru_cache(maxsize=4096)
def _is_reward(name: str) -> bool:
    return is_log_name(name) and _REWARD.search(words(name)) is not None


@lru_cache(maxsize=64)
def _name_reward(names: tuple[str, ...]) -> bool:
    return any(map(_is_reward, names))


def remarks(sampled: Sampled) -> list[str]:
    """How the rows of single rollouts were used, as sentences."""
    found = []
    if sampled.taken > sampled.steps:  # one row beside each step is a line of that step
        rows = counted(sampled.taken, "row of a single rollout was", "rows of single rollouts were")
        found.append(f"{rows} read as the mean of their step")
    if sampled.left:
        rows = counted(
            sampled.left, "row of a single rollout is no step and was", "rows of single rollouts are no steps and were"
        )
        found.append(f"{rows} left out")
    return found
