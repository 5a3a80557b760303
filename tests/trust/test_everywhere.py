"""The same answer wherever it runs: without a home, a terminal, a locale, a place to write, on forty columns, on
every Python that is promised.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FIXTURES, ROOT, SICK
from tests.fuzz.strictness import strict_json

BARE = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}


def run(*words: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command with nothing in its environment but what is given, and no terminal."""
    command = [sys.executable, "-m", "rlhealth", *map(str, words)]
    return subprocess.run(
        command,
        cwd=cwd,
        env=BARE | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
        text=True,
        errors="replace",
    )


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "TERM": "dumb"},
        {"HOME": "/nowhere"},
        {"TZ": "Pacific/Apia"},
        {"PYTHONHASHSEED": "7"},
        {"PYTHONWARNINGS": "error::RuntimeWarning", "NO_COLOR": "1"},
        {"COLUMNS": "40"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=str,
)
@pytest.mark.parametrize("format", ["terminal", "json"])
def test_the_answer_is_the_same_in_any_environment(format: str, environment: dict[str, str], tmp_path: Path) -> None:
    done = run("check", SICK, "-f", format, cwd=tmp_path, **environment)
    assert done.returncode == 1, done.stderr
    assert "learning-rate-jump" in done.stdout
    assert done.stderr == ""


def test_in_ascii_every_format_is_written_without_a_sign_that_cannot_be(tmp_path: Path) -> None:
    for format in ("terminal", "markdown", "html", "junit", "sarif", "github", "gitlab", "csv", "json"):
        done = run(
            "check",
            SICK,
            "-f",
            format,
            cwd=tmp_path,
            LC_ALL="C",
            PYTHONUTF8="0",
            PYTHONCOERCECLOCALE="0",
            PYTHONIOENCODING="ascii",
        )
        assert done.returncode == 1, (format, done.stderr)
        assert done.stdout.isascii()
        if format in ("json", "sarif", "gitlab"):
            strict_json(done.stdout)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_of_any_width_is_never_overrun(columns: int) -> None:
    """Through a real pseudo-terminal."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "rlhealth", "check", str(SICK)],
        cwd=ROOT,
        env=BARE | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:
            break
        if not block:
            break
        said += block
    os.close(ours)
    assert process.wait(timeout=60) == 1
    # a line begins anew at \r: on a slow machine the bar of the progress shows, drawn over itself
    lines = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode()))
    assert max(map(len, lines)) <= columns
    assert "critical" in "".join(lines)


def test_a_file_system_that_cannot_be_written_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed").chmod(0o500)
    for place in (FIXTURES / "runs", FIXTURES / "wandb", FIXTURES / "trainer_state", FIXTURES / "tables"):
        done = run(
            "check",
            place,
            "-f",
            "json",
            cwd=tmp_path / "closed",
            HOME=str(tmp_path / "closed"),
            TMPDIR="/proc/self",
            WANDB_DIR="/proc/self",
            XDG_CACHE_HOME="/proc/self",
        )
        assert done.returncode in (0, 1, 2)
        assert '"runs": [\n' in done.stdout, done.stderr
        assert "internal error" not in done.stderr


def test_a_report_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    for place in ("/proc/health.html", tmp_path / "nowhere" / "health.html", tmp_path):
        done = run("check", SICK, "-f", "html", "-o", place)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ") and "hint: " in done.stderr


@pytest.mark.parametrize("closed", ["stdout", "stdin", "pipe"])
def test_a_closed_stream_is_no_internal_error(closed: str) -> None:
    redirect = {"stdout": ">&-", "stdin": "<&-", "pipe": "| head -c 1 >/dev/null"}[closed]
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m rlhealth check {SICK} {redirect}"],
        cwd=ROOT,
        env=BARE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "internal error" not in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
