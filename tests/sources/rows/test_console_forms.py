"""Every form in which a trainer prints its rows is read as the tracker would have kept it."""

from __future__ import annotations

import math
import pprint
from pathlib import Path

import pytest
import yaml

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import Run
from rlhealth.sources import open_runs
from rlhealth.sources.rows.console import ConsoleLog

DICT = "{{'loss': 0.{0}, 'grad_norm': 1.{0}23456, 'reward': {0}.5, 'kl': 0.0{0}, 'epoch': 0.0{0}}}"


def runs(tmp_path: Path, text: str | bytes, name: str = "train.log") -> list[Run]:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return open_runs(str(path))


def log(tmp_path: Path, text: str | bytes, name: str = "train.log") -> Run:
    (run,) = runs(tmp_path, text, name)
    return run


def values(run: Run, tag: str) -> list[tuple[int, float]]:
    return list(zip(run.series[tag].steps.tolist(), run.series[tag].values.tolist(), strict=True))


@pytest.mark.parametrize("name", ["train.txt", "a.out", "b.err", "nohup.out", "slurm-123.out", "console", "output"])
def test_a_console_is_known_by_its_content_whatever_its_name(tmp_path: Path, name: str) -> None:
    assert len(log(tmp_path, "Loading\n" + "".join(DICT.format(n) + "\n" for n in (1, 2, 3)), name).series["loss"]) == 3


def test_rows_after_a_long_header_are_found(tmp_path: Path) -> None:
    header = "".join(f"INFO 12:00:{n % 60:02d} worker {n}: weights of layer {n} are loaded\n" for n in range(40_000))
    assert values(log(tmp_path, header + DICT.format(1) + "\n" + DICT.format(2) + "\n"), "reward") == [
        (1, 1.5),
        (2, 2.5),
    ]


def test_a_log_whose_lines_end_in_carriage_returns_only_is_read(tmp_path: Path) -> None:
    text = "\r".join(["Loading", *(f" {n}%| | {n}/3 [00:01<00:02, 1.0it/s]\r{DICT.format(n)}" for n in (1, 2, 3)), ""])
    run = log(tmp_path, text)
    assert values(run, "reward") == [(1, 1.5), (2, 2.5), (3, 3.5)]
    assert run.problems == []


def test_a_log_that_ends_in_a_progress_bar_is_not_torn(tmp_path: Path) -> None:
    run = log(tmp_path, f"{DICT.format(1)}\n{DICT.format(2)}\n 20%|██   | 2/10 [00:20<01:20,  5.0s/it, loss=0.1]")
    assert values(run, "reward") == [(1, 1.5), (2, 2.5)]
    assert run.clean is None and not run.problems
    assert not any("not whole" in note for note in run.notes)


def test_a_last_line_without_its_newline_counts_where_it_has_all_that_the_row_before_has(tmp_path: Path) -> None:
    line = "step:{0} - actor/kl_loss:0.0{0}1 - critic/score/mean:0.{0}00"
    whole = "\n".join(line.format(n) for n in (1, 2, 3))
    assert values(log(tmp_path, whole), "critic/score/mean") == [(1, 0.1), (2, 0.2), (3, 0.3)]
    for cut in range(1, 20):
        assert len(log(tmp_path, whole[:-cut]).series["critic/score/mean"]) == 2, cut


def test_colours_prefixes_of_ray_and_of_loggers_are_no_part_of_a_row(tmp_path: Path) -> None:
    lines = [
        f"\x1b[36m(TaskRunner pid=871, ip=10.0.0.2)\x1b[0m step:{n} - actor/kl_loss:0.{n} - critic/score/mean:np.float64(0.{n})"
        for n in (1, 2)
    ]
    run = log(tmp_path, "\n".join(lines) + "\n")
    assert values(run, "actor/kl_loss") == values(run, "critic/score/mean") == [(1, 0.1), (2, 0.2)]
    assert set(run.series) == {"actor/kl_loss", "critic/score/mean"}


