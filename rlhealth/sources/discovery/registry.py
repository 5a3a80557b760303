"""The registry: which module reads each kind of log, and what `--source` accepts."""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from rlhealth.errors import RlhealthError

#: Kind of place -> the module that reads it, in the order in which they are preferred where one run is in several.
SOURCES: dict[str, str] = {
    "tensorboard": "rlhealth.sources.tensorboard.reader",
    "wandb": "rlhealth.sources.wandb.file",
    "wandb_export": "rlhealth.sources.wandb.exported",
    "trackio": "rlhealth.sources.trackio.reader",
    "swanlab": "rlhealth.sources.swanlab.reader",
    "mlflow": "rlhealth.sources.mlflow.reader",
    "dvclive": "rlhealth.sources.dvclive.reader",
    "trainer_state": "rlhealth.sources.rows.trainer_state",
    "jsonl": "rlhealth.sources.rows.table",
    "json": "rlhealth.sources.rows.table",
    "csv": "rlhealth.sources.rows.table",
    "console": "rlhealth.sources.rows.table",
    "notebook": "rlhealth.sources.notebooks.reader",
    "numpy": "rlhealth.sources.arrays.reader",
    "evaluations": "rlhealth.sources.evaluations.reader",
    "wandb-online": "rlhealth.sources.wandb.api",
}
#: What `--source` takes beside the kinds themselves.
TABLES = ("jsonl", "json", "csv", "console")
#: Logs that are text, which people copy: the very same numbers in two files are one run.
TEXTS = (*TABLES, "notebook")
#: Trackers that keep their runs in files of their own.
TRACKERS = ("tensorboard", "wandb", "wandb_export", "trackio", "swanlab", "mlflow", "dvclive")
GROUPS: dict[str, tuple[str, ...]] = {"table": TABLES}


def is_online(where: str) -> bool:
    """Whether a place is wandb's server, by its address: looking there costs the server something."""
    return where.startswith(("wandb://", "https://", "http://"))


def kinds_of(source: str | None) -> tuple[str, ...]:
    """The kinds of log that `--source` selects; all of them where it is not given. Raises RlhealthError for an
    unknown name.
    """
    if source is None:
        return tuple(SOURCES)
    kinds = GROUPS.get(source) or ((source,) if source in SOURCES else ())
    if not kinds:
        near = difflib.get_close_matches(source, [*SOURCES, *GROUPS], 1)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join([*SOURCES, *GROUPS])}"
        raise RlhealthError(f"--source {source}: no such source", hint=hint)
    return kinds


def source_module(kind: str) -> Any:
    """The module that reads a kind of log; raises RlhealthError where a package that it needs is not installed."""
    try:
        return importlib.import_module(SOURCES[kind])
    except ImportError as error:
        raise RlhealthError(
            f"{kind} cannot be read here: {error}", hint=f"install it: pip install {error.name or 'rlhealth'}"
        ) from error
