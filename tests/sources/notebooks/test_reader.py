"""Notebooks: the runs that real ones tell of, and what is said of damaged, growing and foreign ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from rlhealth.engine.ending import ending_of
from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.sources import find_readers, open_runs
from rlhealth.sources.notebooks.reader import find
from tests.sources.notebooks.books import FIXTURES, book, code, large, notebook, runs, shown, stream, table, values

CRASHED = {
    "output_type": "error",
    "ename": "",
    "evalue": "",
    "traceback": ["\x1b[1;31mThe kernel is gone: it crashed in this cell. \n", "\x1b[1;31mSee the log."],
}
LOSSES = [(n, f"{0.9 / n:.6f}") for n in range(1, 31)]


def test_a_supervised_table_and_a_grpo_table_are_two_runs() -> None:
    sft, grpo = open_runs(str(FIXTURES / "sft-then-grpo.ipynb"))
    assert (sft.name, grpo.name) == ("sft-then-grpo", "sft-then-grpo#2")
    first, second = translate(sft), translate(grpo)
    assert (first.framework, first.is_rl) == ("trl-sft", False)
    assert (second.framework, second.is_rl, second.unrecognised) == ("trl-grpo", True, ())
    assert sft.series["Training Loss"].steps.tolist() == [5, 10, 15, 20]
    assert grpo.series["reward"].steps.tolist() == list(range(1, 61))
    assert {"reward", "kl", "loss", "reward/partial_reward_func"} <= {*second.metrics} | {"reward/partial_reward_func"}
    assert (grpo.planned_steps, grpo.clean, grpo.step_axis) == (60, True, "global_step")


def test_settings_come_from_the_code_and_secrets_do_not() -> None:
    grpo = open_runs(str(FIXTURES / "sft-then-grpo.ipynb"))[1]
    assert grpo.config["learning_rate"] == 3e-4
    assert grpo.config["max_completion_length"] == 16  # max_seq_length - max_prompt_length
    assert grpo.trainer == "GRPOTrainer"
    assert "hf_abc" not in repr(grpo)
    assert translate(grpo).config["max_completion_length"] == 16


def test_a_run_that_broke_and_was_resumed_in_the_next_cell_is_one_run() -> None:
    (run,) = open_runs(str(FIXTURES / "resumed.ipynb"))
    assert run.series["reward"].steps.tolist() == list(range(1, 41))
    assert run.resumed_at == [21]
    assert (run.clean, run.exit_code, run.planned_steps) == (True, None, 40)


def test_a_run_that_broke_has_the_exception_and_no_exit_code(tmp_path: Path) -> None:
    broken = book("resumed")
    broken["cells"] = broken["cells"][:7]
    (run,) = runs(tmp_path, broken)
    error = broken["cells"][6]["outputs"][-1]
    assert run.raised == f"RuntimeError: {error['evalue']}"
    assert run.exit_code is None
    assert f"its cell ended with {run.raised}" in run.notes
    assert ending_of(run, translate(run)).kinds == {"died"}
    assert ending_of(run, translate(run)).said == f"training ended with an error at step 25 of 40 planned: {run.raised}"
    assert run.series["reward"].steps.tolist() == list(range(1, 26))


@pytest.mark.parametrize("crashed", [False, True])
def test_an_interrupt_is_a_stop_by_hand_whatever_became_of_the_kernel(tmp_path: Path, crashed: bool) -> None:
    broken = book("resumed")
    broken["cells"] = broken["cells"][:7]
    outputs = broken["cells"][6]["outputs"]
    outputs[-1] |= {"ename": "KeyboardInterrupt", "evalue": ""}
    outputs += [CRASHED] if crashed else []
    (run,) = runs(tmp_path, broken)
    ending = ending_of(run, translate(run))
    assert (ending.state, ending.kinds) == ("stopped", {"early"})
    assert ending.said == "stopped by hand at step 25 of 40 planned (KeyboardInterrupt)"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (CRASHED, "The kernel is gone: it crashed in this cell"),
        (CRASHED | {"evalue": "Canceled"}, "Canceled"),
        (CRASHED | {"traceback": []}, "an exception without a name"),
        (CRASHED | {"ename": "torch.OutOfMemoryError", "evalue": "no\nroom"}, "torch.OutOfMemoryError: no"),
        (CRASHED | {"ename": "ValueError", "evalue": "x" * 200}, "ValueError: " + "x" * 87 + "…"),
        (
            CRASHED | {"ename": "HTTPError", "evalue": "key=hf_AbCdEfGhIjKlMnOpQr is bad"},
            "HTTPError: key=(hidden) is bad",
        ),
        (CRASHED | {"ename": 3, "evalue": None, "traceback": None}, "an exception without a name"),
    ],
)
def test_an_error_is_shown_in_the_words_of_the_notebook(tmp_path: Path, error: dict[str, Any], said: str) -> None:
    broken = book("resumed")
    broken["cells"] = broken["cells"][:7]
    broken["cells"][6]["outputs"][-1] = error
    assert runs(tmp_path, broken)[0].raised == said


@pytest.mark.parametrize(
    "said",
    [
        "Failed to connect to the remote Jupyter Server 'https://example.org/'. Verify the server is running.",
        "Canceled future for execute_request message before replies were done",
    ],
)
def test_an_editor_that_lost_the_kernel_says_nothing_of_how_the_run_ended(tmp_path: Path, said: str) -> None:
    broken = book("resumed")
    broken["cells"] = broken["cells"][:7]
    broken["cells"][6]["outputs"][-1] = CRASHED | {"evalue": said}
    (run,) = runs(tmp_path, broken)
    assert run.raised == ""
    assert "died" not in ending_of(run, translate(run)).kinds


def test_a_cell_that_says_its_task_is_solved_says_so_of_its_run(tmp_path: Path) -> None:
    averages = ["".join(f"Episode {n}00\tAverage Score: {n * more:.2f}\n" for n in range(1, 8)) for more in (0.1, 0.2)]
    train = "for episode in range(2000):\n    agent.step(state, action, reward, next_state, done)\n    agent.learn()"
    said = ("Environment solved in 600 episodes!\n", "")
    cells = [code(train, stream(text)) for text in map("".join, zip(averages, said, strict=True))]
    assert [run.solved for run in runs(tmp_path, notebook(*cells))] == ["Environment solved in 600 episodes!", ""]


def test_a_run_that_broke_before_a_later_one_went_further_has_not_died(tmp_path: Path) -> None:
    broken = book("resumed")
    broken["cells"] = broken["cells"][:7]
    anew = book("sft-then-grpo")["cells"]
    first, *_ = runs(tmp_path, broken | {"cells": [*broken["cells"], *anew]})
    assert first.raised == ""
    assert any("has more steps" in note for note in first.notes)
    *_, last = runs(tmp_path, broken | {"cells": [*anew, *broken["cells"]]})
    assert last.raised.startswith("RuntimeError")


@pytest.mark.parametrize(
    ("trainer", "error", "is_reported"),
    [
        ("GRPOTrainer", "OutOfMemoryError", True),
        ("GRPOTrainer", "KeyboardInterrupt", False),
        ("SFTTrainer", "OutOfMemoryError", False),
    ],
)
def test_training_by_rewards_that_broke_before_its_first_row_died_at_its_start(
    tmp_path: Path, trainer: str, error: str, is_reported: bool
) -> None:
    source = f"trainer = {trainer}(model, reward_funcs=[reward], args=GRPOConfig(learning_rate=1e-6))\ntrainer.train()"
    broken = notebook(code(source, CRASHED | {"ename": error, "evalue": "no room"}))
    if not is_reported:
        with pytest.raises(RlhealthError, match="no training table"):
            runs(tmp_path, broken)
        return
    (run,) = runs(tmp_path, broken)
    assert (run.trainer, run.raised, run.config["learning_rate"]) == (trainer, f"{error}: no room", 1e-6)
    assert ending_of(run, translate(run)).kinds == {"at_start"}


LOOP = """for batch in loader:
    reward = score(policy.generate(batch))
    loss = -(reward * log_probs).mean()
    loss.backward()
