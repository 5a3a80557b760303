"""What is kept in the user's cache folder is never stale, never trusted without reason, and never missed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from rlhealth.system import cache
from rlhealth.system.cache import cached

SOURCES = {"a.yaml": b"one"}


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which values are kept."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RLHEALTH_CACHE_DIR", str(folder))
    return folder


def counted(value: Any) -> tuple[Callable[[], Any], list[int]]:
    """What makes that value, and a list that grows each time it is asked to."""
    times: list[int] = []

    def make() -> Any:
        times.append(1)
        return value

    return make, times


def only(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_a_value_is_made_once_and_comes_back_as_it_was(kept: Path) -> None:
    value = {"limits": (0.1, float("inf"), -3, None, True), "texts": ["naïve", ""], "deep": {"of": ({"all": b"\0"},)}}
    make, times = counted(value)
    assert cached("x", SOURCES, make) == cached("x", SOURCES, make) == value
    assert len(times) == 1


def test_a_value_made_from_anything_else_is_not_used(kept: Path) -> None:
    for sources in (SOURCES, {"a.yaml": b"two"}, {"a.yaml": b"two", "b.yaml": b""}, {"b.yaml": b"two"}, {}):
        make, times = counted(len(sources))
        cached("x", sources, make)
        assert times, sources


@pytest.mark.parametrize("place", [0, 5, 18, 22, 40, -1])
def test_a_damaged_byte_anywhere_makes_the_value_anew(kept: Path, place: int) -> None:
    make, times = counted(("a value", 1.5))
    cached("x", SOURCES, make)
    raw = bytearray(only(kept).read_bytes())
    raw[place] ^= 0x40
    only(kept).write_bytes(raw)
    assert cached("x", SOURCES, make) == ("a value", 1.5)
    assert len(times) == 2
    cached("x", SOURCES, make)  # it was written again
    assert len(times) == 2


def test_a_file_cut_at_any_byte_makes_the_value_anew(kept: Path) -> None:
    make, times = counted((1, "two"))
    cached("x", SOURCES, make)
    file = only(kept)
    whole = file.read_bytes()
    for end in range(len(whole)):
        file.write_bytes(whole[:end])
        assert cached("x", SOURCES, make) == (1, "two")
    assert len(times) == 1 + len(whole)


def test_another_version_does_not_read_it_and_does_not_remove_it(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached("x", SOURCES, lambda: "old")
    monkeypatch.setattr(cache, "__version__", "9.9.9")
    assert cached("x", SOURCES, lambda: "new") == "new"
    monkeypatch.undo()
    monkeypatch.setenv("RLHEALTH_CACHE_DIR", str(kept))
    assert cached("x", SOURCES, lambda: "made again") == "old"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no such owners")
def test_a_file_that_others_may_write_is_not_trusted(kept: Path) -> None:
    cached("x", SOURCES, lambda: "mine")
    only(kept).chmod(0o622)
    assert cached("x", SOURCES, lambda: "anew") == "anew"
    assert only(kept).stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give a file away")
def test_a_file_of_another_user_is_not_trusted(kept: Path) -> None:
    cached("x", SOURCES, lambda: "mine")
    os.chown(only(kept), 65534, 65534)
    assert cached("x", SOURCES, lambda: "anew") == "anew"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
def test_a_pipe_in_its_place_does_not_wait_for_a_writer(kept: Path) -> None:
    cached("x", SOURCES, lambda: 1)
    file = only(kept)
    file.unlink()
    os.mkfifo(file, 0o600)
    assert cached("x", SOURCES, lambda: 2) == 2


def _as_nobody(folder: str) -> str:
    """In a process of its own: a value, asked for where this user may read and not write."""
    if os.geteuid() == 0:
        os.setuid(65534)
    os.environ["RLHEALTH_CACHE_DIR"] = folder
    return str(cached("x", SOURCES, lambda: "made"))


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no such folders")
def test_a_folder_that_cannot_be_written_is_done_without(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp().parent / "read-only"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o555)
    with get_context("fork").Pool(1) as pool:
        assert pool.apply(_as_nobody, (str(folder),)) == "made"
    assert not list(folder.iterdir())


def test_a_place_that_is_no_folder_and_no_place_at_all_are_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for chosen in (tmp_path / "file", tmp_path / "file" / "deeper", ""):
        monkeypatch.setenv("RLHEALTH_CACHE_DIR", str(chosen))
        assert cached("x", SOURCES, lambda: "made") == "made"


ASKED = """
import sys
from rlhealth.system.cache import cached
texts = {"a": b"x" * 200_000}
for number in range(60):
    value = ("v" * 100_000, number % 2)
    found = cached("x", texts | {"turn": str(number % 2).encode()}, lambda: value)
    assert found == value, number
"""


def test_processes_that_write_at_once_never_read_a_part(kept: Path) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", ASKED], stderr=subprocess.PIPE, text=True, env={**os.environ})
        for _ in range(4)
    ]
    for one in running:
        _, said = one.communicate(timeout=60)
        assert one.returncode == 0, said
    assert len(list(kept.iterdir())) == 1


def test_old_values_are_removed_and_what_is_not_ours_is_left(kept: Path) -> None:
    kept.mkdir()
    files = {name: kept / name for name in ("long-ago.rlhealth-cache", "notes.txt", "of-now.rlhealth-cache")}
    for name, file in files.items():
        file.write_text("")
        if name != "of-now.rlhealth-cache":
            os.utime(file, (0, 0))
    cached("x", SOURCES, lambda: 1)
    assert [name for name, file in files.items() if file.exists()] == ["notes.txt", "of-now.rlhealth-cache"]


def test_it_lies_where_the_system_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RLHEALTH_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache.folder() == tmp_path / ".cache" / "rlhealth"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert cache.folder() == tmp_path / "elsewhere" / "rlhealth"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache.folder() is None
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.folder() == tmp_path / "Library" / "Caches" / "rlhealth"
