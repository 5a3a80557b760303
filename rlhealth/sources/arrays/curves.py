"""Several curves of one kind in one file, as the rewards of a few seeds are saved together: the rows or the columns of
an array, of a table whose header only counts, `,0,1,2`, or of a list of lists in JSON. Each is a run."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO

import numpy as np
import orjson

from rlhealth.errors import RlhealthError
from rlhealth.run import Floats
from rlhealth.sources.base.arrays import LARGEST
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.rows.headerless import are_numbered

TEXTS = (".csv", ".json")
MOST = 10  # curves; more rows than that may as well be the steps
LONGER = 10  # times as long as there are curves: in a matrix that is nearly square either side may be the steps
HINT = (
    f"name its columns in its first line, such as step,reward,kl; up to {MOST} runs beside each other, or below each "
    f"other, take {LONGER} steps for each of them"
)
_HEAD = 64 << 10  # bytes that show whether a file holds curves; a header of 10,000 columns takes 49,000


def curves_of(values: Floats) -> list[Floats]:
    """The curves of an array of two dimensions, each of shape (count,): its rows or its columns, whichever are fewer;
    none of an array that has not clearly more steps than curves."""
    if values.ndim != 2:
        return []
    lines = values if values.shape[0] <= values.shape[1] else values.T
    return [*lines] if 0 < len(lines) <= MOST and lines.shape[1] >= LONGER * len(lines) else []


def holds_curves(path: Path) -> bool:
    """Whether a text begins as one that holds curves and does not name them."""
    suffix = path.suffix.lower()
    if suffix not in TEXTS:
        return False
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
    except (RlhealthError, OSError):
        return False  # the error is reported where the file is read
    return _is_list_of_lists(head) if suffix == ".json" else _is_numbered(head)


def curves_in(file: IO[bytes], suffix: str) -> list[Floats]:
    """The curves of such a text, each of shape (count,), without what is missing at their ends; none if it holds none.

    Raises:
        ValueError: if it is too large, or no numbers.
    """
    raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    if suffix == ".json":
        found = orjson.loads(raw)
        lines = [np.array(one, float) for one in found if isinstance(one, list)]
        is_long = min(map(len, lines), default=0) >= LONGER * len(lines) and len(lines) <= MOST
        return lines if is_long and all(one.ndim == 1 for one in lines) else []
    import pandas as pd  # late: most files of curves are numpy's

    counted = 0 if raw.startswith((b",", b"\xef\xbb\xbf,")) else None  # where pandas wrote the numbers of the rows
    table = pd.read_csv(io.BytesIO(raw), index_col=counted, dtype=float)
    return [_without_end(one) for one in curves_of(table.to_numpy())]


def _without_end(values: Floats) -> Floats:
    """A curve up to its last number: shorter ones are filled up in a table."""
    there = np.flatnonzero(~np.isnan(values))
    return values[: there[-1] + 1] if len(there) else values[:0]


def _is_numbered(head: bytes) -> bool:
    first, end, _ = head.partition(b"\n")
    return bool(end) and are_numbered([cell.strip() for cell in first.decode("utf-8-sig", "replace").split(",")])


def _is_list_of_lists(head: bytes) -> bool:
    """Whether a JSON text begins with a list of more numbers than a point has."""
    inside = head.removeprefix(b"\xef\xbb\xbf").lstrip().removeprefix(b"[").lstrip()
    numbers = inside[1:].partition(b"]")[0]
    return (
        inside.startswith(b"[") and numbers.count(b",") >= LONGER - 1 and not numbers.strip(b"-+.,0123456789eE \r\n\t")
    )