"""


def test_a_loop_of_ones_own_that_broke_before_its_first_row_died_at_its_start(tmp_path: Path) -> None:
    broken = CRASHED | {"ename": "RuntimeError", "evalue": "no grad"}
    setup = code("rewards = load()  # reward", stream("loaded"))
    (run,) = runs(tmp_path, notebook(setup, code(LOOP, stream("Epoch 1\n"), broken), code("plot(rewards)")))
    assert (run.raised, run.trainer, run.series) == ("RuntimeError: no grad", "", {})
    assert ending_of(run, translate(run)).kinds == {"at_start"}


def test_a_loop_that_counted_its_epochs_did_not_die_at_its_start_though_its_rows_are_unread(tmp_path: Path) -> None:
    broken = CRASHED | {"ename": "FileNotFoundError", "evalue": "no folder"}
    unread = stream("".join(f"Epoch {epoch}, test BLEU: 0.14\n" for epoch in range(30)))
    with pytest.raises(RlhealthError, match="no training table"):
        runs(tmp_path, notebook(code(LOOP, unread, broken)))


def test_an_exception_that_ipython_could_not_format_ended_its_cell(tmp_path: Path) -> None:
    said = stream("Unexpected exception formatting exception. Falling back to standard exception\n")
    raised = stream(
        "Traceback (most recent call last):\n  trainer.train()\nIndexError: argmax(): Expected reduction dim 1\n\n"
        "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n"
        "AssertionError: Pieces mismatches: [{804, 805}]\n"
    )
    source = "trainer = GRPOTrainer(model, reward_funcs=[reward])\ntrainer.train()"
    (run,) = runs(tmp_path, notebook(code(source, said, raised | {"name": "stderr"})))
    assert run.raised == "IndexError: argmax(): Expected reduction dim 1"
    assert ending_of(run, translate(run)).kinds == {"at_start"}


@pytest.mark.parametrize("config", ["DDPGConfig()", "SACConfig()", "get_trainable_cls('IMPALA').get_default_config()"])
def test_a_training_with_rllib_that_broke_before_its_first_row_died_at_its_start(tmp_path: Path, config: str) -> None:
    imported = "import ray.rllib\n" if "IMPALA" in config else ""
    source = f"{imported}algo = {config}.build(env='VJS')  # stops at episode_reward_mean 200\nalgo.train()\n"
    (run,) = runs(tmp_path, notebook(code(source, CRASHED | {"ename": "ValueError", "evalue": "no env"})))
    assert (run.raised, run.series) == ("ValueError: no env", {})


@pytest.mark.parametrize(
    "cells",
    [
        (code(LOOP, CRASHED | {"ename": "KeyboardInterrupt"}),),
        (code(LOOP, CRASHED | {"ename": "RuntimeError"}), code(LOOP, stream("done\n"))),
        (code(LOOP.replace("reward", "label"), CRASHED | {"ename": "RuntimeError"}),),
        (code("reward = score(policy)", CRASHED | {"ename": "RuntimeError"}),),
        (code("sacred.train(images)", CRASHED | {"ename": "RuntimeError"}),),
    ],
    ids=["interrupted", "mended", "no rewards", "no training", "no algorithm"],
)
def test_other_exceptions_in_a_notebook_are_no_run(tmp_path: Path, cells: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(RlhealthError, match="no training table"):
        runs(tmp_path, notebook(*cells))


def unrun(source: str) -> dict[str, Any]:
    return code(source) | {"execution_count": None}


def test_a_training_that_an_exception_in_an_earlier_cell_prevented_died_at_its_start(tmp_path: Path) -> None:
    """A notebook of which all cells were to run stops at the first that fails."""
    missing = code("import envs", CRASHED | {"ename": "ModuleNotFoundError", "evalue": "No module named 'envs'"})
    training = unrun("trainer = GRPOTrainer(model, reward_funcs=[reward])\ntrainer.train()")
    (run,) = runs(tmp_path, notebook(code("import os"), missing, training, unrun("plot(reward)")))
    assert (run.trainer, run.raised) == ("GRPOTrainer", "ModuleNotFoundError: No module named 'envs'")
    assert ending_of(run, translate(run)).kinds == {"at_start"}
    (run,) = runs(tmp_path, notebook(missing, unrun(LOOP)))
    assert run.raised.startswith("ModuleNotFoundError")


@pytest.mark.parametrize("after", [code(LOOP), code("print('mended')", stream("mended\n"))], ids=["trained", "went on"])
def test_an_exception_after_which_other_cells_ran_prevented_no_training(tmp_path: Path, after: dict[str, Any]) -> None:
    missing = code("import envs", CRASHED | {"ename": "ModuleNotFoundError"})
    with pytest.raises(RlhealthError, match="no training table"):
        runs(tmp_path, notebook(missing, after | {"execution_count": 7}, unrun(LOOP)))


def test_a_training_that_says_that_an_exception_ended_it_has_died(tmp_path: Path) -> None:
    rows = "".join(f"Episode {n} of 40 reward {n / 40:.3f}\n" for n in range(1, 31))
    (run,) = runs(
        tmp_path, notebook(code("agent.learn()", stream(rows + "Exception occurred during training: no room\n")))
    )
    assert run.raised == "Exception occurred during training: no room"


def test_what_train_returns_is_no_row_beside_those_that_were_printed(tmp_path: Path) -> None:
    rows = "".join(f"Step {n} | reward: {n / 40:.3f}\n" for n in range(10, 310, 10))
    summary = shown("", "TrainOutput(global_step=300, training_loss=-0.0012, metrics={'train_runtime': 2857.8})")
    (run,) = runs(tmp_path, notebook(code("trainer.train()", stream(rows), summary)))
    assert run.series.keys() == {"reward"}
    assert run.series["reward"].steps.tolist() == list(range(10, 310, 10))


def test_training_that_broke_at_its_start_and_was_mended_is_the_mended_run(tmp_path: Path) -> None:
    start = code("trainer = GRPOTrainer(model)\ntrainer.train()", CRASHED)
    (run,) = runs(tmp_path, notebook(start, *book("resumed")["cells"]))
    assert run.raised == "" and run.series
    with pytest.raises(RlhealthError, match="no training table"):
        runs(tmp_path, notebook(start, code("trainer = GRPOTrainer(model)\ntrainer.train()")))


def test_a_table_of_the_loss_and_the_log_history_of_the_same_run_are_one_run_with_all_of_its_metrics() -> None:
    (run,) = open_runs(str(FIXTURES / "loss-only.ipynb"))
    assert run.series["reward"].steps.tolist() == list(range(5, 41, 5))
    assert run.planned_steps == 40
    assert any("cells 6 and 7 show the same run" in note for note in run.notes)


def test_columns_that_pandas_left_out_are_reported(tmp_path: Path) -> None:
    shortened = book("loss-only")
    shortened["cells"] = shortened["cells"][:7]
    (run,) = runs(tmp_path, shortened)
    assert "reward" not in run.series and "grad_norm" in run.series
    assert any("columns are left out" in note for note in run.notes)


def test_rows_that_were_printed_are_read() -> None:
    (run,) = open_runs(str(FIXTURES / "printed-rows.ipynb"))
    assert len(run.series["reward"]) == 50
    assert "max_steps" not in run.config  # the rows have no steps that could be held against it
    assert run.config["learning_rate"] == 0.05


def test_the_same_run_twice_counts_once_and_the_longer_table_is_read(tmp_path: Path) -> None:
    short, long = (
        table(LOSSES[:10], bar="[10/30 00:10 < 00:20, 1.00 it/s]"),
        table(LOSSES, bar="[30/30 00:30, Epoch 1/1]"),
    )
    for first, second in ((short, long), (long, short)):
        (run,) = runs(tmp_path, notebook(code("", shown(first)), code("", shown(second))))
        assert len(run.series["Training Loss"]) == 30
        (run,) = runs(tmp_path, notebook(code("", shown(first), shown(second))))
        assert len(run.series["Training Loss"]) == 30
        assert run.clean is True


def test_two_runs_with_different_numbers_stay_two(tmp_path: Path) -> None:
    other = [(n, f"{0.8 / n:.6f}") for n in range(1, 31)]
    one, two = runs(tmp_path, notebook(code("", shown(table(LOSSES))), code("", shown(table(other)))))
    assert values(one, "Training Loss")[0] == (1, 0.9)
    assert values(two, "Training Loss")[0] == (1, 0.8)


def test_two_runs_whose_losses_are_zero_are_not_taken_for_one(tmp_path: Path) -> None:
    zeros = [(n, "0.000000") for n in range(1, 11)]
    assert len(runs(tmp_path, notebook(code("", shown(table(zeros))), code("", shown(table(zeros)))))) == 2


def test_a_table_in_pages_is_one_run(tmp_path: Path) -> None:
    pages = [shown(table(LOSSES[start : start + 10])) for start in (0, 10, 20)]
    (run,) = runs(tmp_path, notebook(code("trainer.train()", *pages)))
    assert run.series["Training Loss"].steps.tolist() == list(range(1, 31))


def test_a_second_run_that_is_logged_more_rarely_does_not_go_on_with_the_first(tmp_path: Path) -> None:
    rare = [(n, f"{0.7 / n:.6f}") for n in range(10, 310, 10)]
    found = runs(tmp_path, notebook(code("", shown(table(LOSSES))), code("", shown(table(rare)))))
    assert [one.series["Training Loss"].steps[0] for one in found] == [1, 10]


def test_no_log_cells_and_columns_that_come_later_leave_no_points(tmp_path: Path) -> None:
    rows = [(100, "No log", "1.20"), (200, "0.500000", "1.10", "0.9"), (300, "nan", "1.00", "0.8")]
    heading = ("Step", "Training Loss", "Validation Loss", "Accuracy")
    (run,) = runs(tmp_path, notebook(code("", shown(table(rows, heading)))))
    assert [step for step, _ in values(run, "Training Loss")] == [200, 300]
    assert values(run, "eval_accuracy") == [(200, 0.9), (300, 0.8)]
    assert str(run.series["Training Loss"].values[-1]) == "nan"


def test_what_transformers_shows_of_evaluations_has_the_names_under_which_it_is_logged(tmp_path: Path) -> None:
    heading = ("Step", "Training Loss", "Validation Loss", "Reward", "Completions/mean Length", "Frac Reward Zero Std")
    rows = [(step, "0.5", "0.4", "0.25", "200", "0.5") for step in (10, 20)]
    (run,) = runs(tmp_path, notebook(code("GRPOTrainer(args=GRPOConfig()).train()", shown(table(rows, heading)))))
    metrics = translate(run).metrics
    assert metrics["eval/reward"].tag == "eval_reward"
    assert metrics["eval/completions/mean_length"].values.tolist() == [200, 200]
    assert metrics["eval/frac_reward_zero_std"].values.tolist() == [0.5, 0.5]
    trained = ("Step", "Training Loss", "reward", "completions / mean_length")
    (run,) = runs(tmp_path, notebook(code("", shown(table([(1, "0.5", "0.25", "200")] * 2, trained)))))
    assert "completions / mean_length" in run.series, "rows of training have their own names"


def test_rows_by_epoch_are_counted_in_epochs(tmp_path: Path) -> None:
    html = table([(1, "0.5"), (2, "0.4")], ("Epoch", "Training Loss"), "[20/20 00:10, Epoch 2/2]")
    cell = "args = GRPOConfig(max_steps=20, beta=0.1)\ntrainer = GRPOTrainer(args=args)\ntrainer.train()"
    (run,) = runs(tmp_path, notebook(code(cell, shown(html))))
    assert (run.step_axis, run.planned_steps) == ("epoch", 2)
    assert run.config == {"beta": 0.1}


def test_settings_of_code_that_was_changed_after_the_run_are_reported(tmp_path: Path) -> None:
    cell = "trainer = GRPOTrainer(args=GRPOConfig(max_steps=500))\ntrainer.train()"
    (run,) = runs(tmp_path, notebook(code(cell, shown(table(LOSSES, bar="[30/30 00:30, Epoch 1/1]")))))
    assert run.planned_steps == 30
    assert "max_steps" not in run.config
    assert any("changed after the run" in note for note in run.notes)


def test_a_grpo_run_of_which_only_the_loss_is_shown_is_known_as_grpo_by_the_code(tmp_path: Path) -> None:
    cell = "trainer = GRPOTrainer(reward_funcs=f)\ntrainer.train()"
    (run,) = runs(tmp_path, notebook(code(cell, shown(table(LOSSES)))))
    assert translate(run).framework == "trl-grpo"
    (run,) = runs(tmp_path, notebook(code(cell.replace("GRPO", ""), shown(table(LOSSES)))))
    assert not translate(run).is_rl


def test_the_versions_that_pip_installed_are_known(tmp_path: Path) -> None:
    pip = stream("Collecting trl\nSuccessfully installed peft-0.14.0 trl-0.15.2 transformers-4.49.0\n")
    (run,) = runs(tmp_path, notebook(code("!pip install trl==0.22.2", pip), code("", shown(table(LOSSES)))))
    assert run.versions == {"trl": "0.15.2", "transformers": "4.49.0"}


def test_what_an_environment_prints_is_no_run(tmp_path: Path) -> None:
    steps = stream("".join(f"{{'step_reward': 0.{n}, 'score': {n}, 'done': False}}\n" for n in range(9)))
    with pytest.raises(RlhealthError, match="no training table"):
        runs(tmp_path, notebook(code("env.step()", steps)))
    (run,) = runs(tmp_path, notebook(code("env.step()", steps), code("", shown(table(LOSSES)))))
    assert "score" not in run.series


def test_wandbs_summaries_and_data_sets_are_no_runs(tmp_path: Path) -> None:
    summary = '<table class="wandb"><tr><td>train/loss</td><td>▁▂▃</td></tr></table>'
    data = (
        '<table border="1" '
        'class="dataframe"><thead><tr><th></th><th>problem</th><th>reward</th></tr></thead><tbody><tr><th>0</th><td>2+2</td><td>1</td></tr></tbody></table>'
    )
    (run,) = runs(tmp_path, notebook(code("", shown(summary)), code("", shown(data)), code("", shown(table(LOSSES)))))
    assert set(run.series) == {"Training Loss"}


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9, 0.97])
def test_a_notebook_that_is_cut_off_gives_what_is_whole(tmp_path: Path, share: float) -> None:
    raw = (FIXTURES / "sft-then-grpo.ipynb").read_bytes()
    whole = open_runs(str(FIXTURES / "sft-then-grpo.ipynb"))[1]
    cut = raw[: int(len(raw) * share)]
    found = runs(tmp_path, cut)
    last = found[-1]
    assert any("not valid JSON" in problem for problem in last.problems)
    assert last.last_step is not None and last.last_step >= {0.3: 10, 0.5: 20, 0.7: 35, 0.9: 50, 0.97: 55}[share]
    for tag in last.series:
        known = dict(values(whole, tag)) if tag in whole.series else {}
        assert all(known[step] == value for step, value in values(last, tag)), "a number that the run never had"


def test_damage_in_one_cell_leaves_the_others(tmp_path: Path) -> None:
    raw = (FIXTURES / "sft-then-grpo.ipynb").read_text()
    at = raw.index('"# A tiny model')
    damaged = raw[:at] + "\x00\x01{{{" + raw[at + 3 :]
    assert len(runs(tmp_path, damaged)) == 2


def test_gits_conflict_marks_leave_the_side_that_says_more(tmp_path: Path) -> None:
    lines = (FIXTURES / "sft-then-grpo.ipynb").read_text().splitlines(keepends=True)
    at = max(n for n, line in enumerate(lines) if "<td>0." in line)
    ours = ["<<<<<<< HEAD\n", lines[at], "=======\n", lines[at].replace("0.", "0.1"), ">>>>>>> other\n"]
    found = runs(tmp_path, "".join([*lines[:at], *ours, *lines[at + 1 :]]))
    assert [len(one.series["Training Loss"]) for one in found] == [4, 60]
    assert any("git's conflict marks" in problem for problem in found[-1].problems)


def test_an_old_notebook_is_converted(tmp_path: Path) -> None:
    html = table(LOSSES).splitlines(keepends=True)
    cell = {
        "cell_type": "code",
        "collapsed": False,
        "input": "1",
        "language": "python",
        "metadata": {},
        "prompt_number": 1,
    }
    cell["outputs"] = [{"output_type": "display_data", "html": html, "text": ["x"], "metadata": {}}]
    old = {
        "metadata": {"name": ""},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [{"cells": [cell], "metadata": {}}],
    }
    (run,) = runs(tmp_path, old)
    assert len(run.series["Training Loss"]) == 30


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "is empty"),
        (b"{}", "is no notebook"),
        (b"hello reward", "is no notebook"),
        (b'{"cells": "reward"}', "no training table"),
        (b'{"cells": [1, null, {"cell_type": "code", "outputs": [3, {"data": 7, "reward": 1}]}]}', "no training table"),
    ],
)
def test_what_is_no_notebook_is_refused_in_one_line(tmp_path: Path, raw: bytes, why: str) -> None:
    with pytest.raises(RlhealthError, match=why):
        runs(tmp_path, raw)


def test_a_notebook_without_a_log_hides_no_run_beside_it(tmp_path: Path) -> None:
    (tmp_path / "plots.ipynb").write_text(json.dumps(notebook(code("import reward"))))
    (tmp_path / "exp.ipynb").write_bytes((FIXTURES / "printed-rows.ipynb").read_bytes())
    readers = find_readers(tmp_path)
    assert [one.run.place.kind for one in readers] == ["notebook"]


def test_two_copies_of_one_notebook_are_one_run(tmp_path: Path) -> None:
    for name in ("a.ipynb", "a-copy.ipynb"):
        (tmp_path / name).write_bytes((FIXTURES / "printed-rows.ipynb").read_bytes())
    assert len(find_readers(tmp_path)) == 1


def test_a_notebook_is_read_again_when_it_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "live.ipynb"
    path.write_text(json.dumps(notebook(code("", shown(table(LOSSES[:5]))))))
    (reader,) = find(path)
    assert reader.poll()
    assert not reader.poll()
    path.write_text(json.dumps(notebook(code("", shown(table(LOSSES[:9]))))))
    assert reader.poll()
    assert len(reader.run.series["Training Loss"]) == 9
    assert reader.run.series["Training Loss"].revision == 0
    path.write_text(
        json.dumps(notebook(code("", shown(table(LOSSES[:9]))), code("", shown(table(LOSSES[:3], bar="[3/9]")))))
    )
    path.write_text(path.read_text()[:-40])  # it is being saved
    assert not reader.poll()
    assert len(reader.run.series["Training Loss"]) == 9


def test_a_run_that_begins_while_a_notebook_is_watched_gets_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "live.ipynb"
    other = [(n, f"{0.8 / n:.6f}") for n in range(1, 5)]
    path.write_text(json.dumps(notebook(code("", shown(table(LOSSES[:5]))))))
    (reader,) = find(path)
    path.write_text(json.dumps(notebook(code("", shown(table(LOSSES[:5]))), code("", shown(table(other))))))
    reader.poll()
    (appeared,) = reader.appeared()  # type: ignore[attr-defined]
    assert values(appeared.run, "Training Loss")[0] == (1, 0.8)
    path.write_text(json.dumps(notebook(code("", shown(table(LOSSES[:5]))))))
    reader.poll()
    assert not len(appeared.run.series["Training Loss"])  # its output was cleared


def test_memory_is_bounded_by_the_size(tmp_path: Path) -> None:
    path = tmp_path / "large.ipynb"
    path.write_bytes(large(5_000_000))
    assert len(find(path)) == 2
    tracemalloc.start()
    find(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * path.stat().st_size


def test_a_huge_notebook_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.ipynb"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 300 << 20)
    with pytest.raises(RlhealthError, match="larger than 256 MiB"):
        find(path)


def test_nothing_in_a_notebook_is_run_and_no_secret_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "hostile.ipynb"
    marker = tmp_path / "ran"
    source = (
        f"open({str(marker)!r}, 'w')\ntoken = 'hf_" + "a" * 34 + "'\n"
        "args = GRPOConfig(beta=0.1, hub_token=token, run_name=token, "
        "push_to_hub_token='sk-secretsecretsecret', learning_rate=(lambda: 1)())\n"
        "trainer = GRPOTrainer(args=args)\ntrainer.train()"
    )
    heading = ("Step", "Training Loss", "reward", "<script>alert(1)</script>\x1b[31m")
    html = table([(n, 0.1, 0.2 + n / 100, 1) for n in range(1, 40)], heading)
    path.write_text(json.dumps(notebook(code(source, shown(html)))))
    for form in ("text", "json", "html", "markdown"):
        done = subprocess.run(
            [sys.executable, "-m", "rlhealth", "check", str(path), "-f", form],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert "hf_aaa" not in done.stdout + done.stderr and "sk-secret" not in done.stdout + done.stderr
        assert "<script>alert" not in done.stdout
    assert not marker.exists()
    (run,) = open_runs(str(path))
    assert run.config == {"beta": 0.1}


def warned(values: list[float]) -> dict[str, Any]:
    """The stream of errors of a cell in which TRL's first PPOTrainer warns of negative KL."""
    text = "".join(
        f"  2%|▏         | {n}/500 [00:42<32:31,  3.99s/it]/env/trl/trainer/ppo_trainer.py:1289: UserWarning: KL "
        f"divergence is starting to become negative: {kl:.2f} - this might be a precursor for failed training.\n"
        "  warnings.warn(\n"
        for n, kl in enumerate(values)
    )
    return stream(text) | {"name": "stderr"}


