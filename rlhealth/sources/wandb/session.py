"""One wandb server, asked through the real SDK: runs, pages of history, stop and alert; every question is bounded in
time and asked again.
"""

from __future__ import annotations

import itertools
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.sources.wandb.address import CLOUD, Address
from rlhealth.sources.wandb.faults import AWAY, LOG_IN, as_rlhealth_error
from rlhealth.sources.wandb.one_host import proxies_for, stopped, unreached
from rlhealth.sources.wandb.pages import Pages, Row, asked, can_ask, scan
from rlhealth.sources.wandb.quiet import (
    bounded,
    key_for,
    load_settings,
    private_folder,
    private_folders,
    server_of_user,
    within,
)

T = TypeVar("T")
#: Seconds for which a look is tried before it is given up.
PATIENCE = 60.0
LARGEST_REQUIREMENTS = 1 << 20
MOST_RUNS = 10_000  # of a project
_sessions: dict[str, Session] = {}
_ALERT = """mutation NotifyScriptableRunAlert($entityName: String!, $projectName: String!, $runName: String!,
    $title: String!, $text: String!, $severity: AlertSeverity = INFO) {
    notifyScriptableRunAlert(input: {entityName: $entityName, projectName: $projectName, runName: $runName,
    title: $title, text: $text, severity: $severity}) { success } }"""


#: The SDK's own `update` sends the whole configuration back, which a run that continues may have changed.
_TAGS = """mutation UpsertBucket($id: String, $tags: [String!]) {
    upsertBucket(input: {id: $id, tags: $tags}) { bucket { id } } }"""


