"""TensorBoard runs: which files are one run, what configures it, how it grows, and what is said of what cannot be
read.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.plugins.text import summary_v2 as text_summary
from tensorboardX import SummaryWriter

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import Run
from rlhealth.sources import find_readers
from rlhealth.sources.tensorboard import reader as tensorboard
from rlhealth.sources.tensorboard.eventfile import EventFile
from rlhealth.sources.tensorboard.reader import find
from tests.sources.event_files import FIXTURES, START, by_protobuf, framed, rows, scalar, write

TAGS = ["train/loss", "train/reward", "train/kl"]
FIRST, SECOND = "Nov20_20-00-00_host", "Nov20_21-00-00_host"


def read(path: Path, **options: str) -> dict[str, Run]:
    found = find(path, **options)
    for reader in found:
        reader.poll()
    return {reader.run.name: reader.run for reader in found}


def only(path: Path, **options: str) -> Run:
    (run,) = read(path, **options).values()
    return run


def launch(
    folder: Path,
    steps: range,
    began: float,
    *,
    host: str = "host.1",
    arguments: str = "{}",
    tags: list[str] = TAGS,
    every: float = 1.0,
) -> Path:
    """One launch of a trainer: its arguments as text, then rows; a step takes `every` seconds."""
    events = [Event(wall_time=START + began, step=0, summary=text_summary.text_pb("args/text_summary", arguments))]
    for count, step in enumerate(steps):
        events += [scalar(tag, began + step, step, START + began + count * every) for tag in tags]
    return write(folder / f"events.out.tfevents.{int(START + began)}.{host}.0", events)


def append(path: Path, events: list[Event]) -> None:
    path.write_bytes(path.read_bytes() + framed(event.SerializeToString() for event in events))


# --- real runs
# ----------------------------------------------------------------------------------------------------------------------------


def test_every_fixture_is_one_run_under_a_name_a_person_knows() -> None:
    assert set(read(FIXTURES)) == {
        "cartpole/PPO_1",
        "grpo-disk-full",
        "grpo-old",
        "grpo-resumed",
        "grpo-sentences",
        "grpo-sort",
        "legacy-ppo/tiny-rl",
        "ppo-sentences",
    }


def test_a_run_keeps_its_name_from_wherever_it_is_looked_at() -> None:
    folder = FIXTURES / "grpo-sort"
    (file,) = folder.rglob("*tfevents*")
    assert {only(path).name for path in (folder, folder / "runs", file.parent, file)} == {"grpo-sort"}


def test_a_resumed_run_is_one_run_and_the_later_launch_wins() -> None:
    run = only(FIXTURES / "grpo-resumed")
    first, second = (by_protobuf(path) for path in sorted((FIXTURES / "grpo-resumed").rglob("*tfevents*")))
    assert run.resumed_at == [61]
    reward = run.series["train/reward"]
    assert reward.steps.tolist() == list(range(1, 121))
    assert max(first["train/reward"][0]) == 74
    assert reward.values.tolist() == [*first["train/reward"][1][:60], *second["train/reward"][1]]


def test_a_launch_that_is_named_alone_stays_alone() -> None:
    folder = FIXTURES / "grpo-resumed" / "runs" / "Nov20_20-56-30_vm"
    assert only(folder).last_step == 74
    assert only(folder).resumed_at == []


def test_arguments_come_from_text_and_the_models_keep_a_prefix() -> None:
    config = only(FIXTURES / "grpo-sentences").config
    assert (config["beta"], config["max_completion_length"], config["max_steps"]) == (0.04, 16, 100)
    assert config["model_config.model_type"] == "gpt2"
    assert "model_type" not in config


def test_hyper_parameters_in_sub_folders_belong_to_the_run_above_and_are_no_runs() -> None:
    run = only(FIXTURES / "legacy-ppo")
    assert (run.config["init_kl_coef"], run.config["ppo_epochs"], run.config["adap_kl_ctrl"]) == (0.1, 4, True)
    assert run.config["tracker_project_name"] == "tiny-rl"
    assert run.last_step == 57


def test_a_file_cut_by_a_full_disk_is_not_clean_and_no_problem() -> None:
    run = only(FIXTURES / "grpo-disk-full")
    assert run.clean is False
    assert run.problems == []
    assert (run.series["train/reward"].steps[-1], run.series["train/epoch"].steps[-1]) == (35, 34)


def test_values_that_are_not_finite_are_kept() -> None:
    run = only(FIXTURES / "grpo-old")
    assert np.isnan(run.series["train/reward"].values[-1])


@pytest.mark.parametrize("name", ["grpo-resumed", "legacy-ppo", "cartpole", "grpo-disk-full"])
def test_tbparse_reads_the_same_run(name: str) -> None:
    fast, slow = only(FIXTURES / name), only(FIXTURES / name, reader="tbparse")
    assert fast.series.keys() == slow.series.keys()
    for tag, series in fast.series.items():
        np.testing.assert_array_equal(series.steps, slow.series[tag].steps)
        np.testing.assert_array_equal(series.values, slow.series[tag].values)
    assert fast.config == slow.config
    assert fast.resumed_at == slow.resumed_at


def test_the_environment_chooses_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tensorboard.READER_VARIABLE, "tbparse")
    assert [type(file) is EventFile for file in find(FIXTURES / "cartpole")[0]._files] == [False]
    monkeypatch.setenv(tensorboard.READER_VARIABLE, "pigeon")
    with pytest.raises(RlhealthError, match="pigeon"):
        find(FIXTURES / "cartpole")


# --- one run or several
# -------------------------------------------------------------------------------------------------------------------


def test_launches_from_step_1_in_one_folder_are_different_runs(tmp_path: Path) -> None:
    for number in range(23):
        launch(tmp_path / "all", range(1, 10 + number), 1000.0 * number, host=f"host.{number + 1}")
    runs = read(tmp_path)
    assert sorted(run.last_step for run in runs.values()) == list(range(9, 32))
    assert all(not run.resumed_at for run in runs.values())


def test_a_launch_from_the_beginning_that_logs_less_often_is_another_run(tmp_path: Path) -> None:
    launch(tmp_path / "a", range(1, 100), 0)
    launch(tmp_path / "a", range(10, 200, 10), 1000, host="host.2")
    assert sorted((run.first_step, run.last_step) for run in read(tmp_path).values()) == [(1, 99), (10, 190)]


def test_several_files_in_one_folder_are_one_run_where_each_goes_on(tmp_path: Path) -> None:
    launch(tmp_path / "a", range(1, 53), 0, host="host.1")
    launch(tmp_path / "a", range(41, 81), 1000, host="host.2")
    launch(tmp_path / "a", range(91, 101), 2000, host="host.3")
    run = only(tmp_path)
    assert run.resumed_at == [41, 91]
    kl = run.series["train/kl"]
    assert kl.steps.tolist() == [*range(1, 81), *range(91, 101)]
    assert kl.values.tolist() == [*range(1, 41), *range(1041, 1081), *range(2091, 2101)]


def test_what_an_earlier_launch_logged_beyond_the_resume_is_void_for_every_tag(tmp_path: Path) -> None:
    launch(tmp_path / "a", range(1, 53), 0, host="host.1", tags=[*TAGS, "train/only_now_and_then"])
    launch(tmp_path / "a", range(41, 46), 1000, host="host.2")
    assert only(tmp_path).series["train/only_now_and_then"].steps[-1] == 40


def test_files_of_one_process_are_one_launch(tmp_path: Path) -> None:
    launch(tmp_path / "a", range(1, 53), 0)
    write(
        tmp_path / "a" / f"events.out.tfevents.{int(START) + 100}.host.1.1",
        [scalar("eval/reward", 0.5, 52, START + 100)],
    )
    run = only(tmp_path)
    assert run.resumed_at == []
    assert (run.series["train/kl"].steps[-1], run.series["eval/reward"].steps.tolist()) == (52, [52])


def test_a_dated_folder_goes_on_with_the_one_beside_it_under_the_same_arguments(tmp_path: Path) -> None:
    launch(
        tmp_path / "exp" / "runs" / FIRST,
        range(10, 210, 10),
        0,
        arguments='{"beta": 0.1, "resume_from_checkpoint": null, "run_name": "a"}',
    )
    launch(
        tmp_path / "exp" / "runs" / SECOND,
        range(210, 310, 10),
        9000,
        host="host.2",
        arguments='{"beta": 0.1, "resume_from_checkpoint": "x", "run_name": "b"}',
    )
    run = only(tmp_path)
    assert (run.name, run.first_step, run.last_step, run.resumed_at) == (f"{tmp_path.name}/exp", 10, 300, [210])
    assert run.config["resume_from_checkpoint"] == "x"


@pytest.mark.parametrize(
    ("steps", "began", "arguments"),  # of the second launch; the first makes 100 steps in 500 seconds
    [
        (range(101, 201), 9000, '{"beta": 0.2}'),  # other arguments
        (range(1, 101), 9000, '{"beta": 0.1}'),  # from the start
        (range(500, 601), 9000, '{"beta": 0.1}'),  # far behind the first's end
        (range(50, 101), 20, '{"beta": 0.1}'),  # at the same time
    ],
)
def test_a_dated_folder_that_does_not_go_on_is_another_run(
    tmp_path: Path, steps: range, began: float, arguments: str
) -> None:
    launch(tmp_path / "exp" / "runs" / FIRST, range(1, 101), 0, arguments='{"beta": 0.1}', every=5)
    launch(tmp_path / "exp" / "runs" / SECOND, steps, began, host="host.2", arguments=arguments)
    assert set(read(tmp_path)) == {f"exp/runs/{FIRST}", f"exp/runs/{SECOND}"}


def test_a_dated_folder_goes_on_with_the_right_one_of_several(tmp_path: Path) -> None:
    launch(tmp_path / "runs" / FIRST, range(1, 101), 0, arguments='{"seed": 1}')
    launch(tmp_path / "runs" / SECOND, range(1, 91), 1000, host="host.2", arguments='{"seed": 2}')
    launch(tmp_path / "runs" / "Nov20_22-00-00_host", range(61, 121), 2000, host="host.3", arguments='{"seed": 1}')
    assert sorted((run.last_step, run.resumed_at) for run in read(tmp_path).values()) == [(90, []), (120, [61])]


def test_folders_that_are_not_dated_are_never_joined(tmp_path: Path) -> None:
    launch(tmp_path / "a", range(1, 101), 0)
    launch(tmp_path / "b", range(101, 201), 9000, host="host.2")
    launch(tmp_path / "b" / "below", range(201, 301), 99000, host="host.3")
    assert set(read(tmp_path)) == {"a", "b", "b/below"}


def test_a_launch_that_died_before_its_first_step_is_no_run_beside_one_that_did_not(tmp_path: Path) -> None:
    launch(tmp_path / "a", range(0), 0)
    launch(tmp_path / "a", range(1, 11), 500, host="host.2")
    run = only(tmp_path)
    assert run.last_step == 10
    assert len(run.notes) == 1 and "no scalars" in run.notes[0]


@pytest.mark.parametrize("below", ["losses_main_policy", "losses/main/policy"])  # as torch and as tensorboardX do it
def test_curves_that_add_scalars_put_into_sub_folders_belong_to_the_run(tmp_path: Path, below: str) -> None:
    launch(tmp_path / "a", range(1, 53), 0)
    write(tmp_path / "a" / below / f"events.out.tfevents.{int(START)}.host.1.1", rows(["losses/main"], range(1, 30)))
    launch(tmp_path / "a" / "trial", range(1, 9), 0)  # of the same process, but a run of its own
    runs = read(tmp_path)
    assert set(runs) == {"a", "a/trial"}
    assert runs["a"].series["losses/main/policy"].steps.tolist() == list(range(1, 30))


def test_each_metric_that_tensorboardx_puts_into_a_folder_of_its_own_belongs_to_the_run(tmp_path: Path) -> None:
    writer = SummaryWriter(str(tmp_path / "logs"))  # as MAPPO writes it, with a policy for each agent
    for step in range(1, 9):
        for name in ("agent0/value_loss", "agent0/policy_loss", "agent0/dist_entropy", "eval_average_episode_rewards"):
            writer.add_scalars(name, {name: step}, step)
        writer.add_scalars("losses", {"actor": 0.5, "critic": 0.1}, step)
    writer.close()
    run = only(tmp_path)
    assert {"agent0/value_loss", "eval_average_episode_rewards", "losses/actor", "losses/critic"} <= run.series.keys()
    assert translate(run).framework == "mappo"
    assert translate(run).metrics["eval/reward"].values.tolist() == list(range(1, 9))


# --- beside the run
# -----------------------------------------------------------------------------------------------------------------------


def test_a_model_card_tells_the_versions(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "grpo-old", tmp_path / "exp")
    (tmp_path / "exp" / "README.md").write_text(
        "# Model\n\n### Framework versions\n\n- TRL: 0.15.2\n- Transformers: 4.49.0\n- Pytorch: 2.13.0+cpu\n"
    )
    assert only(tmp_path / "exp").versions == {"trl": "0.15.2", "transformers": "4.49.0", "pytorch": "2.13.0+cpu"}


def test_a_table_of_hyper_parameters_is_read(tmp_path: Path) -> None:
    table = "|param|value|\n|-|-|\n|clip_coef|0.2|\n|num_steps|128|\n|anneal_lr|True|\n|env_id|CartPole-v1|"
    write(
        tmp_path / "a" / "events.out.tfevents.1.host.1.0",
        [Event(step=0, summary=text_summary.text_pb("hyperparameters/text_summary", table))],
    )
    assert only(tmp_path).config == {"clip_coef": 0.2, "num_steps": 128, "anneal_lr": True, "env_id": "CartPole-v1"}


def test_text_that_is_no_configuration_is_left_alone(tmp_path: Path) -> None:
    texts = [
        text_summary.text_pb("completions", '{"beta": 9}'),
        text_summary.text_pb("args", "{not json"),
        text_summary.text_pb("config", "[" * 9999),
    ]
    write(tmp_path / "a" / "events.out.tfevents.1.host.1.0", [Event(step=0, summary=text) for text in texts])
    assert only(tmp_path).config == {}


def test_a_file_of_hyper_parameters_full_of_aliases_is_not_unfolded(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "legacy-ppo", tmp_path / "exp")
    (card,) = (tmp_path / "exp").rglob("hparams.yml")
    lines = [
        "a0: &a0 {x: 1}",
        *(f"a{n}: &a{n} {{{', '.join(f'k{k}: *a{n - 1}' for k in range(9))}}}" for n in range(1, 12)),
    ]
    card.write_text("\n".join(lines))
    assert only(tmp_path / "exp").config["init_kl_coef"] == 0.1


# --- growth
# -------------------------------------------------------------------------------------------------------------------------------


def test_a_run_polled_as_it_grows_is_the_run_read_at_once(tmp_path: Path) -> None:
    (source,) = (FIXTURES / "ppo-sentences").rglob("*tfevents*")
    whole, growing = source.read_bytes(), tmp_path / "exp" / "runs" / FIRST / source.name
    growing.parent.mkdir(parents=True)
    growing.write_bytes(whole[:10])
    (reader,) = find(tmp_path)
    changes = []
    for cut in [10, 10, 20_000, 60_000, 60_000, len(whole)]:
        growing.write_bytes(whole[:cut])
        changes.append(reader.poll())
    expected = only(FIXTURES / "ppo-sentences")
    assert changes == [False, False, True, True, False, True]
    assert {tag: one.values.tolist() for tag, one in reader.run.series.items()} == {
        tag: one.values.tolist() for tag, one in expected.series.items()
    }
    assert all(one.revision == 0 for one in reader.run.series.values())
    assert reader.run.config == expected.config


@pytest.mark.parametrize("folders", [("a", "a"), (f"a/runs/{FIRST}", f"a/runs/{SECOND}")])
def test_a_resumed_launch_is_taken_up_as_it_appears(tmp_path: Path, folders: tuple[str, str]) -> None:
    launch(tmp_path / folders[0], range(1, 53), 0)
    (reader,) = find(tmp_path)
    reader.poll()
    later = launch(tmp_path / folders[1], range(0), 1000, host="host.2")
    reader.poll()
    assert reader.run.last_step == 52
    append(later, rows(TAGS, range(41, 71)))
    assert reader.poll()
    assert (reader.run.last_step, reader.run.resumed_at) == (70, [41])
    assert not reader.poll()


def test_a_launch_is_taken_up_where_the_run_is_now_not_where_it_was_found(tmp_path: Path) -> None:
    runs = tmp_path / "exp" / "runs"
    launch(runs / "Nov20_19-00-00_host", range(1, 500), -9000, host="host.9", arguments='{"seed": 9}')
    path = launch(runs / FIRST, range(1, 53), 0, arguments='{"seed": 1}')
    readers = {Path(reader.run.place.location).name: reader for reader in find(tmp_path)}
    readers[FIRST].poll()
    append(path, rows(TAGS, range(53, 400), every=0.5))
    readers[FIRST].poll()
    launch(runs / SECOND, range(381, 420), 5000, host="host.2", arguments='{"seed": 1}')
    assert readers[FIRST].poll()
    assert (readers[FIRST].run.last_step, readers[FIRST].run.resumed_at) == (419, [381])
    assert not readers["Nov20_19-00-00_host"].run.resumed_at


def test_a_writer_that_voids_its_past_resumes_once(tmp_path: Path) -> None:
    launch(tmp_path / "a", range(1, 53), 0)
    path = launch(tmp_path / "a", range(0), 1000, host="host.2")
    append(
        path,
        [
            Event(wall_time=START + 1000, step=41, session_log=SessionLog(status=SessionLog.START)),
            *rows(TAGS, range(41, 60)),
        ],
    )
    run = only(tmp_path)
    assert (run.resumed_at, run.series["train/kl"].steps.tolist()) == ([41], list(range(1, 60)))


def test_a_new_run_in_the_same_folder_is_not_mixed_into_the_old_one(tmp_path: Path) -> None:
    launch(tmp_path / "a", range(1, 53), 0)
    (reader,) = find(tmp_path)
    reader.poll()
    launch(tmp_path / "a", range(1, 90), 1000, host="host.2")
    assert not reader.poll()
    assert reader.run.last_step == 52


def test_a_file_that_was_replaced_by_a_shorter_one_is_read_anew(tmp_path: Path) -> None:
    path = launch(tmp_path / "a", range(1, 53), 0)
    (reader,) = find(tmp_path)
    reader.poll()
    path.unlink()
    launch(tmp_path / "a", range(1, 9), 0)
    assert reader.poll()
    assert reader.run.last_step == 8
    assert "shorter" in reader.run.notes[0]


# --- bad input
# ----------------------------------------------------------------------------------------------------------------------------


def test_damaged_records_are_counted_and_named(tmp_path: Path) -> None:
    path = launch(tmp_path / "a", range(1, 53), 0)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(raw)
    (problem,) = only(tmp_path).problems
    assert problem.startswith("1 damaged record skipped at byte ") and problem.endswith(f" of {path.name}")


def test_a_file_of_garbage_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.host.1.0"
    path.write_bytes(os.urandom(5000))
    with pytest.raises(RlhealthError, match="not a TensorBoard event file") as caught:
        only(tmp_path)
    assert (caught.value.location, bool(caught.value.hint)) == (str(path), True)


def test_a_file_of_garbage_beside_a_run_hides_nothing(tmp_path: Path) -> None:
    launch(tmp_path / "a", range(1, 53), 0)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "events.out.tfevents.1.host.1.0").write_bytes(os.urandom(5000))
    good, bad = find(tmp_path)
    assert good.poll() and good.run.last_step == 52
    with pytest.raises(RlhealthError):
        bad.poll()


def test_an_empty_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.host.1.0"
    path.touch()
    (reader,) = find(tmp_path)
    assert not reader.poll()
    assert (reader.run.series, reader.run.problems) == ({}, [])
    assert reader.run.notes == [
        f"{path.name} is empty: nothing was logged yet, or training ended before it logged anything"
    ]
    launch(tmp_path, range(1, 4), 0).replace(path)
    assert reader.poll() and reader.run.last_step == 3
    assert reader.run.notes == []


def test_a_file_that_is_gone_or_closed_to_us_is_an_error_that_says_why(tmp_path: Path) -> None:
    path = launch(tmp_path, range(1, 4), 0)
    (reader,) = find(tmp_path)
    path.unlink()
    with pytest.raises(RlhealthError, match="no such file"):
        reader.poll()


def test_a_pipe_with_the_name_of_an_event_file_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events.out.tfevents.1.host.1.0")
    launch(tmp_path / "a", range(1, 4), 0)
    assert only(tmp_path).last_step == 3
    with pytest.raises(RlhealthError, match="a pipe"):
        find(tmp_path / "events.out.tfevents.1.host.1.0")


def test_discovery_finds_the_same_runs() -> None:
    assert {reader.run.name for reader in find_readers(str(FIXTURES))} == set(read(FIXTURES))
