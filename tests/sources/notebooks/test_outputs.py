"""Tables in outputs: HTML and text, whole, shortened and hostile; rows that were printed among other text."""

from __future__ import annotations

import pandas as pd
import pytest

from rlhealth.sources.notebooks.document import Cell, Output
from rlhealth.sources.notebooks.frame_text import frames
from rlhealth.sources.notebooks.html_table import grids
from rlhealth.sources.notebooks.outputs import tables_of
from rlhealth.sources.notebooks.salvage import salvage, sides
from rlhealth.sources.notebooks.table import Table, goes_on, is_same
from tests.sources.notebooks.books import table

LOG = pd.DataFrame(
    {"step": range(1, 201), "Training Loss": [1 / n for n in range(1, 201)], "reward": [n / 300 for n in range(1, 201)]}
    | {f"rewards / a_reward_function_{n} / mean": [0.5] * 200 for n in range(12)}
)


def tables(html: str = "", text: str = "", stream: str = "") -> list[Table]:
    return tables_of(Cell(1, "", [Output(html=html, text=text), Output(text=stream, stream="stdout")]))


def test_the_progress_bar_above_a_table_tells_the_plan() -> None:
    (running,) = grids(table([(1, 2)], bar="[ 31/597 3:10:18 < 61:54:18, 0.00 it/s, Epoch 0.15/3]"))
    assert (running.done, running.total, running.epochs) == (31, 597, 3)
    (ended,) = grids(table([(1, 2)], bar="[600/600 4:32:25, Epoch 1/9223372036854775807]"))
    assert (ended.done, ended.total, ended.epochs) == (600, 600, None)
    (bare,) = grids(table([(1, 2)], bar="[ 60/60 ]"))
    assert bare.total == 60
    (none,) = grids(table([(1, 2)]))
    assert none.total is None


def test_a_row_that_is_cut_off_is_left_out() -> None:
    html = table([(1, "0.123456"), (2, "0.234567")])
    (cut,) = grids(html[: html.index("0.234567") + 4])
    assert cut.rows == [["1", "0.123456"]]
    assert cut.is_cut


def test_a_table_as_pandas_shows_it_is_read_without_the_rows_that_it_leaves_out() -> None:
    for found in (tables(html=LOG._repr_html_()), tables(text=repr(LOG)), tables(stream=f"here:\n{LOG}\n")):
        (one,) = found
        assert one.steps[:3] == [1, 2, 3] and one.steps[-1] == 200
        assert len(one.steps) in (10, 60)
        assert one.is_cut


def test_the_pages_of_a_wide_table_are_joined() -> None:
    with pd.option_context("display.width", 60, "display.max_columns", 30, "display.max_rows", 300):
        (one,) = tables(text=repr(LOG[::-1].reset_index(drop=True)[list(reversed(LOG.columns))]))
    assert len(one.rows) == 200
    assert len(one.rows[0]) == 15
    assert one.rows[199]["Training Loss"] == 1.0


def test_a_table_printed_without_its_index_is_read() -> None:
    (one,) = tables(stream=LOG[["step", "reward"]].to_string(index=False))
    assert one.steps == list(range(1, 201))


def test_the_summary_of_a_table_is_no_log() -> None:
    assert not tables(html=LOG.describe()._repr_html_())


def test_a_table_of_what_is_no_log_is_left_out() -> None:
    assert not tables(html=pd.DataFrame({"step": [1, 2], "city": [3, 4]})._repr_html_())
    assert not tables(text=repr(pd.DataFrame({"model": ["a", "b"], "reward": [3, 4]})))


def test_printed_rows_beside_a_table_that_shows_rewards_are_not_reported_twice() -> None:
    shown = table([(n, 0.5 / n, n / 10) for n in range(1, 6)], ("Step", "Training Loss", "reward"))
    printed = "".join(f"{{'loss': {0.5 / n:.4f}, 'reward': {n / 10}, 'epoch': 0.{n}}}\n" for n in range(1, 6))
    (one,) = tables(html=shown, stream=printed)
    assert one.is_table


def test_printed_rows_add_the_reward_to_a_table_that_shows_the_loss_only() -> None:
    shown = table([(10 * n, 0.5 / n) for n in range(1, 6)])
    printed = "".join(f"{{'loss': {0.5 / n:.4f}, 'reward': {n / 10}, 'kl': 0.{n}}}\n" for n in range(1, 6))
    (one,) = tables(html=shown, stream=printed)
    assert one.rows[2] == {"Step": 30, "Training Loss": pytest.approx(0.5 / 3), "reward": 0.3, "kl": 0.3}


