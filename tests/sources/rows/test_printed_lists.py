"""The rewards of a group that are printed as a list are those of the step that was sampled for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import Run
from rlhealth.sources import open_runs
from rlhealth.sources.rows.log_rows import log_kind
from rlhealth.sources.rows.printed import Printed

STEPS = range(1, 13)
SUMMARY = "GRPO step {0}/12 | loss: 0.01 | mean_reward: 0.5 | KL: 0.0{0}\n"


def log(tmp_path: Path, text: str) -> Run:
    path = tmp_path / "train.log"
    path.write_text(text)
    (run,) = open_runs(str(path))
    return run


def step(n: int, rewards: str, summary_each: int = 4) -> str:
    sampled = f"  Step {n}: generating 2 candidates for prompt 1/1...\n  Generated 2 candidates in 3.5s\n{rewards}\n"
    return sampled + (SUMMARY.format(n) if n % summary_each == 0 else "")


@pytest.mark.parametrize(
    "rewards",
    [
        "  Rewards: [{0}.5, {0}.0] (2/2 rendered)",
        "Group rewards = [{0}.5 {0}.0]",
        "scores: [{0}.5, {0}.0]",
    ],
)
def test_a_list_of_rewards_gives_mean_and_spread_of_its_step(tmp_path: Path, rewards: str) -> None:
    run = log(tmp_path, "".join(step(n, rewards.format(n)) for n in STEPS))
    found = translate(run).metrics
    assert found["reward"].steps.tolist() == list(STEPS)
    assert found["reward"].values.tolist() == [n + 0.25 for n in STEPS]
    assert found["reward_group_std"].values.tolist() == [0.25] * len(STEPS)
    assert found["frac_reward_zero_std"].values.tolist() == [0.0] * len(STEPS)
    assert found["kl"].steps.tolist() == [4, 8, 12]


def test_a_group_of_equal_rewards_is_unanimous(tmp_path: Path) -> None:
    run = log(tmp_path, "".join(step(n, "Rewards: [-1.0, -1.0]") for n in STEPS))
    assert translate(run).metrics["frac_reward_zero_std"].values.tolist() == [1.0] * len(STEPS)


def test_the_groups_of_a_step_are_averaged(tmp_path: Path) -> None:
    lists = "\n".join(f"sampling completions of prompt {n}/3\nRewards: [{n}.0, {n}.0]" for n in (1, 2, 3))
    run = log(tmp_path, "".join(f"Step {n}: sampling 3 prompts\n{lists}\n{SUMMARY.format(n)}" for n in STEPS))
    assert run.series["reward"].values.tolist() == [2.0] * (len(STEPS) - 1)  # of the newest, more may come


@pytest.mark.parametrize(
    "text",
    [
        "Rewards: [0.5, 1.0]\n",  # no step is named
        "Final evaluation of 2 candidates\nRewards: [0.5, 1.0]\n",
        "Step 3: add the two numbers\nRewards: [0.5, 1.0]\n",  # a solution
        "Episode 3: sampling actions\nRewards: [0.5, 1.0]\n",  # those of its steps
        "Step 3: generating 2 candidates\nSaved.\nStep 4 is next\nRewards: [0.5, 1.0]\n",
        "Step 3: generating 2 candidates\n" + "\n" * 4 + "Rewards: [0.5, 1.0]\n",
        "Step 3: generating 2 candidates\nLengths: [12, 14]\n",
        "Step 3: generating 2 candidates\nReward weights: [0.5, 1.0]\n",
        "Step 3: generating 2 candidates\nRewards: [0.5]\n",
        "Step 3: generating 2 candidates\nRewards: [0.5, high]\n",
        f"Step 3: generating 65 candidates\nRewards: {[0.5] * 65}\n",
    ],
)
def test_other_lists_are_no_rows(text: str) -> None:
    printed = Printed()
    assert [row for line in text.splitlines() for row in printed.rows(line)] == []


def test_lists_alone_are_no_log(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(step(n, "Rewards: [0.5, 1.0]", summary_each=100) for n in STEPS))
    assert log_kind(path) is None
    with pytest.raises(RlhealthError):
        open_runs(str(path))


@pytest.mark.parametrize("rewards", ["nan, 1.0", "inf, -inf", "1e308, 1e308", "1e999, 0"])
def test_rewards_that_are_no_finite_numbers_are_reported_and_break_nothing(tmp_path: Path, rewards: str) -> None:
    run = log(tmp_path, "".join(step(n, f"Rewards: [{rewards}]") for n in STEPS))
    assert len(run.series["reward"]) == len(STEPS)
