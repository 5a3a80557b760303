"""What real printers printed (fixtures/consoles) is read with its names, its numbers and its steps, and its trainer
is known.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.sources import open_runs

CONSOLES = Path(__file__).parents[3] / "fixtures" / "consoles"


#: Logarithms of the steps, as transformers rounds them.
TENS = [1.609, 2.303, 2.708, 2.996, 3.219, 3.401, 3.555, 3.689]


@pytest.mark.parametrize(
    ("name", "framework", "metric", "steps", "values"),
    [
        ("sb3", "sb3", "reward", [64, 128, 192, 256], [25.0, 30.0, 26.6, 23.9]),
        ("rsl_rl", "rsl-rl", "reward", [8, 9, 10], [12.0, 12.75, 13.5]),
        ("rsl_rl", "rsl-rl", "loss/value_avg", [8, 9, 10], [1.0, 1.125, math.inf]),
        ("fancy_grid", "areal", "reward", [1, 2, 3], [0.1, 0.2, 0.3]),
        ("fancy_grid", "areal", "val/ratio", [1, 2, 3], [6.1, 6.2, 6.3]),
        ("rich_table", "generic", "loss", [1, 2, 3], [0.01, 0.02, 0.03]),
        ("rich_panel", "open-instruct", "reward", [1, 2, 3], [0.1, 0.2, 0.3]),
        ("prettytable", "generic", "loss/policy_avg", [1, 2, 3], [-0.125, -0.25, -0.375]),
        ("loguru", "prime-rl", "sampling/kl_k3", [1, 2, 3], [0.001, 0.002, 0.003]),
        ("transformers_bars", "trl-grpo", "reward", [5, 10, 15, 20, 25, 30, 35, 40], TENS),
        ("pandas_frame", "generic", "reward", list(range(5, 65, 5)), [step / 64 for step in range(5, 65, 5)]),
        ("pfrl", "generic", "eval/reward", [50, 105, 150], [0.625, 0.625, 0.625]),
        ("dowel", "generic", "reward", [1000, 2000, 3000], [10.0, 20.0, 30.0]),
        ("loguru", "prime-rl", "grad_norm", [1, 2, 3], [0.5, 1.0, 1.5]),
    ],
)
def test_the_trainer_is_known_and_its_numbers_are_read(
    name: str, framework: str, metric: str, steps: list[int], values: list[float]
) -> None:
    (run,) = open_runs(CONSOLES / f"{name}.log")
    translation = translate(run)
    assert translation.framework == framework
    found = translation.metrics[metric]
    assert found.steps.tolist() == steps
    assert found.values.tolist() == pytest.approx(values)


def test_the_step_that_stands_in_the_message_is_no_part_of_a_name() -> None:
    (run,) = open_runs(CONSOLES / "absl.log")
    assert set(run.series) == {"training loss", "training perplexity"}
    assert run.series["training loss"].steps.tolist() == [1, 2, 3]


def test_the_plan_is_read_beside_the_step() -> None:
    assert [open_runs(CONSOLES / f"{name}.log")[0].planned_steps for name in ("rsl_rl", "fancy_grid")] == [1500, 300]


@pytest.mark.parametrize("path", sorted(CONSOLES.glob("*.log")), ids=lambda path: path.stem)
def test_a_console_that_is_torn_anywhere_says_nothing_that_nobody_printed(path: Path, tmp_path: Path) -> None:
    whole = {
        (tag, step): value
        for tag, one in open_runs(path)[0].series.items()
        for step, value in zip(one.steps, one.values, strict=True)
    }
    text = path.read_bytes()
    torn = tmp_path / "torn.log"
    for cut in range(len(text) // 2, len(text), max(1, len(text) // 40)):
        torn.write_bytes(text[:cut])
        try:
            (run,) = open_runs(torn)
        except RlhealthError:
            continue  # nothing but headings so far
        for tag, one in run.series.items():
            for step, value in zip(one.steps, one.values, strict=True):
                assert value == pytest.approx(whole[tag, step], nan_ok=True), (cut, tag)


def test_examples_that_tunix_prints_give_the_reward_of_their_step() -> None:
    (run,) = open_runs(CONSOLES / "tunix_examples.log")
    assert run.series["rewards/sum"].values.tolist() == [0.0, 0.5, 0.5] * 4
    assert run.series["rewards/sum"].steps.tolist() == list(range(1, 13))
    assert not any("score" in tag or "answer" in tag for tag in run.series)
    assert translate(run).metrics["reward"].tag == "rewards/sum"