def test_a_cell_of_nothing_but_warnings_is_a_run_of_their_values(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, notebook(code("trainer.step(queries, answers, scores)", warned([-9.5, -1.25, -4.0]))))
    assert values(run, "objective/kl") == [(1, -9.5), (2, -1.25), (3, -4.0)]
    assert run.step_axis == "row"
    assert any("only warnings of the trainer were printed" in note for note in run.notes)
    assert any("steps in the report are row numbers" in note for note in run.notes)


def test_two_warnings_in_a_notebook_are_no_run(tmp_path: Path) -> None:
    with pytest.raises(RlhealthError, match="no training table and no printed rows"):
        runs(tmp_path, notebook(code("trainer.step(queries, answers, scores)", warned([-9.5, -1.25]))))


def test_warnings_add_nothing_to_the_rows_of_their_cell(tmp_path: Path) -> None:
    low = warned([-float(n) for n in range(2, 9)])
    rows = stream("".join(f"{{'loss': 0.{n}, 'reward': 0.5, 'step': {n}}}\n" for n in range(1, 9)))
    shows = shown(table([(n, f"0.{n}") for n in range(1, 9)]))
    for output in (rows, shows):
        (run,) = runs(tmp_path, notebook(code("trainer.train()", low, output)))
        assert "objective/kl" not in run.series
        assert not any("warnings" in note for note in run.notes)


