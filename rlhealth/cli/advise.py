"""The `advise` command: what to change in a run, alone. `cli` registers it."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlhealth.cli import arguments, flags, printing
from rlhealth.cli.judging import judging
from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from rlhealth.verdict.verdicts import RunVerdict, Verdict


class AdviceFormat(StrEnum):
    """How advice is printed."""

    table = "table"
    yaml = "yaml"
    flags = "flags"


def advise(
    where: Annotated[str, typer.Argument(help="A run, as `check` takes it.", show_default=False)],
    format: Annotated[
        AdviceFormat, typer.Option("-f", "--format", help="A table, YAML to paste, or flags: --option value.")
    ] = AdviceFormat.table,
    patch: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="A config file of the trainer, YAML or JSON: shows what would change in it. It is not written.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Write to this file: with --config the changed config file, else what would be printed.",
            show_default=False,
        ),
    ] = None,
    source: flags.SourceFlag = None,
    rules: flags.RulesDir = None,
    ignore: flags.IgnoreFlag = None,
    alias: flags.Alias = None,
) -> None:
    """Print what to change in a run, in the names of its own trainer.

    The advice is that of the first cause: change it, train again, and ask again. Where no setting is to blame, it says
    at which steps to look; if nothing is known, what to log. Exit codes: 0 there is an answer, whether or not
    something is to change; 2 the run could not be judged.
    """
    from rlhealth.verdict.advised import advice_of

    verdict, run = _judged(where, source, rules, ignore, alias)
    advice = advice_of(run)
    if patch is not None:
        before, text = _patched(patch, run)
        shown = _print_patch(before, text, patch, output, verdict)
    else:
        shown = _text(format, run)
        if output is not None and str(output) != "-":
            printing.write_file(str(output), shown, verdict=verdict)
            shown = ""
    sys.stdout.write(shown)
    if patch is not None and not advice.changes:
        sys.stderr.write("note: no setting to change; `rlhealth advise` without --config says what else to do\n")
    raise SystemExit(2 if run.no_answer and not run.sick else 0)


def _judged(
    where: str, source: str | None, rules: list[Path] | None, ignore: list[str] | None, alias: list[str] | None
) -> tuple[Verdict, RunVerdict]:
    """The one run at a place. Raises RlhealthError if there is none, or more than one."""
    from rlhealth.check import check

    by = judging(arguments.settings_of(None), rules, ignore=ignore, alias=alias)
    verdict = check(where, source=source, rules=by.rules, aliases=by.aliases, ignore=by.ignore)
    if not verdict.runs:
        raise verdict.errors[0] if verdict.errors else RlhealthError(f"{where}: no run", hint="name a run")
    for unread in verdict.errors:
        printing.print_error(unread)
    if len(verdict.runs) > 1:
        names = ", ".join(one.name for one in verdict.runs[:5])
        raise RlhealthError(f"{where}: holds {len(verdict.runs)} runs ({names} …)", hint="name one of them")
    return verdict, verdict.runs[0]


def _text(format: AdviceFormat, run: RunVerdict) -> str:
    from rlhealth.metrics.to_log import to_log
    from rlhealth.reports import advice as reports
    from rlhealth.verdict.advised import advice_of

    advice = advice_of(run)
    if format is AdviceFormat.yaml:
        return reports.yaml(run, advice)
    if format is AdviceFormat.flags:
        return reports.flags(run, advice)
    return reports.table(run, advice, to_log(run.run, run.translation))


def _patched(file: Path, run: RunVerdict) -> tuple[str, str]:
    """A config file as it is, and as it would be."""
    from rlhealth.parsing.patching import patched
    from rlhealth.verdict.advised import advice_of

    try:
        with file.open(encoding="utf-8", newline="") as opened:
            before = opened.read()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "not a text file"
        raise RlhealthError(
            f"{file}: {said}", hint="--config takes the YAML or JSON file that the trainer reads", location=str(file)
        ) from None
    values = {one.option: one.to for one in advice_of(run).changes}
    siblings = frozenset(run.translation.options.values()) | frozenset(run.run.config)
    return before, patched(before, str(file), values, siblings)


def _print_patch(before: str, text: str, file: Path, output: Path | None, verdict: Verdict) -> str:
    from rlhealth.reports.advice import difference

    if output is not None and str(output) != "-":
        printing.write_file(str(output), text, verdict=verdict)
    return difference(before, text, str(file))
