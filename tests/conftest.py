"""Where the fixtures are, and the command line as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "fixtures"
SICK = FIXTURES / "runs" / "lr-jump"

# A process that a test starts in another folder runs this tree too, and not another one that is installed.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

# How long an example takes says something of the machine, nothing of the program.
settings.register_profile("without a clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `pytest --hypothesis-profile thorough`, as `make test-all` runs it: four times as many.
settings.register_profile("thorough", settings.get_profile("without a clock"), max_examples=400)
settings.load_profile("without a clock")


@pytest.fixture(scope="session")
def cli() -> Cli:
    """Runs `rlhealth` in a process of its own, from another folder, with nothing of this terminal's environment that
    could change its answer.
    """

    def run(
        *args: str | Path, stdin: str = "", timeout: float = 120, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {
            key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
        }
        return subprocess.run(
            [sys.executable, "-m", "rlhealth", *map(str, args)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=cwd or Path(sys.prefix),
            env=kept | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"} | environment,
            check=False,
        )

    return run
