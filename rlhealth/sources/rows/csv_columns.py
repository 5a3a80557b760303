"""The columns of a table that pandas read from a CSV, as numbers; texts become masked cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rlhealth.sources.base.spelling import AXES, CLOCKS, clock, number, whole
from rlhealth.sources.rows.split_rows import FLAGS, SIDES, WRITERS, columns_apart, is_evaluation, writers

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

LOOKED_AT = 1000  # rows that show whether the rows of several runs are interleaved


def columns(frame: pd.DataFrame) -> dict[str, Any]:
    """The columns as masked float64 arrays of shape (rows,). Empty cells and texts are masked; a logged NaN is not. The
    result is empty if no cell is a number.
    """
    import pandas as pd  # late: half a second

    found: dict[str, Any] = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            values = column.to_numpy(np.float64)
            found[name] = np.ma.masked_array(
                values, np.isnan(values)
            )  # pandas leaves "nan" as text here: what is NaN is an empty cell
            if name in CLOCKS:
                found[name] = np.ma.masked_array([clock(one) for one in values.tolist()])
            continue
        read = clock if name in CLOCKS else whole if name in AXES else number
        spelt = [read(cell) if isinstance(cell, str) else None for cell in column]
        found[name] = np.ma.masked_array(
            [np.nan if one is None else one for one in spelt], [one is None for one in spelt], dtype=np.float64
        )
    return found if any(map(np.ma.count, found.values())) else {}


def evaluations_apart(table: dict[str, Any], frame: pd.DataFrame) -> dict[str, Any]:
    """The columns, with evaluation rows in separate columns if a column marks such rows."""
    for name in (SIDES | FLAGS) & set(frame.columns):
        evaluated = [is_evaluation(name, one) for one in texts_of(frame[name]).tolist()]
        if any(evaluated):
            return columns_apart(table, np.array(evaluated))
    return table


def texts_of(column: pd.Series[Any]) -> NDArray[Any]:
    """The cells as texts, empty cells as "", shape (rows,)."""
    return column.astype(object).where(column.notna(), "").astype(str).to_numpy()


def text_writers(frame: pd.DataFrame) -> str:
    """The text column that distinguishes interleaved rows of several algorithms or agents; "" if there is none."""
    axis = next((name for name in AXES if name in frame), None)
    some = frame.head(LOOKED_AT)
    texts = [name for name in WRITERS if name in some and all(number(one) is None for one in some[name].tolist())]
    if axis is None or not texts:
        return ""
    some = some[[axis, *texts]]
    return writers([dict(zip(some.columns, row, strict=True)) for row in some.to_numpy().tolist()], axis)
