"""Files below a folder: which of them are older parts of another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlhealth.sources.base.walk import rotations, walk, without_rotated


@pytest.mark.parametrize("name", [".1", "-20260131", ".2026-01-31", "..1"])
def test_a_name_that_is_only_an_age_is_a_part_of_nothing(tmp_path: Path, name: str) -> None:
    assert without_rotated([tmp_path / name]) == [tmp_path / name]


def test_older_parts_of_a_log_belong_to_it(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("train.log", "train.log.1", "train.log-20260131")]
    for one in files:
        one.touch()
    assert without_rotated(files) == files[:1]
    assert rotations(files[0]) == [files[2], files[1]]


def test_the_logs_that_wandb_keeps_of_itself_are_none_of_training(tmp_path: Path) -> None:
    for name in ("logs/debug.log", "logs/debug-internal.log", "files/output.log", "mine/debug.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert walk(tmp_path).files["console"] == [tmp_path / "files/output.log", tmp_path / "mine/debug.log"]
