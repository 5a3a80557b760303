"""Rows of a page taken column by column give the run that they give one by one, whatever is in them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.run import Place, Run
from rlhealth.sources.base import columns
from rlhealth.sources.base.columns import columns_of
from rlhealth.sources.base.history import Rows
from tests.examples import examples

VALUES = st.one_of(
    st.floats(),
    st.integers(),
    st.just(10**400),
    st.booleans(),
    st.none(),
    st.sampled_from(["NaN", "Infinity", "-Infinity", "text", ""]),
    st.lists(st.floats(-10, 10), max_size=4),
    st.just({"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2]}),
    st.dictionaries(st.sampled_from(["x", "y"]), st.floats(-1, 1), min_size=1, max_size=2),
)
KEYS = st.sampled_from(["kl", "train/reward", "train/loss", "_runtime", "_timestamp", "profiling/time"])
ROWS = st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=30)
AXES = st.sampled_from(["_step", "train/global_step"])


def facts(run: Run) -> dict[str, Any]:
    series = {tag: (one.steps.tolist(), one.values.tolist(), one.times.tolist()) for tag, one in run.series.items()}
    return {"axis": run.step_axis, "resumed": run.resumed_at, **series} | {
        f"histogram {tag}": one.steps for tag, one in run.histograms.items()
    }


def alone(rows: list[dict[str, Any]]) -> Run:
    run = Run("one", Place("wandb", ""))
    into = Rows(run)
    for row in rows:
        into.take({key: value for key, value in row.items() if value is not None})
    into.flush()
    return run


def together(rows: list[dict[str, Any]], cut: int) -> Run:
    run = Run("one", Place("wandb", ""))
    into = Rows(run)
    for part in (rows[:cut], rows[cut:]):
        if part:
            found = columns_of(part, lambda tag: True)
            assert found is not None
            into.take_columns(found)
    into.flush()
    return run


@settings(max_examples=examples(300), deadline=None)
@given(rows=ROWS, axis=AXES, steps=st.lists(st.integers(-1, 2), min_size=30, max_size=30), cut=st.integers(0, 30))
def test_rows_by_columns_are_the_rows_one_by_one(
    rows: list[dict[str, Any]], axis: str, steps: list[int], cut: int
) -> None:
    counted = np.maximum(np.cumsum(steps[: len(rows)]), 0).tolist() if axis != "_step" else range(len(rows))
    given_rows = [
        json.loads(json.dumps({**row, "_step": index, axis: step}))
        for index, (row, step) in enumerate(zip(rows, counted, strict=True))
    ]
    np.testing.assert_equal(facts(together(given_rows, cut)), facts(alone(given_rows)))


@settings(max_examples=examples(100), deadline=None)
@given(
    names=st.lists(st.sampled_from(["kl", "reward", "loss"]), min_size=1, unique=True),
    values=st.lists(st.one_of(st.floats(), st.integers(-(2**63), 2**63)), min_size=3, max_size=3),
    count=st.integers(1, 200),
)
def test_rows_of_one_shape_are_the_rows_one_by_one(names: list[str], values: list[float], count: int) -> None:
    rows = [{**dict(zip(names, values, strict=False)), "_step": index, "_timestamp": 0.5} for index in range(count)]
    np.testing.assert_equal(facts(together(rows, count // 2)), facts(alone(rows)))


def test_one_tag_with_lists_in_it_stays_a_list() -> None:
    found = columns_of([{"a": [0.5, 1.0]}, {"a": [2.0, 3.0]}], lambda tag: True)
    assert found is not None and found.odd == {0: {"a": [0.5, 1.0]}, 1: {"a": [2.0, 3.0]}} and not found.state.any()


def test_tags_that_are_not_kept_are_left_out_and_too_many_cells_are_declined(monkeypatch: Any) -> None:
    rows = [{"kl": 0.5, "gradients/layer": 1.0}]
    found = columns_of(rows, lambda tag: tag == "kl")
    assert found is not None and found.tags == ["kl"]
    monkeypatch.setattr(columns, "MOST_CELLS", 1)
    assert columns_of(rows, lambda tag: True) is None
