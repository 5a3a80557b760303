"""Alerts: a finding written into the tracker itself, where the team reads it. Only ever by `--alert-to`: nothing
else of rlhealth writes.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.verdict.findings import RunVerdict, Severity
from rlhealth.watch.actions import Action, letter
from rlhealth.watch.changes import Change

_LEVELS = {Severity.INFO: "INFO", Severity.WARNING: "WARN", Severity.CRITICAL: "ERROR"}


def alert_in(tracker: str) -> Action:
    """Writes an alert into `wandb` or `trackio`, into the run that the finding is about; what cleared is not an alert.

    Raises:
        RlhealthError: where Trackio is asked for and not installed.
    """
    if tracker == "trackio":
        return _trackio()

    def to_wandb(change: Change, run: RunVerdict) -> None:
        from rlhealth.sources.wandb.api import alert  # late: heavy

        if change.kind == "cleared":
            return
        if run.run.place.kind != "wandb" or "://" not in run.run.place.location:
            raise RlhealthError(f"--alert-to wandb: {run.name} is not on a wandb server")
        title, text = letter(change, run)
        alert(run.run.place.location, title, text, _LEVELS[change.finding.severity])

    return to_wandb


def _trackio() -> Action:
    if importlib.util.find_spec("trackio") is None:
        raise RlhealthError("--alert-to trackio needs Trackio, which is not installed", hint="pip install trackio")

    def to_trackio(change: Change, run: RunVerdict) -> None:
        if change.kind == "cleared":
            return
        if run.run.place.kind != "trackio":
            raise RlhealthError(f"--alert-to trackio: {run.name} is not in a Trackio project")
        database, _, name = run.run.place.location.partition("#")
        folder = Path(database).parent
        os.environ.setdefault("TRACKIO_DIR", str(folder))  # Trackio reads it once, when it is imported
        from trackio.sqlite_storage import SQLiteStorage  # late: heavy
        from trackio.utils import TRACKIO_DIR

        if Path(TRACKIO_DIR).resolve() != folder.resolve():
            raise RlhealthError(
                f"--alert-to trackio: {database} is not in {TRACKIO_DIR}", hint=f"set TRACKIO_DIR={folder}"
            )
        title, text = letter(change, run)
        level = _LEVELS[change.finding.severity].lower()
        known = {str(one["name"]): one.get("id") for one in SQLiteStorage.get_run_records(Path(database).stem)}
        own = _run_in(list(known), name or run.name)
        SQLiteStorage.bulk_alert(
            Path(database).stem, own, [title], [text], [level], [change.finding.raised_step], run_id=known.get(own)
        )

    return to_trackio


def _run_in(known: list[str], name: str) -> str:
    """The run's own name in the database; reports may call it after its folder."""
    return next(
        (one for one in known if name == one or name.endswith(f"/{one}")), known[0] if len(known) == 1 else name
    )
