"""The `init` command: a commented rlhealth.toml. `cli` registers it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rlhealth.errors import RlhealthError


def init(
    folder: Annotated[Path, typer.Argument(help="The folder to write it into.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace an rlhealth.toml that is there.")] = False,
) -> None:
    """Write an rlhealth.toml in which every setting stands commented out."""
    from importlib.resources import files

    from rlhealth.settings.project import OWN
    from rlhealth.system.files import write_whole

    target = folder / OWN
    if target.exists() and not force:
        raise RlhealthError(f"{target}: it is there already", hint="--force replaces it", location=str(target))
    try:
        write_whole(target, (files("rlhealth.settings") / "template.toml").read_text(encoding="utf-8"))
    except OSError as error:
        raise RlhealthError(
            f"{target}: {error.strerror or error}", hint="name a folder that exists", location=str(target)
        ) from None
    sys.stdout.write(f"{target} written: every setting is commented out\n")
