"""Actions: what a watch does when something changes, besides reporting it. Each is asked for by a flag; none can stop
or delay the watch.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.reports import words
from rlhealth.reports.json_report import one_finding
from rlhealth.reports.strict_json import strict
from rlhealth.system.process import users_environment
from rlhealth.verdict.verdicts import RunVerdict
from rlhealth.watch.changes import Change

COMMAND_TIMEOUT = 30.0  # seconds that a command of the user's may take
FAREWELL = 20.0  # seconds that are waited for the last actions when the watch ends
Action = Callable[[Change, RunVerdict], None]


def change_document(change: Change, run: RunVerdict, wall: float) -> dict[str, Any]:
    """A change as JSON for programs, schema rlhealth.change/1; the finding is that of the JSON report."""
    return {
        "schema": "rlhealth.change/1",
        "change": change.kind,
        "note": change.note,
        "time": datetime.fromtimestamp(wall, UTC).isoformat(timespec="seconds"),
        "run": run.name,
        "source": {"kind": run.run.place.kind, "location": run.run.place.location},
        "framework": run.translation.framework,
        "state": run.state,
        "verdict": run.verdict,
        "step": run.run.last_step,
        "incident": change.incident.as_json() if change.incident is not None else None,
        "finding": one_finding(change.finding),
    }


def argv(text: str, flag: str) -> list[str]:
    """A command as a list of words; no shell ever sees it.

    Raises:
        RlhealthError: for quotes that do not close, an empty command, or a program that there is not.
    """
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise RlhealthError(f"{flag} {text}: {error}", hint="close the quotes") from None
    if not parts:
        raise RlhealthError(f"{flag}: there is no command", hint=f"such as {flag} 'python tell.py'")
    if shutil.which(parts[0]) is None:
        hint = (
            "no shell is used, so that nothing in a log can become a command; for one of "
            "its words or pipes, name a script or: sh -c '…'"
        )
        raise RlhealthError(f"{flag} {text}: there is no program {parts[0]}", hint=hint)
    return parts


def run_command(
    command: Sequence[str], document: Mapping[str, Any], *, timeout: float = COMMAND_TIMEOUT, shown: bool = False
) -> None:
    """Runs a command with the document as JSON on its stdin, and the words of it that scripts ask for in its
    environment.

    Its output goes to stderr where `shown`, else nowhere. It is ended with all that it started when the time is up.

    Raises:
        RlhealthError: if it cannot be started, takes too long or fails.
    """
    text = json.dumps(strict(document), ensure_ascii=False, allow_nan=False, default=str)
    finding, incident = document.get("finding") or {}, document.get("incident") or {}
    said = {
        "RLHEALTH_CHANGE": document.get("change"),
        "RLHEALTH_RUN": document.get("run"),
        "RLHEALTH_INCIDENT": incident.get("number"),
        "RLHEALTH_RULE": finding.get("rule"),
        "RLHEALTH_SEVERITY": finding.get("severity"),
        "RLHEALTH_STEP": finding.get("raised_step"),
        "RLHEALTH_VERDICT": document.get("verdict"),
    }
    environment = users_environment() | {key: words.clean(value) for key, value in said.items() if value is not None}
    output = sys.stderr if shown and _has_file(sys.stderr) else subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise RlhealthError(f"{command[0]}: {error.strerror}", hint="check that it can be run") from None
    try:
        _, problems = process.communicate(text.encode(), timeout=timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        raise RlhealthError(
            f"{command[0]}: took longer than {timeout:.0f} s and was ended", hint="let it hand the work on and return"
        ) from None
    if process.returncode:
        last = problems.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise RlhealthError(f"{command[0]}: left with {process.returncode}" + (f": {last[0]}" if last else ""))


def _has_file(stream: Any) -> bool:
    try:
        return bool(stream.fileno() >= 0)
    except (OSError, ValueError, AttributeError):
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (OSError, AttributeError):
        process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):  # something it started may hold its pipes; it is left to them
        process.communicate(timeout=1)


def apprise_to(addresses: Sequence[str]) -> Action:
    """Notifies Slack, Discord, mail and the rest through apprise.

    Raises:
        RlhealthError: if apprise is not installed, or does not know an address. The address itself is not repeated:
            it holds secrets.
    """
    try:
        import apprise  # late: an extra, and slow to import
    except ImportError:
        raise RlhealthError(
            "--notify needs apprise, which is not installed", hint='pip install "rlhealth[notify]"'
        ) from None
    receiver = apprise.Apprise()
    for number, address in enumerate(addresses, 1):
        if not receiver.add(address):
            hint = (
                "such as slack://…, discord://…, mailto://…, json://host/path; "
                "https://appriseit.com/services lists them"
            )
            raise RlhealthError(
                f"--notify: address {number} ({address.partition(':')[0]}) is not one that apprise knows", hint=hint
            )
    kinds = {
        "cleared": apprise.NotifyType.SUCCESS,
        "critical": apprise.NotifyType.FAILURE,
        "warning": apprise.NotifyType.WARNING,
    }

    def notify(change: Change, run: RunVerdict) -> None:
        title, body = letter(change, run)
        kind = kinds.get(change.kind) or kinds.get(str(change.finding.severity), apprise.NotifyType.INFO)
        if not receiver.notify(title=title, body=body, notify_type=kind, body_format=apprise.NotifyFormat.TEXT):
            raise RlhealthError("--notify: not every address took the message")

    return notify


def letter(change: Change, run: RunVerdict) -> tuple[str, str]:
    """A change as a title and a text, for people."""
    one, part = change.finding, change.incident
    what = f"cause found: {one.title}" if change.kind == "explained" else f"{one.title} {change.kind}"
    title = words.clean(f"{run.name}: {what} ({one.severity})")
    others = [rule for rule in part.rules if rule != one.rule] if part is not None else []
    if change.kind == "cleared":
        begun, ended = (one.first_step, one.last_step) if part is None else (part.first_step, part.last_step)
        held = ", ".join([one.rule, *others])
        return title, words.clean(f"{held}: from step {begun} to {ended}. {change.note}").strip()
    advice = "\n".join(f"- {words.clean(line)}" for line in one.advice)
    since = words.since(one).replace(words.THIN, "")
    also = f"\nPart of it: {words.clean(', '.join(others))}." if others else ""
    return (
        title,
        (
            f"{words.clean(one.message)}\n{since[:1].upper()}{since[1:]}. Why it matters: "
            f"{words.clean(' '.join(one.why.split()))}{also}\n{advice}"
        ).strip(),
    )


class Actions:
    """Carries actions out one after another, beside the watch, and keeps what went wrong to be reported."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self.actions = list(actions)
        self.troubles: deque[str] = deque(maxlen=100)
        self._thread = ThreadPoolExecutor(1, "rlhealth-actions") if actions else None
        self._waiting: list[Future[None]] = []

    def take(self, change: Change, run: RunVerdict) -> None:
        """Runs every action for this change, soon."""
        for one in self.actions if self._thread is not None else ():
            self._waiting = [job for job in self._waiting if not job.done()]
            assert self._thread is not None
            self._waiting.append(self._thread.submit(self._do, one, change, run))

    def end(self) -> None:
        """Waits a while for running actions, and drops the rest."""
        if self._thread is not None:
            undone = wait(self._waiting, FAREWELL).not_done
            self._thread.shutdown(wait=False, cancel_futures=True)
            if undone:
                self.troubles.append(f"{len(undone)} actions were not done in time")

    def _do(self, action: Action, change: Change, run: RunVerdict) -> None:
        try:
            action(change, run)
        except RlhealthError as error:
            self.troubles.append(error.message)
        except Exception as error:  # whatever an action does, the watch continues
            self.troubles.append(f"{type(error).__name__}: {error}")
