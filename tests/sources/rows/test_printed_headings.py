"""Headings: a line that names only a step applies to the rows below it, until they are too many of the same names."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rlhealth.sources.rows.printed import Printed
from rlhealth.sources.rows.printed_headings import MOST_REPEATS
from rlhealth.sources.rows.printed_row import PrintedRow


def rows(lines: Iterable[str]) -> list[PrintedRow]:
    printed = Printed()
    return [row for line in [*lines, ""] for row in printed.rows(line + "\n")]


def test_a_row_without_a_step_has_that_of_the_heading_above_it() -> None:
    made = rows(
        ["Learning iteration 3/1500", "loss: 0.5, reward: 2.0", "Learning iteration 4/1500", "loss: 0.4, reward: 3.0"]
    )
    assert [(row["iteration"], row["total_steps"], row.below_heading) for row in made] == [
        (3, 1500, True),
        (4, 1500, True),
    ]


@pytest.mark.parametrize(
    "said", ["EPISODE 7 COMPLETED", "--- Episode 7 complete ---", "Episode 7 over!", "Episode 7 ended."]
)
def test_a_line_that_says_that_an_episode_is_over_is_a_heading(said: str) -> None:
    (made,) = rows([said, "=" * 40, "reward: 2.0 | loss: 0.5"])
    assert (made["episode"], made["reward"], made.below_heading) == (7, "2.0", True)


def test_a_row_with_a_step_of_its_own_keeps_it() -> None:
    (made,) = rows(["Learning iteration 3/1500", "step: 7, loss: 0.5, reward: 2.0"])
    assert made["step"] == "7" and not made.below_heading


def test_rows_of_the_same_names_below_a_heading_repeat_it_and_too_many_have_none() -> None:
    made = rows(["Update 3", *["loss: 0.5, reward: 2.0"] * (MOST_REPEATS + 3)])
    assert [row.again for row in made][:3] == [False, True, True]
    assert ["update" in row for row in made] == [True] * (MOST_REPEATS + 1) + [False] * 2


def test_what_stands_below_the_heading_of_an_evaluation_is_of_it() -> None:
    (made,) = rows(["Evaluation at step 300", "reward: 2.0, length: 10"])
    assert made["eval/reward"] == "2.0"


def test_an_epoch_is_kept_beside_the_step_that_counts_within_it() -> None:
    (made,) = rows(["Epoch 2", "step: 7, loss: 0.5, reward: 2.0"])
    assert (made["epoch"], made["step"]) == (2, "7")