@pytest.mark.parametrize(
    "before",
    [
        "2026-01-02 03:04:05,678 - INFO - ",
        "[2026-01-02 03:04:05] [INFO] ",
        "INFO 01-02 03:04:05 [trainer.py:12] ",
        "INFO:root:",
        "I0102 03:04:05.678901 139 trainer.py:12] ",
        "2026-01-02 03:04:05.678 | INFO     | my.trainer:train:12 - ",
        "03:04:05    INFO ",
        "(AReaL) 20260102-03:04:05.678 Trainer INFO: ",
        "2026-01-02 03:04:05.678901 JST | [cql-hopper--s-0] ",
        "",
    ],
)
def test_the_name_of_the_first_pair_begins_after_the_prefix_of_the_logger(tmp_path: Path, before: str) -> None:
    lines = [f"{before}loss: 0.{n}, reward: {n}.5, kl: 0.0{n}" for n in (1, 2)]
    run = log(tmp_path, "\n".join(lines) + "\n")
    assert set(run.series) == {"loss", "reward", "kl"}
    assert values(run, "reward") == [(1, 1.5), (2, 2.5)]


def test_a_dict_over_25_lines_with_a_prefix_on_each_is_one_row(tmp_path: Path) -> None:
    rows = [{"loss": n / 10, "step": n} | {f"rewards/f{k}/mean": k * n / 7 for k in range(25)} for n in (1, 2)]
    text = "".join(f"(Runner pid=12) {line}\n" for row in rows for line in pprint.pformat(row).splitlines())
    run = log(tmp_path, text)
    assert len(run.series) == 26
    assert values(run, "rewards/f24/mean") == [(1, 24 / 7), (2, 48 / 7)]


def test_the_heading_above_a_block_names_its_step(tmp_path: Path) -> None:
    block = "{0:#^80}\n" + " Learning iteration {1}/1500 ".center(80) + "\n\n" + "Value function loss: inf\n".rjust(60)
    block += (
        "Mean reward: {1}.50\n".rjust(60)
        + "Mean episode length: 21.25\n".rjust(60)
        + "-" * 80
        + "\n"
        + "Total time: 3.1s\n".rjust(60)
    )
    run = log(tmp_path, "Setting seed: 42\n" + "".join(block.format("", n) for n in (8, 9)))
    assert values(run, "Mean reward") == [(8, 8.5), (9, 9.5)]
    assert values(run, "Value function loss") == [(8, math.inf), (9, math.inf)]
    assert run.planned_steps == 1500 and run.step_axis == "iteration"


def test_bullets_below_a_step_are_a_row_and_what_a_model_says_between_is_not(tmp_path: Path) -> None:
    step = "========================= Step {0}/100 =========================\nAnswer: 4{0}\nThe loss of it: none\n"
    step += (
        "\n📊 Training Results:\n  • Loss: 0.{0}\n  • Avg Reward: 0.{0}\n\n⏱️  Timing:\n  • Total step time: 12.{0}s\n"
    )
    run = log(tmp_path, "".join(step.format(n) for n in (1, 2)))
    assert values(run, "Loss") == values(run, "Avg Reward") == [(1, 0.1), (2, 0.2)]
    assert "Answer" not in run.series


def test_names_and_numbers_between_bars_are_a_row(tmp_path: Path) -> None:
    line = "12:00:0{0} SUCCESS Step {0} |   3.21s | Loss 0.{0}234 | Mismatch KL 0.00{0} | LR 1.00e-06 | Throughput 1234 tokens/s | MFU 12.5%"
    run = log(tmp_path, "".join(line.format(n) + "\n" for n in (1, 2)))
    assert values(run, "Loss") == [(1, 0.1234), (2, 0.2234)]
    assert values(run, "Mismatch KL") == [(1, 0.001), (2, 0.002)]
    assert values(run, "MFU") == [(1, 0.125), (2, 0.125)]


