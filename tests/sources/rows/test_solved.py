"""A script that says its task is solved is believed, unless its reward says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlhealth import check
from rlhealth.sources.rows.solved import solved_in

AVERAGES = "".join(f"Episode {n}00\tAverage Score: {n * n / 100:.2f}\n" for n in range(1, 8))


@pytest.mark.parametrize(
    "line",
    [
        "Environment solved in 747 episodes!\tAverage Score: 0.50",
        "Env was solved within 3671 episodes with 100-moving average score of 0.501",
        "Solved at episode 120!",
        "Solved! Running reward is now 201.2 and the last episode runs to 500 time steps!",
    ],
)
def test_a_script_that_says_its_task_is_solved_is_believed_where_the_reward_is_at_its_top(
    tmp_path: Path, line: str
) -> None:
    assert solved_in(AVERAGES + line + "\n") == " ".join(line.split())
    (tmp_path / "train.log").write_text(AVERAGES + line + "\n")
    (run,) = check(tmp_path / "train.log").runs
    assert run.verdict == "healthy"
    assert f"its script says: {' '.join(line.split())}" in run.run.notes
    (tmp_path / "train.log").write_text(AVERAGES + line + "\nEpisode 800\tAverage Score: 0.00\n")
    assert check(tmp_path / "train.log").runs[0].verdict == "unknown", "it was lost again"


@pytest.mark.parametrize(
    "line",
    [
        "Environment not solved in 747 episodes!",
        "Episode 12 solved in 150 steps",
        "2 issues were resolved in 3 episodes",
        "The task counts as solved above 30",
        "Unsolved after 200 episodes",
    ],
)
def test_other_words_of_solving_say_nothing(line: str) -> None:
    assert solved_in(AVERAGES + line + "\n") == ""
