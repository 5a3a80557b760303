"""Tables and lines that people really have: decimal commas, columns of a page's export, words and numbers without signs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import Run
from rlhealth.sources import open_runs

TABLES = Path(__file__).parents[3] / "fixtures" / "tables"
REWARDS = [0.125, 0.25, 0.0625, 0.5, 0.375, 0.75]
ROWS = list(enumerate(REWARDS, 1))


def read(tmp_path: Path, name: str, text: str) -> Run:
    (tmp_path / name).write_text(text)
    (run,) = open_runs(tmp_path / name)
    return run


def reward(run: Run) -> list[tuple[int, float]]:
    found = translate(run).metrics["reward"]
    return list(zip(found.steps.tolist(), found.values.tolist(), strict=True))


@pytest.mark.parametrize("header", ["Episodio,Recompensa Total", "Episod,RecompensaTotala", "Épisode,Récompense"])
def test_a_table_with_names_in_another_language_is_found_in_its_folder(header: str, tmp_path: Path) -> None:
    rows = "".join(f"{step},{value}\n" for step, value in ROWS)
    (tmp_path / "log.csv").write_text(f"{header}\n{rows}")
    (run,) = open_runs(tmp_path)
    assert reward(run) == ROWS


LINES: dict[str, Callable[[int, float], str]] = {
    "words and numbers": lambda n, r: f"episode {n} reward {r} length 20\n",
    "arrows and dots": lambda n, r: f"Step {n} ▸ reward {r} · kl 0.01 · loss 0.1\n",
    "a sentence": lambda n, r: (
        f"[INFO] 3DBall. Step: {n}. Time Elapsed: 0.5 s. Mean Reward: {r}. Std of Reward: 0.1. Training.\n"
    ),
    "statistics of one name": lambda n, r: f"step {n}\nRewards: mean={r}, std=0.1, min=0.0\nloss: 0.1\n",
    "tensors": lambda n, r: (
        f"Step {n}: reward: tensor({r}, device='cuda:0') loss: tensor(0.1, grad_fn=<MeanBackward0>)\n"
    ),
    "an episode and its length": lambda n, r: f"Episode {n}: reward={r}, steps={900 - 7 * n}, speed=99.5 f/s\n",
    "a short word for an episode": lambda n, r: f"ep={n:04d} [easy] steps={30 - n:03d}  reward= {r:+.4f}  hp=100.0\n",
    "a list of one": lambda n, r: f"global_step={n}, episodic_return=[{r}]\n",
    "a reward below its step": lambda n, r: (
        f"Epoch: 0 | Step: {n} | Actor Loss: 0.1 | Critic Loss: 0.2\naverage reward score: {r}\n"
    ),
}


@pytest.mark.parametrize("form", LINES)
def test_a_line_of_that_form_is_read(form: str, tmp_path: Path) -> None:
    assert reward(read(tmp_path, "train.log", "".join(LINES[form](n, r) for n, r in ROWS))) == ROWS


@pytest.mark.parametrize("form", LINES)
def test_a_log_of_that_form_torn_anywhere_says_nothing_that_nobody_printed(form: str, tmp_path: Path) -> None:
    text = "".join(LINES[form](n, r) for n, r in ROWS)
    for cut in range(len(text) // 2, len(text)):
        try:
            run = read(tmp_path, "train.log", text[:cut])
        except RlhealthError:
            continue
        found = translate(run).metrics.get("reward")
        for step, value in zip(found.steps.tolist(), found.values.tolist(), strict=True) if found else ():
            assert (step, value) in ROWS, text[:cut][-80:]


def test_an_evaluation_does_not_overwrite_the_step_that_it_is_of(tmp_path: Path) -> None:
    text = "".join(f"[train] step: {n}, reward: {r}, kl: 0.1\n[eval] step: {n}, reward: 9.5\n" for n, r in ROWS)
    run = read(tmp_path, "train.log", text)
    assert reward(run) == ROWS
    assert translate(run).metrics["eval/reward"].values.tolist() == [9.5] * len(ROWS)


def test_a_data_frame_that_was_printed(tmp_path: Path) -> None:
    text = "    step  reward       kl\n" + "".join(f"{n - 1:<4d}{n:4d}  {r:.4f}  0.01000\n" for n, r in ROWS)
    assert reward(read(tmp_path, "out.txt", "loading\n" + text + "\nsaved the model\n")) == ROWS


def test_decimal_commas_between_semicolons(tmp_path: Path) -> None:
    text = "step;reward;kl\n" + "".join(f"{n};{r};0.001\n".replace(".", ",") for n, r in ROWS)
    run = read(tmp_path, "export.csv", text)
    assert reward(run) == ROWS
    assert set(run.series["kl"].values) == {0.001}


def test_thousands_are_no_decimals(tmp_path: Path) -> None:
    run = read(tmp_path, "progress.csv", 'step,reward,num_tokens\n1,0.5,"1,234,567"\n2,0.25,"1,300,000"\n')
    assert run.series["num_tokens"].values.tolist() == [1234567.0, 1300000.0]
    assert reward(run) == [(1, 0.5), (2, 0.25)]


DOCUMENTS = {
    "rows by their step": {str(n): {"reward": r, "kl": 0.1} for n, r in ROWS},
    "rows by a named step": {f"step_{n}": {"reward": r, "kl": 0.1} for n, r in ROWS},
    "columns inside": {"config": {"lr": 1e-5}, "history": {"reward": REWARDS, "kl": [0.1] * len(REWARDS)}},
    "columns beside settings": {"steps": [n for n, _ in ROWS], "rewards": REWARDS, "kl": [0.1] * len(REWARDS)},
    "rows under a name": {"total_steps": 6, "steps": [{"step": n, "reward": r, "kl": 0.1} for n, r in ROWS]},
    "pairs": {"reward": [[n, r] for n, r in ROWS], "kl": [[n, 0.1] for n, _ in ROWS]},
    "points by name": {"metrics": {"reward": [{"step": n, "value": r} for n, r in ROWS]}},
    "numbers by their step": {"reward": {str(n): r for n, r in ROWS}, "seed": 1},
    "lists with an axis each": {
        "losses": [{"step": n, "loss": 0.1} for n in range(1, 30)],
        "reward": REWARDS,
        "reward_steps": [n for n, _ in ROWS],
    },
    "a history inside": {"run": {"log_history": [{"step": n, "reward": r, "kl": 0.1} for n, r in ROWS]}, "seed": 1},
}


@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_document_of_that_form_is_read(form: str, indent: int | None, tmp_path: Path) -> None:
    assert reward(read(tmp_path, "metrics.json", json.dumps(DOCUMENTS[form], indent=indent))) == ROWS


def test_points_as_tensorboards_page_exports_them() -> None:
    (exported,) = open_runs(TABLES / "run-grpo-short-tag-train_reward.json")
    (logged,) = open_runs(TABLES.parent / "everywhere" / "grpo-short", source="tensorboard")
    found, expected = exported.series["train_reward"], logged.series["train/reward"]
    assert np.array_equal(found.steps, expected.steps)
    assert np.allclose(found.values, expected.values)
    assert np.allclose(found.times, expected.times)


def test_a_spreadsheet_of_a_country_with_decimal_commas() -> None:
    (run,) = open_runs(TABLES / "decimal_comma.csv")
    assert reward(run) == [(n, n / 64) for n in range(1, 25)]


@pytest.mark.parametrize(
    "header", ["回合,总奖励,步数,损失", "episodio,recompensa_total,pasos,pérdida", "Эпизод,Награда,Шаги,Потери"]
)
def test_a_table_whose_columns_are_named_in_another_language(header: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(header + "\n" + "".join(f"{n},{n / 10},200,0.5\n" for n in range(30)), encoding="utf-8")
    (run,) = open_runs(str(path))
    assert translate(run).metrics["reward"].steps.tolist() == list(range(30))


def test_the_steps_of_an_episode_are_its_length_and_do_not_count_training(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text(
        "episode,reward,steps\n" + "".join(f"{row},{row / 9},{30 + 170 * (row % 3)}\n" for row in range(1, 40))
    )
    (run,) = open_runs(file)
    assert run.series["reward"].steps.tolist() == list(range(1, 40))
    assert set(run.series["steps"].values.tolist()) == {30.0, 200.0, 370.0}


def test_metrics_behind_the_index_that_pandas_writes_are_a_log_and_a_table_of_data_is_none(tmp_path: Path) -> None:
    rows = "".join(f"{n},{reward},{n / 7}\n" for n, reward in enumerate(REWARDS * 4))
    (tmp_path / "Both.csv").write_text(f",avg_rewards,mean_q\n{rows}")
    (run,) = open_runs(tmp_path)
    assert [value for _, value in reward(run)] == REWARDS * 4
    (tmp_path / "Both.csv").write_text(
        ",open,close,volume,return\n" + "".join(f"{n},1.5,1.6,300,0.1\n" for n in range(24))
    )
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path)


def test_what_transformers_logs_of_a_whole_training_stands_in_other_columns_and_is_left_out(tmp_path: Path) -> None:
    head = "step,reward,loss,kl,grad_norm,learning_rate,completions/mean_length,epoch\n"
    rows = "".join(f"{n},{r},0.1,0.01,0.5,1e-6,200.5,0.1\n" for n, r in ROWS)
    run = read(tmp_path, "metrics.csv", f"{head}{rows}{ROWS[-1][0]},4760.18,0.168\n")
    assert reward(run) == ROWS
    assert "1 line that sums up the training, in other columns, left out" in run.notes
    again = read(tmp_path, "log.csv", f"{head}{rows}7,0.5,0.2\n")
    assert reward(again) == [*ROWS, (7, 0.5)], "a short row of a new step is a row"


@pytest.mark.parametrize(
    ("first", "columns"),
    [("0,0,move_right,-4.07,160,0.08", 6), ("1,0.5,-1", 3), ("2024-01-02,1,0.5,0.25,0.1", 5)],
)
def test_a_first_line_of_values_is_no_header(first: str, columns: int, tmp_path: Path) -> None:
    with pytest.raises(RlhealthError) as raised:
        read(tmp_path, "output.csv", f"{first}\n" * 20)
    assert "no header line" in str(raised.value) and f"{columns} columns" in raised.value.hint


@pytest.mark.parametrize("first", ["step,reward,0,1,2,3,4,5,6", "Episode,0.25,0.5,0.75,1.0"])
def test_a_header_may_have_numbers_for_names(first: str, tmp_path: Path) -> None:
    columns = first.count(",") + 1
    run = read(tmp_path, "output.csv", f"{first}\n" + "".join(",".join([str(n)] * columns) + "\n" for n in range(20)))
    assert run.last_step == 19
