"""The suite on every Python that is promised, and with the lowest versions of the dependencies that are promised: `make
test-all`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True
PYTHONS = ["3.11", "3.12", "3.13"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The newest versions."""
    session.install("--quiet", "--editable", ".[dev]")
    session.run("pytest", "-n", "4", "-rs", "--hypothesis-profile", "thorough", *session.posargs)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """The lowest version of each dependency that pyproject.toml allows."""
    constraints = (
        session.cache_dir / "lowest.txt"
    )  # nox would have the tests write into a folder of its own, below our pyproject.toml
    constraints.write_text("".join(f"{one}\n" for one in lowest_versions()))
    session.install("--quiet", "--constraint", str(constraints), "--editable", ".", *developers_tools())
    session.run("pytest", "-n", "4", "-rs", "--hypothesis-profile", "thorough", *session.posargs)


def lowest_versions() -> list[str]:
    """`numpy==1.26` for `numpy>=1.26`, of what rlhealth needs to run, and of pyarrow, whose newest versions refuse that
    numpy when they are imported; the tools of its developers may be as new as they like."""
    needed = [*project()["dependencies"], *project()["optional-dependencies"]["parquet"]]
    return [re.sub(r">=([\w.]+).*", r"==\1", one) for one in needed]


def developers_tools() -> list[str]:
    """What the tests need, without mcp, which is an extra and asks for a newer pydantic than rlhealth does; its tests
    skip themselves."""
    return [one for one in project()["optional-dependencies"]["dev"] if not one.startswith("mcp")]


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    read: dict[str, Any] = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return read
