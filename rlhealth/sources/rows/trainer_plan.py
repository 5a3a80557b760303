"""The plan in a saved trainer state: the settings beside its rows, and the number of planned steps."""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Run
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.spelling import FURTHEST, number, whole
from rlhealth.sources.rows.json_rows import JsonRows

#: The start of the rows: in a trainer's state, or in a bare list of rows.
OPENING = re.compile(r'"log_history"\s*:\s*\[|\A\s*\[(?=\s*[{\]])')
_NUMBERED = re.compile(rb'"(global_step|max_steps|num_train_epochs|epoch|episode)"\s*:\s*(-?\d[\d.eE+-]{0,30})')
_ANY_ROW = re.compile(r'[,\[]\s*(?=\{\s*")')
HEAD, TAIL = 1 << 16, 1 << 18  # bytes read before and after the rows


class Plan:
    """The planned number of steps in a saved state, for a run that was read elsewhere; only both ends of the file are
    read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def steps(self, run: Run) -> int | None:
        """The planned steps, or None if the state has none, or belongs to another run."""
        head, tail = self._ends()
        before, after = head.partition(b'"log_history"')[0], tail.rpartition(b"]")[2]
        if b"max_steps" not in after:  # a list follows the rows
            after = tail[max(0, tail.rfind(b'"logging_steps"')) :]
        state = {key.decode(): json.loads(value) for key, value in _NUMBERED.findall(before + after)}
        return planned_steps(state) if self.is_of(run) else None

    def is_of(self, run: Run) -> bool:
        """Whether the state's last rows are consistent with the run."""
        tail = self._ends()[1]
        return _agree(JsonRows(io.BytesIO(tail), OPENING if b'"log_history"' in tail else _ANY_ROW), run)

    def _ends(self) -> tuple[bytes, bytes]:
        try:
            with open_regular(self.path) as file:
                head = file.read(HEAD)
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
                return head, file.read(TAIL)
        except (RlhealthError, OSError):
            return b"", b""


def _agree(rows: Iterable[Mapping[str, Any]], run: Run) -> bool:
    """Whether the rows of a state have the same values as the run at the same steps."""
    compared = alike = 0
    for row in rows:
        step = whole(row.get("step"))
        if step is None:
            continue
        for tag, value in row.items():
            series = run.series.get(f"train/{tag}", run.series.get(tag))
            logged = number(value)
            if tag == "step" or series is None or logged is None or not math.isfinite(logged):
                continue
            at = int(np.searchsorted(series.steps, step))
            if at < len(series) and series.steps[at] == step:
                compared += 1
                alike += math.isclose(series.values[at], logged, rel_tol=1e-3, abs_tol=1e-4)
    return not compared or 2 * alike > compared


def about(head: str, tail: str) -> dict[str, Any]:
    """The fields of a state other than its rows, from the text before and after them."""
    for text in (f"{head}]{tail}", f"{head}]}}"):
        try:
            state = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return state if isinstance(state, dict) else {}
    return {}


def planned_steps(state: Mapping[str, Any]) -> int | None:
    """The planned number of steps of the trainer, in the unit of the rows' steps.

    The PPO trainer of TRL (its state has `episode`) counts optimiser steps in `max_steps` and updates in `global_step`
    up to 0.13; the finished share of the planned epochs gives the updates in every version.
    """
    most = whole(state.get("max_steps"))
    if "episode" in state:
        epochs, passed, step = (number(state.get(key)) for key in ("num_train_epochs", "epoch", "global_step"))
        if epochs and passed and step:
            updates = epochs / passed * step
            return round(updates) if 0 < updates < FURTHEST else None
        return None
    return most if most and most > 0 else None
