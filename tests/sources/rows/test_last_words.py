"""A console that ends in a traceback says that its process died; one that goes on after it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlhealth import check
from rlhealth.errors import RlhealthError
from rlhealth.sources import find_readers
from rlhealth.sources.rows.console import ConsoleLog
from rlhealth.sources.rows.last_words import raised_in, tail_of

ROWS = "".join(f"step {n}/40 loss 0.{n} reward 0.{n} kl 0.01\n" for n in range(10, 30))
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
ERROR = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB\n"


def rules(path: Path, text: str) -> list[str]:
    path.write_text(text)
    return [finding.rule for run in check(path).runs for finding in run.findings if finding.family == "stalled"]


def test_a_console_that_ends_in_a_traceback_short_of_its_plan_has_died(tmp_path: Path) -> None:
    assert rules(tmp_path / "train.log", ROWS + TRACEBACK + ERROR) == ["run-died"]


def test_the_last_words_of_a_console_that_powershell_wrote_are_read(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("x" + ROWS + TRACEBACK + ERROR, "utf-16")
    assert raised_in(tail_of(path)) == raised_in((TRACEBACK + ERROR).encode()) != ""


def test_what_launchers_and_other_ranks_print_after_it_changes_nothing(tmp_path: Path) -> None:
    after = (
        "[rank0]:[W811 04:48:32 ProcessGroupNCCL.cpp:1496] Warning: destroy_process_group\nwandb: Synced 5 files\n\n"
    )
    assert rules(tmp_path / "train.log", ROWS + TRACEBACK + ERROR + after) == ["run-died"]


@pytest.mark.parametrize("row", ["step 30/40 loss 0.5 reward 0.5 kl 0.01\n", "{'loss': 0.5, 'reward': 0.5, 'kl': 0"])
def test_training_that_goes_on_after_it_has_not_died(tmp_path: Path, row: str) -> None:
    assert rules(tmp_path / "train.log", ROWS + TRACEBACK + ERROR + row) == []


def test_an_interrupt_from_the_keyboard_is_no_death(tmp_path: Path) -> None:
    assert rules(tmp_path / "train.log", ROWS + TRACEBACK + "KeyboardInterrupt\n") == ["run-ended-early"]


def test_an_error_after_the_last_planned_step_is_none_of_the_training(tmp_path: Path) -> None:
    last = "".join(f"step {n}/40 loss 0.1 reward 0.5 kl 0.01\n" for n in range(30, 41))
    assert rules(tmp_path / "train.log", ROWS + last + TRACEBACK + ERROR) == []


def test_words_about_errors_are_no_traceback() -> None:
    assert raised_in(b"ValueError: bad reward, taken as 0\n") == ""
    assert raised_in((TRACEBACK + "no exception stands here\n").encode()) == ""
    assert raised_in(("(TaskRunner pid=7) " + TRACEBACK + ERROR).encode()).startswith("torch.OutOfMemoryError: CUDA")


CAUGHT = "Exception occurred during training: not enough values to unpack (expected 2, got 0)"


@pytest.mark.parametrize(
    "said", [CAUGHT, "❌ Training failed: CUDA out of memory", "Error during GRPO training: no such file"]
)
def test_a_script_that_caught_the_exception_and_says_so_at_its_end_has_died(tmp_path: Path, said: str) -> None:
    assert rules(tmp_path / "train.log", ROWS + said + "\nclosing the environments\n") == ["run-died"]


@pytest.mark.parametrize(
    "after", ["Training failed: retrying\n" + ROWS[-40:], "Error in reward function during scoring: 3\n"]
)
def test_words_of_an_error_after_which_training_went_on_or_that_are_of_something_else_end_nothing(
    tmp_path: Path, after: str
) -> None:
    assert rules(tmp_path / "train.log", ROWS + after) == []


def test_of_an_exception_in_a_task_of_ray_the_one_that_it_comes_from_is_told() -> None:
    task = "ray.exceptions.RayTaskError(TypeError): ray::PPO.train() (pid=3)\n"
    frames = "".join(f'  File "worker.py", line {n}, in run\n    step()\n' for n in range(30))
    told = raised_in((TRACEBACK + task + frames + task + frames + "TypeError: step() got 3\n").encode())
    assert told == "TypeError: step() got 3"


def test_a_console_that_is_followed_says_of_each_run_what_one_that_is_read_whole_says(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(ROWS + TRACEBACK + ERROR)
    followed = ConsoleLog(path)
    followed.poll()
    assert [run.raised for run in followed.runs] == [ERROR.strip()]
    with path.open("a") as file:
        file.write(ROWS)
    followed.poll()
    whole = ConsoleLog(path)
    whole.poll()
    assert [run.raised for run in followed.runs] == [run.raised for run in whole.runs] == ["", ""]


def test_a_console_that_is_written_anew_forgets_how_the_old_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(ROWS + TRACEBACK + ERROR)
    log = ConsoleLog(path)
    log.poll()
    path.write_text("begins anew\n" + ROWS)
    log.poll()
    assert [run.raised for run in log.runs] == [""]


SETTINGS = "model: qwen\nstarting\n"


def test_a_console_that_ends_in_a_traceback_before_its_first_row_died_at_its_start(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    assert rules(path, SETTINGS + TRACEBACK + ERROR) == ["died-at-start"]
    assert rules(path, "learning_rate: 1e-6\n" + SETTINGS + TRACEBACK + ERROR) == ["died-at-start"]
    path.write_text(SETTINGS + TRACEBACK + ERROR)
    (run,) = check(tmp_path).runs
    assert run.verdict == "critical"
    assert run.findings[0].message == f"the process ended with an error before it logged a row: {ERROR.strip()}"


def test_what_counted_its_epochs_did_not_die_at_its_start_though_its_rows_are_unread(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    unread = "".join(f"Epoch {epoch}, test BLEU: 0.14\n" for epoch in range(30))
    path.write_text(SETTINGS + unread + TRACEBACK + ERROR)
    with pytest.raises(RlhealthError, match=r"no metrics found.*it ends with"):
        find_readers(path)
    with pytest.raises(RlhealthError, match="no runs found"):
        find_readers(tmp_path)


def test_another_program_that_ends_in_a_traceback_is_no_run_of_a_folder(tmp_path: Path) -> None:
    broken = 'Traceback (most recent call last):\n  File "scratch.py", line 3, in <module>\nAssertionError: 2\n'
    (tmp_path / "scratch.log").write_text("INFO:__main__:this is info\n" + broken)
    found = check(tmp_path)
    assert not found.runs
    assert "no runs found" in str(found.errors[0])


def test_a_run_that_died_before_its_first_row_shows_the_cause_that_its_findings_name(tmp_path: Path) -> None:
    broken = "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0\n"
    (tmp_path / "train.log").write_text(SETTINGS + TRACEBACK + broken)
    (run,) = check(tmp_path).runs
    explained = {one.rule: one.explained_by for one in run.findings}
    known = "numerical-failure"
    assert explained == {known: None, "died-at-start": known, "ended-not-finite": known}


def test_what_a_console_without_rows_says_of_another_run_is_no_run_beside_its_log(tmp_path: Path) -> None:
    (tmp_path / "launcher.log").write_text(SETTINGS + TRACEBACK + ERROR)
    (tmp_path / "train.log").write_text(ROWS)
    (run,) = check(tmp_path).runs
    assert run.run.last_step == 29


@pytest.mark.parametrize("text", [SETTINGS, SETTINGS + TRACEBACK + "KeyboardInterrupt\n"])
def test_a_console_without_rows_that_shows_no_death_is_no_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / "train.log"
    path.write_text(text)
    for place in (path, tmp_path):
        with pytest.raises(RlhealthError, match=r"no metrics found|no runs found"):
            find_readers(place)


@pytest.mark.parametrize("name", ["debug.log", "debug-internal.log", "install.log", "env_setup.log"])
def test_what_wandb_or_an_installer_died_of_is_no_run_of_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(SETTINGS + TRACEBACK + ERROR)
    with pytest.raises(RlhealthError, match="no runs found"):
        find_readers(tmp_path)


def test_a_run_that_is_started_again_after_it_died_at_its_start_is_the_same_run(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(SETTINGS + TRACEBACK + ERROR)
    (reader,) = find_readers(path)
    assert reader.run.died_at_start
    with path.open("a") as file:
        file.write(ROWS)
    assert reader.poll()
    assert (reader.run.raised, reader.run.last_step) == ("", 29)


def test_a_long_exception_is_cut_and_says_so() -> None:
    raised = raised_in((TRACEBACK + "ValueError: " + "x" * 200 + "\n").encode())
    assert (len(raised), raised[-1]) == (100, "…")


@pytest.mark.parametrize(
    ("console", "errors"),
    [
        ("slurm-7.out", "slurm-7.err"),
        ("job-1119663.out", "myjob-1119663.err"),
        ("train.log", "train.err"),
        ("job.o123", "job.e123"),
        ("stdout.txt", "stderr.txt"),
        ("output.log", "error.log"),
    ],
)
def test_an_exception_in_the_error_file_beside_a_console_ended_its_run(
    tmp_path: Path, console: str, errors: str
) -> None:
    (tmp_path / console).write_text(ROWS)
    (tmp_path / errors).write_text("a warning\n" + TRACEBACK + ERROR)
    (run,) = check(tmp_path / console).runs
    assert run.run.raised == ERROR.strip()
    os.utime(tmp_path / errors, (0, 0))  # as a copy may have it
    assert check(tmp_path / console).runs[0].run.raised == ERROR.strip()
    with (tmp_path / errors).open("a") as file:
        file.write(" 75%|#######   | 30/40 [00:10<00:03]\n")  # it was caught, and training went on
    assert check(tmp_path / console).runs[0].run.raised == ""


def test_the_error_file_of_another_job_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "job-1119663.out").write_text(ROWS)
    for name in ("myjob-1119664.err", "myjob-91119663.err", "other.err"):
        (tmp_path / name).write_text(TRACEBACK + ERROR)
    assert check(tmp_path / "job-1119663.out").runs[0].run.raised == ""


def test_a_process_whose_error_file_says_why_it_died_before_its_first_row_died_at_its_start(tmp_path: Path) -> None:
    (tmp_path / "slurm-7.out").write_text("{'data': {'train_batch_size': 128,\n          'return_raw_chat': False}}\n")
    (tmp_path / "slurm-7.err").write_text(SETTINGS + TRACEBACK + ERROR)
    (run,) = check(tmp_path).runs
    assert [one.rule for one in run.findings] == ["died-at-start"]


TRAINS = """
from tqdm import tqdm
bar = tqdm(total=40, mininterval=0, miniters={miniters})
for step in range(13):
    bar.update()
    bar.set_postfix(reward=step / 7, refresh=False)
