"""Combines the flags of a command with the settings and the terminal: places, gate, names, report options."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rlhealth.cli.flags import Color, FailOn
from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlhealth.reports import ReportOptions
    from rlhealth.settings.project import Settings
    from rlhealth.verdict.gate import Gate
    from rlhealth.verdict.verdicts import Verdict


def with_completions(look: ReportOptions, verdict: Verdict, completions: str | None) -> ReportOptions:
    """The report options with the texts to show, if `--completions` is given; an empty path means "beside the logs"."""
    if completions is None:
        return look
    from dataclasses import replace

    from rlhealth.completions.shown import shown_at

    return replace(look, completions=shown_at(verdict.runs, completions or None))


def places_of(command: str, where: list[str] | None, wandb: list[str] | None) -> list[str]:
    """All places of runs that the user named. Raises RlhealthError if there are none."""
    places = [*(where or ()), *(one if "://" in one else f"wandb://{one}" for one in wandb or ())]
    if not places:
        raise RlhealthError(
            f"{command}: no run is named",
            hint=f"rlhealth {command} ./runs/exp1, or rlhealth {command} --wandb entity/project/run",
        )
    return places


def note_unused(verdict: Verdict, aliases: Iterable[str], last: int | None, state: str | None) -> None:
    """Notes on stderr which flags had no effect: aliases that no run logged, and a choice among the runs of a wandb
    project without such a project."""
    from rlhealth.metrics.translation import not_logged
    from rlhealth.reports.words import clean
    from rlhealth.sources.discovery.registry import is_online

    for tag in aliases:
        if verdict.runs and all(not_logged(tag) in run.translation.assumed for run in verdict.runs):
            sys.stderr.write(
                f"note: --alias {clean(tag)}: no run logged this name; `rlhealth metrics WHERE` lists them\n"
            )
    if any(map(is_online, verdict.asked)):
        return
    for flag, given in (("--last", last), ("--state", state)):
        if given is not None:
            sys.stderr.write(
                f"note: {flag} {clean(given)}: it chooses among the runs of a wandb project, and none is named\n"
            )


def settings_of(config: Path | None) -> Settings:
    """The project's settings; their notes are printed on stderr."""
    from rlhealth.settings.project import load_settings

    settings = load_settings(file=config)
    for note in settings.notes:
        sys.stderr.write(f"note: {note}\n")
    return settings


def first_said(given: int | None, said: int | None) -> int:
    """The flag if it was given, otherwise the setting, otherwise 0."""
    return given if given is not None else said or 0


def gate_of(
    fail_on: FailOn,
    exit_zero: bool,
    require: tuple[str, ...] = (),
    min_steps: int = 0,
    strict: bool = False,
    past: bool = False,
) -> Gate:
    """The gate that the flags set."""
    from rlhealth.verdict.findings import Severity
    from rlhealth.verdict.gate import Gate

    level = None if fail_on is FailOn.never else Severity.of(fail_on.value)
    return Gate(level, exit_zero, require, min_steps, strict, past)


def gate_with(
    settings: Settings,
    fail_on: FailOn | None,
    exit_zero: bool,
    require: list[str] | None,
    min_steps: int | None,
    strict: bool = False,
    past: bool = False,
) -> Gate:
    """The gate of a check or a watch: the flags, otherwise the settings."""
    level = fail_on or FailOn(settings.fail_on or "critical")
    least = first_said(min_steps, settings.min_steps)
    strict, past = strict or settings.strict, past or settings.fail_on_past
    return gate_of(level, exit_zero, listed(require) or settings.require, least, strict, past)


def listed(said: Iterable[str] | None) -> tuple[str, ...]:
    """Names given one per flag or several with commas, each once."""
    return tuple(dict.fromkeys(name.strip() for one in said or () for name in one.split(",") if name.strip()))


def aliases_of(pairs: list[str] | None) -> dict[str, str]:
    """Raw tag to canonical name, from `tag=metric` pairs and files of them. Raises RlhealthError for one that is
    neither."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        tag, sign, name = pair.rpartition("=")
        if not sign and Path(pair).suffix in (".yaml", ".yml"):
            from rlhealth.metrics import read_aliases

            found |= read_aliases(Path(pair))
            continue
        if not sign or not tag or not name:
            hint = "such as --alias my/kl=kl, or a YAML file of such lines; `rlhealth metrics WHERE` lists the names"
            raise RlhealthError(f"--alias {pair}: not of the form tag=metric", hint=hint)
        found[tag] = name
    return found


def _forced() -> bool:
    """Whether FORCE_COLOR asks for a terminal's report where there is no terminal; 0 does not, and NO_COLOR goes
    first."""
    return os.environ.get("FORCE_COLOR", "0").lower() not in ("", "0", "false") and not os.environ.get("NO_COLOR")


def report_options(color: Color, width: int | None, quiet: bool, show_all: bool) -> ReportOptions:
    """The options of the terminal report: the flags first, then the terminal and the environment."""
    from rlhealth.reports import ReportOptions

    terminal = sys.stdout.isatty()
    colored = terminal and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    if color is not Color.auto:
        colored = color is Color.always
    forced = color is Color.always or (color is Color.auto and _forced())
    colored = colored or forced
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    columns = width or (os.get_terminal_size(sys.stdout.fileno()).columns if terminal else 80) or 80
    return ReportOptions(
        max(columns, 40),
        colored,
        not encoding.startswith("utf"),
        not terminal and width is None and not forced,
        show_all,
        quiet,
    )