@pytest.mark.parametrize(
    ("line", "tag"),
    [
        ("Episode : {0} \t\t Timestep : {0}00 \t\t Average Reward : {0}.5", "Average Reward"),
        ("Episode {0}\tAverage Score: {0}.5", "Average Score"),
        ("iter {0}: loss 0.5, reward {0}.5, lr 1e-3", "reward"),
        ("[Step {0}/300] reward={0}.5 loss=0.{0} kl=0.01", "reward"),
        ("Epoch: 0 | Step: {0} | PPO Epoch: 1 | Actor Loss: {0}.5 | Critic Loss: 0.1", "Actor Loss"),
        ("step={0},loss={0}.5,kl=0.1", "loss"),
        ("Epoch:[1/2]({0}/500), Reward: {0}.5, Actor Loss: 0.1", "Reward"),
        ("completions/mean_length: 256   reward: {0}.5   step: {0}", "reward"),
        ("Ep   {0}  train_reward=  {0}.5  eval_score=   6.78  best=   6.78  eps=0.7997", "train_reward"),
        ("step {0} -- mean_reward: ({0}.5) -- decoding 5 rand samples:", "mean_reward"),
        (
            "Episode {0} - Step {0}00 - Epsilon 0.02 - Mean Reward {0}.5 - Mean Loss -0.1 - Time 2025-12-03T20:57:38",
            "Mean Reward",
        ),
        ("pass 1/4 step {0}/256 lr 1.9e-06 reward {0}.5", "reward"),
    ],
)
def test_pairs_of_names_and_numbers_on_a_line_are_a_row(tmp_path: Path, line: str, tag: str) -> None:
    run = log(tmp_path, "".join(line.format(n) + "\n" for n in (1, 2, 3)))
    assert run.series[tag].values.tolist() == [1.5, 2.5, 3.5]
    assert run.step_axis != "row"


def test_steps_that_count_within_their_epochs_are_counted_on(tmp_path: Path) -> None:
    lines = [f"Epoch:[{epoch}/2]({n}/3), Reward: {epoch}.{n}, Actor Loss: 0.1\n" for epoch in (1, 2) for n in (1, 2, 3)]
    run = log(tmp_path, "".join(lines))
    assert values(run, "Reward") == [(1, 1.1), (2, 1.2), (3, 1.3), (4, 2.1), (5, 2.2), (6, 2.3)]
    assert run.planned_steps == 6


def test_steps_that_begin_again_in_every_epoch_are_one_runs(tmp_path: Path) -> None:
    lines = [
        f"epoch = {epoch}, step = {n}, loss = 0.1, reward = {epoch}.{n}\n" for epoch in (0, 1, 2) for n in (0, 1, 2)
    ]
    run = log(tmp_path, "".join(lines))
    assert run.series["reward"].steps.tolist() == list(range(9))
    assert any("counted on" in note for note in run.notes)


@pytest.mark.parametrize(
    "line",
    [
        "[Epoch {epoch} | Step {n}/4 | Reward: {r}]",
        "Step {n}/4, Epoch {epoch}, Reward: {r}",
        "Epoch {epoch} | step: {n} | Reward: {r}",
        "=== Epoch {epoch} Step {n}/4 ===\nLoss: 0.1, Reward: {r}",
    ],
)
def test_an_epoch_without_a_colon_tells_that_the_steps_begin_again(tmp_path: Path, line: str) -> None:
    lines = [line.format(epoch=epoch, n=n, r=f"{epoch}.{n}") for epoch in (1, 2, 3) for n in (1, 2, 3, 4)]
    run = log(tmp_path, "\n".join(lines) + "\n")
    assert run.series["Reward"].steps.tolist() == list(range(1, 13))
    assert run.planned_steps is None  # 4 are those of an epoch


