"""A number that was rounded to zero is distinguished from a zero by the numbers beside it."""

from __future__ import annotations

import pytest

from rlhealth.check import judge
from rlhealth.engine.precision import is_rounded
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run


def row(kind: str, *numbers: float) -> Run:
    run = Run("run", Place(kind, "here"))
    for place, one in enumerate(numbers):
        run.add(f"metric{place}", [1], [one])
    return run


@pytest.mark.parametrize(
    ("kind", "numbers", "rounded"),
    [
        ("console", (0.0, 0.312, 12.0, 0.001), True),  # verl prints three decimals
        ("console", (0.0, 0.3127412498, 0.3438), False),  # a dictionary printed as it is
        ("console", (0.0, 93.5), True),  # nothing shows more
        ("jsonl", (0.0, 0.312, 0.001, 4.2), True),
        ("jsonl", (0.0, 0.4397946, 0.34375, 2.6e-07), False),
        ("csv", (0.0, -100.0, 5.0), False),  # whole numbers show no grid
        ("tensorboard", (0.0, 0.5, 0.25, 0.125), False),  # floats are stored whole
    ],
)
def test_the_decimals_of_the_first_numbers_decide(kind: str, numbers: tuple[float, ...], rounded: bool) -> None:
    assert is_rounded(row(kind, *numbers)) is rounded


def test_a_learning_rate_printed_as_zero_is_no_zero() -> None:
    printed, stored = (Run("run", Place(kind, "here")) for kind in ("console", "tensorboard"))
    steps = list(range(1, 41))
    for run in (printed, stored):
        run.add("actor/lr", steps, [0.0] * 40)
        run.add("actor/pg_loss", steps, [round(0.01 * (step % 7) - 0.03, 3) for step in steps])
        run.add("critic/score/mean", steps, [round(0.3 + 0.01 * (step % 5), 3) for step in steps])
    rule = "learning-rate-zero"
    assert rule in {one.rule for one in judge(stored, load_rules()).findings}
    skipped = {one.rule: one.reason for one in judge(printed, load_rules()).skipped}
    assert "rounded" in skipped[rule]


def test_a_run_that_begins_with_zeros_is_judged_by_the_numbers_that_follow() -> None:
    numbers = [0.0] * 12 + [0.0014, 0.0619, 0.15, 0.3]
    printed, stored = Run("run", Place("notebook", "here")), Run("run", Place("notebook", "here"))
    for run, values in ((printed, numbers), (stored, [*numbers[:-1], 0.3000001])):
        run.add("reward", list(range(16)), [0.3] * 16)
        run.add("kl", list(range(16)), values)
    assert is_rounded(printed) and not is_rounded(stored)


def test_one_number_that_comes_again_shows_no_grid() -> None:
    run = Run("run", Place("csv", "here"))
    run.add("reward", list(range(16)), [0.5, 0.25] * 8)
    assert not is_rounded(run)