def session_for(address: Address, patience: float | None = PATIENCE) -> Session:
    """The session with the server of `address`, made on first use and shared; with `patience` None as it is.

    Raises:
        RlhealthError: if the address is on another host than the one that the key is for.
    """
    server = _base_url(address)
    session = _sessions.get(server)
    if session is None or patience not in (None, session.patience):
        session = _sessions[server] = Session(server, PATIENCE if patience is None else patience)
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
        self._given_up: tuple[float, Unavailable] | None = None
        self._asks_pages = False  # exported files are on another host, or too large

    def once(self, ask: Callable[[Any], T], place: str) -> T:
        """The answer of `ask(api)`, within `patience` seconds and one, so that the SDK may tell first what is wrong.

        Raises:
            Unavailable: if there was none, for a reason that may pass.
            RlhealthError: for one that will not (no key, no access, no such run).
        """
        try:
            return within(self.patience + 1, lambda: self._ask(ask))
        except TimeoutError as error:
            self._api = None  # whatever it still waits for is left to it
            raise as_rlhealth_error(error, place, self.secrets, unreached(self.server)) from None
        except Exception as error:
            raise as_rlhealth_error(error, place, self.secrets, unreached(self.server)) from None

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
                first = first or error  # later ones may only say that time ran out
                wait = pause * random.uniform(0.5, 1.5)  # noqa: S311 (scatters the retries of several watchers)
                if weary or time.monotonic() + wait > until:
                    self._given_up = self._given_up or (time.monotonic(), first)
                    raise first from None
                time.sleep(wait)
                pause = min(pause * 2, 15.0)

    def _gave_up_recently(self) -> bool:
        """Whether a request was given up just now, so that thirty runs do not wait thirty times for a server that is
        away.

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

        def fresh(api: Any) -> Any:
            api.flush()
            return api.run(address.path)

        return self.with_retries(lambda: self.once(fresh, str(address)))

    def runs(self, address: Address, *, last: int | None = None, state: str | None = None) -> list[Any]:
        """The SDK's objects of a project's runs, the newest first."""

        def listed(api: Any) -> list[Any]:
            found = api.runs(
                address.path,
                filters={"state": state} if state else None,
                order="-created_at",
                per_page=min(last or 50, 50),
            )
            return list(itertools.islice(found, last or MOST_RUNS + 1))

        there = self.with_retries(lambda: self.once(listed, str(address)))
        if last is None and len(there) > MOST_RUNS:
            raise RlhealthError(
                f"{address}: more than {MOST_RUNS:,} runs",
                hint="read the newest of them: --last 50",
                location=str(address),
            )
        return there

    def pages(
        self, hosted: Any, place: str, *, first: int, size: int, keys: Sequence[str] | None = None, fresh: bool = False
    ) -> Iterator[list[Row]]:
        """History rows from `_step` `first` on, complete, in lists of those that fall within `size` steps.

        Args:
            keys: only rows that have all of these, and of them only these.
            fresh: asks the server for its exported files again, of which it may have written newer ones.
        """
        before, came = stopped(self.server), False
        if not self._asks_pages:
            try:
                pages = Pages(self.once(lambda _: scan(hosted, first, size, keys, fresh), place), first, size)
                while rows := self.once(lambda _: pages.following(), place):
                    came = True
                    yield rows
                return
            except RlhealthError:
                self._asks_pages = stopped(self.server) > before and can_ask(hosted)
                if came or not self._asks_pages:
                    raise
        rest = asked(hosted, first, int(hosted.lastHistoryStep), size, keys, lambda: stopped(self.server))
        pages = Pages(rest, first, size)
        while rows := self.once(lambda _: pages.following(), place):
            yield rows

    def requirements(self, hosted: Any, place: str) -> str:
        """The text of the run's requirements.txt, the versions of its libraries; empty if there is none, or it
        cannot be had.
        """

        def fetch(_: Any) -> str:
            file = hosted.file("requirements.txt")
            if not 0 < int(file.size or 0) < LARGEST_REQUIREMENTS:
                return ""
            with (
                tempfile.TemporaryDirectory(dir=private_folder()) as folder,
                file.download(root=folder, replace=True) as text,
            ):
                return str(text.read(LARGEST_REQUIREMENTS))

        try:
            return self.once(fetch, place)
        except RlhealthError:
            return ""

    def stop(self, address: Address) -> None:
        """Asks the run to stop, as the button of the web page does."""
        hosted = self.run(address)
        if not hasattr(hosted, "stop"):
            raise RlhealthError(
                f"{address}: this version of wandb cannot stop a run",
                hint="pip install -U wandb",
                location=str(address),
            )
        self.once(lambda _: hosted.stop(), str(address))

    def alert(self, address: Address, title: str, text: str, level: str) -> None:
        """Sends an alert in the run's name; the SDK's own `alert` needs the process that logs, its transport does
        not.
        """
        given = {
            "entityName": address.entity,
            "projectName": address.project,
            "runName": address.run,
            "title": title,
            "text": text,
            "severity": level,
        }

        def send(api: Any) -> Any:
            with private_folders():
                return api.run(address.path)._service_api.execute_graphql(_ALERT, given)

        answer = self.once(send, str(address))
        if not (answer.get("notifyScriptableRunAlert") or {}).get("success"):
            raise RlhealthError(
                f"{address}: the alert was not accepted",
                hint="check that alerts are switched on for the project",
                location=str(address),
            )

    def write_back(self, address: Address, facts: Mapping[str, object], tag: str, page: Path) -> None:
        """Adds facts to the run's summary, puts `tag` in the place of others of its kind (`kind:…`), uploads a file."""
        hosted = self.run(address)
        others = [one for one in hosted.tags or [] if one.partition(":")[0] != tag.partition(":")[0]]

        def send(_: Any) -> None:
            for name in [name for name in hosted.summary.keys() if name.startswith(f"{tag.partition(':')[0]}/")]:  # noqa: SIM118 (no mapping)
                del hosted.summary[name]
            hosted.summary.update(dict(facts))
            hosted._service_api.execute_graphql(_TAGS, {"id": hosted.storage_id, "tags": [*others, tag]})
            hosted.upload_file(str(page), root=str(page.parent))

        self.once(send, str(address))

    def _ask(self, ask: Callable[[Any], T]) -> T:
        if self._api is None:
            self._api = self._log_in()
        with private_folders():
            return ask(self._api)

    def _log_in(self) -> Any:
        with private_folders():
            import wandb

            key = key_for(self.server)
            if key is None:
                raise RlhealthError(f"{self.server}: no key of wandb is configured", hint=LOG_IN, location=self.server)
            self.secrets = (key,)
            with bounded(wandb, self.patience):
                return wandb.Api(
                    overrides={"base_url": self.server, "_proxies": proxies_for(self.server)},
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
