"""A row that pandas prints as a Series, as train-procgen-pytorch logs: lines of a name and a number, ended by
`Name: 0, dtype: float64`."""

from __future__ import annotations

import re

_PAIR = re.compile(
    r"(?P<name>[A-Za-z_]\S{0,60}(?: \S{1,60}){0,5}?) {2,80}(?P<value>[-+]?(?:\d[\d.]{0,30}(?:e[-+]\d{1,3})?|inf)|NaN)"
)
_END = re.compile(r"Name: [^\n]{1,60}, dtype: \w{1,20}")
MOST_PAIRS = 200


class PrintedSeries:
    """Finds such rows in lines that are passed in order."""

    def __init__(self) -> None:
        self._pairs: dict[str, str] = {}

    @property
    def is_open(self) -> bool:
        """Whether a row has begun."""
        return bool(self._pairs)

    def row(self, line: str) -> dict[str, str]:
        """The row that ends with this line; empty if none does."""
        pair = _PAIR.fullmatch(line) if "  " in line else None
        if pair is not None and len(self._pairs) < MOST_PAIRS:
            self._pairs[pair["name"]] = pair["value"]
            return {}
        found, self._pairs = self._pairs, {}
        return found if len(found) > 1 and _END.fullmatch(line) else {}
