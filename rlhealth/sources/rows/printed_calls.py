"""Rewards of single completions that a reward function prints, as R1-V and open-r1-multimodal write them to LOG_PATH:
`------------- 22-21-00-29-161451 Accuracy reward: 1.0 -------------`, with one time for all completions of a call."""

from __future__ import annotations

import re

from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed_lists import mean_and_spread

_LINE = re.compile(
    r"-{5,40} (?P<call>\d\d-\d\d-\d\d-\d\d-\d{6}) (?P<name>[A-Za-z][A-Za-z_ ]{0,40}) ?: ?(?P<value>\S{1,40}) -{5,40}\s*"
)

FEWEST = 8  # completions of a row, as many as a group has by default: a process may have one of them in a call


class CalledRewards:
    """Averages the rewards of whole calls, so many that a row is of `FEWEST` completions at least. Pass the lines in
    order: a row ends where another call begins, however many lines of text lie between its rewards.
    """

    def __init__(self) -> None:
        self._call = ("", "")
        self._rewards: list[float] = []

    def taken(self, line: str) -> tuple[bool, dict[str, float]]:
        """Whether the line is the reward of a completion, and the mean and spread of the row that it ends, by the name
        of its reward; empty if it ends none."""
        found = _LINE.fullmatch(line)
        value = number(found["value"]) if found is not None else None
        if found is None or value is None:
            return False, {}
        call, before = (found["call"], found["name"].strip()), self._call
        ended: dict[str, float] = {}
        if self._rewards and call != before and (len(self._rewards) >= FEWEST or call[1] != before[1]):
            mean, spread = mean_and_spread(self._rewards)
            ended, self._rewards = {f"{before[1]}/mean": mean, f"{before[1]}/std": spread}, []
        self._call = call
        self._rewards.append(value)
        return True, ended
