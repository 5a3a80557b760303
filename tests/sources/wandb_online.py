"""What the tests of online runs share: readers that do not wait long, and what a run should hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlhealth.errors import Unavailable
from rlhealth.run import Run
from rlhealth.sources.wandb.api import WandbReader, find
from rlhealth.sources.wandb.file import WandbFileReader
from rlhealth.sources.wandb.items import row_of
from rlhealth.sources.wandb.log import RecordLog
from rlhealth.sources.wandb.records import sort
from rlhealth.sources.wandb.session import Session
from rlhealth.sources.wandb.session import _sessions as sessions

ROOT = Path(__file__).parents[2]
GRPO = next((ROOT / "fixtures" / "everywhere" / "grpo-short").rglob("*.wandb"))
LEGACY = ROOT / "fixtures" / "wandb" / "run-legacy-ppo.wandb"
EXPORTED = [ROOT / "fixtures" / "wandb_export" / f"part-{part}.parquet" for part in (0, 1)]
RUN = "wandb://ada/grpo/abc12345"
PATIENCE = 20.0
IMPATIENT = 2.0


def reader(patience: float = PATIENCE) -> WandbReader:
    return find(RUN, patience=patience)[0]


def blind(one: WandbReader) -> Unavailable:
    """What a poll tells that fails; it does not try for long."""
    one.patience = IMPATIENT
    with pytest.raises(Unavailable) as caught:
        one.poll()
    one.patience = PATIENCE
    return caught.value


def wait_for(one: WandbReader, seconds: float) -> None:
    """From now on a look at the run is given up after so long; its session goes on."""
    one.patience = seconds
    for session in sessions.values():
        session.patience = seconds


def count_tries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The places for which the SDK is asked from now on."""
    tries: list[str] = []
    once = Session.once

    def counted(self: Session, ask: Any, place: str) -> Any:
        tries.append(place)
        return once(self, ask, place)

    monkeypatch.setattr(Session, "once", counted)
    return tries


def rewards(run: Run) -> list[tuple[int, float]]:
    series = run.series["train/reward"]
    return list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


def expected(first: int, last: int) -> list[tuple[int, float]]:
    return [(step, step / 10) for step in range(first, last + 1)]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows that the SDK wrote, one by one."""
    rows = []
    for records in RecordLog(path).read():
        found = sort(records)
        rows += [
            row_of(records.buffer[start:end])
            for start, end in zip(found.start.tolist(), found.end.tolist(), strict=True)
        ]
    return rows


def offline(path: Path) -> Run:
    there = WandbFileReader(path)
    there.poll()
    return there.run


def same_points(one: Run, other: Run) -> None:
    mine, theirs = (
        {tag: run.series[tag] for tag in run.series if tag != "train/train_runtime"} for run in (one, other)
    )
    assert sorted(tag for tag in mine if tag not in theirs) == []
    assert sorted(tag for tag in theirs if tag not in mine and len(theirs[tag]) > 1) == []
    for tag, series in mine.items():
        np.testing.assert_array_equal(series.steps, theirs[tag].steps, tag)
        np.testing.assert_array_equal(series.values, theirs[tag].values, tag)
