"""A log that is written anew: the run says what the newest writing says, and what did not change was not touched."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.run import Place, Run
from rlhealth.sources.rows.rewritten import bring_up_to_date

POINTS = st.dictionaries(st.integers(0, 12), st.sampled_from([0.0, 1.0, float("nan"), float("inf")]), max_size=10)
WRITING = st.dictionaries(st.sampled_from(["loss", "kl", "reward"]), POINTS, max_size=3)


def run_of(writing: dict[str, dict[int, float]]) -> Run:
    run = Run("run", Place("trainer_state", "there"))
    for tag, points in writing.items():
        if points:
            run.add(tag, sorted(points), [points[step] for step in sorted(points)])
    return run


def said(run: Run) -> dict[str, Any]:
    return {
        tag: (one.steps.tolist(), list(map(str, one.values.tolist()))) for tag, one in run.series.items() if len(one)
    }


@given(st.lists(WRITING, max_size=4))
def test_the_run_says_what_the_newest_writing_says(writings: list[dict[str, dict[int, float]]]) -> None:
    run = run_of({})
    for writing in writings:
        before = said(run)
        changed = bring_up_to_date(run, run_of(writing))
        assert said(run) == said(run_of(writing))
        assert changed == (said(run) != before)


@given(WRITING, st.integers(0, 12))
def test_a_run_that_only_grew_is_not_rewound(writing: dict[str, dict[int, float]], step: int) -> None:
    run = run_of({tag: {at: value for at, value in points.items() if at <= step} for tag, points in writing.items()})
    revisions = {tag: one.revision for tag, one in run.series.items()}
    bring_up_to_date(run, run_of(writing))
    assert not run.resumed_at
    assert {tag: one.revision for tag, one in run.series.items() if tag in revisions} == revisions


def test_a_run_whose_history_was_cut_back_was_resumed_where_it_differs_first() -> None:
    run = run_of({"loss": {1: 0.5, 2: 0.4, 3: 0.3}, "kl": {1: 0.1, 2: 0.1, 3: 0.1}})
    bring_up_to_date(run, run_of({"loss": {1: 0.5, 2: 0.4, 3: 0.3, 4: 0.2}, "kl": {1: 0.1, 2: 0.2, 3: 0.1, 4: 0.1}}))
    assert run.resumed_at == [2]
    assert run.series["kl"].values.tolist() == [0.1, 0.2, 0.1, 0.1]


def test_a_distribution_that_is_another_now_is_replaced() -> None:
    run, found = run_of({}), run_of({})
    for step in (1, 2, 3):
        run.histogram("ratio").add(step, np.arange(3), np.ones(2))
        found.histogram("ratio").add(step, np.arange(3), np.ones(2) * (step < 3 or 2))
    assert bring_up_to_date(run, found)
    assert [counts.tolist() for counts in run.histograms["ratio"].counts] == [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]]
    assert not bring_up_to_date(run, found)
