"""Feeds points to a measure, as the engine does."""

from __future__ import annotations

import numpy as np

from rlhealth.engine.estimate import Estimate
from rlhealth.engine.windows import ROLLING, Rolling


def rolling(name, window, least=None):
    return Rolling(ROLLING[name], window, least or window)


def extend(measure, values):
    """What a measure says: shape (n,), or (n, 2) with its errors."""
    with np.errstate(all="ignore"):  # as the engine does: what overflows is infinite, and no news
        found = measure.extend(np.asarray(values, np.float64))
    if not isinstance(found, Estimate):
        return found.T
    return found.value if found.error is None else np.column_stack([found.value, found.error])
