"""The `report` command: the page for people, as one file. `cli` registers it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from rlhealth.cli import arguments, flags, panels, printing
from rlhealth.cli.judging import judging
from rlhealth.errors import RlhealthError


def report(
    where: flags.Where,
    output: Annotated[
        Path,
        panels.option(
            panels.PRINTED, "-o", "--output", help="The file to write; - is standard output.", show_default=True
        ),
    ] = Path("health.html"),
    open_it: Annotated[bool, panels.option(panels.PRINTED, "--open", help="Open it in the browser.")] = False,
    fail_on: flags.FailOnDefault = flags.FailOn.never,
    source: flags.SourceFlag = None,
    rules: flags.RulesDir = None,
    select: flags.Select = None,
    ignore: flags.IgnoreFlag = None,
    alias: flags.Alias = None,
    baseline: flags.BaselineFlag = None,
    completions: flags.Completions = None,
    config: flags.Config = None,
) -> None:
    """Write the report as one HTML page.

    Verdict, causes and every chart in one file that opens from a mail, without a network. Exits with code 0 if the page
    was written and there was an answer, whatever the answer; with 1 only where --fail-on is given.
    """
    from rlhealth.check import check
    from rlhealth.reports import words, write
    from rlhealth.verdict.baseline import read_baseline

    settings = arguments.settings_of(config)
    by = judging(settings, rules, select=select or settings.select, ignore=ignore, alias=alias)
    verdict = check(
        where,
        source=source,
        rules=by.rules,
        gate=arguments.gate_of(fail_on, False),
        aliases=by.aliases,
        ignore=by.ignore,
        baseline=read_baseline(baseline) if baseline else None,
        completions=completions,
    )
    look = arguments.with_completions(
        arguments.report_options(flags.Color.never, None, False, True), verdict, completions
    )
    text = write(verdict, "html", look)
    to_stdout = str(output) == "-"
    try:
        sys.stdout.write(text) if to_stdout else printing.write_file(str(output), text, verdict=verdict)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RlhealthError(
            f"{output}: {error.strerror}", hint="-o takes a file in a folder that exists", location=str(output)
        ) from None
    for unread in verdict.errors:
        printing.print_error(unread)
    if not to_stdout:
        sys.stdout.write(f"{output}: {words.closing(verdict)}\n")
    if open_it and not to_stdout:
        _open(output)
    raise SystemExit(verdict.exit_code)


def _open(page: Path) -> None:
    import webbrowser  # late: it looks for browsers when imported

    if not webbrowser.open(page.resolve().as_uri()):
        sys.stderr.write(f"hint: no browser was found; open {page} yourself\n")
