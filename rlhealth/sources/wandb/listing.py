"""The runs of a project, listed once for all readers, and requests about several runs at once."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import Future
from typing import Any

from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.sources.wandb.address import Address
from rlhealth.sources.wandb.faults import LIMITED
from rlhealth.sources.wandb.first_look import FirstLook, look_at
from rlhealth.sources.wandb.session import Session
from rlhealth.system.threads import begun

TOGETHER = 10  # runs that one question is about


class Listing:
    """The runs of a project: one request for the state and the settings of all, not one for each.

    Each list gives every run once, so that a repeated request gets it from a newer list.

    Args:
        last: only so many of the newest runs.
        state: only the runs in this state.
    """

    def __init__(self, address: Address, last: int | None = None, state: str | None = None) -> None:
        self.address = address
        self._last, self._state = last, state
        self._there: dict[str, Any] = {}
        self._whole = False
        self._listed: list[str] = []
        self._looks: dict[str, Future[dict[str, FirstLook]]] = {}
        self._number = 0  # of the list
        self._given: dict[str, int] = {}  # run -> the list from which it was last given
        self._asked = 0
        self._error: RlhealthError | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Listing, (self.address, self._last, self._state)

    def renew(self, session: Session) -> list[Any]:
        """Lists the runs as they are now, the newest first. Raises what `Session.runs` raises."""
        self._asked += 1
        try:
            found, self._whole = session.runs(self.address, last=self._last, state=self._state)
        except RlhealthError as error:
            self._error = error
            raise
        self._error = None
        self._listed = [str(one.id) for one in found]
        self._there = dict(zip(self._listed, found, strict=True)) if self._whole else {}
        self._number += 1
        return found

    def run(self, session: Session, run: str) -> Any:
        """The SDK's object of one run, newer than the one that was given before.

        Raises:
            RlhealthError: if the server does not say; all who wait for one list get the same error.
        """
        asked = self._asked
        with self._lock:
            if self._asked != asked and self._error is not None:
                raise copy.copy(self._error)
            if self._whole and self._given.get(run, 0) == self._number:
                self.renew(session)
            self._given[run] = self._number
            found = self._there.pop(run, None)
        return session.run(self.address.of(run)) if found is None else found

    def first_look(self, session: Session, hosted: Any, place: str) -> FirstLook:
        """What is requested about a run before its history, together with other runs of the list that need it too.

        Raises:
            Unavailable: if the server limits the rate of requests: the next call asks about all of them again.
            RlhealthError: if it does not answer for this run; a fault of another run does not count.
        """
        run = str(hosted.id)
        with self._lock:
            if run not in self._looks:
                others = [one for one in self._listed if one != run and one not in self._looks]
                together = [run, *others[: TOGETHER - 1]]
                asked = begun(lambda: dict(zip(together, look_at(session, hosted, together, place), strict=True)))
                self._looks |= dict.fromkeys(together, asked)
            asked = self._looks[run]
        try:
            return asked.result()[run]
        except RlhealthError as error:
            if isinstance(error, Unavailable) and error.reason == LIMITED:
                with self._lock:
                    self._looks = {one: look for one, look in self._looks.items() if look is not asked}
                raise
            return look_at(session, hosted, [run], place)[0]