def test_the_heading_of_an_epoch_tells_that_the_steps_below_it_begin_again(tmp_path: Path) -> None:
    epochs = ["".join(f"Step {n}/4 | Reward: {epoch}.{n}\n" for n in (1, 2, 3, 4)) for epoch in (1, 2, 3)]
    text = "".join(f"=== Epoch {epoch}/3 ===\n{rows}" for epoch, rows in enumerate(epochs, 1))
    assert log(tmp_path, text).series["Reward"].steps.tolist() == list(range(1, 13))
    first, second = runs(tmp_path, text * 2)
    assert len(first.series["Reward"]) == len(second.series["Reward"]) == 12


def test_an_epoch_whose_first_steps_were_not_logged_goes_on_with_the_run(tmp_path: Path) -> None:
    steps = {1: range(1, 11), 2: range(3, 10), 3: range(2, 9)}
    lines = [f"[Epoch {epoch} | Step {n}/10 | Reward: {epoch}.{n}]\n" for epoch, some in steps.items() for n in some]
    run = log(tmp_path, "".join(lines))
    assert run.series["Reward"].steps.tolist() == [*range(1, 11), *range(13, 20), *range(21, 28)]


def test_a_run_that_is_resumed_within_its_epoch_begins_no_other(tmp_path: Path) -> None:
    lines = [f"[Epoch {n // 5} | Step {n} | Reward: 0.{n + 10}]\n" for n in range(10)]
    resumed = [f"[Epoch {n // 5} | Step {n} | Reward: 1.{n + 10}]\n" for n in range(7, 15)]
    assert log(tmp_path, "".join(lines + resumed)).series["Reward"].steps.tolist() == list(range(15))


def test_epochs_that_begin_again_with_their_steps_are_another_run(tmp_path: Path) -> None:
    lines = [f"epoch = {epoch}, step = {n}, loss = 0.1, reward = {epoch}.{n}\n" for epoch in (0, 1) for n in range(5)]
    first, second = runs(tmp_path, "".join(lines * 2))
    assert first.series["reward"].steps.tolist() == second.series["reward"].steps.tolist() == list(range(10))


def test_steps_that_begin_again_with_their_epoch_are_another_run(tmp_path: Path) -> None:
    lines = [f"epoch = {n // 5}, step = {n}, loss = 0.1, reward = 0.{n}\n" for n in range(10)]
    first, second = runs(tmp_path, "".join(lines * 2))
    assert len(first.series["reward"]) == len(second.series["reward"]) == 10


def test_a_console_whose_first_lines_have_as_many_commas_is_no_table(tmp_path: Path) -> None:
    lines = [
        f"2025-02-25 19:42:1{n},238\tINFO step:{n} - actor/kl_loss:0.{n} - critic/score/mean:0.5" for n in range(5)
    ]
    assert log(tmp_path, "\n".join(lines) + "\n").series["actor/kl_loss"].steps.tolist() == [0, 1, 2, 3, 4]


def test_rows_of_several_ranks_are_one_run_of_the_first_of_them(tmp_path: Path) -> None:
    lines = [f"[rank{rank}]: step={n} loss={n}.{rank} reward={rank}.5" for n in (1, 2, 3) for rank in (2, 0, 1)]
    run = log(tmp_path, "\n".join(lines) + "\n")
    assert values(run, "loss") == [(1, 1.2), (2, 2.2), (3, 3.2)]
    assert any("6 rows of other processes were left out" in note for note in run.notes)


def test_a_row_that_is_printed_twice_is_read_once(tmp_path: Path) -> None:
    run = log(tmp_path, "".join(f"{DICT.format(n)}\nINFO {DICT.format(n)}\n" for n in (1, 2, 3)))
    assert values(run, "reward") == [(1, 1.5), (2, 2.5), (3, 3.5)]
    assert "3 rows were printed twice and read once" in run.notes


