"""It writes nothing that it was not asked to: what lies at and below a run is the same before and after, in names,
bytes and times.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FIXTURES, Cli

Snapshot = dict[str, tuple[Any, ...]]
FOLDERS = ("everywhere", "runs", "tensorboard", "trainer_state", "tables", "wandb")


def snapshot(folder: Path) -> Snapshot:
    """Every entry below a folder: what it is, when it was written, its bytes."""
    found: Snapshot = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        here = path.lstat()
        found[str(path.relative_to(folder))] = (
            here.st_mode,
            here.st_ino,
            here.st_size,
            here.st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
    return found


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the fixtures, without what other tests may be writing beside them."""
    copy = tmp_path_factory.mktemp("readonly") / "logs"
    for name in FOLDERS:
        shutil.copytree(FIXTURES / name, copy / name, ignore=shutil.ignore_patterns("*-shm", "*-wal"))
    return copy


@pytest.mark.parametrize(
    "command",
    [
        ("check",),
        ("check", "-f", "json", "--all"),
        ("check", "-f", "html"),
        ("metrics",),
        ("report", "-o", "-"),
        ("watch", "--timeout", "1", "--interval", "0.3"),
    ],
    ids=" ".join,
)
def test_no_command_changes_anything_below_a_run(
    command: tuple[str, ...], logs: Path, cli: Cli, tmp_path: Path
) -> None:
    before = snapshot(logs)
    done = cli(command[0], logs, *command[1:], cwd=tmp_path)
    assert "internal error" not in done.stderr, done.stderr
    assert snapshot(logs) == before
    assert list(tmp_path.iterdir()) == []


def test_reading_from_python_changes_nothing_either(logs: Path) -> None:
    import rlhealth

    before = snapshot(logs)
    verdict = rlhealth.check(logs)
    assert len(verdict.runs) > 10
    assert snapshot(logs) == before


def test_nothing_but_the_file_that_a_flag_names_is_written(logs: Path, cli: Cli, tmp_path: Path) -> None:
    before = snapshot(logs)
    cli(
        "check",
        logs / "runs",
        "-f",
        "json",
        "-o",
        tmp_path / "out.json",
        "--write-baseline",
        tmp_path / "known.json",
        cwd=tmp_path,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["known.json", "out.json"]
    assert snapshot(logs) == before


@pytest.mark.parametrize("kept", [True, False])
def test_a_home_and_a_working_folder_stay_as_they_are(kept: bool, logs: Path, cli: Cli, tmp_path: Path) -> None:
    """But for what rlhealth's own rule files say, parsed, in the user's cache folder: nothing of a log, and nothing at
    all where there is no such folder."""
    for name in ("home", "here", "tmp"):
        (tmp_path / name).mkdir()
    cli(
        "check",
        logs,
        cwd=tmp_path / "here",
        HOME=str(tmp_path / "home"),
        TMPDIR=str(tmp_path / "tmp"),
        PYTHONDONTWRITEBYTECODE="1",
        **({} if kept else {"RLHEALTH_CACHE_DIR": ""}),
    )
    cache = tmp_path / "home" / ".cache" / "rlhealth"
    there = [path for path in tmp_path.rglob("*") if path.parent != tmp_path and path not in (cache, cache.parent)]
    assert all(kept and path.parent == cache and path.name.endswith(".rlhealth-cache") for path in there)
    assert not any(str(logs).encode() in path.read_bytes() for path in there)
