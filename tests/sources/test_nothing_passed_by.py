"""Every candidate is accounted for: a sick log beside a healthy run is judged, or counted with its reason, whatever
shape it has.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rlhealth.check import check
from rlhealth.reports import REPORTS, ReportOptions, write
from rlhealth.verdict.gate import Gate
from tests.sources.sick_shapes import FIXTURES, SHAPES, lines, sick_rows

HEALTHY = FIXTURES / "compare" / "good-tight-kl" / "trainer_state.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    (folder / "healthy").mkdir(parents=True)
    shutil.copy(HEALTHY, folder / "healthy")
    (folder / "other").mkdir()
    return folder


def test_the_healthy_run_alone_passes_even_where_nothing_may_be_left(root: Path) -> None:
    verdict = check(root, gate=Gate(strict=True))
    assert (verdict.exit_code, verdict.left_out) == (0, [])


READ = [
    "train.JSONL",
    "train.jsonlines",
    "train.jsonl.1",
    "run_config.jsonl",
    "adapter_metrics.jsonl",
    "train_summary.jsonl",
    "completions_log.jsonl",
    "gzip",
    "gzipped state",
    "bzip2",
    "xz",
    "rotated, sick in its oldest part",
    "first row after 300 KiB of console",
    "first row after 300 KiB of JSONL",
    "a text of over 200 characters in each row",
    "a table whose step has another name",
    "25 lines of settings first",
    "indented rows in JSON",
    "indented rows in JSONL",
    "indented objects one after the other",
    "columns in JSON",
    "a folder 33 deep",
    "event file under another name",
    *(name for name in SHAPES if "utf-" in name),
]


@pytest.mark.parametrize("name", READ)
def test_what_can_be_read_is_read(root: Path, name: str) -> None:
    SHAPES[name](root / "other", sick_rows())
    verdict = check(root)
    assert (verdict.exit_code, verdict.left_out, verdict.errors) == (1, [], [])


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in READ])
def test_a_sick_log_of_any_shape_is_found_sick_or_counted(root: Path, name: str) -> None:
    SHAPES[name](root / "other", sick_rows())
    verdict = check(root, gate=Gate(strict=True))
    assert verdict.exit_code == (2 if verdict.left_out or verdict.errors else 1)
    sick = [run for run in verdict.runs if run.verdict == "critical"]
    assert sick or verdict.left_out or verdict.errors


def test_rotated_parts_are_one_log_and_said_to_be(root: Path) -> None:
    SHAPES["rotated, sick in its oldest part"](root / "other", sick_rows())
    (run,) = (one for one in check(root).runs if one.run.place.kind == "jsonl")
    assert (run.run.first_step, run.run.last_step) == (sick_rows()[0]["step"], sick_rows()[-1]["step"])
    assert "train.jsonl: read together with its 2 older parts, train.jsonl.2.gz first" in run.run.notes


def test_what_is_plainly_no_log_stays_silent(root: Path) -> None:
    here = root / "healthy"
    (here / "config.json").write_text(json.dumps({"learning_rate": 1e-5, "kl_coef": 0.1, "layers": [1, 2, 3]}))
    (here / "adapter_config.json").write_text(json.dumps({"r": 16, "lora_alpha": 32, "target_modules": ["q", "v"]}))
    (here / "tokenizer.json").write_text(
        '{"vocab": [{"id": 1, "score": 2.0, "x": 3}, {"id": 2, "score": 1.0, "x": 4}]}'
    )
    (here / "args.yaml").write_text("learning_rate: 1e-5\nkl_coef: 0.1\n")
    (here / "requirements.txt").write_text("torch==2.4.0\ntrl==0.15.2\n")
    (here / "notes.txt").write_text("the loss looked fine; kl at 0.1, and reward 0.5 in the end\n")
    (here / "model.safetensors").write_bytes(bytes(range(256)) * 64)
    (here / "optimizer.pt").write_bytes(b"PK\x03\x04" + bytes(range(256)) * 8)
    (here / "chart.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (here / "train.py").write_text('print({"loss": 0.1, "reward": 1.0, "kl": 0.2})\n' * 5)
    (here / "train_data.jsonl").write_text('{"prompt": "hello", "answer": "world", "id": 1}\n' * 5)
    (here / "data.csv").write_text("prompt,answer\na,b\n")
    verdict = check(root, gate=Gate(strict=True))
    assert ([*map(str, verdict.errors)], verdict.left_out, len(verdict.runs)) == ([], [], 1)


def test_ml_agents_list_of_checkpoints_is_no_run_and_says_so_where_it_is_named(root: Path) -> None:
    path = root / "other" / "training_status.json"
    rewards = [0.5, None, 0.4]
    checkpoints = [
        {"steps": 1000 * n, "file_path": f"results/Walker-{n}.onnx", "reward": reward, "creation_time": 1.7e9 + n}
        for n, reward in enumerate(rewards)
    ]
    path.write_text(json.dumps({"Walker": {"checkpoints": checkpoints}}, indent=4))
    verdict = check(root, gate=Gate(strict=True))
    assert (verdict.exit_code, len(verdict.runs), verdict.left_out) == (0, 1, [])
    (error,) = check(path).errors
    assert "ML-Agents' list of checkpoints" in str(error)


@pytest.mark.parametrize("format", REPORTS)
def test_every_format_counts_and_names_what_was_left(root: Path, format: str) -> None:
    SHAPES["zip"](root / "other", sick_rows())
    verdict = check(root)
    assert [Path(one.location).name for one in verdict.left_out] == ["backup.zip"]
    for look in (ReportOptions(), ReportOptions(piped=True)):
        text = "".join(write(verdict, format, look).split())  # a long path is wrapped and indented
        assert "backup.zip" in text and "anarchivewithlogsinit" in text


def test_json_lists_them(root: Path) -> None:
    SHAPES["zstd by its name"](root / "other", sick_rows())
    (left,) = json.loads(write(check(root), "json"))["left_out"]
    assert left["location"].endswith("train.jsonl.zst") and left["reason"] == "packed as zst: unpack it"


def test_a_gzip_bomb_ends_and_is_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    monkeypatch.setattr("rlhealth.sources.base.packed.LARGEST_UNPACKED", 1 << 20)
    (root / "other" / "train.jsonl.gz").write_bytes(gzip.compress(lines(sick_rows()).encode() + b"\n" * (1 << 24)))
    (run,) = (one for one in check(root).runs if one.run.place.kind == "jsonl")
    assert any("unpacked; the rest was not read" in one for one in run.run.problems)


def test_a_damaged_gzip_file_is_reported_and_what_was_intact_is_judged(root: Path) -> None:
    import gzip

    packed = bytearray(gzip.compress(lines(sick_rows() * 3).encode()))
    packed[len(packed) // 2] ^= 0xFF
    (root / "other" / "train.jsonl.gz").write_bytes(packed)
    verdict = check(root)
    assert verdict.exit_code in (1, 2)
    assert verdict.errors or any(run.run.problems for run in verdict.runs)


MONITOR = '#{"t_start": 1780674612.06, "env_id": "LunarLander-v3"}\nr,l,t\n'


def test_the_episodes_of_an_environment_are_a_run_where_nothing_else_was_logged(tmp_path: Path) -> None:
    falling = [f"{-100 - 4 * min(row, 200)}.5,{80 + row % 7},{row / 10}\n" for row in range(400)]
    (tmp_path / "monitor.csv").write_text(MONITOR + "".join(falling))
    (run,) = check(tmp_path).runs
    assert (run.translation.framework, len(run.translation.metrics["reward"])) == ("monitor", 400)


def test_the_episodes_of_an_environment_beside_a_log_of_training_are_counted_and_not_judged(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "tables" / "progress.csv", tmp_path)
    (tmp_path / "0.monitor.csv").write_text(MONITOR + "1.5,5,0.1\n2.5,6,0.2\n")
    verdict = check(tmp_path)
    assert len(verdict.runs) == 1
    (left,) = verdict.left_out
    assert left.location.endswith("0.monitor.csv") and "beside a log of training" in left.reason


def test_the_copy_that_jupyter_keeps_of_a_notebook_is_named_where_the_notebook_is_gone(tmp_path: Path) -> None:
    copies = tmp_path / ".ipynb_checkpoints"
    copies.mkdir()
    (copies / "grpo-checkpoint.ipynb").write_text('{"cells": []}')
    (error,) = check(tmp_path).errors
    assert error.hint.startswith("Jupyter keeps a copy") and "grpo-checkpoint.ipynb itself" in error.hint
    (tmp_path / "grpo.ipynb").write_text('{"cells": []}')
    (error,) = check(tmp_path).errors
    assert "Jupyter" not in error.hint


def test_rows_in_a_text_about_runs_are_no_run_unless_the_text_is_named(tmp_path: Path) -> None:
    rows = "".join(f"    Episode {n}\tAverage Reward: 0.{n}\tMax: 0.9\n" for n in range(10, 40))
    (tmp_path / "notes.md").write_text(f"# What we tried\n\nIt learned:\n\n{rows}")
    (error,) = check(tmp_path).errors
    assert error.hint == "notes.md holds rows of a log among its text: name the file itself to read it"
    assert check(tmp_path / "notes.md").runs[0].translation.metrics["reward"].steps.tolist() == list(range(10, 40))


def test_a_log_that_was_pasted_into_a_note_is_read_as_one_but_never_a_readme(tmp_path: Path) -> None:
    rows = "".join(f"    Episode {n}\tAverage Reward: 0.{n}\tMax: 0.9\n" for n in range(10, 90))
    note = tmp_path / "reacher.md"
    note.write_text(f"# Hyper parameters\n\nThe usual ones.\n\n{rows}")
    (run,) = check(tmp_path).runs
    assert run.translation.metrics["reward"].steps.tolist() == list(range(10, 90))
    note.write_text(note.read_text() + "\n".join(f"What we thought of attempt {n}." for n in range(60)))
    assert not check(tmp_path).runs, "less than two thirds of it are rows"
    note.write_text(rows)
    note.rename(tmp_path / "README.md")
    assert not check(tmp_path).runs