def test_a_reward_in_half_precision_that_comes_again_is_another_one(tmp_path: Path) -> None:
    rewards = [2.4697265625, 2.390625, 2.4697265625, 2.515625]
    lines = [
        f"epoch: 0|step: {n}|ppo_ep: 1|act_loss: 0.{n}234567|cri_loss: 0.{n}765432|unsuper_loss: 0.0\n"
        f"average reward score: {reward}\n{'-' * 40}\n"
        for n, reward in enumerate(rewards)
    ]
    run = log(tmp_path, "".join(lines))
    assert values(run, "average reward score") == list(enumerate(rewards))
    assert not run.notes  # one line of rewards beside each step is no rollout


def test_lines_that_tell_the_reward_go_before_dicts_that_tell_none(tmp_path: Path) -> None:
    lines = [
        line
        for n in (1, 2, 3, 4)
        for line in (
            f"[INFO][RLTrainer] Rollout {n} data statistics:",
            f"  - rewards/mean        : 0.{n}",
            f"  - advantages/mean     : -0.0{n}",
            f"  - response_len/mean   : 10{n}.5",
            f"[INFO][TrainingWorker] Rollout {n}: avg entropy: 0.7{n}, avg rollout entropy: 0.6{n}",
            " rollout mismatch metrics:",
            "{",
            f'    "mismatch/mismatch_kl": 0.000{n}35,',
            f'    "mismatch/mismatch_k3_kl": 0.000{n}37',
            "}",
        )
    ]
    run = log(tmp_path, "\n".join(lines) + "\n")
    assert values(run, "rewards/mean") == [(n, n / 10) for n in (1, 2, 3, 4)]
    assert values(run, "mismatch/mismatch_k3_kl") == [(n, float(f"0.000{n}37")) for n in (1, 2, 3, 4)]
    assert values(run, "avg entropy") == [(n, float(f"0.7{n}")) for n in (1, 2, 3, 4)]


TITLED = """\
╭──────────────────────────────────────────────────────────╮
├────────────────────── Metric Table ──────────────────────┤
│ Global Step:    {n}/100 │ Progress: █░░░░ │   1.0%         │
│ Elapsed: 00:10 │ ETA: 10:00 │ Step Time: 3.210s          │
├────────────────────── Environment ───────────────────────┤
│                                                          │
│episode_len=80.000  │return=0.{n}         │success_once=0.2 │
│                                                          │
├───────────────────── Training/Actor ─────────────────────┤
│actor/approx_kl=1.20e-03│actor/policy_loss=-0.0{n}         │
╰──────────────────────────────────────────────────────────╯
"""


@pytest.mark.parametrize("line", ["Episode {0} - reward {1}", "Step {2}: avg reward = {1}"])
def test_a_line_between_boxes_without_a_reward_tells_theirs(line: str, tmp_path: Path) -> None:
    box = "-----------------\n| time/       |   |\n|    total_timesteps | {2} |\n| train/  |   |\n|    loss | 0.{0} |\n-----------------\n"
    text = "".join((line + "\n" + box).format(n, n / 100, n * 2048) for n in range(10, 40))
    run = log(tmp_path, text)
    assert run.last_step == 39 * 2048
    (reward,) = (one for tag, one in run.series.items() if "reward" in tag)
    assert reward.values.tolist() == [n / 100 for n in range(10, 40)]


def test_lines_of_episodes_between_boxes_that_tell_the_reward_are_left_out(tmp_path: Path) -> None:
    box = "-----------------\n| rollout/    |   |\n|    ep_rew_mean | {1} |\n|    total_timesteps | {0}00 |\n|    loss | 0.{0} |\n-----------------\n"
    run = log(tmp_path, "".join(("Episode {0} - reward {1}\n" + box).format(n, n / 100) for n in range(10, 40)))
    assert [tag for tag in run.series if "rew" in tag] == ["rollout/ep_rew_mean"]


