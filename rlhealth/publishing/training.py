"""Writes a verdict from inside the training process into the trackers that it logs to; used by the callback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.publishing.published import Published, published
from rlhealth.run import Place
from rlhealth.verdict.verdicts import RunVerdict


def publish_here(run: RunVerdict, folder: Path, trackers: Iterable[str], project: str, name: str) -> list[str]:
    """Writes the verdict into each tracker that this process logs to; returns where, in words.

    Args:
        folder: the trainer's output folder; the page stays there, for wandb to upload.
        trackers: what the trainer reports to, such as wandb, trackio and tensorboard.
        project, name: of the run in Trackio.

    Raises:
        RlhealthError: if one of them cannot be written to.
    """
    report = published(run, folder)
    reporting = set(trackers)
    written = []
    if "wandb" in reporting and getattr(sys.modules.get("wandb"), "run", None) is not None:
        written.append(_wandb(sys.modules["wandb"], report))
    if "tensorboard" in reporting:
        written += _tensorboard(folder, report)
    if "trackio" in reporting and "trackio" in sys.modules:
        written.append(_trackio(report, project, name))
    return written


def _wandb(wandb: Any, report: Published) -> str:
    run = wandb.run
    for key in [key for key in run.summary.keys() if key.startswith("rlhealth/")]:  # noqa: SIM118 (no mapping)
        del run.summary[key]
    run.summary.update(report.facts)
    run.tags = (*(one for one in run.tags or () if not one.startswith("rlhealth:")), f"rlhealth:{report.verdict}")
    run.save(str(report.page), base_path=str(report.page.parent), policy="now")
    return f"wandb run {run.id}"


def _tensorboard(folder: Path, report: Published) -> list[str]:
    """Writes beside the event files below the output folder that this process writes."""
    from rlhealth.publishing.tensorboard import write_back

    own = {one.parent for one in folder.rglob(f"events.out.tfevents.*.{os.getpid()}.*") if ".rlhealth" not in str(one)}
    own = {
        one for one in own if not any(one != other and one.is_relative_to(other) for other in own)
    }  # hparams of a run
    return [write_back(str(one), report) for one in sorted(own)]


def _trackio(report: Published, project: str, name: str) -> str:
    from rlhealth.publishing.trackio import write_back

    try:
        from trackio.sqlite_storage import SQLiteStorage  # the copy that logs

        database = SQLiteStorage.get_project_db_path(project)
    except (ImportError, AttributeError, ValueError) as error:
        raise RlhealthError(f"Trackio: {error}", hint="rlhealth check trackio://project/run --write-back") from None
    return write_back(Place("trackio", str(database), name), report)
