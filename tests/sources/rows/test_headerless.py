"""Tables without a line of names, in files that are called after what they hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.sources import open_runs
from rlhealth.sources.discovery.find import find_readers
from rlhealth.sources.rows.csv_log import CsvLog
from rlhealth.sources.rows.headerless import names_of, tag_of

RETURNS = np.arange(40) / 8


@pytest.mark.parametrize("name", ["rewards.txt", "episode_rewards.csv", "scores_2.dat", "returns"])
def test_a_list_that_numpy_saved_is_under_the_name_of_its_file(name: str, tmp_path: Path) -> None:
    np.savetxt(tmp_path / name, RETURNS)
    (run,) = open_runs(tmp_path / name)
    (tag,) = run.series
    assert translate(run).metrics["reward"].tag == tag
    assert run.series[tag].values.tolist() == RETURNS.tolist()


@pytest.mark.parametrize(
    ("stem", "tag"),
    [
        ("rewards_history", "rewards_history"),  # known as it is
        ("dqn_rewards", "dqn_rewards"),
        ("lunar_lander_rewards", "lunar_lander_rewards"),
        ("q_learning_scores", "episode_scores"),
        ("all_returns", "all_returns"),
        ("test_rewards_dqn", "test_rewards_dqn"),
        ("test_rewards_taxi", "eval_reward"),
        ("cumulative_rewards", "cumulative_rewards"),
        ("rewards_std_dqn", "rewards_std_dqn"),
        ("reward_model_scores", "reward_model_scores"),
        ("losses", "losses"),
    ],
)
def test_a_file_gives_its_numbers_the_name_of_a_metric(stem: str, tag: str) -> None:
    assert tag_of(stem) == tag


@pytest.mark.parametrize(
    "name", ["rewards_history.json", "scores.json", "rewards.txt", "episode_rewards_1.json", "ppo_returns.json"]
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_list_of_numbers_is_the_reward_of_a_run(name: str, indent: int | None, tmp_path: Path) -> None:
    (tmp_path / name).write_text(json.dumps(RETURNS.tolist(), indent=indent))
    for where in (tmp_path, tmp_path / name):
        (run,) = open_runs(where)
        assert translate(run).metrics["reward"].values.tolist() == RETURNS.tolist()
        assert translate(run).metrics["reward"].steps.tolist() == list(range(1, 41))


def test_a_json_list_keeps_what_is_not_finite_and_the_places_of_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "rewards.json").write_text("[1.0, NaN, null, -Infinity, 2, 3, 4, 5, 6, 7]")
    (run,) = open_runs(tmp_path)
    assert run.series["rewards"].steps.tolist() == [1, 2, 4, 5, 6, 7, 8, 9, 10]
    assert np.isnan(run.series["rewards"].values[1])
    assert run.series["rewards"].values[2] == -np.inf


@pytest.mark.parametrize("cut", range(20, 60, 3))
def test_a_json_list_that_ends_early_gives_its_whole_numbers_and_says_so(cut: int, tmp_path: Path) -> None:
    whole = json.dumps([float(n) for n in range(1000, 1040)])
    (tmp_path / "rewards.json").write_text(whole[:cut])
    (run,) = open_runs(tmp_path / "rewards.json")
    assert run.series["rewards"].values.tolist() == [1000.0 + n for n in range(whole[:cut].count(","))]
    assert any("ends inside" in problem for problem in run.problems)


def test_a_json_list_that_is_written_anew_grows(tmp_path: Path) -> None:
    path = tmp_path / "rewards.json"
    path.write_text(json.dumps(RETURNS[:20].tolist()))
    (one,) = find_readers(path)
    path.write_text(json.dumps(RETURNS.tolist()))
    assert one.poll()
    assert one.run.series["rewards"].values.tolist() == RETURNS.tolist()


@pytest.mark.parametrize("stamp", ["[12:30:01]", "[1]", "[2026-01-31 12:30:01,250]", "[0.5]", "[1, 2]"])
def test_a_console_that_begins_with_a_bracket_stays_one(stamp: str, tmp_path: Path) -> None:
    lines = [f"{stamp} step {n} reward {n / 8} loss {1 / n}" for n in range(1, 30)]
    (tmp_path / "reward.log").write_text("\n".join(lines) + "\n")
    (run,) = open_runs(tmp_path)
    assert run.place.kind == "console"
    assert len(run.series["reward"]) == 29


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ids.json", json.dumps(RETURNS.tolist())),
        ("rewards.json", json.dumps(RETURNS[:9].tolist())),
        ("losses.json", json.dumps(RETURNS.tolist())),
        ("max_rewards.json", json.dumps(RETURNS.tolist())),
        ("dataset_rewards.json", json.dumps(RETURNS.tolist())),
        ("rewards.json", json.dumps(["a", 1.0] * 10)),
        ("rewards.json", json.dumps([1.0, [2.0]] * 10)),
        ("rewards.json", "[" * 2000),
        ("marks.csv", "score\n" + "85\n90\n" * 10),
        ("stocks.csv", "returns\n" + "0.5\n0.25\n" * 10),
        ("a.csv", "reward\n" + "1\n" * 9),
        ("a.csv", "reward\n" + "high\nlow\n" * 9),
    ],
)
def test_other_lists_in_a_folder_are_no_run(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("rewards3.csv", "Total Reward"),
        ("out.csv", "episode_reward"),
        ("scores.csv", "score"),
        ("returns.csv", "return"),
    ],
)
@pytest.mark.parametrize("rows", [False, True])
def test_one_column_of_rewards_is_a_run_of_a_folder(name: str, header: str, rows: bool, tmp_path: Path) -> None:
    table = pd.DataFrame({header: RETURNS})
    table.to_csv(tmp_path / name, index=rows)
    (run,) = open_runs(tmp_path)
    assert run.series[header].values.tolist() == RETURNS.tolist()


def test_settings_beside_the_rewards_of_a_table_with_an_index_count_for_nothing(tmp_path: Path) -> None:
    table = pd.DataFrame({"rewards": RETURNS, "discount": 0.995, "learning rate": 0.15})
    table.to_csv(tmp_path / "out.csv")
    (run,) = open_runs(tmp_path)
    assert run.series["rewards"].values.tolist() == RETURNS.tolist()
    table.rename(columns={"discount": "depth", "learning rate": "width"}).to_csv(tmp_path / "out.csv")
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path)


@pytest.mark.parametrize("above", ["# Episode,Score\n", "# a run of mine\n\n# Episodio, Score\n", "#episode,score\r\n"])
@pytest.mark.parametrize("name", ["training_scores.txt", "out.csv"])
def test_a_header_behind_the_sign_of_a_comment_is_one(name: str, above: str, tmp_path: Path) -> None:
    rows = "".join(f"{n},{value}\n" for n, value in enumerate(RETURNS.tolist()))
    (tmp_path / name).write_text(above + rows)
    (run,) = open_runs(tmp_path)
    found = translate(run).metrics["reward"]
    assert (found.steps.tolist(), found.values.tolist()) == (list(range(40)), RETURNS.tolist())


def test_a_header_behind_a_sign_is_kept_until_the_first_row_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("# episode,score\n")
    log = CsvLog(path)
    with pytest.raises(RlhealthError, match="no metrics found"):
        log.poll()
    with path.open("a") as file:
        file.write("".join(f"{n},{value}\n" for n, value in enumerate(RETURNS.tolist())))
    assert log.poll()
    assert log.runs[0].series["score"].values.tolist() == RETURNS.tolist()


def test_a_table_in_which_git_left_the_marks_of_a_conflict_is_read_without_them(tmp_path: Path) -> None:
    rows = "".join(f"{n},{value}\n" for n, value in enumerate(RETURNS, 1))
    (tmp_path / "metrics.csv").write_text(f"<<<<<<< HEAD\nepisode,reward\n{rows}=======\n>>>>>>> 6467273d845e\n")
    (run,) = open_runs(tmp_path)
    assert run.series["reward"].values.tolist() == [float(value) for value in RETURNS]


def test_what_numpy_saves_with_a_header_is_a_run_and_a_comment_above_a_header_is_none(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "saved.csv", np.column_stack([np.arange(40), RETURNS]), delimiter=",", header="step,reward")
    (tmp_path / "said.csv").write_text("# seed, rate\nstep,reward\n" + "".join(f"{n},0.{n}\n" for n in range(20)))
    assert [set(run.series) for run in open_runs(tmp_path)] == [{"reward"}, {"reward"}]


def test_the_files_of_one_folder_of_d3rlpy_are_one_run(tmp_path: Path) -> None:
    for name, values in (("environment", RETURNS), ("loss", 1 / (1 + RETURNS)), ("time_step", RETURNS)):
        rows = [f"{n},{1000 * n},{value}" for n, value in enumerate(values.tolist(), 1)]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    (run,) = open_runs(tmp_path)
    assert run.series["environment"].steps.tolist() == [1000 * n for n in range(1, 41)]
    assert translate(run).metrics["eval/reward"].values.tolist() == RETURNS.tolist()
    assert translate(run).metrics["loss/value_avg"].tag == "loss"  # of an algorithm without an actor


@pytest.mark.parametrize("name", ["dqn_results.txt", "double_dqn_results.csv"])
def test_the_results_of_an_algorithm_alone_are_its_rewards(name: str, tmp_path: Path) -> None:
    np.savetxt(tmp_path / name, np.arange(30) / 8)
    (run,) = open_runs(tmp_path)
    assert translate(run).metrics["reward"].values.tolist() == (np.arange(30) / 8).tolist()


def test_numbers_in_a_file_of_another_name_are_no_log(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "weights.txt", RETURNS)
    assert not names_of("weights.txt", (tmp_path / "weights.txt").read_text())
    with pytest.raises(RlhealthError):
        open_runs(tmp_path / "weights.txt")


def test_a_table_with_names_or_other_columns_is_left_to_others() -> None:
    assert not names_of("rewards.csv", "step,reward\n1,0.5\n2,0.5\n3,0.5\n")
    assert not names_of("rewards.csv", "0.5,0.25\n0.5,0.25\n0.5,0.25\n0.5,0.25\n")
    assert not names_of("rewards.csv", "2,5,0.5\n1,4,0.5\n3,3,0.5\n4,4,0.5\n")


def test_two_columns_are_episodes_and_their_rewards(tmp_path: Path) -> None:
    lines = "\n".join(f"{n},{one}" for n, one in enumerate(RETURNS))
    (tmp_path / "reward_log.csv").write_text(lines + "\n")
    (run,) = open_runs(tmp_path)
    known = translate(run).metrics["reward"]
    assert (known.steps.tolist(), known.values.tolist()) == (list(range(40)), RETURNS.tolist())


def test_spaces_part_columns_as_numpy_writes_them_and_a_comma_may_end_a_line(tmp_path: Path) -> None:
    columns = np.column_stack([np.arange(40), 1000 * np.arange(40), RETURNS])
    np.savetxt(tmp_path / "rewards.txt", columns, fmt="%3d %8d %.3f")
    (run,) = open_runs(tmp_path)
    assert run.series["rewards"].steps.tolist() == [1000 * n for n in range(40)]
    assert run.series["rewards"].values.tolist() == RETURNS.tolist()
    (tmp_path / "rewards.txt").write_text("".join(f" {one},\r\n" for one in RETURNS))
    (run,) = open_runs(tmp_path)
    assert run.series["rewards"].values.tolist() == RETURNS.tolist()


def test_episodes_that_begin_anew_are_runs_that_were_appended(tmp_path: Path) -> None:
    lines = [f"{n},{one}" for _ in range(2) for n, one in enumerate(RETURNS)] + ["0,7.5"]
    (tmp_path / "reward_log.csv").write_text("\n".join(lines) + "\n")
    runs = open_runs(tmp_path)
    assert [translate(run).metrics["reward"].values.tolist() for run in runs[:2]] == [RETURNS.tolist()] * 2
    assert names_of("reward_log.csv", "0,1\n1,2\n0,1\n5,2\n9,2\n") == []


def test_two_columns_of_which_one_only_rises_are_steps_and_the_rewards_then(tmp_path: Path) -> None:
    steps = np.arange(1, 41) * 904 + np.arange(40) % 7
    np.savetxt(tmp_path / "rewards.csv", np.column_stack([steps, RETURNS]), delimiter=",")
    (run,) = open_runs(tmp_path)
    known = translate(run).metrics["reward"]
    assert (known.steps.tolist(), known.values.tolist()) == (steps.tolist(), RETURNS.tolist())
    few = "\n".join(f"{step},{one}" for step, one in zip(steps[:9], RETURNS[:9], strict=True))
    assert names_of("rewards.csv", few) == []


def test_a_wider_table_of_rewards_holds_them_behind_the_count(tmp_path: Path) -> None:
    lines = "\n".join(f"{n},{one - 50},{one / 2},{0.99**n}" for n, one in enumerate(RETURNS, 1))
    (tmp_path / "reward_history.csv").write_text(lines + "\n")
    (run,) = open_runs(tmp_path)
    assert translate(run).metrics["reward"].values.tolist() == (RETURNS - 50).tolist()
    assert {"column 3", "column 4"} <= run.series.keys()


def test_of_whole_numbers_behind_a_count_nobody_knows_whether_they_are_lengths() -> None:
    assert names_of("rewards.csv", "\n".join(f"{n},{90 + n},{one},7" for n, one in enumerate(RETURNS))) == []
    with_decimals = "\n".join(f"{n},{90 + n % 7}.00,{0.99**n:.3f}" for n in range(1, 40))
    assert names_of("rewards.csv", with_decimals) == ["episode", "rewards", "column 3"], "a length has none"
    saved_by_numpy = "\n".join(f"{n}.00,{90 + n % 7}.00,{0.99**n:.3f}" for n in range(1, 40))
    assert names_of("rewards.csv", saved_by_numpy) == []


def test_two_columns_that_do_not_count_are_no_run(tmp_path: Path) -> None:
    assert names_of("rewards.csv", "\n".join(f"{one},{one + 1}" for one in RETURNS)) == []


@pytest.mark.parametrize(
    "header", ["Epoch,Total Rewards", "Game,score,Record", "n_games,Mean Score", "Generation,return"]
)
def test_a_table_of_a_folder_that_counts_its_rewards_is_a_run(header: str, tmp_path: Path) -> None:
    more = ",9" * (header.count(",") - 1)
    lines = [header, *(f"{n},{one}{more}" for n, one in enumerate(RETURNS))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    (reader,) = find_readers(tmp_path)
    reader.poll()
    assert translate(reader.run).metrics["reward"].values.tolist() == RETURNS.tolist()


@pytest.mark.parametrize(
    ("header", "counts"),
    [
        ("id,score", range(40)),  # of a data set
        ("Game,score", [n * n for n in range(40)]),
        ("Round,score", range(500, 540)),
        ("Game,score max", range(40)),
    ],
)
def test_a_table_of_a_folder_that_counts_nothing_from_the_start_is_none(
    header: str, counts: Sequence[int], tmp_path: Path
) -> None:
    lines = [header, *(f"{n},{one}" for n, one in zip(counts, RETURNS, strict=True))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(RlhealthError):
        find_readers(tmp_path)


@pytest.mark.parametrize("algorithm", ["DQN", "Noisy DQN", "PPO*", "double_q_learning", "Dueling Double DQN", "SAC"])
def test_a_curve_that_is_named_after_an_algorithm_is_its_reward(tmp_path: Path, algorithm: str) -> None:
    pd.DataFrame({algorithm: RETURNS}).to_csv(tmp_path / "agent_4_2.csv")
    (run,) = open_runs(tmp_path)
    assert translate(run).metrics["reward"].values.tolist() == RETURNS.tolist()
    assert f"the column {algorithm} is named after an algorithm, and is read as its rewards" in run.notes


@pytest.mark.parametrize(
    ("file", "column"),
    [
        ("dqn_loss.csv", "DQN"),
        ("episode_lengths.csv", "PPO"),
        ("dqn_epsilon.csv", "DQN"),
        ("a.csv", "price"),
        ("a.csv", "A"),
    ],
)
def test_what_is_named_after_something_else_is_not(tmp_path: Path, file: str, column: str) -> None:
    pd.DataFrame({column: RETURNS}).to_csv(tmp_path / file)
    read = CsvLog(tmp_path / file)
    read.poll()
    assert "reward" not in {name for run in read.runs for name in translate(run).metrics}


@pytest.mark.parametrize("index", [True, False])
def test_a_list_that_pandas_saved_without_a_name_is_under_the_name_of_its_file(tmp_path: Path, index: bool) -> None:
    pd.DataFrame(RETURNS).to_csv(tmp_path / "returns.csv", index=index)
    (run,) = open_runs(tmp_path)
    assert translate(run).metrics["reward"].values.tolist() == RETURNS.tolist()
    pd.DataFrame(RETURNS).to_csv(tmp_path / "returns.csv", index=True)
    (tmp_path / "returns.csv").rename(tmp_path / "weights.csv")
    with pytest.raises(RlhealthError, match="no runs found"):
        open_runs(tmp_path)


def test_a_0_above_whole_numbers_is_the_first_of_them(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("".join(f"{n}\n" for n in range(40)))
    (run,) = open_runs(tmp_path)
    assert len(translate(run).metrics["reward"]) == 40
