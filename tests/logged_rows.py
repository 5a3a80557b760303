"""The rows of a real run, step by step, as its trainer logged them."""

from __future__ import annotations

from pathlib import Path

from rlhealth.run import Run
from rlhealth.sources import open_runs

FIXTURES = Path(__file__).parents[1] / "fixtures"


def read(folder: str) -> Run:
    """One run among the fixtures."""
    [run] = open_runs(str(FIXTURES / folder))
    return run


def rows_of(run: Run) -> list[tuple[int, dict[str, float]]]:
    """Steps in order, each with its metrics by the names that the trainer gives them, before TensorBoard puts
    `train/` in front.
    """
    rows: dict[int, dict[str, float]] = {}
    for tag, series in run.series.items():
        for step, value in zip(series.steps.tolist(), series.values.tolist(), strict=True):
            rows.setdefault(step, {})[tag.removeprefix("train/")] = value
    return sorted(rows.items())
