"""Rewards of single completions that a reward function prints, as R1-V and open-r1-multimodal write them to LOG_PATH:
`------------- 22-21-00-29-161451 Accuracy reward: 1.0 -------------`, with one time for all completions of a call."""

from __future__ import annotations

import re

from rlhealth.sources.base.spelling import number

_LINE = re.compile(
    r"-{5,40} (?P<call>\d\d-\d\d-\d\d-\d\d-\d{6}) (?P<name>[A-Za-z][A-Za-z_ ]{0,40}) ?: ?(?P<value>\S{1,40}) -{5,40}\s*"
)


FEWEST = 8  # completions of a row, as many as a group has by default: a process may have one of them in a call


class CalledRewards:
    """Averages the rewards of whole calls, so many that a row is of `FEWEST` completions at least. Pass the lines in
    order.
    """

    def __init__(self) -> None:
        self._call: tuple[str, str] | None = None
        self._rewards: list[float] = []

    @property
    def is_open(self) -> bool:
        """Whether a row has begun, of which more completions may come."""
        return self._call is not None

    def taken(self, line: str) -> tuple[bool, dict[str, float]]:
        """Whether the line is the reward of a completion, and the row that it ends; empty if it ends none."""
        found = _LINE.fullmatch(line)
        value = number(found["value"]) if found is not None else None
        if found is None or value is None:
            return False, {}
        call = found["call"], found["name"].strip()
        is_whole = len(self._rewards) >= FEWEST or (self._call is not None and self._call[1] != call[1])
        ended = self.end() if call != self._call and is_whole else {}
        self._call = call
        self._rewards.append(value)
        return True, ended

    def end(self) -> dict[str, float]:
        """The mean of the row that has begun, by the name of its reward; empty if none has."""
        call, rewards = self._call, self._rewards
        self._call, self._rewards = None, []
        return {call[1]: sum(rewards) / len(rewards)} if call is not None else {}
