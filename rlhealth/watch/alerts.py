"""Alerts: a finding written into the tracker itself, where the team reads it. Only ever by `--alert-to`: nothing
else of rlhealth writes.
"""

from __future__ import annotations

from rlhealth.errors import RlhealthError
from rlhealth.verdict.findings import Severity
from rlhealth.verdict.verdicts import RunVerdict
from rlhealth.watch.actions import Action, letter
from rlhealth.watch.changes import Change

_LEVELS = {Severity.INFO: "INFO", Severity.WARNING: "WARN", Severity.CRITICAL: "ERROR"}


def alert_in(tracker: str) -> Action:
    """Writes an alert into `wandb` or `trackio`, into the run that the finding is about; what cleared is not an alert.

    Raises:
        RlhealthError: if Trackio is asked for and not installed.
    """
    if tracker == "trackio":
        return _trackio()

    def to_wandb(change: Change, run: RunVerdict) -> None:
        from rlhealth.sources.wandb.actions import alert  # late: heavy

        if change.kind == "cleared":
            return
        if run.run.place.kind != "wandb" or "://" not in run.run.place.location:
            raise RlhealthError(f"--alert-to wandb: {run.name} is not on a wandb server")
        title, text = letter(change, run)
        alert(run.run.place.location, title, text, _LEVELS[change.finding.severity])

    return to_wandb


def _trackio() -> Action:
    from rlhealth.publishing import trackio

    trackio.needed("--alert-to trackio")

    def to_trackio(change: Change, run: RunVerdict) -> None:
        if change.kind == "cleared":
            return
        if run.run.place.kind != "trackio":
            raise RlhealthError(f"--alert-to trackio: {run.name} is not in a Trackio project")
        title, text = letter(change, run)
        level = _LEVELS[change.finding.severity].lower()
        trackio.alert(run.run.place, run.name, title, text, level, change.step, "--alert-to trackio")

    return to_trackio