def test_the_newest_warning_before_a_line_that_names_its_step_is_of_that_step(tmp_path: Path) -> None:
    outputs: list[dict[str, Any]] = []
    for n in range(1, 6):
        outputs += [warned([-2.0, -4.0 * n]), stream(f"Epoch {n}/5, mean reward: 0.5{n}\n")]
    (run,) = runs(tmp_path, notebook(code("for epoch in range(5): trainer.step(q, a, r)", *outputs)))
    assert values(run, "objective/kl") == [(n, -4.0 * n) for n in range(1, 6)]
    assert [value for _, value in values(run, "mean reward")] == [0.51, 0.52, 0.53, 0.54, 0.55]
    assert run.excerpted == {"objective/kl"}


def test_a_table_of_another_training_and_the_warnings_of_the_next_cell_are_two_runs(tmp_path: Path) -> None:
    first = code("SFTTrainer().train()", shown(table([(n, f"0.{n}") for n in range(1, 9)])))
    _, second = runs(tmp_path, notebook(first, code("ppo.step(queries, answers, scores)", warned([-9.5, -1.25, -4.0]))))
    assert set(second.series) == {"objective/kl"}
    assert second.excerpted == {"objective/kl"}


def test_a_loop_of_ones_own_after_the_training_of_its_reward_model_is_a_run_of_its_own(tmp_path: Path) -> None:
    first = code("trainer = RewardTrainer()\ntrainer.train()", shown(table([(n, f"0.{n}") for n in range(1, 9)])))
    lines = "".join(f"Batch {10 * n}: loss: {n - 4}.5, avg_reward: {6 + n / 10}\n" for n in range(25))
    model, loop = runs(tmp_path, notebook(first, code("loss.backward()\noptimizer.step()", stream(lines))))
    assert translate(model).is_rl is False
    assert translate(loop).is_rl is not False
    assert loop.series["avg_reward"].values.tolist() == [6 + n / 10 for n in range(25)]
