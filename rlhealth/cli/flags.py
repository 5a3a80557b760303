"""Flags that several commands share, and what they mean together with the settings and the terminal."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlhealth.cli import panels
from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from rlhealth.reports import ReportOptions
    from rlhealth.settings.project import Settings
    from rlhealth.verdict.gate import Gate
    from rlhealth.verdict.verdicts import Verdict


class FailOn(StrEnum):
    """The least severity that makes a check fail."""

    critical = "critical"
    warning = "warning"
    info = "info"
    never = "never"


class Readers(StrEnum):
    """How event files are read."""

    fast = "fast"
    tbparse = "tbparse"


class Color(StrEnum):
    """When to use colour."""

    auto = "auto"
    always = "always"
    never = "never"


_RUNS = typer.Argument(
    help="A run, or a folder of runs; wandb://entity/project/run, trackio://project/run, or - for standard input.",
    show_default=False,
)
Where = Annotated[list[str], _RUNS]
Places = Annotated[list[str] | None, _RUNS]
FailOnFlag = Annotated[
    FailOn | None,
    panels.option(
        panels.FAILS, "--fail-on", help="The least severity that makes the check fail (exit code 1); default critical."
    ),
]
FailOnDefault = Annotated[
    FailOn,
    panels.option(
        panels.FAILS, "--fail-on", help="The least severity that makes it fail (exit code 1).", show_default=True
    ),
]
ExitZero = Annotated[bool, panels.option(panels.FAILS, "--exit-zero", help="Report only: always exit with code 0.")]
Formats = Annotated[
    list[str] | None,
    panels.option(
        panels.PRINTED,
        "-f",
        "--format",
        help="terminal, json, …; repeat it for several formats, each followed by its own -o.",
    ),
]
Outputs = Annotated[
    list[str] | None,
    panels.option(
        panels.PRINTED, "-o", "--output", help="The file for the format given before it; - is standard output."
    ),
]
SourceFlag = Annotated[
    str | None,
    panels.option(
        panels.READ,
        "--source",
        help="Read this tracker if a run was logged to several: tensorboard, wandb, trackio, trainer_state.",
    ),
]
RulesDir = Annotated[
    list[Path] | None,
    panels.option(
        panels.JUDGED, "--rules", help="A folder of rules to add; a rule with the id of a shipped rule replaces it."
    ),
]
Select = Annotated[list[str] | None, panels.option(panels.JUDGED, "--select", help="Use only these rules or families.")]
IgnoreFlag = Annotated[
    list[str] | None,
    panels.option(panels.JUDGED, "--ignore", help="Ignore these rules or families; the report counts them."),
]
Alias = Annotated[
    list[str] | None,
    panels.option(panels.JUDGED, "--alias", help="Your own name for a metric: my/kl=kl, or a YAML file of them."),
]
Online = Annotated[
    list[str] | None,
    panels.option(
        panels.READ, "--wandb", help="A run on a wandb server, entity/project/run, or all runs of entity/project."
    ),
]
Last = Annotated[
    int | None,
    panels.option(panels.READ, "--last", min=1, help="Of a wandb project, only this many of its newest runs."),
]
State = Annotated[
    str | None,
    panels.option(panels.READ, "--state", help="Of a wandb project, only the runs in this state: running, finished, …"),
]
ColorFlag = Annotated[Color, panels.option(panels.PRINTED, "--color", help="When to use colour.", show_default=True)]
Require = Annotated[
    list[str] | None,
    panels.option(
        panels.FAILS,
        "--require",
        help="Exit with code 2 if these rules or families could not run; separate several with commas.",
    ),
]
FailOnPast = Annotated[
    bool,
    panels.option(
        panels.FAILS,
        "--fail-on-past",
        help="Findings that are over count as severe as they were, not as warnings at most.",
    ),
]
MinSteps = Annotated[
    int | None, panels.option(panels.FAILS, "--min-steps", min=0, help="Exit with code 2 if a run has fewer steps.")
]
Ended = Annotated[
    bool,
    panels.option(
        panels.JUDGED,
        "--ended",
        help="The runs have ended: a run that did not reach its planned steps crashed or stopped.",
    ),
]
Strictly = Annotated[
    bool, panels.option(panels.FAILS, "--strict", help="Exit with code 2 if a file that looks like a log was not read.")
]
BaselineFlag = Annotated[
    Path | None,
    panels.option(panels.FAILS, "--baseline", help="Accept the findings in this file: only new or worse ones fail."),
]
WriteBaseline = Annotated[
    Path | None,
    panels.option(panels.FAILS, "--write-baseline", help="Accept all current findings, and write them to this file."),
]
Config = Annotated[
    Path | None,
    panels.option(
        panels.JUDGED,
        "--config",
        help="The settings file; default rlhealth.toml or pyproject.toml in this folder or above.",
    ),
]
Width = Annotated[
    int | None, panels.option(panels.PRINTED, "--width", min=40, help="Width in columns; default the terminal's.")
]
Jobs = Annotated[
    int | None,
    panels.option(
        panels.RUNS,
        "-j",
        "--jobs",
        min=1,
        help="Processes for many runs; default the number of cores. Of wandb's server: requests at once; default 20.",
    ),
]
Completions = Annotated[
    str | None,
    panels.option(
        panels.PRINTED,
        "--completions",
        help="Show completions at each finding, in the terminal and the page; with a PATH, read them from there.",
        metavar="[PATH]",
    ),
]
Quiet = Annotated[bool, panels.option(panels.PRINTED, "-q", "--quiet", help="Print only the last line.")]


WriteBack = Annotated[
    bool,
    panels.option(
        panels.PRINTED,
        "--write-back",
        help="Write the verdict into each run's tracker: wandb (summary, tag, page), Trackio (alert, page), "
        "TensorBoard (a folder beside it).",
    ),
]


class WithCompletions(panels.Panelled):
    """A command whose `--completions` may stand alone: before another option, or at the end."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Gives a `--completions` without a path an empty one."""
        spelled = [
            "--completions=" if one == "--completions" and (not rest or rest[0].startswith("-")) else one
            for one, rest in ((one, args[place + 1 :]) for place, one in enumerate(args))
        ]
        return super().parse_args(ctx, spelled)


