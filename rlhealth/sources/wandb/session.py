"""One wandb server, queried through the real SDK: every request has a time limit and retries, and a limited number run
at once."""

from __future__ import annotations

import copy
import itertools
import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.sources.wandb.address import CLOUD, Address
from rlhealth.sources.wandb.faults import AWAY, LIMITED, LOG_IN, as_rlhealth_error
from rlhealth.sources.wandb.one_host import proxies_for, unreached
from rlhealth.sources.wandb.quiet import (
    bounded,
    key_for,
    load_settings,
    private_folders,
    server_of_user,
    within,
)
from rlhealth.sources.wandb.turns import Turns

T = TypeVar("T")
#: Seconds for which a request is retried before it is given up.
PATIENCE = 60.0
MOST_RUNS = 10_000  # of a project
MOST_WHOLE = 500  # of a project, up to which runs are listed with their settings and summaries
OF_A_LOGIN = 10  # requests that the SDK's service sends at once for one login; others wait in it
_sessions: dict[str, Session] = {}
_SETTINGS = threading.Lock()  # of the SDK, which one thread at a time changes


def session_for(address: Address, patience: float | None = PATIENCE) -> Session:
    """The session with the server of `address`, made on first use and shared; with `patience` None as it is.

    Raises:
        RlhealthError: if the address is on another host than the one that the key is for.
    """
    server = _base_url(address)
    session = _sessions.get(server)
    if session is None or patience not in (None, session.patience):
        before, session = session, Session(server, PATIENCE if patience is None else patience)
        if before is not None:  # another patience needs new logins; what is known of the server stays
            session.turns, session._runs, session.libraries = before.turns, before._runs, before.libraries
            session.asks_pages, session.files_elsewhere = before.asks_pages, before.files_elsewhere
        _sessions[server] = session
    return session


class _Login:
    """One login of the SDK, made on first use."""

    def __init__(self) -> None:
        self.api: Any = None
        self.lock = threading.Lock()


