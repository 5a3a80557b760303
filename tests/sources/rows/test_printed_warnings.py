"""Warnings of a trainer that tell a metric are read where nothing else is logged, wrapped or prefixed, and never out of
prose.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import rlhealth
from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import Run
from rlhealth.sources import find_readers, open_runs
from rlhealth.sources.rows.log_rows import log_kind

PLACE = "/opt/env/lib/python3.10/site-packages/trl/trainer/ppo_trainer.py:1088: "
LOW = [-1.25, -3.5, -2.75, -9.82, -12.0]
NUMBERED = "steps in the report are row numbers"
ALONE = "only warnings of the trainer were printed"


def low(kl: float) -> str:
    """The warning of a KL below -1."""
    return (
        f"UserWarning: KL divergence is starting to become negative: {kl:.2f} - this might be a precursor for failed "
        "training. sometimes this happens because the generation kwargs are not correctly set."
    )


def far(ratio: float) -> str:
    """The warning of a mini-batch that is skipped."""
    return f"UserWarning: The average ratio of batch ({ratio:.2f}) exceeds threshold 10.00. Skipping batch."


def printed(warning: str, place: str = PLACE) -> str:
    """A warning as Python prints it, with the line of code behind it."""
    return f"{place}{warning}\n  warnings.warn(\n"


def read(folder: Path, text: str) -> Run:
    """The one run of a console."""
    (folder / "train.log").write_text(text)
    (run,) = open_runs(folder / "train.log")
    return run


def test_warnings_alone_are_numbered_rows_and_a_note_says_so(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(printed(low(kl)) for kl in LOW))
    assert run.series["objective/kl"].values.tolist() == LOW
    assert run.series["objective/kl"].steps.tolist() == [1, 2, 3, 4, 5]
    assert run.step_axis == "row"
    assert any(NUMBERED in note for note in run.notes) and any(ALONE in note for note in run.notes)


def test_a_kl_below_zero_is_found_by_its_warnings_alone(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(printed(low(kl)) for kl in LOW))
    (verdict,) = rlhealth.check(tmp_path).runs
    assert [(one.rule, str(one.severity)) for one in verdict.findings] == [("kl-negative", "critical")]


def test_warnings_alone_are_never_healthy(tmp_path: Path) -> None:
    """Text rounds a KL of just below -1 to the limit, which no rule finds."""
    (tmp_path / "train.log").write_text("".join(printed(low(-1)) + printed(far(10 + n)) for n in range(40)))
    for run in rlhealth.check(tmp_path).runs:
        assert run.verdict != "healthy"
    (tmp_path / "train.log").write_text(printed(low(-1)))
    (run,) = rlhealth.check(tmp_path / "train.log").runs
    assert run.verdict == "unknown"


def test_the_ratio_of_skipped_batches_is_the_mean_ratio_of_the_trainer(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(printed(far(ratio)) for ratio in (10.5, 12.34, float("inf"))))
    translation = translate(run)
    assert translation.framework == "trl-ppo-legacy"
    assert translation.metrics["val/ratio"].values.tolist() == [10.5, 12.34, float("inf")]


@pytest.mark.parametrize(
    "place",
    [
        "",
        PLACE.replace(":1088", ""),
        f"[rank0]: {PLACE}",
        f"[rank0]:{PLACE}",
        f"2024-05-01 10:00:00,123 WARNING {PLACE}",
        f"WARNING:py.warnings:{PLACE}",
        f"(main pid=123) {PLACE}",
        f" 68%|██████▊   | 25/36 [3:12:50<1:50:13,  5.67s/it]{PLACE}",
        r"C:\Program Files\envs\trl\trainer\ppo_trainer.py:1088: ",
        "/content/drive/My Drive/trl/trainer/ppo_trainer.py:1088: ",
    ],
)
def test_whatever_stands_before_the_warning_it_is_read(place: str, tmp_path: Path) -> None:
    run = read(tmp_path, "".join(printed(low(kl), place) + printed(far(20 - kl), place) for kl in LOW))
    assert run.series["objective/kl"].values.tolist() == LOW
    assert run.series["ppo/policy/ratio"].values.tolist() == [20 - kl for kl in LOW]


@pytest.mark.parametrize("width", [60, 79, 80, 97, 100, 120])
def test_a_wrapped_warning_is_read(width: int, tmp_path: Path) -> None:
    lines = [line for kl in LOW for line in printed(low(kl), "/env/trl/trainer/ppo_trainer.py:1088: ").splitlines()]
    cut = [line[start : start + width] for line in lines for start in range(0, len(line), width)]
    run = read(tmp_path, "\n".join(cut) + "\n")
    assert run.series["objective/kl"].values.tolist() == LOW


def test_a_number_is_never_joined_out_of_half_a_warning_and_another_line(tmp_path: Path) -> None:
    torn = f"{PLACE}UserWarning: KL divergence is starting to become negative: -9.\n"
    run = read(tmp_path, torn + "{'loss': 0.5, 'reward': 0.25, 'step': 1}\n" + torn + "step 2: loss=0.4, reward=0.5\n")
    assert "objective/kl" not in run.series
    assert run.series["loss"].values.tolist() == [0.5]


def test_a_warning_that_is_printed_twice_is_read_once(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(2 * printed(low(kl)) for kl in LOW))
    assert run.series["objective/kl"].values.tolist() == LOW
    assert "5 rows were printed twice and read once" in run.notes


def test_of_several_processes_the_first_that_warned_is_read(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"[rank{n}]: {PLACE}{low(kl - n)}\n" for kl in LOW for n in range(2)))
    assert run.series["objective/kl"].values.tolist() == LOW


@pytest.mark.parametrize(
    "row",
    [
        "{{'objective/kl': 4.5, 'ppo/loss/total': 0.{n}, 'env/reward_mean': 0.5}}",
        "{{'reward': 0.{n}}}",
        "step {n}: loss=0.{n}, mean_kl=4.5",
        "| step | {n} |\n| loss | 0.{n} |\n| kl | 4.5 |",
    ],
)
def test_warnings_add_nothing_to_rows_that_tell_the_metric_or_to_those_of_a_trainer(row: str, tmp_path: Path) -> None:
    plain = "".join(row.format(n=n) + "\n" for n in range(1, 9))
    mixed = "".join(row.format(n=n) + "\n" + 3 * (printed(low(-n)) + printed(far(9 + n))) for n in range(1, 9))
    alone, both = read(tmp_path, plain), read(tmp_path, mixed)
    assert {tag: one.values.tolist() for tag, one in both.series.items()} == {
        tag: one.values.tolist() for tag, one in alone.series.items()
    }
    assert not any("warnings" in note for note in both.notes)


def test_lines_of_a_script_that_do_not_tell_the_kl_are_read_with_its_warnings(tmp_path: Path) -> None:
    """A KL below zero is a fault whatever the others are; a ratio far above 1 may be that of one batch in a thousand."""
    rows = "".join(f"step {n}: loss=0.{n}, reward=0.5\n" + printed(low(-n)) + printed(far(20)) for n in range(2, 9))
    run = read(tmp_path, rows)
    assert set(run.series) == {"loss", "reward", "objective/kl"}
    assert run.series["objective/kl"].steps.tolist() == list(range(2, 9))
    assert run.excerpted == {"objective/kl"}
    assert any("objective/kl is read from warnings" in note for note in run.notes)
    assert not any(ALONE in note for note in run.notes)


def test_the_bar_before_a_warning_is_a_row_of_its_own(tmp_path: Path) -> None:
    bars = "".join(f" {n}%|█  | {n}/100 [0:01<0:50, 5.67s/it, reward=0.{n}]{printed(low(-n))}" for n in range(11, 19))
    run = read(tmp_path, bars)
    assert len(run.series["reward"]) == len(run.series["objective/kl"]) == 8


def test_rows_that_come_after_warnings_take_their_place(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(printed(low(kl)) for kl in LOW))
    (reader,) = find_readers(log)
    reader.poll()
    assert set(reader.run.series) == {"objective/kl"}
    with log.open("a") as file:
        file.write("".join(f"{{'loss': 0.{n}, 'kl': 2.5, 'step': {n}}}\n" for n in range(1, 9)))
    reader.poll()
    assert len(reader.run.series["loss"]) == 8
    assert not len(reader.run.series.get("objective/kl", ()))
    assert not any("warnings" in note for note in reader.run.notes)


@pytest.mark.parametrize(
    "prose",
    [
        '  warnings.warn(f"KL divergence is starting to become negative: {mean_kl.item():.2f} - this might be a")',
        '    "KL divergence is starting to become negative: -9.82 - this might be a precursor for failed training."',
        "| `KL divergence is starting to become negative: -49.5 - this might` | updates that are too large |",
        f"- We saw this 122 times: {low(-30.55)}",
        "The average ratio of batch (14.93) exceeds threshold 10.00. Skipping batch: the policy is too far away.",
        f"Why does it say {far(14.93)} What does it mean?",
        "UserWarning: the KL divergence is starting to become negative: -1.5 - what to do?",
    ],
)
def test_prose_and_source_code_that_name_a_warning_are_not_read(prose: str, tmp_path: Path) -> None:
    (tmp_path / "notes.log").write_text(f"{prose}\n" * 9)
    assert log_kind(tmp_path / "notes.log") is None
    with pytest.raises(RlhealthError, match="no metrics found"):
        open_runs(tmp_path / "notes.log")


def test_a_text_that_quotes_a_warning_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "issue.log").write_text(f"I get this:\n{printed(low(-9.82))}What is wrong?\n")
    assert log_kind(tmp_path / "issue.log") is None
