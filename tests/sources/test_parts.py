"""Tables that are parts of one run: judged together where they count the same steps, and apart where they may be several
runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlhealth import check
from rlhealth.metrics import translate
from rlhealth.sources import find_readers, open_runs

ROWS = range(1, 61)


def table(path: Path, columns: str, rows: range = ROWS, offset: float = 0.0) -> None:
    """A table of those columns, of which the first counts from 1 and the others rise."""
    width = columns.count(",")
    lines = [f"{n},{','.join(str(offset + n * place / 8) for place in range(1, width + 1))}" for n in rows]
    path.write_text("\n".join([columns, *lines, ""]))


def runs_of(folder: Path) -> list[set[str]]:
    return sorted((set(run.series) for run in open_runs(folder)), key=sorted)


def test_tables_that_count_the_same_episodes_are_one_run(tmp_path: Path) -> None:
    table(tmp_path / "losses.csv", "episode,loss,grad_norm")
    table(tmp_path / "rewards.csv", "episode,reward,length")
    (run,) = open_runs(tmp_path)
    assert {"reward", "loss", "grad_norm"} <= translate(run).metrics.keys()
    assert run.place.file.endswith("rewards.csv"), "it is named by the table with the reward"
    assert run.notes == ["read from 2 tables of one run: rewards.csv, losses.csv"]


def test_an_evaluation_beside_its_training_is_of_its_run_though_it_counts_seldom(tmp_path: Path) -> None:
    table(tmp_path / "train.csv", "step,critic/q_loss,actor/bc_loss", range(0, 6001, 100))
    table(tmp_path / "eval.csv", "step,eval/success_rate", range(0, 6001, 1000))
    (run,) = open_runs(tmp_path)
    assert [len(run.series[tag]) for tag in ("critic/q_loss", "eval/success_rate")] == [61, 7]


def test_an_evaluation_that_counts_further_or_of_the_same_metrics_is_another_run(tmp_path: Path) -> None:
    table(tmp_path / "train.csv", "step,critic/q_loss", range(0, 6001, 100))
    table(tmp_path / "eval.csv", "step,eval/success_rate", range(0, 9001, 1000))
    assert len(open_runs(tmp_path)) == 2
    table(tmp_path / "train.csv", "step,episode_reward", range(0, 6001, 100))
    table(tmp_path / "eval.csv", "step,episode_reward", range(0, 6001, 1000))
    assert len(open_runs(tmp_path)) == 2


def test_both_tables_grow(tmp_path: Path) -> None:
    table(tmp_path / "losses.csv", "episode,loss")
    table(tmp_path / "rewards.csv", "episode,reward")
    (reader,) = find_readers(str(tmp_path))
    reader.poll()
    with (tmp_path / "losses.csv").open("a") as file:
        file.write("61,0.5\n")
    assert reader.poll()
    assert (len(reader.run.series["loss"]), len(reader.run.series["reward"])) == (61, 60)
    with (tmp_path / "rewards.csv").open("a") as file:
        file.write("61,9.5\n")
    assert reader.poll() and not reader.poll()
    assert reader.run.series["reward"].values[-1] == 9.5


def test_what_could_not_be_read_of_a_part_is_told_as_it_is_now(tmp_path: Path) -> None:
    table(tmp_path / "losses.csv", "episode,loss")
    table(tmp_path / "rewards.csv", "episode,reward")
    (reader,) = find_readers(str(tmp_path))
    for place, told in ((61, "1 line skipped that"), (63, "2 lines skipped that")):
        with (tmp_path / "losses.csv").open("a") as file:
            file.write(f"{place},0.5,7,8,9\n{place + 1},0.5\n")
        reader.poll()
        (problem,) = reader.run.problems
        assert problem.startswith(f"losses.csv: {told}")


def test_a_table_that_is_one_row_behind_is_of_the_same_run(tmp_path: Path) -> None:
    table(tmp_path / "losses.csv", "episode,loss", range(1, 60))
    table(tmp_path / "rewards.csv", "episode,reward")
    assert runs_of(tmp_path) == [{"loss", "reward"}]


def test_gradients_that_grew_with_the_rewards_of_another_table_are_judged_beside_them(tmp_path: Path) -> None:
    norms = [2.0 * 1.04**n for n in range(100)]
    rows = [f"{n},{n / 7},{0.7 - n / 1000},{one}\n" for n, one in enumerate(norms)]
    (tmp_path / "stats.csv").write_text("episode,mean_q_value,mean_entropy,mean_grad_norm\n" + "".join(rows))
    alone = check(tmp_path).runs[0].findings
    table(tmp_path / "rewards.csv", "episode,reward", range(100))
    (together,) = check(tmp_path).runs
    assert [(one.rule, one.severity.name) for one in alone] == [("gradient-climbs", "WARNING")]
    assert [(one.rule, one.severity.name) for one in together.findings] == [("gradient-climbs", "INFO")]


@pytest.mark.parametrize(
    ("one", "other", "rows"),
    [
        ("episode,reward", "episode,score", ROWS),  # the rewards of two runs
        ("episode,reward,loss", "episode,reward,loss", ROWS),
        ("episode,reward", "step,loss", ROWS),
        ("episode,reward", "episode,loss", range(1, 50)),
        ("episode,reward", "episode,loss", range(11, 71)),
        ("episode,reward", "episode,wobble,wibble", ROWS),
    ],
)
def test_tables_that_may_be_of_two_runs_stay_apart(tmp_path: Path, one: str, other: str, rows: range) -> None:
    table(tmp_path / "a.csv", one)
    table(tmp_path / "b.csv", other, rows, offset=0.5)
    assert len(open_runs(tmp_path)) == 2


def test_the_tables_of_a_sweep_stay_apart(tmp_path: Path) -> None:
    metrics = ["reward", "loss", "kl", "entropy", "grad_norm", "value_loss", "learning_rate", "epsilon", "length"]
    for one in metrics:
        table(tmp_path / f"{one}.csv", f"episode,{one},other_{one}")
    assert len(runs_of(tmp_path)) == len(metrics)
