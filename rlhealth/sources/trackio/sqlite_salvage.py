"""What a damaged table still gives: ranges of ids are halved until what cannot be read is alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from rlhealth.sources.trackio.sqlite_copy import DAMAGE

BATCH = 2000  # ids at once
STATEMENTS = 5000  # that are spent on one table
NEWEST = (1 << 63) - 1


class Salvage:
    """Runs a statement over ranges of ids and passes over those that cannot be read.

    Args:
        statement: its first two parameters are the first and the last id of a range.
        keys: its other parameters.
        first, last: ids.

    Attributes:
        lost: ids that could not be read or were not tried, once the iteration has ended.
    """

    def __init__(
        self, connection: sqlite3.Connection, statement: str, keys: tuple[str, ...], first: int, last: int
    ) -> None:
        self._connection = connection
        self._statement = statement
        self._keys = keys
        self._first = first
        self._last = last
        self.lost = 0

    def __iter__(self) -> Iterator[list[tuple[Any, ...]]]:
        """Yields the rows of each range that can be read, in the order of ids."""
        end = min(self._last + 1, self._first + STATEMENTS * BATCH)
        waiting = [(low, min(low + BATCH, end) - 1) for low in range(self._first, end, BATCH)][::-1]
        self.lost += self._last + 1 - max(end, self._first)
        for _ in range(STATEMENTS):
            if not waiting:
                return
            low, high = waiting.pop()
            try:
                rows = self._connection.execute(self._statement, (low, high, *self._keys)).fetchall()
            except DAMAGE:
                if low == high:
                    self.lost += 1
                else:
                    middle = (low + high) // 2
                    waiting += [(middle + 1, high), (low, middle)]
                continue
            if rows:
                yield rows
        self.lost += sum(high - low + 1 for low, high in waiting)
