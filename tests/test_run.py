"""A run: what a second writer overwrote is judged, and episodes that end at one step are no second writer."""

from __future__ import annotations

import numpy as np

from rlhealth.run import Place, Run

STEPS = np.arange(1, 101)


def run_of(*writes: tuple[np.ndarray, np.ndarray]) -> Run:
    run = Run("run", Place("jsonl", "here"))
    for steps, values in writes:
        run.add("reward", steps, values)
    return run


def test_a_second_writer_of_the_same_steps_leaves_the_first_to_be_judged() -> None:
    run = run_of((STEPS, np.zeros(100)), (STEPS, np.ones(100)))
    (before,) = run.before()
    assert before.run.series["reward"].values.tolist() == [0.0] * 100


def test_episodes_that_end_at_one_step_now_and_then_are_no_second_writer() -> None:
    twice = np.sort(np.concatenate([STEPS, STEPS[::3]]))
    run = run_of((twice, np.arange(len(twice), dtype=float)))
    assert list(run.before()) == []