def test_a_box_with_titles_is_a_row_of_the_step_in_it(tmp_path: Path) -> None:
    run = log(tmp_path, "".join(f"[Ray] step done\n\n{TITLED.format(n=n)}\n" for n in (3, 4, 5)))
    assert values(run, "Environment/return") == [(3, 0.3), (4, 0.4), (5, 0.5)]
    assert values(run, "Training/Actor/actor/approx_kl") == [(3, 0.0012), (4, 0.0012), (5, 0.0012)]
    found = translate(run)
    assert found.title == "RLinf" and found.metrics["reward"].tag == "Environment/return"


@pytest.mark.parametrize(
    "form",
    [
        "[STEP] step={n} action=jump reward=0.{n} done=false error=null",
        "[STEP] {{'step': {n}, 'action': 'jump', 'reward': 0.{n}, 'done': False}}",
    ],
)
def test_steps_of_an_environment_are_no_log_of_training(form: str, tmp_path: Path) -> None:
    lines = [form.format(n=n) for n in range(1, 31)]
    with pytest.raises(RlhealthError, match="no metrics found"):
        log(tmp_path, "\n".join(lines) + "\n")
    rows = [f"step={n} loss=0.{n} reward=0.{n} done=false" for n in range(1, 4)]  # a trainer's own row may say it too
    assert len(log(tmp_path, "\n".join(rows) + "\n").series["reward"]) == 3


def test_single_rollouts_are_left_out_and_said_to_be(tmp_path: Path) -> None:
    lines = [
        line
        for n in (1, 2)
        for line in (*(f"task_id=t{k} reward={k}.0 turns={k}" for k in range(8)), f"step={n} loss=0.{n} reward=0.{n}")
    ]
    run = log(tmp_path, "\n".join(lines) + "\n")
    assert values(run, "reward") == [(1, 0.1), (2, 0.2)]
    assert any("single rollouts" in note for note in run.notes)


def test_the_mean_of_single_rollouts_is_the_steps_where_it_tells_no_reward(tmp_path: Path) -> None:
    lines = ["Training with batch_size=8, reward_scale=1.0, grad_acc_step=8"] + [
        line
        for n in (1, 2)
        for line in (*(f"task_id=t{k} reward={k + n}.0 turns={k}" for k in range(3)), f"step={n} loss=0.{n} lr=0.{n}")
    ]
    run = log(tmp_path, "\n".join(lines) + "\n")
    assert values(run, "reward") == [(1, 2.0), (2, 3.0)]
    assert "turns" not in run.series
    assert "6 rows of single rollouts were read as the mean of their step" in run.notes


def test_two_runs_one_after_the_other_are_two_whichever_count_begins_again(tmp_path: Path) -> None:
    one = "".join(f"{{'loss': 0.{n}, 'num_tokens': {n}000.0, 'reward': {n}.0}}\n" for n in (1, 2, 3))
    first, second = runs(tmp_path, one + "Traceback\n" + one)
    assert len(first.series["loss"]) == len(second.series["loss"]) == 3


def test_a_row_without_a_step_never_overwrites_one(tmp_path: Path) -> None:
    rows = '{"step": 1, "loss": 0.1, "kl": 0.2}\n{"loss": 9.0, "kl": 9.0}\n{"eval_loss": 0.5}\n{"step": 2, "loss": 0.3, "kl": 0.4}\n'
    run = log(tmp_path, "start\n" + rows)
    assert values(run, "loss") == [(1, 0.1), (2, 0.3)]
    assert values(run, "eval_loss") == [(1, 0.5)]
    assert any(note.startswith("1 row names no step and says again") for note in run.notes)


def test_a_line_that_wandb_cut_is_known_as_cut_and_folds_into_no_other(tmp_path: Path) -> None:
    row = "{'loss': 0.5, " + ", ".join(f"'rewards/f{n}/mean': 0.12345" for n in range(200)) + ", 'kl': 0.25}"
    run = log(tmp_path, f"{row[:4096]}\n{DICT.format(1)}\n{row[:4096]}\n{DICT.format(2)}\n", "output.log")
    assert values(run, "loss") == [(1, 0.5), (2, 0.1), (3, 0.5), (4, 0.2)]
    assert values(run, "kl") == [(2, 0.01), (4, 0.02)]
    assert run.problems == ["output.log: 2 printed rows are cut; what is whole in them was read"]


