"""JSON documents of somebody's own code: which lists of it are one run, and what is left out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rlhealth.metrics import translate
from rlhealth.run import UnreadFile
from rlhealth.sources import open_runs
from rlhealth.sources.discovery.find import find_readers
from rlhealth.sources.rows.json_tables import runs_of, unpivoted

FIXTURES = Path(__file__).parents[3] / "fixtures"
EPISODES = [float(n % 7 - n) for n in range(1, 41)]


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document, indent=1))
    return path


def test_an_evaluation_by_episodes_stands_beside_the_returns_of_episodes(tmp_path: Path) -> None:
    evaluated = [{"step": 900 * n, "episode": 10 * n, "mean_return": float(n)} for n in range(1, 5)]
    (run,) = open_runs(write(tmp_path / "training_log.json", {"training_returns": EPISODES, "eval_returns": evaluated}))
    metrics = translate(run).metrics
    assert metrics["reward"].steps.tolist() == list(range(1, 41))
    assert metrics["eval/reward"].steps.tolist() == [10, 20, 30, 40]
    assert metrics["eval/reward"].values.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_losses_of_every_fifth_episode_are_put_where_they_belong(tmp_path: Path) -> None:
    losses = [float(n) for n in range(1, 9)]
    (run,) = open_runs(write(tmp_path / "metrics.json", {"episode_rewards": EPISODES, "policy_losses": losses}))
    assert run.series["policy_losses"].steps.tolist() == [5, 10, 15, 20, 25, 30, 35, 40]


def test_a_list_that_counts_something_else_is_left_out_and_named(tmp_path: Path) -> None:
    document = {"episode_rewards": EPISODES, "losses": [0.5] * 1234}
    (run,) = open_runs(write(tmp_path / "metrics.json", document))
    assert set(run.series) == {"episode_rewards"}
    assert "lists that count something else were left out: losses (1,234 values)" in run.notes


def test_algorithms_that_are_compared_are_runs_of_their_own(tmp_path: Path) -> None:
    document = {name: {"rewards": EPISODES, "lengths": EPISODES} for name in ("dqn", "ppo", "a2c")} | {"seed": 3}
    runs = open_runs(write(tmp_path / "comparison.json", document))
    assert [run.name for run in runs] == ["comparison", "comparison#ppo", "comparison#a2c"]
    assert all(run.series["rewards"].values.tolist() == EPISODES for run in runs)


def test_what_was_counted_beside_a_log_is_no_run(tmp_path: Path) -> None:
    counted = {name: {"yes": [3, 5], "no": [7, 5]} for name in ("base", "tuned")}
    curve = [{"epoch": n / 50, "reward": 0.5 + n / 100, "kl": 0.001 * n} for n in range(40)]
    (run,) = open_runs(write(tmp_path / "metrics.json", {"curves": {"grpo": curve}, "recall": counted}))
    assert len(run.series["reward"].values) == 40


def test_the_agents_of_one_game_are_one_run(tmp_path: Path) -> None:
    document = {f"agent_{n}": {"rewards": [one + n for one in EPISODES], "x": EPISODES} for n in range(2)}
    (run,) = open_runs(write(tmp_path / "metrics.json", document))
    assert run.series["agent_1/rewards"].values.tolist() == [one + 1 for one in EPISODES]


def test_the_metrics_of_sacred_have_their_names_and_their_steps() -> None:
    (run,) = open_runs(FIXTURES / "trackers" / "sacred")
    reward = translate(run).metrics["reward"]
    assert reward.tag == "training.episode_reward"
    assert reward.steps.tolist() == list(range(1, 161)) and reward.values[-1] > 9
    assert translate(run).metrics["policy/exploration_rate"].tag == "training.epsilon"


def test_training_and_evaluation_are_sides_of_one_run(tmp_path: Path) -> None:
    rows = [{"step": n, "reward": one} for n, one in enumerate(EPISODES)]
    (run,) = open_runs(write(tmp_path / "metrics.json", {"train": rows, "eval": rows[::10]}))
    assert run.series["reward"].values.tolist() == EPISODES
    assert run.series["eval/reward"].steps.tolist() == [0, 10, 20, 30]


def test_rewards_of_the_samples_of_a_step_are_their_mean_and_spread(tmp_path: Path) -> None:
    rows = [{"step": n, "rewards": [0.0, 1.0, 1.0, 0.0], "loss": 0.1} for n in range(1, 30)]
    (run,) = open_runs(write(tmp_path / "stats.json", {"per_step": rows, "useful": 29}))
    metrics = translate(run).metrics
    assert set(metrics["reward"].values.tolist()) == {0.5} == set(metrics["reward_std"].values.tolist())


def test_a_folder_with_such_a_file_is_read_and_one_with_a_data_set_is_not(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    rows = [{"episode": n, "phase": "early", "total_reward": one} for n, one in enumerate(EPISODES)]
    write(tmp_path / "run" / "training_logs.json", {"n_episodes": 40, "episodes": rows})
    items = [{"question": f"what is {n}?", "answer": str(n), "score": 1.0} for n in range(40)]
    write(tmp_path / "run" / "problems.json", {"version": 1, "items": items})
    (run,) = open_runs(tmp_path / "run")
    assert run.place.location.endswith("training_logs.json")


def test_points_in_lines_are_under_their_names(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(
        "".join(
            json.dumps({"metric": name, "step": n, "value": one}) + "\n"
            for n, one in enumerate(EPISODES)
            for name in ("reward", "kl")
        )
    )
    (run,) = open_runs(path)
    assert run.series["reward"].values.tolist() == run.series["kl"].values.tolist() == EPISODES


@given(st.dictionaries(st.text(max_size=6), st.floats() | st.text(max_size=5) | st.none(), max_size=5))
def test_a_row_that_is_no_point_stays_as_it_is(row: dict[str, object]) -> None:
    row.pop("value", None)
    assert unpivoted(row) is row


VALUES = st.floats(width=16) | st.integers(-3, 9) | st.none() | st.text(max_size=3)
NAMES = st.sampled_from(
    ["step", "steps", "reward", "eval_reward", "loss", "episode", "train", "agent_0", "x", "12", "13"]
)
DOCUMENTS = st.recursive(
    VALUES | st.lists(VALUES, max_size=6),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=30,
)


@given(st.dictionaries(NAMES, DOCUMENTS, max_size=6))
def test_no_document_fails_and_no_number_is_made_up(document: dict[str, object]) -> None:
    held = json.dumps(document)
    for found in runs_of(document):
        for row in found.rows:
            for name, value in row.items():
                if isinstance(value, str):
                    assert json.dumps(value) in held
                assert isinstance(name, str)


def test_what_was_gathered_beside_a_trackers_log_is_named_and_left_out(tmp_path: Path) -> None:
    (logged,) = (FIXTURES / "everywhere" / "grpo-short" / "runs").iterdir()
    shutil.copytree(logged, tmp_path / "run")
    (tmp_path / "run" / "results").mkdir()
    rows = [{"step": n, "reward": one} for n, one in enumerate(EPISODES)]
    write(tmp_path / "run" / "results" / "history.json", {"n": 40, "steps": rows})
    left: list[UnreadFile] = []
    (reader,) = find_readers(tmp_path, left=left)
    assert reader.run.place.kind == "tensorboard"
    assert [Path(one.location).name for one in left] == ["history.json"]
    assert len(open_runs(tmp_path / "run" / "results")) == 1
