"""MLflow: which runs there are in folders and databases, and a reader for each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.candidates import kind_by_bytes
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.mlflow.database import Database, MlflowRun, is_mlflow
from rlhealth.sources.mlflow.folder import KIND, MlflowFolder

__all__ = ["find", "is_mlflow", "readers"]

MOST_PARTS = 3  # of a metric's name, of which all but the last are folders: eval/reward/mean


def find(path: Path) -> list[Reader]:
    """A reader for every run in a database, or for the run of a `meta.yaml` or of a metric's file.

    Raises:
        RlhealthError: if it cannot be read, or holds no run.
    """
    found = _readers(_run_of(path))
    if not found:
        hint = "a run of MLflow is a folder with meta.yaml and metrics/, or a row in its database"
        raise RlhealthError(f"{path}: no run in it", hint=hint, location=str(path))
    return found


def readers(files: Iterable[Path], root: Path) -> list[Reader]:
    """Readers for the runs among files that were come across."""
    return [reader for path in dict.fromkeys(map(_run_of, files)) for reader in _readers(path)]


def _run_of(path: Path) -> Path:
    """The file or folder that stands for the run of a file: of a metric, the `meta.yaml` of its run, or the folder of
    its metrics where somebody copied nothing else."""
    if path.name == "meta.yaml" or path.is_dir() or kind_by_bytes(path) != KIND:
        return path
    near = path.parents[:MOST_PARTS]
    metrics = next((folder for folder in near if folder.name == "metrics"), path.parent)
    meta = metrics.parent / "meta.yaml"
    return meta if meta.is_file() and metrics.name == "metrics" else metrics


def _readers(path: Path) -> list[Reader]:
    if path.is_dir():
        return [MlflowFolder(path.parent if path.name == "metrics" else path, path)]
    if path.name == "meta.yaml":
        metrics = path.parent / "metrics"
        return [MlflowFolder(path.parent, metrics)] if metrics.is_dir() else []
    database = Database(path)
    return [MlflowRun(database, *one) for one in database.runs()]