def test_rows_of_tabs_that_were_pasted_are_read() -> None:
    text = (
        " [20/20 05:11, Epoch 0/1]\nStep\tTraining "
        "Loss\treward\n1\t0.100000\t0.200000\n2\t0.110000\t0.210000\n3\t0.1\t0.22\n"
    )
    (one,) = tables(stream=text)
    assert one.steps == [1, 2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "<table" * 200_000,
        "<table><tr>" + "<td" * 300_000,
        "<table><tr><th>Step</th></tr>" + "<tr><td>1" * 200_000,
        "<table>" + "<tr><td>" + "&lt;" * 200_000,
        "[" * 500_000 + "<table><tr><th>a</th>",
        '<table border="1">' + "<" * 500_000,
    ],
)
def test_hostile_html_is_read_to_its_end_and_says_nothing(text: str) -> None:
    assert not [grid for grid in grids(text) if grid.rows]


@pytest.mark.parametrize(
    "text", ['{"id": ' * 30_000, '{"cell_type": "code", "source": "' + "a" * 500_000, '"' * 300_000, "{" * 500_000]
)
def test_a_hostile_notebook_is_salvaged_to_its_end(text: str) -> None:
    assert not salvage(text)


def test_twenty_thousand_tables_with_a_cell_too_many_are_read_to_their_end() -> None:
    found = list(frames("step  " * 3_000 + "\n" + ("step  loss\n" + "1  2  3\n") * 20_000))
    assert len(found) == 20_000 and found[-1].rows == [["2", "3"]]


def test_both_sides_of_a_conflict_are_distinguished() -> None:
    text = "a\n<<<<<<< HEAD\nb\n||||||| base\nc\n=======\nd\n>>>>>>> other\ne\n=======\n"
    assert [side for _, side in sides(text)] == ["a\nb\ne\n=======\n", "a\nd\ne\n=======\n"] or sides(text)
    assert not sides("=======\nno marks\n")


def test_tables_of_one_run_are_known_by_their_digits() -> None:
    one = Table(1, "Step", [{"Step": n, "Training Loss": round(0.9 / n, 6)} for n in range(1, 9)])
    rounded = Table(2, "step", [{"step": n, "loss": round(0.9 / n, 4)} for n in range(1, 9)])
    other = Table(3, "Step", [{"Step": n, "Training Loss": round(0.8 / n, 6)} for n in range(1, 9)])
    assert is_same(one, rounded) and is_same(rounded, one)
    assert not is_same(one, other)
    assert not goes_on(one, other)
    later = Table(4, "Step", [{"Step": n, "Training Loss": 0.1} for n in range(9, 12)])
    assert goes_on(one, later)


def rows_of(code: str, text: str) -> list[Table]:
    return tables_of(Cell(1, code, [Output(text=text, stream="stdout")]))


RETURNS = "".join(f"Episode {n} | Reward: {n / 7:.3f}\n" for n in range(1, 41))


@pytest.mark.parametrize(
    "code",
    [
        "loss.backward()\noptimizer.step()",
        "model.learn(100_000)",
        "!python train_agent.py --epochs 40",
        "q_table[state, action] += alpha * error",
        "with tf.GradientTape() as tape: ...",
        "scores = train(agent, env)",
        "scores = maddpg(agents)",
        "if memory.size() > 2000:\n    model_trainer(q_net, q_target_net, memory)",
        "agent.learn_from(batch)",
        "upd_weights()",
        "exp_buffer.append((state, action, reward, next_state, done))",
        "agent.remember(state, action, reward, next_state, done)\nagent.replay(32)",
        "agent.rewards.append(reward)\nagent.finish_episode()",
        "dqn_agent.step(state, action, reward, next_state, done)",
        "data = reinforcesearch(shape, x, y)",
        "if len(replay_buffer) > batch_size:\n    update(batch_size, GAMMA, TAU)",
    ],
)
def test_printed_rewards_are_a_run_where_the_code_of_their_cell_trains(code: str) -> None:
    (one,) = rows_of(code, RETURNS)
    assert [row["Reward"] for row in one.rows] == [round(n / 7, 3) for n in range(1, 41)]


