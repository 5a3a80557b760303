"""Where the fixtures are, and the command line as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "fixtures"
SICK = FIXTURES / "runs" / "lr-jump"

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def cli() -> Cli:
    """Runs `rlhealth` in a process of its own, from another folder, with nothing of this terminal's environment that could change its answer."""

    def run(*args: str | Path, stdin: str = "", timeout: float = 120, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")}
        return subprocess.run(
            [sys.executable, "-m", "rlhealth", *map(str, args)], input=stdin, capture_output=True, text=True, timeout=timeout,
            cwd=cwd or Path(sys.prefix), env=kept | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"} | environment, check=False,
        )  # fmt: skip

    return run
