"""Trackio's own storage, through which `watch` writes alerts and `check` writes verdicts."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from rlhealth.publishing.published import Published
    from rlhealth.run import Place

LEVELS = {"critical": "error", "warning": "warn"}


def needed(flag: str) -> None:
    """Raises RlhealthError if Trackio is not installed."""
    if importlib.util.find_spec("trackio") is None:
        raise RlhealthError(f"{flag} needs Trackio, which is not installed", hint="pip install trackio")


def storage_of(database: str, flag: str) -> Any:
    """Trackio's storage of the folder that a database lies in.

    Raises:
        RlhealthError: if Trackio has been set to another folder.
    """
    folder = Path(database).resolve().parent
    os.environ.setdefault("TRACKIO_DIR", str(folder))  # Trackio reads it once, when it is imported
    from trackio.sqlite_storage import SQLiteStorage  # late: heavy
    from trackio.utils import TRACKIO_DIR

    if Path(TRACKIO_DIR).resolve() != folder:
        raise RlhealthError(f"{flag}: {database} is not in {TRACKIO_DIR}", hint=f"set TRACKIO_DIR={folder}")
    return SQLiteStorage


def alert(
    place: Place, run: str, title: str, text: str, level: str, step: int | None, flag: str, key: str | None = None
) -> str:
    """Writes an alert into the run of a project; one with the same `key` is written once. Returns the run's own
    name."""
    storage = storage_of(place.file, flag)
    project = Path(place.file).stem
    known = {str(one["name"]): one.get("id") for one in storage.get_run_records(project)}
    own = _run_in(list(known), place.part or run)
    keys = None if key is None else [key]
    storage.bulk_alert(project, own, [title], [text], [level], [step], alert_ids=keys, run_id=known.get(own))
    return own


def write_back(place: Place, report: Published) -> str:
    """Writes the verdict as an alert, and the page into the project's files.

    Raises:
        RlhealthError: if Trackio is not installed, or keeps its projects elsewhere.
    """
    needed("--write-back")
    key = hashlib.sha256(f"{place.location}\n{report.headline}".encode()).hexdigest()[:32]
    level = LEVELS.get(report.verdict, "info")
    own = alert(
        place=place,
        run=report.name,
        title=f"rlhealth: {report.headline}",
        text=report.markdown,
        level=level,
        step=report.first_step,
        flag="--write-back",
        key=key,
    )
    import trackio  # after `alert` has named the folder

    project = Path(place.file).stem
    name = f"rlhealth-{''.join(one if one.isalnum() or one in '-_.' else '-' for one in own)[:100]}.html"
    page = report.page.with_name(name)
    shutil.copyfile(report.page, page)
    with contextlib.redirect_stdout(sys.stderr):
        trackio.save(page, project=project)
    return f"{place.location}: an alert, and {name} among the project's files"


def _run_in(known: list[str], name: str) -> str:
    """The run's own name in the database; reports may call it after its folder."""
    return next(
        (one for one in known if name == one or name.endswith(f"/{one}")), known[0] if len(known) == 1 else name
    )