def test_very_many_rewards_that_name_no_count_are_a_run_where_little_stands_between_them() -> None:
    lines = [f"episode reward: {n / 8}\n" for n in range(120)]
    (one,) = rows_of("scores = run_dqn(env, episodes=120)", "".join(lines))
    assert [row["episode reward"] for row in one.rows] == [n / 8 for n in range(120)]
    assert not rows_of("scores = run_dqn(env, episodes=120)", "".join(lines[:60]))
    samples = "".join(f"answer: {n} apples\ngold: {n} pears\n{line}" for n, line in enumerate(lines))
    assert not rows_of("trainer.train()", samples)


def test_numbers_that_stand_alone_have_the_name_of_what_the_code_prints_alone() -> None:
    text = "".join(f"{n / 8}\n" for n in range(120))
    loop = "for n in range(120):\n    agent.learn()\n    print({})  # of the episode\n"
    (one,) = rows_of(loop.format("episode_reward"), text)
    assert [row["episode_reward"] for row in one.rows] == [n / 8 for n in range(120)]
    (one,) = rows_of(loop.format("episode_reward"), text + "nan\n")
    assert len(one.rows) == 121, "a reward that is no number counts too"
    assert not rows_of(loop.format("frame_number"), text)
    assert not rows_of(loop.format("episode_reward") + "    print(frame_number)", text), "which of them is which?"


def test_returns_of_spinning_up_are_rewards() -> None:
    (one,) = rows_of("agent.update(batch)", "".join(f"[Step {n * 90:>7}] EpRet: {n / 8:7.3f}\n" for n in range(1, 41)))
    assert [row["EpRet"] for row in one.rows] == [n / 8 for n in range(1, 41)]


def test_lines_on_stdout_begin_behind_a_bar_on_stderr_that_ends_no_line() -> None:
    outputs = []
    for n in range(1, 41):
        outputs.append(Output(text=f"\rGRPO:  1%|▍    | {n}/300 [00:01<04:11,  1.19it/s, avgR={n}.1]", stream="stderr"))
        outputs.append(Output(text=f"Iter {n:04d} | avgR {n}.25 ± 72.41 | KL 0.0188 (β=0.02)\n", stream="stdout"))
    (one,) = tables_of(Cell(1, "optimizer.step()", outputs))
    assert [row["avgR"] for row in one.rows] == [n + 0.25 for n in range(1, 41)]


def test_lines_between_rewards_may_count_by_another_name() -> None:
    text = "".join(
        f"Episode {n} finished with reward {n}.0\n" + f"running reward: {n / 2} at step {n * 500}\n" * (n % 4 == 0)
        for n in range(1, 41)
    )
    (one,) = rows_of("optimizer.step()", text)
    assert [row["reward"] for row in one.rows if "reward" in row] == list(range(1, 41))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("for episode in range(40): play(env)", RETURNS),  # an environment that is tried out
        ("observation, reward, done, info = env.step(agent.act(state))\nprogress.update(1)", RETURNS),
        ("model.learn(1000)", RETURNS[: RETURNS.index("Episode 20")]),  # ten episodes after a training
        ("model.learn(1000)", "".join(f"Step {n % 4}: Reward: {n}\n" for n in range(40))),  # steps of episodes
        ("model.learn(1000)", "".join(f"eval_reward at step {n}: {n}\n" for n in range(3))),
    ],
)
def test_rewards_of_what_is_only_tried_out_are_no_run(code: str, text: str) -> None:
    assert not rows_of(code, text)


def test_lines_of_samples_between_rows_that_name_their_step_are_left_out() -> None:
    text = "".join(
        f"step {n} -- mean_reward: (-{n / 10}) -- decoding 2 samples:\n"
        + (f"\t0: a film: 10/10 and more: 3  -> rather: 5 good -- Reward: {n}.5\n" if n % 8 == 0 else "")
        + f"\t1: I have seen  -> nothing like it -- Reward: {n}.5\n"
        f"  1) reward=0.000 len=477: so t = 5 and step 4: n = 4\n\n"
        for n in range(1, 21)
    )
    (one,) = rows_of("ppo_trainer.step(queries, responses, rewards)", text)
    assert [row["mean_reward"] for row in one.rows] == [-n / 10 for n in range(1, 21)]
    assert one.tags == {"mean_reward"}


def test_rewards_that_a_callback_prints_belong_to_the_table_of_the_same_steps() -> None:
    html = table([(n, 0.5 / n) for n in range(10, 110, 10)])
    (one,) = tables(html=html, stream="".join(f"Step {n} | reward: {n / 100}\n" for n in range(10, 110, 10)))
    assert one.is_table and one.steps == list(range(10, 110, 10))
    assert [row["reward"] for row in one.rows] == [n / 100 for n in range(10, 110, 10)]