class Session:
    """One server and the key for it.

    Args:
        server: the base URL of wandb's API.
        patience: seconds for which a request is tried again before it is given up.
    """

    def __init__(self, server: str, patience: float = PATIENCE) -> None:
        self.server = server
        self.patience = patience
        self.secrets: tuple[str, ...] = ()
        self._logins: dict[int, _Login] = {}
        self._given_up: tuple[float, Unavailable] | None = None
        self._runs: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self.turns = Turns()
        self.asks_pages = False  # exported files are on another host, or too large
        self.files_elsewhere = False  # files of runs are on another host
        self.libraries: dict[str, Future[dict[str, str]]] = {}  # MD5 of a requirements.txt -> its versions
        self.lock = threading.Lock()  # of what several threads look up and add to

    def once(self, ask: Callable[[Any], T], place: str) -> T:
        """The result of `ask(api)`, within `patience` seconds plus one, so that the SDK can report its own error first.

        Raises:
            Unavailable: if there was none, for a reason that may pass.
            RlhealthError: for a permanent reason (no key, no access, no such run).
        """
        with self.turns.one(place) as turn:
            login = self._logins.setdefault(turn.number // OF_A_LOGIN, _Login())
            try:
                return within(self.patience + 1, lambda: self._ask(ask, login))
            except Exception as error:
                failure = as_rlhealth_error(error, place, self.secrets, unreached(self.server))
                if isinstance(error, TimeoutError):
                    login.api = None  # abandon whatever it still waits for
                if isinstance(error, TimeoutError) or (isinstance(failure, Unavailable) and failure.reason == LIMITED):
                    self.turns.slow_down(turn)
                raise failure from None

    def with_retries(self, ask: Callable[[], T], progress: Callable[[], object] = lambda: None) -> T:
        """Repeats `ask` while it raises Unavailable, with growing and scattered pauses, for `patience` seconds without
        `progress`.
        """
        until, done, pause = time.monotonic() + self.patience, progress(), min(0.5, self.patience / 20)
        first: Unavailable | None = None
        weary = self._gave_up_recently()
        while True:
            try:
                answer = ask()
                self._given_up = None
                return answer
            except Unavailable as error:
                if progress() != done:
                    until, done, pause = time.monotonic() + self.patience, progress(), min(0.5, self.patience / 20)
                    first = None
                first = first or error  # later errors may only say that time ran out
                wait = pause * random.uniform(0.5, 1.5)  # noqa: S311 (scatters the retries of several watchers)
                if weary or time.monotonic() + wait > until:
                    self._given_up = self._given_up or (time.monotonic(), first)
                    raise first from None
                time.sleep(wait)
                pause = min(pause * 2, 15.0)

    def _gave_up_recently(self) -> bool:
        """Whether a request was given up just now, so that thirty runs do not wait thirty times for a server that is
        down.

        Raises:
            Unavailable: at once, if that server could not even be reached.
        """
        if self._given_up is None:
            return False
        when, why = self._given_up
        if time.monotonic() - when > min(10.0, self.patience / 2):
            self._given_up = None
            return False
        if why.reason in AWAY:
            raise Unavailable(f"{self.server}: {why.reason}", hint=why.hint, location=self.server, reason=why.reason)
        return True

    def run(self, address: Address) -> Any:
        """The SDK's object of one run, as it is now."""
        hosted = self.with_retries(lambda: self.once(lambda api: api.run(address.path), str(address)))
        self._runs[address.path] = hosted
        return hosted

    def known_run(self, address: Address) -> Any:
        """The SDK's object of one run as last seen; requested again if no one holds it any more."""
        found = self._runs.get(address.path)
        return self.run(address) if found is None else found

    def runs(self, address: Address, *, last: int | None = None, state: str | None = None) -> tuple[list[Any], bool]:
        """The SDK's objects of a project's runs, the newest first, and whether they hold all that `run` would give:
        of very many only the names are asked for.
        """

        def listed(api: Any, *, whole: bool) -> Any:
            api.flush()
            return api.runs(
                address.path,
                filters={"state": state} if state else None,
                order="-created_at",
                per_page=min(last or 50, 50),
                lazy=not whole,
            )

        def ask(api: Any) -> tuple[list[Any], bool]:
            found = listed(api, whole=True)
            whole = min(len(found), last or MOST_RUNS) <= MOST_WHOLE
            found = found if whole else listed(api, whole=False)
            return list(itertools.islice(found, last or MOST_RUNS + 1)), whole

        there, whole = self.with_retries(lambda: self.once(ask, str(address)))
        if last is None and len(there) > MOST_RUNS:
            raise RlhealthError(
                f"{address}: more than {MOST_RUNS:,} runs",
                hint="read the newest of them: --last 50",
                location=str(address),
            )
        self._runs.update({address.of(str(one.id)).path: one for one in there} if whole else {})
        return there, whole

    def _ask(self, ask: Callable[[Any], T], login: _Login) -> T:
        with login.lock:
            if login.api is None:
                login.api = self._log_in()
            own = copy.copy(login.api)  # one login and its pool of connections, and for each thread …
        with private_folders():
            own.flush()  # … what was read of runs of its own, so that it is as new as the question
            return ask(own)

    def _log_in(self) -> Any:
        with private_folders():
            import wandb

            key = key_for(self.server)
            if key is None:
                raise RlhealthError(f"{self.server}: no key of wandb is configured", hint=LOG_IN, location=self.server)
            self.secrets = (key,)
            with _SETTINGS, bounded(wandb, self.patience):
                return wandb.Api(
                    # every path names its own entity; where none is set the SDK asks the server for the user's
                    overrides={"base_url": self.server, "_proxies": proxies_for(self.server), "entity": "-"},
                    timeout=max(1, int(self.patience)),
                    api_key=key or None,
                )


def _base_url(address: Address) -> str:
    with private_folders():
        load_settings()  # before anything else has the SDK load them, where it stands
    server = server_of_user()
    known = {_host(server), _host(os.environ.get("WANDB_APP_URL", ""))}
    if known & CLOUD:
        known |= CLOUD
    if address.host and address.host not in known:
        hint = (
            f"to read from there set WANDB_BASE_URL=https://{address.host}; a key is sent "
            f"only to the server that is set ({_host(server)})"
        )
        raise RlhealthError(
            f"{address}: this is not on the server of wandb that is set", hint=hint, location=str(address)
        )
    return server


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].lower()
