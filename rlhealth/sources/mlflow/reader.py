"""MLflow: which runs there are in folders and databases, and a reader for each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.mlflow.database import Database, MlflowRun, is_mlflow
from rlhealth.sources.mlflow.folder import MlflowFolder

__all__ = ["find", "is_mlflow", "readers"]


def find(path: Path) -> list[Reader]:
    """A reader for every run in a database, or for the run of a `meta.yaml`.

    Raises:
        RlhealthError: if it cannot be read, or holds no run.
    """
    errors: list[RlhealthError] = []
    found = _readers(path)
    if not found:
        hint = "a run of MLflow is a folder with meta.yaml and metrics/, or a row in its database"
        raise errors[0] if errors else RlhealthError(f"{path}: no run in it", hint=hint, location=str(path))
    return found


def readers(files: Iterable[Path], root: Path) -> list[Reader]:
    """Readers for the runs among files that were come across."""
    return [reader for path in files for reader in _readers(path)]


def _readers(path: Path) -> list[Reader]:
    if path.name == "meta.yaml":
        return [MlflowFolder(path.parent)] if (path.parent / "metrics").is_dir() else []
    database = Database(path)
    return [MlflowRun(database, *one) for one in database.runs()]
