"""The `preflight` command: which settings will hurt, before a long run. `cli` registers it."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rlhealth.cli import flags, printing


class Formats(StrEnum):
    """How the answer is printed."""

    terminal = "terminal"
    json = "json"


def preflight(
    where: Annotated[
        list[str],
        typer.Argument(
            help="A config (YAML, JSON), Python file, notebook or shell script of a trainer; or a run, as for `check`.",
            show_default=False,
        ),
    ],
    framework: Annotated[
        str | None,
        typer.Option(
            "--framework",
            help="The trainer, if its options do not show it: trl-grpo, trl-ppo, verl, openrlhf, …",
            show_default=False,
        ),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(
            "--devices",
            min=1,
            help="How many processes will train: whether batches hold whole groups depends on it.",
            show_default=False,
        ),
    ] = None,
    fail_on: flags.FailOnFlag = None,
    format: Annotated[Formats, typer.Option("-f", "--format", help="Lines, or JSON.")] = Formats.terminal,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this file.", show_default=False)
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show the checks that could not run, too.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only the last line.")] = False,
) -> None:
    """Look for settings that will hurt, before a long run.

    Exit codes: 0 nothing at or above `--fail-on`; 1 something; 2 a file could not be read, or its trainer is not known.
    """
    from rlhealth.preflight.looking import preflight as look
    from rlhealth.reports import preflight as reports
    from rlhealth.verdict.findings import Severity

    gate = fail_on or flags.FailOn.critical
    severity = None if gate is flags.FailOn.never else Severity.of(gate.value)
    found = look(where, framework=framework, devices=devices, fail_on=severity)
    text = reports.as_json(found) if format is Formats.json else reports.lines(found, show_all, quiet)
    if output is not None and str(output) != "-":
        printing.write_file(str(output), text)
    else:
        sys.stdout.write(text)
    for error in found.errors:
        printing.print_error(error)
    raise SystemExit(found.exit_code)
