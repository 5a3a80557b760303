"""Where Parquet cannot be read, one line says why, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import FIXTURES, SICK, Cli

TEXTS = FIXTURES / "completions" / "one-word"


@pytest.fixture
def refusing(tmp_path: Path) -> Path:
    """A folder of packages with a pyarrow that refuses the numpy it finds, in the words of pyarrow 26 to numpy 1.26."""
    package = tmp_path / "packages" / "pyarrow"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('pyarrow requires NumPy 2.0 or newer, found 1.26.0')\n")
    return package.parent


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("check", FIXTURES / "wandb_export"), 2),
        (("check", TEXTS, "--completions", TEXTS / "completions"), 2),
        (("read", TEXTS), 2),
        (("metrics", SICK, "--export", "run.parquet"), 2),
        (("check", TEXTS, "-f", "json"), 1),
    ],
    ids=["a run", "completions that are named", "completions to read", "an export", "completions beside a run"],
)
def test_a_pyarrow_that_refuses_numpy_is_named_with_the_fix(
    cli: Cli, tmp_path: Path, refusing: Path, words: tuple[str | Path, ...], code: int
) -> None:
    root = FIXTURES.parent
    done = cli(*words, cwd=tmp_path, PYTHONPATH=f"{refusing}:{root}", COLUMNS="400")
    said = done.stdout + done.stderr
    assert "pyarrow requires NumPy 2.0 or newer" in said and "pip install --upgrade pyarrow numpy" in said
    assert done.returncode == code and "internal error" not in said and "Traceback" not in said
