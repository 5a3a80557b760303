"""The measures that a rule may name; the engine implements each of them."""

from __future__ import annotations

#: Of the last points: one number for each window.
ROLLING_MEASURES = ("value", "mean", "median", "std", "min", "max", "range", "rise")
MEASURES = (*ROLLING_MEASURES, "nonfinite", "share", "from_best", "given_back", "gain", "peak")
