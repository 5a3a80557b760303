"""What rlhealth settles in a process of its own: for that process and its workers alone, and never against the
user's word.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlhealth.system.process import seldom_collecting, settled, users_environment
from rlhealth.watch.actions import run_command

ROOT = Path(__file__).parents[2]
RUN = ROOT / "fixtures" / "runs" / "lr-jump"
SAID = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS", "PYDANTIC_DISABLE_PLUGINS")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SAID:
        monkeypatch.delenv(name, raising=False)


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_all_is_as_before_when_the_process_is_left() -> None:
    environment, threshold = dict(os.environ), gc.get_threshold()
    with settled():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1" and gc.get_threshold() != threshold
    assert (dict(os.environ), gc.get_threshold()) == (environment, threshold)


@pytest.mark.parametrize("before", [0, 700, 2_000_000])
def test_garbage_is_looked_for_seldom_and_never_more_often_than_before(before: int) -> None:
    usual = gc.get_threshold()
    try:
        gc.set_threshold(before, *usual[1:])
        with seldom_collecting():
            assert gc.get_threshold()[0] == {700: 100_000}.get(before, before)
        assert gc.get_threshold()[0] == before
    finally:
        gc.set_threshold(*usual)


@pytest.mark.parametrize("name", SAID)
def test_what_the_user_has_set_is_left_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "3")
    with settled():
        assert os.environ[name] == users_environment()[name] == "3"
        assert ("OPENBLAS_NUM_THREADS" in users_environment()) == (name == "OPENBLAS_NUM_THREADS")
        assert (os.environ.get("OPENBLAS_NUM_THREADS") == "1") == (name == "PYDANTIC_DISABLE_PLUGINS")
    assert os.environ[name] == "3"


def test_a_command_of_the_users_sees_the_users_environment(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with settled():
        run_command(
            [sys.executable, "-c", f"import json, os; json.dump(dict(os.environ), open({str(seen)!r}, 'w'))"],
            {"change": "raised"},
        )
    got = json.loads(seen.read_text())
    assert got["RLHEALTH_CHANGE"] == "raised" and got["PATH"] == os.environ["PATH"]
    assert not set(SAID) & got.keys()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_a_check_begins_no_thread_that_does_nothing() -> None:
    code = (
        f"import os, sys; sys.argv = ['rlhealth', 'check', {str(RUN)!r}, '-q']\n"
        "from rlhealth.cli.app import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert 'numpy' in sys.modules\nprint(len(os.listdir('/proc/self/task')))"
    )
    assert python(code) == "1"


def test_a_library_changes_nothing_of_the_process_that_imports_it() -> None:
    code = (
        "import gc, os; before = dict(os.environ), gc.get_threshold(), gc.get_freeze_count()\n"
        f"import rlhealth, rlhealth.cli.app; rlhealth.check({str(RUN)!r})\n"
        "print((dict(os.environ), gc.get_threshold(), gc.get_freeze_count()) == before)"
    )
    assert python(code) == "True"


def test_a_process_that_it_begins_inherits_it() -> None:
    with settled():
        assert python("import os; print(os.environ['OPENBLAS_NUM_THREADS'])") == "1"