raise RuntimeError("CUDA error")
"""


@pytest.mark.parametrize("miniters", [1, 4])
def test_a_bar_that_is_drawn_once_more_at_exit_is_no_training(miniters: int) -> None:
    script = TRAINS.format(miniters=miniters)
    drawn = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, check=False).stderr
    assert b" 13/40 " in drawn.rpartition(b"CUDA error")[2]
    assert raised_in(drawn) == "RuntimeError: CUDA error"
    assert raised_in(drawn + b"\r 35%|###5      | 14/40 [00:00<00:01, 33.0it/s]") == "", "it was caught"


FRAMES = '  File "train.py", line 3, in <module>\n    main()\n  File "train.py", line 7, in main\n    trainer.train()\n'


@pytest.mark.parametrize("rank", ["", "[rank0]: ", "(Runner pid=104449) "])
def test_a_traceback_whose_first_line_was_not_pasted_is_one(rank: str) -> None:
    text = "".join(f"{rank}{line}\n" for line in (FRAMES + ERROR).splitlines())
    assert raised_in(text.encode()) == ERROR.strip()
    assert raised_in((text + ROWS).encode()) == ""


def test_one_place_in_a_script_is_no_traceback() -> None:
    warned = '  File "train.py", line 3, in <module>\nUserError: a message of the script\n'
    assert raised_in(warned.encode()) == ""
