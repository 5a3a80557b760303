"""Exports runs as one long table, Parquet or CSV, for notebooks and other tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rlhealth.errors import RlhealthError
from rlhealth.metrics import Translation
from rlhealth.metrics.metric import Points
from rlhealth.run import Run
from rlhealth.sources.base.parquet import lacking
from rlhealth.system.files import replaced

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("run", "metric", "tag", "step", "time", "value")
ENDINGS = (".parquet", ".csv", ".csv.gz")


def table(runs: Iterable[tuple[Run, Translation]]) -> pd.DataFrame:
    """One row a point: run, metric, tag, step, time (seconds since 1970, missing where unknown), value.

    A tag that has a canonical name stands under it, in that metric's unit; any other has no metric and the value as
    logged.
    """
    import pandas as pd  # late: half a second, and only tables need it

    parts = [
        pd.DataFrame(
            {
                "run": run,
                "metric": metric,
                "tag": tag,
                "step": points.steps,
                "time": points.times,
                "value": points.values,
            }
        )
        for run, metric, tag, points in _columns(runs)
        if len(points)
    ]
    made = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(COLUMNS))
    return made.astype(
        {"run": "string", "metric": "string", "tag": "string", "step": "int64", "time": "float64", "value": "float64"}
    )


def _columns(runs: Iterable[tuple[Run, Translation]]) -> Iterator[tuple[str, str | None, str, Points]]:
    for run, translation in runs:
        named = {one.tag for one in translation.metrics.values()}
        yield from ((run.name, name, one.tag, one) for name, one in translation.metrics.items())
        yield from ((run.name, None, tag, one) for tag, one in run.series.items() if tag not in named)


def export(runs: Iterable[tuple[Run, Translation]], path: Path) -> int:
    """Writes the table of those runs to a file, whole or not at all; its ending chooses the format. Returns the number
    of rows.

    Raises:
        RlhealthError: for another ending, for a file that cannot be written, and where Parquet is asked for without
            a pyarrow that works.
    """
    if not path.name.endswith(ENDINGS):
        raise RlhealthError(
            f"--export {path}: its ending is none of {', '.join(ENDINGS)}", hint="such as --export run.parquet"
        )
    made = table(runs)
    try:
        with replaced(path) as place:
            if path.name.endswith(".parquet"):
                made.to_parquet(place, index=False)
            else:
                made.to_csv(place, index=False, compression="gzip" if path.name.endswith(".gz") else None)
    except ImportError as error:  # pandas looks for more than pyarrow, and for a version of its own
        said, fix = lacking("pip install pyarrow") or (str(error).partition("\n")[0], "pip install --upgrade pyarrow")
        raise RlhealthError(f"--export {path}: {said}", hint=f"{fix}, or --export run.csv") from None
    except OSError as error:
        raise RlhealthError(
            f"--export {path}: {error.strerror or error}",
            hint="it takes a file in a folder that exists",
            location=str(path),
        ) from None
    return len(made)
