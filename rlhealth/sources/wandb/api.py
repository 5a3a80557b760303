"""Runs that wandb keeps online, finished or still running: the whole history, read once and then only what is new."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from datetime import datetime
from typing import Any

from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.run import Place, Run
from rlhealth.sources.base.values import training_config
from rlhealth.sources.wandb.address import Address, parse
from rlhealth.sources.wandb.faults import NotFound, scrub
from rlhealth.sources.wandb.first_look import FirstLook, libraries, look_at
from rlhealth.sources.wandb.history import History, is_needed
from rlhealth.sources.wandb.history_info import history_info
from rlhealth.sources.wandb.listing import Listing
from rlhealth.sources.wandb.session import PATIENCE, Session, session_for

#: How wandb names the end of a run -> the exit code that it stands for. Any other state is that of a run that
#: continues.
ENDS = {"finished": 0, "failed": 1, "crashed": 1, "killed": 137, "preempted": 1}
STATES = ("running", "finished", "crashed", "failed", "killed", "pending", "preempted", "preempting")
_VERSIONS = {"cli_version": "wandb", "python_version": "python", "huggingface_version": "transformers"}


class WandbReader:
    """Reads one run from wandb's server; each poll asks for the rows after the last one read, each row is taken once.

    Args:
        entity, project, run_id: the three parts of the run's path.
        patience: seconds for which a failing request is repeated before the poll gives up.
        wanted: which keys are needed at all; asked only of runs with thousands of keys.
        address: where it was found, if that says more than its path (the host).
        listing: the runs of its project, where it is read with others of them.
    """

    def __init__(
        self,
        entity: str,
        project: str,
        run_id: str,
        *,
        patience: float = PATIENCE,
        wanted: Callable[[str], bool] = is_needed,
        address: Address | None = None,
        listing: Listing | None = None,
    ) -> None:
        self.address = address or Address(entity, project, run_id)
        self.run = Run(run_id, Place("wandb", str(self.address)))
        self.patience = patience
        self.state = ""
        self._listing = listing
        self._hosted: Any = None
        self._history = History(self.run, str(self.address), wanted)
        self._libraries: dict[str, str] = {}
        self._mark: object = None
        self._blind_since = float("nan")

    @property
    def at_once(self) -> int:
        """How many such readers may be polled at the same time, each in a thread of its own: half as many again as
        requests, so that all turns are taken while some wait for one last answer or sort what came.
        """
        return -(-3 * session_for(self.address, None).turns.most // 2)

    def poll(self) -> bool:
        """Asks for what is new; True if anything was.

        Raises:
            Unavailable: if the server could not be asked now; what has been read stays, and the next poll continues
                from there.
            RlhealthError: for no key, no access, no such run, or a run that was deleted since.
        """
        try:
            new = self._look()
        except RlhealthError as error:
            raise self._blinded(error) from None
        except (
            Exception
        ) as error:  # the SDK reads some fields late, and raises what it likes where they are not as it expects
            raise RlhealthError(
                f"{self.address}: wandb's answer cannot be read: {scrub(str(error))[:200]}",
                hint="does the run's page open in a browser?",
                location=str(self.address),
            ) from None
        self._blind_since = float("nan")
        return new

    def _look(self) -> bool:
        session = session_for(self.address, self.patience)
        hosted = self._hosted = (
            session.run(self.address) if self._listing is None else self._listing.run(session, str(self.address.run))
        )
        mark = (
            hosted.state,
            getattr(hosted, "heartbeatAt", None),
            getattr(hosted, "historyLineCount", None),
            history_info(hosted).last,
        )
        if mark == self._mark and None not in mark and not self._history.doubtful:
            return False
        first = self._mark is None
        self._describe(hosted)
        versions = None
        if first:
            self._history.begin(session, hosted)
            versions = self._first_look(session, hosted)
        new = session.with_retries(lambda: self._history.read(session, hosted), lambda: self._history.last_step)
        if versions is not None:
            self._libraries = versions.result()
            self.run.versions = {**self.run.versions, **self._libraries}
        new = self._end(hosted) or new
        self._mark = mark
        return new or first

    def _first_look(self, session: Session, hosted: Any) -> Future[dict[str, str]] | None:
        """Asks what has to be known before the history; the versions of the libraries come while that is read."""
        if session.asks_pages and session.files_elsewhere:
            return None
        place = str(self.address)
        listing = self._listing

        def look() -> FirstLook:
            if listing is not None:
                return listing.first_look(session, hosted, place)
            return look_at(session, hosted, [hosted.id], place)[0]

        found = session.with_retries(look)
        self._history.exported = found.exported
        if found.requirements is None or self._libraries:
            return None
        return libraries(session, found.requirements, place)

    def _describe(self, hosted: Any) -> None:
        self.state = str(hosted.state)
        self.run.name = str(hosted.name or hosted.id)
        trainer = self.run.config.get("trainer_class")
        self.run.config = training_config(hosted.config)
        if trainer:
            self.run.config.setdefault("trainer_class", trainer)
        inner = hosted.rawconfig.get("_wandb")
        own = inner if isinstance(inner, Mapping) else {}
        self.run.versions = {
            **{name: str(own[key])[:100] for key, name in _VERSIONS.items() if own.get(key)},
            **self._libraries,
        }
        self.run.heartbeat = _seconds(getattr(hosted, "heartbeatAt", None))

    def _end(self, hosted: Any) -> bool:
        """How the run ended, and what its summary alone holds of the end."""
        self.run.exit_code = ENDS.get(self.state)
        self.run.clean = True if self.run.exit_code == 0 else False if self.run.exit_code else None
        note = (
            f"wandb says that the run {self.state}"
            if self.state in ("crashed", "failed")
            else f"wandb says that the run was {self.state}"
        )
        if self.run.exit_code and note not in self.run.notes:
            self.run.notes.append(note)
        summary = hosted.summary_metrics
        if not isinstance(summary, Mapping):
            said = f"wandb's summary of the run is a {type(summary).__name__}, not names with values: not read"
            self.run.notes += [said] if said not in self.run.notes else []
            summary = {}
        return self.run.exit_code is not None and self._history.end(dict(summary))

    def _blinded(self, error: RlhealthError) -> RlhealthError:
        seen = self._mark is not None
        if not isinstance(error, Unavailable):
            if seen and isinstance(error, NotFound):
                return RlhealthError(
                    f"{self.address}: the run is no longer there (deleted, or moved)", location=str(self.address)
                )
            if not seen:
                return self._with_neighbours(error)
            error = Unavailable(
                error.message, hint=error.hint, location=error.location, reason=error.message.partition(": ")[2]
            )
        if self._blind_since != self._blind_since:
            self._blind_since = time.time()
        error.since = self._blind_since
        return error

    def _with_neighbours(self, error: RlhealthError) -> RlhealthError:
        """Says which run of the project may be meant, where the one that was named is not there."""
        if not isinstance(error, NotFound):
            return error
        project = Address(self.address.entity, self.address.project, None, self.address.host, self.address.page)
        try:
            found, _ = session_for(project, self.patience).runs(project, last=50)
        except RlhealthError:
            hint = "check the entity and the project; a private project needs a key that has access"
            return RlhealthError(
                f"{project}: there is no such project, or the key has no access to it",
                hint=hint,
                location=error.location,
            )
        names = {str(one.id): one for one in found} | {str(one.name): one for one in found}
        near = difflib.get_close_matches(str(self.address.run), names, 1, 0.5)
        hint = (
            f"did you mean {project.of(str(names[near[0]].id))} ({names[near[0]].name})?"
            if near
            else _newest(found, project)
        )
        return RlhealthError(f"{self.address}: the project has no such run", hint=hint, location=error.location)


def find(
    address: str,
    *,
    last: int | None = None,
    state: str | None = None,
    patience: float = PATIENCE,
    wanted: Callable[[str], bool] = is_needed,
    at_once: int | None = None,
) -> list[WandbReader]:
    """A reader for the run at `address`, or for every run of the project, the newest first.

    Args:
        address: `wandb://entity/project[/run]`, `entity/project[/run]`, or the address of the page in the browser.
        last: of a project, only so many of its newest runs.
        state: of a project, only the runs in this state (running, finished, crashed, failed, killed).
        at_once: how many requests its server may get at the same time.

    Raises:
        RlhealthError: if the address is none, or the project cannot be read or has no such run.
    """
    if state is not None and state not in STATES:
        near = difflib.get_close_matches(state, STATES, 1)
        raise RlhealthError(
            f"{state}: no such state of a run",
            hint=f"did you mean {near[0]}?" if near else f"one of {', '.join(STATES)}",
            location=address,
        )
    if last is not None and last < 1:
        raise RlhealthError(
            f"{last}: not a number of runs",
            hint="name how many of the newest runs to read, such as 10",
            location=address,
        )
    named = parse(address)
    session = session_for(named, patience)
    if at_once is not None:
        session.turns.set_most(at_once)
    if named.run is not None:
        return [WandbReader(named.entity, named.project, named.run, patience=patience, wanted=wanted, address=named)]
    listing = Listing(named, last, state)
    found = listing.renew(session)
    if not found:
        which = f"no run that is {state}" if state else "no run yet"
        raise RlhealthError(
            f"{named}: the project has {which}",
            hint="omit --state to read all of them" if state else "",
            location=str(named),
        )
    readers = [
        WandbReader(
            named.entity,
            named.project,
            str(one.id),
            patience=patience,
            wanted=wanted,
            address=named.of(str(one.id)),
            listing=listing,
        )
        for one in found
    ]
    for reader, one in zip(readers, found, strict=True):
        reader.run.name, reader.state = str(one.name or one.id), str(one.state)
    return readers


def _newest(found: Iterable[Any], project: Address) -> str:
    ids = [str(one.id) for one in found][:3]
    return f"its newest runs are {', '.join(ids)}" if ids else f"{project} has no runs yet"


def _seconds(moment: object) -> float:
    """Seconds since 1970 of an ISO time, which is in UTC where it does not say; NaN if it is none."""
    try:
        return datetime.fromisoformat(f"{str(moment).removesuffix('Z')}+00:00").timestamp()
    except ValueError:
        return float("nan")
