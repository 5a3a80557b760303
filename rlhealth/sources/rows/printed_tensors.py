"""Rewards of one batch that are printed as a tensor beside other numbers, `time: 7.2s  rewards: tensor([1.0, -1.0])`,
on one line or, as PyTorch breaks them, on several."""

from __future__ import annotations

import re

from rlhealth.sources.rows.printed_lists import mean_and_spread, numbers_in

OPENS = "tensor(["
MOST_LINES = 64  # of one tensor
LONGEST = 100_000  # characters of one tensor
_END = r"\](?:, \w{1,20}=[^()\n]{1,40})*\)"  # with the type, the device or the gradient's function
_REWARDS = re.compile(
    rf"(?P<name>(?:\w{{1,20}}_)?(?:rewards?|scores?))\s?[:=]\s?tensor\(\[(?P<values>[^\[\]()]{{3,{LONGEST}}}){_END}",
    re.IGNORECASE,
)
_NUMBERS = re.compile(rf"[\s\d.,eE+naif-]*(?:{_END}.*)?")


class BrokenTensors:
    """Joins the lines of a tensor that PyTorch broke. Pass the lines in order."""

    def __init__(self) -> None:
        self._held: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether a tensor has begun and not yet ended."""
        return bool(self._held)

    def joined(self, text: str) -> str | None:
        """The line, or all lines of the tensor that ends with it; None while one has begun and not yet ended."""
        if self._held:
            is_part = len(self._held) < MOST_LINES and len(text) < LONGEST // MOST_LINES and _NUMBERS.fullmatch(text)
            if not is_part:
                self._held = []
                return self.joined(text)
            self._held.append(text.strip())
            if "]" not in text:
                return None
            whole, self._held = " ".join(self._held), []
            return whole
        if OPENS in text and "]" not in text[text.rindex(OPENS) :]:
            self._held = [text]
            return None
        return text


def rewards_in(text: str) -> dict[str, float]:
    """The mean and the standard deviation of the rewards on a line, by the name that the line gives them; empty if
    there are none."""
    listed = _REWARDS.search(text)
    values = numbers_in(listed["values"]) if listed else []
    if listed is None or not values:
        return {}
    mean, spread = mean_and_spread(values)
    return {f"{listed['name']}/mean": mean, f"{listed['name']}/std": spread}
