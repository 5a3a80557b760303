"""How many requests a server gets at once: a limit that is halved when the server asks for fewer, and raised again
slowly."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

#: Requests under way at once, where the user has not said how many.
AT_ONCE = 20


class Turn(NamedTuple):
    """A request that is under way: its number among them, from 0, and when it began."""

    number: int
    began: float


class Turns:
    """Gives requests their turn so that at most `allowed` are under way. Places have priority in the order of their
    first request: in a sweep, runs already begun are read to their end and judged while others are still loading.

    Attributes:
        most: requests at once, at most.
        allowed: as many as the server may get now: half of them after each time that it limited their rate, and one
            more again after every `allowed` answers.
    """

    def __init__(self, most: int = AT_ONCE) -> None:
        self.most = self.allowed = most
        self._taken: set[int] = set()
        self._waiting: list[_Waiting] = []
        self._places: dict[str, int] = {}
        self._answers = 0
        self._slowed_at = float("-inf")
        self._lock = threading.Lock()

    def set_most(self, most: int) -> None:
        """Sets another limit, from now on."""
        with self._lock:
            self.most = self.allowed = most
            self._give()

    @contextmanager
    def one(self, place: str) -> Iterator[Turn]:
        """Waits for a turn to ask about a place, such as a run; it lasts as long as the context."""
        with self._lock:
            mine = _Waiting(self._places.setdefault(place, len(self._places)))
            self._waiting.append(mine)
            self._give()
        answered = False
        try:
            mine.given.wait()
            assert mine.turn is not None
            yield mine.turn
            answered = True
        finally:
            with self._lock:
                if mine.turn is None:  # interrupted while it waited
                    self._waiting.remove(mine)
                else:
                    self._taken.remove(mine.turn.number)
                self._count(answered)
                self._give()

    def slow_down(self, turn: Turn) -> None:
        """The server limited the rate of this request; requests that were under way together count once."""
        with self._lock:
            if turn.began >= self._slowed_at:
                self.allowed, self._answers = max(1, self.allowed // 2), 0
                self._slowed_at = time.monotonic()

    def _give(self) -> None:
        while self._waiting and len(self._taken) < self.allowed:
            number = next(number for number in range(self.allowed) if number not in self._taken)
            self._taken.add(number)
            first = min(self._waiting, key=lambda one: one.place)  # of several of one place the first
            self._waiting.remove(first)
            first.turn = Turn(number, time.monotonic())
            first.given.set()

    def _count(self, answered: bool) -> None:
        self._answers += answered
        if self._answers >= self.allowed:
            self.allowed, self._answers = min(self.most, self.allowed + 1), 0


class _Waiting:
    def __init__(self, place: int) -> None:
        self.place = place
        self.given = threading.Event()
        self.turn: Turn | None = None
