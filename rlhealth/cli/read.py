"""The `read` command: the completions of a run, for a person. `cli` registers it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from rlhealth.cli import arguments, flags
from rlhealth.errors import RlhealthError


def read(
    where: Annotated[
        str, typer.Argument(help="A run, or the file or folder that holds its completions.", show_default=False)
    ],
    step: Annotated[
        int | None, typer.Option("--step", min=0, help="Of this step; the newest where not given.", show_default=False)
    ] = None,
    worst: Annotated[bool, typer.Option("--worst", help="The lowest reward first.")] = False,
    grep: Annotated[
        str | None,
        typer.Option(
            "--grep",
            help="Only texts that this regular expression matches; of all steps where --step is not given.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many texts.")] = 100,
    completions: Annotated[
        Path | None,
        typer.Option("--completions", help="Where the texts lie, if not beside the run's logs.", show_default=False),
    ] = None,
    source: flags.SourceFlag = None,
    color: flags.ColorFlag = flags.Color.auto,
    width: flags.Width = None,
) -> None:
    """Show the completions of a run, by their reward.

    Each with its step, prompt and rewards, what repeats marked. Exit codes: 0 texts were shown; 2 there are none, or
    they cannot be read.
    """
    from rlhealth.completions.reading import found_in, store_of
    from rlhealth.reports.excerpts import pages

    store = store_of(where, str(completions) if completions is not None else None, source)
    shown, total = found_in(store, step, worst=worst, grep=grep, limit=limit)
    text = pages(shown, total, store.steps(), arguments.report_options(color, width, False, True))
    if sys.stdout.isatty():
        import pydoc  # late: only a terminal has a pager

        os.environ.setdefault("LESS", "-FRX")  # with colours, and no pager for what fits on one screen
        pydoc.pager(text)
    else:
        sys.stdout.write(text)
    for problem in store.problems:
        sys.stderr.write(f"note: {_safe(problem)}\n")
    if not store.steps():
        raise RlhealthError(f"{where}: no completions could be read", hint="see the notes above")
    if not total and grep is not None:
        raise RlhealthError(f"{where}: no text matches --grep {grep}", hint="(?i) before a pattern ignores case")
    if not total:
        raise RlhealthError(f"{where}: no texts at this step", hint="--step N shows those of another one")


def _safe(text: str) -> str:
    from rlhealth.reports.words import clean

    return clean(text)
