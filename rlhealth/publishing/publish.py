"""Writes a verdict into the tracker that its run was read from: what is written, and where it goes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.publishing.published import PAGE, Published, published
from rlhealth.run import Place
from rlhealth.verdict.verdicts import RunVerdict


def publish(run: RunVerdict) -> str:
    """Writes the verdict into the tracker that the run was read from; returns where, in words.

    A run on a wandb server gets a summary, a tag and the page as a file; one in Trackio an alert and the page; one in
    TensorBoard a folder beside it. Logs are not changed.

    Raises:
        RlhealthError: if it cannot be written, or the run was read from files that no tracker shows.
    """
    place = run.run.place
    kind = f"{place.kind} online" if "://" in place.location and place.kind == "wandb" else place.kind
    into = _INTO.get(kind)
    if into is None:
        offline = "; `wandb sync` it first, then name it as wandb://entity/project/run" if place.kind == "wandb" else ""
        raise RlhealthError(
            f"{place.location}: nothing was written back: {place.kind} cannot show a verdict",
            hint=f"--write-back writes into wandb servers, Trackio and TensorBoard{offline}",
            location=place.location,
        )
    with tempfile.TemporaryDirectory(prefix="rlhealth-") as folder:
        return into(place, published(run, Path(folder)))


def _wandb(place: Place, report: Published) -> str:
    from rlhealth.sources.wandb.actions import write_back  # late: heavy

    write_back(place.location, report.facts, f"rlhealth:{report.verdict}", report.page)
    return f"{place.location}: summary, tag rlhealth:{report.verdict} and {PAGE}"


def _trackio(place: Place, report: Published) -> str:
    from rlhealth.publishing.trackio import write_back

    return write_back(place, report)


def _tensorboard(place: Place, report: Published) -> str:
    from rlhealth.publishing.tensorboard import write_back

    return write_back(place.file, report)


_INTO: dict[str, Callable[[Place, Published], str]] = {
    "wandb online": _wandb,
    "trackio": _trackio,
    "tensorboard": _tensorboard,
}
