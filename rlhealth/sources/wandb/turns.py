"""How many requests a server gets at once: a limit, halved where the server asks for fewer, and raised again slowly."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import NamedTuple

#: Requests under way at once, where the user has not said how many.
AT_ONCE = 20


class Turn(NamedTuple):
    """A request that is under way: its number among them, from 0, and when it began."""

    number: int
    began: float


class Turns:
    """A place among the requests that are under way: `with turns:` waits for one, until fewer than `allowed` are.

    Attributes:
        most: requests at once, at most.
        allowed: as many as the server may get now: half of them after each time that it limited their rate, and one
            more again after every `allowed` answers.
    """

    def __init__(self, most: int = AT_ONCE) -> None:
        self.most = self.allowed = most
        self._under_way: dict[int, Turn] = {}  # thread -> its turn
        self._answers = 0
        self._slowed_at = float("-inf")
        self._free = threading.Condition()

    def set_most(self, most: int) -> None:
        """Sets another limit, from now on."""
        with self._free:
            self.most = self.allowed = most
            self._free.notify_all()

    def __enter__(self) -> Turn:
        with self._free:
            self._free.wait_for(lambda: len(self._under_way) < self.allowed)
            taken = {one.number for one in self._under_way.values()}
            turn = Turn(next(number for number in range(len(taken) + 1) if number not in taken), time.monotonic())
            self._under_way[threading.get_ident()] = turn
            return turn

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._free:
            del self._under_way[threading.get_ident()]
            self._answers += kind is None
            if self._answers >= self.allowed:
                self.allowed, self._answers = min(self.most, self.allowed + 1), 0
            self._free.notify_all()

    def slow_down(self, began: float) -> None:
        """The server had too much to do for a request that began at that moment; those that were under way together
        count once.
        """
        with self._free:
            if began >= self._slowed_at:
                self.allowed, self._answers = max(1, self.allowed // 2), 0
                self._slowed_at = time.monotonic()
