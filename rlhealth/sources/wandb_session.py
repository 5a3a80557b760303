"""The wandb SDK, kept quiet, bounded in time and away from your folders; the only module that imports it."""

from __future__ import annotations

import itertools
import math
import os
import queue
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from rlhealth.errors import Blind, RlhealthError
from rlhealth.sources.wandb_address import CLOUD, Address
from rlhealth.sources.wandb_faults import LOG_IN, scrub, told

T = TypeVar("T")
Row = dict[str, Any]
#: Seconds for which a look is tried before it is given up.
PATIENCE = 60.0
LARGEST_REQUIREMENTS = 1 << 20
_LOCK = threading.Lock()
_sessions: dict[str, Session] = {}
_elsewhere: list[tempfile.TemporaryDirectory[str]] = []
_inside: list[int] = []
_before: dict[str, str | None] = {}
_ALERT = """mutation NotifyScriptableRunAlert($entityName: String!, $projectName: String!, $runName: String!, $title: String!, $text: String!,
    $severity: AlertSeverity = INFO) { notifyScriptableRunAlert(input: {entityName: $entityName, projectName: $projectName, runName: $runName,
    title: $title, text: $text, severity: $severity}) { success } }"""


def session_for(address: Address, patience: float = PATIENCE) -> Session:
    """The session with the server that keeps `address`, made on first use and shared by its runs.

    Raises:
        RlhealthError: if the address is on another host than the one that the key is for.
    """
    server = _base_url(address)
    session = _sessions.get(server)
    if session is None or session.patience != patience:
        session = _sessions[server] = Session(server, patience)
    return session


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
        self._api: Any = None

    def once(self, ask: Callable[[Any], T], place: str) -> T:
        """The answer of `ask(api)`, within `patience` seconds.

        Raises:
            Blind: if there was none, for a reason that may pass.
            RlhealthError: for one that will not (no key, no access, no such run).
        """
        try:
            return _within(self.patience, lambda: self._ask(ask))
        except TimeoutError as error:
            self._api = None  # whatever it still waits for is left to it
            raise told(error, place, self.secrets) from None
        except Exception as error:
            raise told(error, place, self.secrets) from None

    def patiently(self, ask: Callable[[], T], progress: Callable[[], object] = lambda: None) -> T:
        """Repeats `ask` while it raises Blind, with growing and scattered pauses, for `patience` seconds without `progress`."""
        until, done, pause = time.monotonic() + self.patience, progress(), min(1.0, self.patience / 10)
        while True:
            try:
                return ask()
            except Blind:
                if progress() != done:
                    until, done, pause = time.monotonic() + self.patience, progress(), min(1.0, self.patience / 10)
                wait = pause * random.uniform(0.5, 1.5)  # noqa: S311 (scatters the retries of several watchers)
                if time.monotonic() + wait > until:
                    raise
                time.sleep(wait)
                pause = min(pause * 2, 15.0)

    def run(self, address: Address) -> Any:
        """The SDK's object of one run, as it is now."""

        def fresh(api: Any) -> Any:
            api.flush()
            return api.run(address.path)

        return self.patiently(lambda: self.once(fresh, str(address)))

    def runs(self, address: Address, *, last: int | None = None, state: str | None = None) -> list[Any]:
        """The SDK's objects of a project's runs, the newest first."""

        def listed(api: Any) -> list[Any]:
            found = api.runs(address.path, filters={"state": state} if state else None, order="-created_at", per_page=min(last or 50, 50))
            return list(itertools.islice(found, last))

        return self.patiently(lambda: self.once(listed, str(address)))

    def pages(self, hosted: Any, place: str, *, first: int, size: int, keys: Sequence[str] | None = None, fresh: bool = False) -> Iterator[list[Row]]:
        """History rows from `_step` `first` on, complete, in lists of those that fall within `size` steps.

        Args:
            keys: only rows that have all of these, and of them only these.
            fresh: asks the server for its exported files again, of which it may have written newer ones.
        """
        found = self.once(lambda _: _scan(hosted, first, size, keys, fresh), place)
        pages = itertools.groupby(found, key=lambda row: (step_of(row) - first) // size)

        def following() -> list[Row] | None:
            page = next(pages, None)
            return None if page is None else list(page[1])

        while (rows := self.once(lambda _: following(), place)) is not None:
            yield rows

    def requirements(self, hosted: Any, place: str) -> str:
        """The text of the run's requirements.txt, the versions of its libraries; empty where there is none, or it cannot be had."""

        def fetch(_: Any) -> str:
            file = hosted.file("requirements.txt")
            if not 0 < int(file.size or 0) < LARGEST_REQUIREMENTS:
                return ""
            with tempfile.TemporaryDirectory(dir=_elsewhere[0].name) as folder, file.download(root=folder, replace=True) as text:
                return str(text.read())

        try:
            return self.once(fetch, place)
        except RlhealthError:
            return ""

    def stop(self, address: Address) -> None:
        """Asks the run to stop, as the button of the web page does."""
        hosted = self.run(address)
        if not hasattr(hosted, "stop"):
            raise RlhealthError(f"{address}: this version of wandb cannot stop a run", hint="pip install -U wandb", location=str(address))
        self.once(lambda _: hosted.stop(), str(address))

    def alert(self, address: Address, title: str, text: str, level: str) -> None:
        """Sends an alert in the run's name; the SDK's own `alert` needs the process that logs, its transport does not."""
        given = {"entityName": address.entity, "projectName": address.project, "runName": address.run, "title": title, "text": text, "severity": level}

        def send(api: Any) -> Any:
            with _private_folders():
                return api.run(address.path)._service_api.execute_graphql(_ALERT, given)

        answer = self.once(send, str(address))
        if not (answer.get("notifyScriptableRunAlert") or {}).get("success"):
            raise RlhealthError(f"{address}: the alert was not accepted", hint="check that alerts are switched on for the project", location=str(address))

    def _ask(self, ask: Callable[[Any], T]) -> T:
        if self._api is None:
            self._api = self._log_in()
        with _private_folders():
            return ask(self._api)

    def _log_in(self) -> Any:
        with _private_folders():
            import wandb

            key = _key(self.server)
            if key is None:
                raise RlhealthError(f"{self.server}: no key of wandb is configured", hint=LOG_IN, location=self.server)
            self.secrets = (key,)
            with _bounded(wandb, self.patience):
                return wandb.Api(overrides={"base_url": self.server}, timeout=max(1, int(self.patience)))


def _scan(hosted: Any, first: int, size: int, keys: Sequence[str] | None, fresh: bool) -> Any:
    given: dict[str, Any] = {"page_size": size, "min_step": first}
    if keys:
        given["keys"] = list(keys)
    try:
        return iter(hosted.scan_history(**given, use_cache=not fresh))
    except TypeError:  # a version without exported files
        return iter(hosted.scan_history(**given))


def step_of(row: Row) -> int:
    """wandb's own count of the row."""
    found = row.get("_step")
    return int(found) if isinstance(found, int | float) else 0


def _base_url(address: Address) -> str:
    import wandb

    with _private_folders():
        settings = wandb.setup().settings
    server = (os.environ.get("WANDB_BASE_URL") or str(settings.base_url)).rstrip("/")
    known = {_host(server), _host(str(settings.app_url))}
    if known & CLOUD:
        known |= CLOUD
    if address.host and address.host not in known:
        hint = f"to read from there set WANDB_BASE_URL=https://{address.host}; a key is sent only to the server that is set ({_host(server)})"
        raise RlhealthError(f"{address}: this is not on the server of wandb that is set", hint=hint, location=str(address))
    return server


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].lower()


