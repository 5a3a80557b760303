"""The `metrics` command: what a run holds, or all of it as a table in a file. `cli` registers it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rlhealth.cli import arguments, flags, printing
from rlhealth.cli.judging import judging

ExportFlag = Annotated[
    Path | None,
    typer.Option(
        "--export",
        help="Write every point to this .parquet, .csv or .csv.gz file: run, metric, tag, step, time, value.",
        show_default=False,
    ),
]


def metrics(
    where: flags.Where,
    export: ExportFlag = None,
    source: flags.SourceFlag = None,
    rules: flags.RulesDir = None,
    alias: flags.Alias = None,
    config: flags.Config = None,
    color: flags.ColorFlag = flags.Color.auto,
    width: flags.Width = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only the last line.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Show every unrecognised tag.")] = False,
) -> None:
    """Show what was logged, and what more to log.

    A table of the metrics, the tags that are not recognised, the rules that cannot run, and what to log so that they
    can.
    """
    from rlhealth.check import check
    from rlhealth.engine.inventory import inventory
    from rlhealth.reports.inventory import render

    by = judging(arguments.settings_of(config), rules, alias=alias)
    verdict = check(where, source=source, rules=by.rules, aliases=by.aliases)
    if export is not None:
        from rlhealth.reports.destination import refuse_logs
        from rlhealth.reports.export import export as write_table

        refuse_logs(str(export), verdict, "--export")
        rows = write_table(((one.run, one.translation) for one in verdict.runs), export)
        sys.stdout.write(
            f"{rows} points of {len(verdict.runs)} run{'' if len(verdict.runs) == 1 else 's'} written to {export}\n"
        )
    else:
        sys.stdout.write(
            render(
                [inventory(one, by.rules) for one in verdict.runs],
                verdict.errors,
                arguments.report_options(color, width, quiet, show_all),
            )
        )
    if export is not None or not verdict.runs:
        for error in verdict.errors:
            printing.print_error(error)
    raise SystemExit(0 if verdict.runs and not verdict.errors else 2)
