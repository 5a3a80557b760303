"""The columns of a table, as pandas reads a CSV: numbers, and texts as cells that hold none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rlhealth.sources.base.spelling import AXES, CLOCKS, clock, number, whole
from rlhealth.sources.rows.split_rows import FLAGS, SIDES, WRITERS, columns_apart, is_evaluation, writers

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

LOOKED_AT = 1000  # rows by which it is known whether several runs stand between each other


def columns(frame: pd.DataFrame) -> dict[str, Any]:
    """The columns, as masked float64 arrays of shape (rows,): an empty cell and a text is masked, a NaN that was logged
    is not. None of them where no cell is a number.
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
    """The columns, those of rows of an evaluation as columns of their own, where a column says so of its rows."""
    for name in (SIDES | FLAGS) & set(frame.columns):
        evaluated = [is_evaluation(name, one) for one in texts_of(frame[name]).tolist()]
        if any(evaluated):
            return columns_apart(table, np.array(evaluated))
    return table


def texts_of(column: pd.Series[Any]) -> NDArray[Any]:
    """The cells as texts, those that are empty as "", shape (rows,)."""
    return column.astype(object).where(column.notna(), "").astype(str).to_numpy()


def text_writers(frame: pd.DataFrame) -> str:
    """The column of texts by which rows of several algorithms or agents stand between each other; "" if there is
    none."""
    axis = next((name for name in AXES if name in frame), None)
    some = frame.head(LOOKED_AT)
    texts = [name for name in WRITERS if name in some and all(number(one) is None for one in some[name].tolist())]
    if axis is None or not texts:
        return ""
    some = some[[axis, *texts]]
    return writers([dict(zip(some.columns, row, strict=True)) for row in some.to_numpy().tolist()], axis)
