"""Lists in a JSON document whose own names say nothing: of tasks, agents and seeds, and lists of whole runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.sources import open_runs

CURVES = [[float(n % 5 + n * k) for n in range(40)] for k in range(1, 4)]


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document, indent=1))
    return path.parent


def test_rewards_by_task_are_rewards_under_the_names_of_the_tasks(tmp_path: Path) -> None:
    tasks = dict(zip(("easy", "medium", "hard"), CURVES, strict=True))
    document = {"rewards_per_episode": tasks, "td_losses": {one: [0.1] * 40 for one in tasks}}
    (run,) = open_runs(write(tmp_path / "training_results.json", document))
    assert {name: run.series[f"rewards/{name}"].values.tolist() for name in tasks} == tasks
    assert len(run.series["td_losses/hard"]) == 40
    assert set(translate(run).metrics) >= {"rewards/easy/mean", "rewards/medium/mean", "rewards/hard/mean"}


def test_lists_by_seed_are_runs_of_their_own(tmp_path: Path) -> None:
    seeds = dict(zip(("seed_0", "seed_1", "seed_2"), CURVES, strict=True))
    runs = open_runs(write(tmp_path / "results.json", {"episode_rewards": seeds}))
    assert [translate(run).metrics["reward"].values.tolist() for run in runs] == CURVES


def test_lists_by_learning_rate_in_a_file_of_rewards_are_runs_of_their_own(tmp_path: Path) -> None:
    runs = open_runs(write(tmp_path / "rewards_data.json", dict(zip(("0.1", "0.01", "1e-3"), CURVES, strict=True))))
    assert [translate(run).metrics["reward"].values.tolist() for run in runs] == CURVES


@pytest.mark.parametrize("name", ["results.json", "scores.json"])
def test_lists_that_nothing_calls_rewards_are_no_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(write(tmp_path / name, dict(zip(("0.1", "0.01", "1e-3"), CURVES, strict=True))))


def test_agents_stand_beside_the_reward_of_all(tmp_path: Path) -> None:
    document = {
        "episode_rewards": CURVES[2],
        "agent_losses": [[0.1, 0.2]] * 40,
        "agent_rewards": {"agent_0": CURVES[0], "agent_1": CURVES[1]},
    }
    (run,) = open_runs(write(tmp_path / "marl_training_history.json", document))
    assert translate(run).metrics["reward"].values.tolist() == CURVES[2]
    assert run.series["rewards/agent_1"].values.tolist() == CURVES[1]
    assert run.series["rewards/agent_1"].steps.tolist() == run.series["episode_rewards"].steps.tolist()


def test_a_list_of_runs_holds_each_of_them(tmp_path: Path) -> None:
    document = [{"seed": n, "max_reward": max(one), "episode_rewards": one} for n, one in enumerate(CURVES)]
    runs = open_runs(write(tmp_path / "sac_results.json", document))
    assert [run.series["episode_rewards"].values.tolist() for run in runs] == CURVES
    assert [run.name.partition("#")[2] for run in runs[1:]] == ["seed 1", "seed 2"]


def test_a_list_of_algorithms_each_with_its_history_holds_a_run_of_each(tmp_path: Path) -> None:
    told = zip(("grpo", "dpo", "ppo"), CURVES, strict=True)
    document = [{"algorithm": one, "final_acc": 0.3, "history": {"rewards": of, "losses": of}} for one, of in told]
    runs = open_runs(write(tmp_path / "results.json", document))
    assert [translate(run).metrics["reward"].values.tolist() for run in runs] == CURVES
    assert [run.name.partition("#")[2] for run in runs[1:]] == ["dpo", "ppo"]


def test_histories_of_repetitions_are_runs(tmp_path: Path) -> None:
    document = {
        "runs": [
            {"run": n, "history": [{"episode": at, "reward": value} for at, value in enumerate(one, 1)]}
            for n, one in enumerate(CURVES)
        ]
    }
    runs = open_runs(write(tmp_path / "experiment.json", document))
    assert [run.series["reward"].values.tolist() for run in runs] == CURVES


def test_the_steps_of_rounds_and_episodes_are_no_runs(tmp_path: Path) -> None:
    rounds = [{"episode": n, "reward": one, "step_rewards": [one / 10] * 10} for n, one in enumerate(CURVES[0])]
    (run,) = open_runs(write(tmp_path / "history.json", rounds))
    assert run.series["reward"].values.tolist() == CURVES[0]


def test_a_table_that_pandas_splits_is_read_by_its_columns(tmp_path: Path) -> None:
    table = pd.DataFrame({"episode": np.arange(40), "reward": CURVES[0], "loss": CURVES[1]})
    table.to_json(tmp_path / "training.json", orient="split")
    (run,) = open_runs(tmp_path)
    assert run.series["reward"].values.tolist() == CURVES[0]
    assert run.series["reward"].steps.tolist() == list(range(40))


def test_what_came_out_in_the_end_is_no_run_beside_the_rewards(tmp_path: Path) -> None:
    (tmp_path / "run_stats.json").write_text('{"episodes": 40, "wins": 12, "mean_reward": 0.7}')
    (tmp_path / "reward_history.json").write_text(json.dumps(CURVES[0]))
    (run,) = open_runs(tmp_path)
    assert translate(run).metrics["reward"].values.tolist() == CURVES[0]


def test_what_came_out_in_the_end_is_no_run_alone(tmp_path: Path) -> None:
    document = {name: {"mean_reward": 0.5, "std_reward": 0.1} for name in ("normal", "surge")}
    (tmp_path / "eval_results.json").write_text(json.dumps(document))
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path)


def test_the_columns_of_seeds_in_a_table_of_rewards_are_rewards(tmp_path: Path) -> None:
    seeds = {f"seed_{n}": one for n, one in enumerate(CURVES)}
    pd.DataFrame({"episode": np.arange(40), **seeds}).to_csv(tmp_path / "rewards_all_seeds.csv", index=False)
    (run,) = open_runs(tmp_path)
    assert run.series["rewards/seed_2"].values.tolist() == CURVES[2]


def test_settings_that_were_tried_are_no_steps(tmp_path: Path) -> None:
    trials = [{"params": {"lr": 10.0**-n, "units": 32}, "accuracy": 0.1 * n, "config_id": n} for n in range(5)]
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(write(tmp_path / "training_log.json", trials))


def test_tasks_that_were_solved_are_no_steps(tmp_path: Path) -> None:
    solved = [{"task_id": f"t{n}", "steps": 8, "mean_reward": 0.1 * n, "seconds": 3.0} for n in range(5)]
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(write(tmp_path / "results.json", solved))


def test_steps_that_name_their_task_are_steps(tmp_path: Path) -> None:
    steps = [{"task_id": f"t{n}", "reward": one, "loss": 0.1, "kl": 0.01} for n, one in enumerate(CURVES[0])]
    (run,) = open_runs(write(tmp_path / "training_log.json", steps))
    assert run.series["reward"].values.tolist() == CURVES[0]


def test_objects_by_seed_are_runs_and_no_steps(tmp_path: Path) -> None:
    seeds = {str(42 + n): {"episode_rewards": one, "lengths": one} for n, one in enumerate(CURVES)}
    runs = open_runs(write(tmp_path / "results.json", {"seeds": seeds, "mean_final": 3.0}))
    assert [run.series["episode_rewards"].values.tolist() for run in runs] == CURVES


def test_a_grid_of_learning_rates_is_no_training(tmp_path: Path) -> None:
    grid = [{"trial": n, "lr": 10.0 ** -(n % 4), "gamma": 0.99, "mean_reward": 1.0 * n} for n in range(24)]
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(write(tmp_path / "sweep_results.json", grid))
