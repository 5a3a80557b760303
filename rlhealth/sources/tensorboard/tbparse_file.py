"""One event file through tbparse, whole, whenever it has grown: slower by a factor of dozens, and a second opinion
on the fast reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.sources.tensorboard.eventbatch import Batch
from rlhealth.sources.tensorboard.eventfile import EventFile
from rlhealth.sources.tensorboard.eventvalues import Bins, Settings, Text


class TbparseFile(EventFile):
    """Offers what `EventFile` does. It does not distinguish damage from a torn end: tbparse ends at either without a
    word."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)

    def read(self, until: int | None = None) -> Iterator[Batch]:
        """All that the file holds, if it has grown since the last time.

        Raises:
            OSError: if the file cannot be read.
            RlhealthError: if tbparse is not installed, or cannot make sense of the file.
        """
        size = self.path.stat().st_size
        if size == self.offset:
            return
        with self.path.open("rb"):
            pass  # tbparse takes a file without permission for an empty one
        summary = _summary(self.path)
        self.offset, batch = size, Batch()
        for tag, rows in summary.scalars.groupby("tag", sort=False) if len(summary.scalars) else ():
            batch.of(tag).extend(
                rows["step"].to_numpy(np.int64),
                rows["value"].to_numpy(np.float64),
                rows["wall_time"].to_numpy(np.float64),
            )
        for row in summary.histograms.itertuples():
            batch.items.append(
                (
                    row.step,
                    row.wall_time,
                    Bins(row.tag, np.asarray(row.limits, np.float64), np.asarray(row.counts, np.float64)),
                )
            )
        for row in summary.text.itertuples():
            batch.items.append((row.step, row.wall_time, Text(row.tag, str(row.value))))
        if len(summary.hparams):
            batch.items.append(
                (0, 0.0, Settings(dict(zip(summary.hparams["tag"], summary.hparams["value"], strict=True))))
            )
        self.records = len(summary.scalars) + len(batch.items)
        yield batch


def _summary(path: Path) -> Any:
    try:
        from tbparse import SummaryReader  # late: it imports pandas, tensorboard and, where it is installed, TensorFlow
    except ImportError as error:
        raise RlhealthError(
            "tbparse is not installed", hint="pip install tbparse, or leave the choice of reader away"
        ) from error
    kinds = {"scalars", "histograms", "text", "hparams"}
    try:
        return SummaryReader(str(path), pivot=False, extra_columns={"wall_time"}, event_types=kinds)
    except OSError:
        raise
    except Exception as error:  # whatever its parsers raise on what is no event file
        raise RlhealthError(
            f"{path}: tbparse: {error}", hint="leave the choice of reader away", location=str(path)
        ) from error