def with_completions(look: ReportOptions, verdict: Verdict, completions: str | None) -> ReportOptions:
    """The look with the texts to show, where `--completions` asks for them; an empty path is "beside the logs"."""
    if completions is None:
        return look
    from dataclasses import replace

    from rlhealth.completions.shown import shown_at

    return replace(look, completions=shown_at(verdict.runs, completions or None))


def places_of(command: str, where: list[str] | None, wandb: list[str] | None) -> list[str]:
    """Everything that was named to a command as a place of runs. Raises RlhealthError if nothing was."""
    places = [*(where or ()), *(one if "://" in one else f"wandb://{one}" for one in wandb or ())]
    if not places:
        raise RlhealthError(
            f"{command}: no run is named",
            hint=f"rlhealth {command} ./runs/exp1, or rlhealth {command} --wandb entity/project/run",
        )
    return places


def settings_of(config: Path | None) -> Settings:
    """The project's settings; what the user should know of them is noted on stderr."""
    from rlhealth.settings.project import load_settings

    settings = load_settings(file=config)
    for note in settings.notes:
        sys.stderr.write(f"note: {note}\n")
    return settings


def first_said(given: int | None, said: int | None) -> int:
    """A flag if it was given, else the setting, else 0."""
    return given if given is not None else said or 0


def gate_of(
    fail_on: FailOn,
    exit_zero: bool,
    require: tuple[str, ...] = (),
    min_steps: int = 0,
    strict: bool = False,
    past: bool = False,
) -> Gate:
    """The gate that the flags ask for."""
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
    """The gate of a check or a watch: what the flags say, and else the settings."""
    level = fail_on or FailOn(settings.fail_on or "critical")
    least = first_said(min_steps, settings.min_steps)
    strict, past = strict or settings.strict, past or settings.fail_on_past
    return gate_of(level, exit_zero, listed(require) or settings.require, least, strict, past)


def listed(said: list[str] | None) -> tuple[str, ...]:
    """Names given one a flag or several with commas, each once."""
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
    """How the terminal report is to look: the flags first, then what the terminal and the environment say."""
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
