"""MLflow: which runs there are in folders and databases, and a reader for each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.candidates import kind_by_bytes
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.walk import kind_of
from rlhealth.sources.mlflow.database import Database, MlflowRun, is_mlflow
from rlhealth.sources.mlflow.folder import KIND, MlflowFolder

__all__ = ["find", "is_mlflow", "readers"]

METRICS = "metrics"
MOST_PARTS = 3  # of a metric's name, of which all but the last are folders: eval/reward/mean


def find(path: Path) -> list[Reader]:
    """A reader for every run in a database, or for the run of a `meta.yaml` or of a metric's file.

    Raises:
        RlhealthError: if it cannot be read, or holds no run.
    """
    found = _readers(_place_of(path, is_metric=kind_by_bytes(path) == KIND))
    if not found:
        hint = "a run of MLflow is a folder with meta.yaml and metrics/, or a row in its database"
        raise RlhealthError(f"{path}: no run in it", hint=hint, location=str(path))
    return found


def readers(files: Iterable[Path], root: Path) -> list[Reader]:
    """Readers for the runs among files that were come across; those whose names say no kind are metrics."""
    places = dict.fromkeys(_place_of(path, is_metric=kind_of(path.name) is None) for path in files)
    return [reader for place in places for reader in _readers(place)]


def _place_of(path: Path, *, is_metric: bool) -> Path:
    """Where the metrics of a file's run are: their folder, or the file itself if it is a database."""
    if path.name == "meta.yaml":
        return path.parent / METRICS
    if is_metric:
        return next((folder for folder in path.parents[:MOST_PARTS] if folder.name == METRICS), path.parent)
    return path


def _readers(place: Path) -> list[Reader]:
    if place.is_dir():  # somebody may have copied its files alone, under another name
        return [MlflowFolder(place.parent if place.name == METRICS else place, place)]
    if place.name == METRICS and not place.exists():  # a `meta.yaml` of an experiment, or of a run that logged nothing
        return []
    database = Database(place)
    return [MlflowRun(database, *one) for one in database.runs()]
