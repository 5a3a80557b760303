"""Runs that wandb keeps online, finished or still running: the whole history, read once and then only what is new."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.run import Place, Run
from rlhealth.sources.base.values import training_config
from rlhealth.sources.wandb.address import Address, parse
from rlhealth.sources.wandb.faults import NotFound, scrub
from rlhealth.sources.wandb.history import History, is_needed, keys_of
from rlhealth.sources.wandb.session import PATIENCE, session_for

#: How wandb names the end of a run -> the exit code that it stands for. Any other state is that of a run that
#: continues.
ENDS = {"finished": 0, "failed": 1, "crashed": 1, "killed": 137, "preempted": 1}
STATES = ("running", "finished", "crashed", "failed", "killed", "pending", "preempted", "preempting")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)==(\S+)")
_VERSIONS = {"cli_version": "wandb", "python_version": "python", "huggingface_version": "transformers"}


class WandbReader:
    """Reads one run from wandb's server; each poll asks for the rows after the last one read, each row is taken once.

    Args:
        entity, project, run_id: the three parts of the run's path.
        patience: seconds for which a failing request is repeated before the poll gives up.
        wanted: which keys are needed at all; asked only of runs with thousands of keys.
        address: where it was found, if that says more than its path (the host).
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
    ) -> None:
        self.address = address or Address(entity, project, run_id)
        self.run = Run(run_id, Place("wandb", str(self.address)))
        self.patience = patience
        self.state = ""
        self._history = History(self.run, str(self.address), wanted)
        self._libraries: dict[str, str] = {}
        self._mark: object = None
        self._blind_since = float("nan")

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
        hosted = session.run(self.address)
        mark = (
            hosted.state,
            getattr(hosted, "heartbeatAt", None),
            getattr(hosted, "historyLineCount", None),
            keys_of(hosted)[1],
        )
        if mark == self._mark and None not in mark and not self._history.doubtful:
            return False
        first = self._mark is None
        self._describe(hosted)
        if first and not self._libraries:
            self._libraries = _libraries(session.requirements(hosted, str(self.address)))
            self.run.versions = {**self.run.versions, **self._libraries}
        new = session.with_retries(lambda: self._history.read(session, hosted), lambda: self._history.last_step)
        new = self._end(hosted) or new
        self._mark = mark
        return new or first

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
            found = session_for(project, self.patience).runs(project, last=50)
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
) -> list[WandbReader]:
    """A reader for the run at `address`, or for every run of the project, the newest first.

    Args:
        address: `wandb://entity/project[/run]`, `entity/project[/run]`, or the address of the page in the browser.
        last: of a project, only so many of its newest runs.
        state: of a project, only the runs in this state (running, finished, crashed, failed, killed).

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
    if named.run is not None:
        return [WandbReader(named.entity, named.project, named.run, patience=patience, wanted=wanted, address=named)]
    found = session.runs(named, last=last, state=state)
    if not found:
        which = f"no run that is {state}" if state else "no run yet"
        raise RlhealthError(
            f"{named}: the project has {which}",
            hint="leave the state away to read them all" if state else "",
            location=str(named),
        )
    readers = [
        WandbReader(
            named.entity, named.project, str(one.id), patience=patience, wanted=wanted, address=named.of(str(one.id))
        )
        for one in found
    ]
    for reader, one in zip(readers, found, strict=True):
        reader.run.name, reader.state = str(one.name or one.id), str(one.state)
    return readers


def stop_run(address: str, *, patience: float = PATIENCE) -> None:
    """Asks a run to stop, as the button of its web page does; the process that trains sees it at its next heartbeat.

    Raises:
        RlhealthError: if the address does not name one run, or the server does not do it.
    """
    named = _one(address)
    session_for(named, patience).stop(named)


def alert(address: str, title: str, text: str, level: str = "WARN", *, patience: float = PATIENCE) -> None:
    """Sends an alert in the run's name (by mail or Slack, as its owner has set it up); `level` is INFO, WARN or ERROR.

    Raises:
        RlhealthError: if the address does not name one run, or the server does not take it.
    """
    named = _one(address)
    session_for(named, patience).alert(named, title, text, level if level in ("INFO", "WARN", "ERROR") else "WARN")


def write_back(address: str, facts: Mapping[str, object], tag: str, page: Path, *, patience: float = PATIENCE) -> None:
    """Writes facts into a run's summary, a tag and a file, as its owner could on its page; nothing else is changed.

    Raises:
        RlhealthError: if the address does not name one run, or the server does not take it.
    """
    named = _one(address)
    session_for(named, patience).write_back(named, facts, tag, page)


def _one(address: str) -> Address:
    named = parse(address)
    if named.run is None:
        raise RlhealthError(
            f"{address}: this is a project, not a run", hint=f"name one run: {named.of('RUN')}", location=address
        )
    return named


def _newest(found: Iterable[Any], project: Address) -> str:
    ids = [str(one.id) for one in found][:3]
    return f"its newest runs are {', '.join(ids)}" if ids else f"{project} has no runs yet"


def _libraries(requirements: str) -> dict[str, str]:
    return {found[1].lower(): found[2] for line in requirements.splitlines() if (found := _REQUIREMENT.match(line))}


def _seconds(moment: object) -> float:
    """Seconds since 1970 of an ISO time, which is in UTC where it does not say; NaN if it is none."""
    try:
        return datetime.fromisoformat(f"{str(moment).removesuffix('Z')}+00:00").timestamp()
    except ValueError:
        return float("nan")