def test_lines_of_verl_that_wandb_cut_lose_their_last_pair_only(tmp_path: Path) -> None:
    line = "step:1 - " + " - ".join(f"critic/f{n}/mean:12.345" for n in range(300))
    run = log(tmp_path, line[:4096] + "\n" + line[:4096].replace("step:1", "step:2") + "\nnext\n", "output.log")
    assert {value for one in run.series.values() for value in one.values.tolist()} == {12.345}
    assert run.step_axis == "step" and len(run.series) > 100


def test_what_anybody_prints_is_no_row_where_the_trainer_prints_dicts(tmp_path: Path) -> None:
    text = "".join(f"Reward: 0.{k}, Length: {k}\n" for k in range(5)) + "Score: 3\nTotal reward: 4\n"
    run = log(tmp_path, "".join(f"{text}{DICT.format(n)}\n" for n in (1, 2, 3)))
    assert values(run, "reward") == [(1, 1.5), (2, 2.5), (3, 3.5)]
    assert "Reward" not in run.series and "Length" not in run.series


def test_the_best_form_is_read_whenever_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("Train: 1/5 [00:01<00:04, 1.0it/s, loss=0.5, reward=1.0]\n" * 3)
    console = ConsoleLog(path)
    console.poll()
    run = console.runs[0]
    assert "reward" in run.series
    with path.open("a") as file:
        file.write(f"{DICT.format(1)}\n{DICT.format(2)}\n")
    console.poll()
    assert values(run, "reward") == values(open_runs(str(path))[0], "reward") == [(1, 1.5), (2, 2.5)]


def test_a_log_reads_the_same_in_whatever_pieces_it_comes(tmp_path: Path) -> None:
    step = "=== Step {0}/9 ===\n  • Loss: 0.{0}\n  • Avg Reward: {0}.25\n\nnoise: of\nmany lines\n" + "x\n" * 90
    text = ("x\n" * 200 + "".join(step.format(n) for n in range(1, 6))).encode()
    whole = log(tmp_path, text)
    path = tmp_path / "grows.log"
    path.touch()
    console = ConsoleLog(path)
    with path.open("ab", buffering=0) as file:
        for at in range(0, len(text), 37):
            file.write(text[at : at + 37])
            try:
                console.poll()
            except RlhealthError:
                assert at < 600
    assert values(console.runs[0], "Loss") == values(whole, "Loss") == [(n, n / 10) for n in range(1, 6)]


def test_a_file_without_rows_says_what_was_looked_for_and_what_came_nearest(tmp_path: Path) -> None:
    with pytest.raises(RlhealthError) as told:
        runs(tmp_path, "starting\nseed: 42\nbatch size: 8\n" + "prose of no interest\n" * 20)
    assert "line 2: seed: 42" in str(told.value)
    assert "dict" in str(told.value.hint)


def test_a_run_that_died_before_its_first_row_is_reported_by_its_exception(tmp_path: Path) -> None:
    died = 'Traceback (most recent call last):\n  File "train.py", line 9, in main\nNotImplementedError: no such task\n'
    assert log(tmp_path, "seed: 42\n" + died).raised == "NotImplementedError: no such task"
    said = log(tmp_path, "seed: 42\n" + died.replace("task", "token hf_AbCdEfGhIjKlMnOpQr")).raised
    assert said == "NotImplementedError: no such token (hidden)"


def test_a_console_that_was_interrupted_before_its_first_row_holds_no_run(tmp_path: Path) -> None:
    with pytest.raises(RlhealthError, match="it ends with KeyboardInterrupt"):
        runs(tmp_path, 'starting\nTraceback (most recent call last):\n  File "train.py", line 9\nKeyboardInterrupt\n')


