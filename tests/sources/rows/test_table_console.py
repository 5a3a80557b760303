"""Console logs: what trainers print, among everything else that is printed."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.run import Run
from rlhealth.sources import open_runs
from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows import table
from rlhealth.sources.rows.console import ConsoleLog
from rlhealth.sources.rows.printed import Printed
from rlhealth.sources.rows.printed_dicts import dict_in

FIXTURES = Path(__file__).parents[3] / "fixtures"
ROWS: list[dict[str, Any]] = json.loads((FIXTURES / "everywhere" / "grpo-short" / "trainer_state.json").read_text())[
    "log_history"
]
#: What transformers prints of a row: no step.
PRINTED = [{tag: value for tag, value in row.items() if tag != "step"} for row in ROWS]


def values(run: Run, tag: str) -> list[tuple[int, float]]:
    return list(zip(run.series[tag].steps.tolist(), run.series[tag].values.tolist(), strict=True))


def log(tmp_path: Path, text: str, name: str = "train.log") -> Run:
    (run,) = runs(tmp_path, text, name)
    return run


def runs(tmp_path: Path, text: str, name: str = "train.log") -> list[Run]:
    (tmp_path / name).write_text(text)
    return open_runs(str(tmp_path / name))


def test_printed_dicts_are_rows_and_their_numbers_serve_as_steps(tmp_path: Path) -> None:
    noise = [
        "Loading checkpoint shards: 100%|████| 2/2 [00:01<00:00]",
        "{'learning_rate': 1e-05, 'batch_size': 8, 'beta': 0.04}",
        "It's {not} a 'dict",
    ]
    lines = [
        *noise,
        *(f"Evaluating: {n}%|▏ | {n}/30 [00:01<00:30,  1.0it/s]\n{row}" for n, row in enumerate(PRINTED)),
        "Training done.",
    ]
    run = log(tmp_path, "\n".join(lines) + "\n")
    assert values(run, "reward") == [(n, row["reward"]) for n, row in enumerate(PRINTED[:30], 1)]
    assert values(run, "train_runtime") == [(30, PRINTED[30]["train_runtime"])]
    assert run.step_axis == "row" and "row numbers" in run.notes[0]
    assert "batch_size" not in run.series


def test_a_dict_that_a_progress_bar_runs_into_stands_at_its_step(tmp_path: Path) -> None:
    lines = [f" {n}%|▏ | {10 * n}/300 [00:01<00:30,  1.0it/s]{row}" for n, row in enumerate(PRINTED[:30], 1)]
    run = log(tmp_path, "\r".join(lines) + "\n")
    assert values(run, "reward") == [(10 * n, row["reward"]) for n, row in enumerate(PRINTED[:30], 1)]
    assert (run.step_axis, run.planned_steps) == ("step", 300)


def test_an_evaluation_between_is_no_step_of_its_own(tmp_path: Path) -> None:
    lines = [
        {"loss": 0.1, "epoch": 0.1},
        {"loss": 0.2, "epoch": 0.2},
        {"eval_loss": 0.9, "epoch": 0.2},
        {"loss": 0.3, "epoch": 0.3},
    ]
    run = log(tmp_path, "".join(f"{line}\n" for line in lines))
    assert values(run, "loss") == [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert values(run, "eval_loss") == [(2, 0.9)]


def test_two_runs_in_one_console_log_are_distinguished_by_their_epochs(tmp_path: Path) -> None:
    one, other = runs(tmp_path, "".join(f"{row}\n" for row in [*PRINTED, *PRINTED[:12]]))
    assert len(one.series["reward"]) == 30
    assert values(other, "reward") == [(n, row["reward"]) for n, row in enumerate(PRINTED[:12], 1)]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("{'loss': nan, 'kl': inf, 'reward': -inf}", {"loss": math.nan, "kl": math.inf, "reward": -math.inf}),
        (
            "{'loss': np.float64(1e-06), 'kl': tensor(0.5, device='cuda:0', grad_fn=<MeanBackward0>)}",
            {"loss": 1e-6, "kl": 0.5},
        ),
        ("{'loss': '0.1234', 'grad_norm': '1.5', 'epoch': '0.01'}", {"loss": 0.1234, "grad_norm": 1.5, "epoch": 0.01}),
        ("{'loss': None, 'kl': 0.1, 'note': 'fine', 'dist': [1, 2], 'ok': True}", {"loss": None, "kl": 0.1, "ok": 1.0}),
        ('INFO 12:00 {"loss": 0.5, "actor": {"kl": 0.1}}', {"loss": 0.5, "actor": {"kl": 0.1}}),
        ("{'loss': __import__('os').system('touch /tmp/x'), 'kl': 1.0}", {"kl": 1.0}),
    ],
)
def test_a_printed_dict_is_read_and_never_evaluated(printed: str, expected: dict[str, Any]) -> None:
    assert str(dict_in(printed)) == str(expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,568,987.96", 1568987.96),
        ("1_000.5", 1000.5),
        ("0_.57", 0.57),
        ("-∞", -math.inf),
        ("+nan", math.nan),
        ("0.05%", 0.0005),
        ("No Log", None),
        ("1,2", None),
        ("np.float64(1e-06)", 1e-6),
        ("tensor([0.5], device='cuda:0')", 0.5),
        ("f(f(1))", None),
        ("--inf", None),
        ("%", None),
        ("9" * 300, None),
        ("1e999", math.inf),
    ],
)
def test_numbers_in_any_spelling(text: str, value: float | None) -> None:
    assert str(number(text)) == str(value)


def test_a_dict_that_is_printed_over_several_lines_is_one_row(tmp_path: Path) -> None:
    run = log(
        tmp_path, "step\n{'loss': 0.5,\n 'kl': 0.1,\n 'epoch': 0.1}\n{'loss': 0.4,\n 'kl': 0.2,\n 'epoch': 0.2}\n"
    )
    assert values(run, "kl") == [(1, 0.1), (2, 0.2)]


def test_of_a_dict_that_is_cut_what_is_whole_is_read_and_one_at_the_end_is_waited_for(tmp_path: Path) -> None:
    run = log(
        tmp_path, "{'loss': 0.5, 'kl': 0.1, 'reward': 12\n{'loss': 0.4, 'kl': 0.2, 'reward': 125}\n{'loss': 0.3, 'k"
    )
    assert values(run, "kl") == [(1, 0.1), (2, 0.2)]
    assert values(run, "reward") == [(2, 125.0)]
    assert run.problems == ["train.log: 1 printed row is cut; what is whole in it was read"]
    assert run.clean is False


def test_boxes_that_tell_of_success_alone_are_a_log(tmp_path: Path) -> None:
    rates = [n / 40 for n in range(40)]
    boxes = [
        f"{'-' * 24}\n| epoch         | {n} |\n| test/success_rate  | {rate} |\n| train/success_rate | {rate} |\n{'-' * 24}\n"
        for n, rate in enumerate(rates)
    ]
    run = log(tmp_path, "T: 50\n_pi_lr: 0.001\n" + "".join(boxes))
    assert [value for _, value in values(run, "train/success_rate")] == rates


def test_the_status_of_ray_tune_is_a_row_of_its_first_trial(tmp_path: Path) -> None:
    rule = "+------------+----------+--------+-------+----------+\n"
    head = "| Trial name | status   |   iter |    ts |   reward |\n"
    status = (
        f"== Status ==\nNumber of trials: 2 (2 RUNNING)\n{rule}{head}{rule.replace('+', '|')}"
        "| PPO_00000  | RUNNING  | {0} | {1} | {2} |\n| PPO_00001  | RUNNING  | {0} | {1} | -7.5 |\n" + rule
    )
    run = log(tmp_path, "".join(status.format(n, 4000 * n, n / 8 - 3) for n in range(1, 31)))
    assert values(run, "reward") == [(n, n / 8 - 3) for n in range(1, 31)]
    assert any("of its 2 trials only PPO_00000 was read" in one for one in run.problems)


def test_a_count_before_the_first_bar_has_a_column_of_its_own(tmp_path: Path) -> None:
    rows = "".join(f"{n:4}: {n / 8:8.3f} | {-n / 4:8.2f} | {2600 - n:9.1f}\n" for n in range(30))
    run = log(tmp_path, "  Ep:   Reward |  Comp re |      loss\n" + rows)
    assert values(run, "Reward") == [(n, n / 8) for n in range(30)]
    assert values(run, "loss") == [(n, 2600.0 - n) for n in range(30)]


def test_boxes_of_a_trainer_are_the_log_beside_any_number_of_lines_for_single_episodes(tmp_path: Path) -> None:
    episode = "Episode Reward: -{0:.6f} | Episode Length: 21 | Episode Outcome: death\n"
    names = ["approx_kl", "clip_fraction", "entropy_loss", "explained_variance", "loss", "value_loss", "std"]
    rows = [
        "| rollout/ | |",
        "|    ep_rew_mean | -2{1} |",
        "| time/ | |",
        "|    total_timesteps | {0} |",
        "| train/ | |",
        *(f"|    {name} | 0.{{1}} |" for name in names),
    ]
    box = "\n".join(["-" * 40, *rows, "-" * 40, ""])
    text = "".join(
        "".join(episode.format(20 + (50 * n + k) / 7) for k in range(50)) + box.format(1024 * n, n)
        for n in range(1, 31)
    )
    run = log(tmp_path, text)
    assert [step for step, _ in values(run, "train/approx_kl")] == [1024 * n for n in range(1, 31)]
    assert "Episode Reward" not in run.series


def test_boxes_of_stable_baselines_carry_their_headings_to_their_rows(tmp_path: Path) -> None:
    box = "\n".join(
        [
            "-----------------------------------------",
            "| rollout/                |             |",
            "|    ep_rew_mean          | 22.3        |",
            "| time/                   |             |",
            "|    total_timesteps      | {0}        |",
            "| train/                  |             |",
            "|    approx_kl            | 0.00{1}7      |",
            "|    explained_variance   | nan         |",
            "-----------------------------------------",
        ]
    )
    run = log(tmp_path, "Using cpu device\n" + box.format(1024, 1) + "\n" + box.format(2048, 2) + "\n")
    assert values(run, "rollout/ep_rew_mean") == [(1024, 22.3), (2048, 22.3)]
    assert values(run, "train/approx_kl") == [(1024, 0.0017), (2048, 0.0027)]
    assert all(math.isnan(value) for _, value in values(run, "train/explained_variance"))
    assert run.step_axis == "time/total_timesteps"


def test_verls_lines_name_their_step(tmp_path: Path) -> None:
    lines = [
        f"(TaskRunner pid=87031) step:{step} - actor/kl_loss:0.0{step} - actor/pg_loss:nan - perf/x:np.float64(2.5)"
        for step in (83, 84)
    ]
    run = log(tmp_path, "\n".join(lines) + "\n")
    assert values(run, "actor/kl_loss") == [(83, 0.083), (84, 0.084)]
    assert math.isnan(run.series["actor/pg_loss"].values[0])
    assert values(run, "perf/x") == [(83, 2.5), (84, 2.5)]


def test_tables_of_a_notebook_are_rows_with_their_spaces_in_the_names(tmp_path: Path) -> None:
    text = (
        "Step | Training Loss | completions / mean_length\n-- | -- | --\n1 | No Log | 1,115.5\n2 | -0.000000 | 1200.0\n"
    )
    run = log(tmp_path, text)
    assert values(run, "completions / mean_length") == [(1, 1115.5), (2, 1200.0)]
    assert values(run, "Training Loss") == [(2, -0.0)]


def test_named_lines_make_a_row_until_a_name_comes_again(tmp_path: Path) -> None:
    one = "grpo_loss/kl_mean: 1,568,987.96\ngrpo_loss/total_loss: 1.77\n"
    run = log(tmp_path, one + one.replace("1.77", "1.5"))
    assert values(run, "grpo_loss/total_loss") == [(1, 1.77), (2, 1.5)]
    assert values(run, "grpo_loss/kl_mean") == [(1, 1568987.96), (2, 1568987.96)]


def test_a_console_that_grows_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.touch()
    text = "".join(f"{row}\n" for row in PRINTED)
    console = ConsoleLog(path)
    with path.open("a") as file:
        for start in range(0, len(text), 997):
            file.write(text[start : start + 997])
            file.flush()
            try:
                console.poll()
            except RlhealthError:
                assert start < 997
    assert values(console.runs[0], "reward") == [(n, row["reward"]) for n, row in enumerate(PRINTED[:30], 1)]


def test_a_console_without_rows_is_reported_so(tmp_path: Path) -> None:
    with pytest.raises(RlhealthError, match="no metrics found"):
        runs(tmp_path, "nothing\nto {see}\nhere 'really'\n")


def test_noise_with_open_braces_costs_no_row(tmp_path: Path) -> None:
    run = log(
        tmp_path,
        "{'a\n" * 50 + "def f(): return {'x\n{'loss': 0.5, 'kl': 0.1}\n" + "}{'\n" * 50 + "{'loss': 0.4, 'kl': 0.2}\n",
    )
    assert values(run, "kl") == [(1, 0.1), (2, 0.2)]


def test_lines_that_could_take_for_ever_do_not() -> None:
    printed = Printed()
    for line in (
        "{'" + "a': {'" * 50_000,
        "{'" * 100_000,
        "'a': " * 100_000 + "{'",
        "a=1," * 100_000,
        "| " * 200_000,
        "x/" * 100_000 + ": 1",
    ):
        assert len(list(printed.rows(line))) <= 1


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "console", "state"])
def test_stdin_is_known_by_its_first_bytes(kind: str) -> None:
    frame = io.StringIO()
    pd.DataFrame(ROWS).to_csv(frame, index=False)
    text = {
        "jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
        "json": json.dumps(ROWS, indent=1),
        "csv": frame.getvalue(),
        "console": "Loading\n" + "".join(f"{row}\n" for row in ROWS),
        "state": json.dumps({"epoch": 1.0, "log_history": ROWS, "max_steps": 30}, indent=2),
    }[kind]
    (reader,) = table.find_stdin(io.BytesIO(text.encode()))
    assert reader.run.name == "stdin"
    assert values(reader.run, "reward") == [(row["step"], row["reward"]) for row in ROWS[:30]]


def test_a_log_can_be_piped_in() -> None:
    code = "from rlhealth.sources import open_runs; run, = open_runs('-'); print(len(run.series['reward']))"
    text = "".join(f"{row}\n" for row in PRINTED)
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, cwd=FIXTURES.parent)
    assert done.stdout.strip() == "30", done.stderr


def test_settings_that_are_printed_before_the_rows_are_no_form_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    head = "(TaskRunner pid=7) {'policy_loss': {'kl_cov_ratio': 0.0002,\n(TaskRunner pid=7)  'ppo_kl_coef': 0.1, 'entropy_coeff': 0.0}}\n"
    rows = [
        f"(TaskRunner pid=7) step:{step} - actor/entropy:{0.5 / step} - critic/score/mean:{step / 100} - actor/grad_norm:0.{step:03}"
        for step in range(1, 101)
    ]
    log.write_text(head * 2 + "\n".join(rows) + "\n")
    (run,) = open_runs(log)
    assert len(run.series["critic/score/mean"]) == 100