def _key(server: str) -> str | None:
    """The key for the server from the environment, .netrc or wandb's settings; "" for a token file; None where there is none. Never asks."""
    try:
        from wandb.sdk.lib import wbauth

        found = wbauth.authenticate_session(host=server, source="rlhealth", prompt=False, update_session=False)
    except (ImportError, TypeError):  # an older wandb
        import wandb

        return wandb.api.api_key or None
    except Exception as error:
        raise RlhealthError(f"{server}: the key of wandb cannot be used: {scrub(str(error))}", hint=LOG_IN, location=server) from None
    return None if found is None else getattr(found, "api_key", "")


@contextmanager
def _bounded(wandb: Any, patience: float) -> Iterator[None]:
    """Bounds the SDK's own waiting for the session that is made meanwhile, and for no other one in this process.

    The SDK repeats a request after 1, 2, 4 … seconds, or when a `Retry-After` says; a third of the patience is left to that.
    """
    settings = wandb.setup().settings
    wanted = {
        "x_graphql_retry_max": int(math.log2(patience / 3 + 1)),
        "x_graphql_timeout_seconds": max(1.0, min(20.0, patience / 2)),
        "x_graphql_retry_wait_max_seconds": 10.0,
    }
    before = {name: getattr(settings, name) for name in wanted if hasattr(settings, name)}
    try:
        for name in before:
            setattr(settings, name, wanted[name])
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)


@contextmanager
def _private_folders() -> Iterator[None]:
    """The SDK makes folders for what it caches and logs: of its own, gone when this process ends.

    A look that was given up may still be in here; what the environment was before is put back when the last one leaves.
    """
    with _LOCK:
        if not _elsewhere:
            _elsewhere.append(tempfile.TemporaryDirectory(prefix="rlhealth-wandb-", ignore_cleanup_errors=True))
        if not _inside:
            folder = _elsewhere[0].name
            wanted = {"WANDB_DIR": folder, "WANDB_CACHE_DIR": folder, "XDG_CACHE_HOME": folder, "WANDB_ERROR_REPORTING": "false"}
            _before.update({name: os.environ.get(name) for name in wanted})
            os.environ.update(wanted)
        _inside.append(1)
    try:
        yield
    finally:
        with _LOCK:
            _inside.pop()
            if not _inside:
                for name, value in _before.items():
                    if value is None:
                        os.environ.pop(name, None)
                    else:
                        os.environ[name] = value


def _within(seconds: float, ask: Callable[[], T]) -> T:
    """The answer of `ask`, which runs in a thread of its own: some calls of the SDK have no time-out.

    Raises:
        TimeoutError: if there was none within so many seconds; the thread is left to itself.
    """
    answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:
            answers.put((None, error))

    threading.Thread(target=work, daemon=True, name="wandb").start()
    try:
        answer, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:.0f} seconds") from None
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]