def test_what_came_nearest_to_a_row_is_shown_without_its_colours(tmp_path: Path) -> None:
    with pytest.raises(RlhealthError, match="line 1: dataset len: 50"):
        runs(tmp_path, "\x1b[36m(main_task pid=7)\x1b[0m dataset len: 50\n")


def test_titles_of_a_tree_in_yaml_are_part_of_the_names_below_them(tmp_path: Path) -> None:
    """EasyR1's console: `Step 1`, then its metrics as PyYAML writes nested dicts."""
    trees = [
        {"actor": {"entropy_loss": n / 8, "kl_loss": n / 16}, "critic": {"score": {"max": 1.0, "mean": n / 32}}}
        for n in range(1, 9)
    ]
    lines = "".join(f"Step {n}\n{yaml.dump(tree, indent=2)}" for n, tree in enumerate(trees, 1))
    found = log(tmp_path, "".join(f"(Runner pid=77) {line}\n" for line in lines.splitlines()))
    assert set(found.series) == {"actor/entropy_loss", "actor/kl_loss", "critic/score/max", "critic/score/mean"}
    assert values(found, "actor/kl_loss") == [(n, n / 16) for n in range(1, 9)]
    assert values(found, "critic/score/mean") == [(n, n / 32) for n in range(1, 9)]


def test_settings_that_are_printed_as_dicts_do_not_hide_verls_steps(tmp_path: Path) -> None:
    settings = (
        "{'actor': {'entropy_coeff': 0.0, 'kl_loss_coef': 0.001, 'clip_ratio': 0.2, 'calculate_entropy': False}}\n"
    )
    steps = "".join(
        f"(TaskRunner pid=7) step:{n} - actor/entropy:0.5 - critic/score/mean:{n / 16}\n" for n in range(1, 9)
    )
    found = log(tmp_path, settings * 4 + pprint.pformat({"kl_ctrl": {"kl_coef": 0.1}, "loss": 1}) + "\n" + steps)
    assert values(found, "critic/score/mean") == [(n, n / 16) for n in range(1, 9)]


def test_a_result_of_ray_is_read_whole_though_some_of_its_lines_are_no_numbers(tmp_path: Path) -> None:
    """Ray's `pretty_print` writes each result as YAML."""

    def result(n: int, trial: str = "DQN_shogi_96499_00000") -> str:
        found = {
            "custom_metrics": {},
            "episode_len_mean": 7.125,
            "episode_reward_mean": 0.0,
            "hostname": "instance-3",
            "info": {
                "learner": {
                    "player_0": {"learner_stats": {"cur_lr": 0.0005, "mean_q": 1.5 * n}, "td_error": [-0.25, 0.5 * n]}
                }
            },
            "policy_reward_mean": {"player_0": 0.25 * n, "player_1": -0.25 * n},
            "timesteps_total": 100 * n,
            "trial_id": "96499_00000",
        }
        body = "".join(f"  {line}\n" for line in yaml.safe_dump(found).splitlines())
        return f"Result for {trial}:\n{body}  \n== Status ==\nUsing FIFO scheduling algorithm.\n"

    run = log(tmp_path, "".join(map(result, range(1, 13))))
    assert values(run, "info/learner/player_0/learner_stats/mean_q") == [(100 * n, 1.5 * n) for n in range(1, 13)]
    metrics = translate(run).metrics
    assert translate(run).framework == "rllib"
    assert metrics["agents/player_1/reward"].values.tolist() == [-0.25 * n for n in range(1, 13)]
    assert not run.problems
    several = (result(n // 3, f"DQN_shogi_96499_0000{n % 3}") for n in range(3, 39))
    run = log(tmp_path, "".join(several))
    assert values(run, "info/learner/player_0/learner_stats/mean_q") == [(100 * n, 1.5 * n) for n in range(1, 13)]
    assert any("of its 3 trials only DQN_shogi_96499_00000 was read" in one for one in run.problems)
