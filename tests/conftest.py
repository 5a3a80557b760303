"""Where the fixtures are, and the command line as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import IN_THE_SUITE
from tests.warm import CAN_FORK, WarmProcess

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "fixtures"
SICK = FIXTURES / "runs" / "lr-jump"

# A process that a test starts in another folder runs this tree too, and not another one that is installed.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])

# What Python and pytest compile is kept for the next process: a suite starts hundreds, and each of its workers would
# compile every test anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

# How long an example takes says something of the machine, nothing of the program.
WITHOUT_A_CLOCK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples each time: the suite fails where something was changed, and nowhere else.
settings.register_profile("reproducible", WITHOUT_A_CLOCK, derandomize=True, max_examples=IN_THE_SUITE)
# `pytest --hypothesis-profile thorough`, as `make test-all` runs it: ten times as many, other ones each time.
settings.register_profile("thorough", WITHOUT_A_CLOCK, derandomize=False, max_examples=400, print_blob=True)
settings.load_profile("reproducible")


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmProcess]:
    """What commands are forked from, where they can be."""
    process = WarmProcess()
    yield process
    process.end()


@pytest.fixture(scope="session")
def cli(warm: WarmProcess) -> Cli:
    """Runs `rlhealth` in a process of its own, from another folder, with nothing of this terminal's environment that
    could change its answer. One that is given an environment begins with it, from a new interpreter.
    """

    def run(
        *args: str | Path, stdin: str = "", timeout: float = 120, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {
            key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
        }
        kept |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
        words, folder = list(map(str, args)), cwd or Path(sys.prefix)
        if CAN_FORK and not environment:
            return warm.run(words, stdin, timeout, folder, kept)
        return subprocess.run(
            [sys.executable, "-m", "rlhealth", *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=folder,
            env=kept | environment,
            check=False,
        )

    return run
