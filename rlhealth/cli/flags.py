"""Flags that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rlhealth.cli import panels


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
ExitZero = Annotated[
    bool,
    panels.option(
        panels.FAILS,
        "--exit-zero",
        help="Report only: exit with code 0 whatever was found; with 2 only if no run could be read.",
    ),
]
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
Select = Annotated[
    list[str] | None,
    panels.option(panels.JUDGED, "--select", help="Use only these rules or families; separate several with commas."),
]
IgnoreFlag = Annotated[
    list[str] | None,
    panels.option(
        panels.JUDGED,
        "--ignore",
        help="Ignore these rules or families, and count what they find; separate several with commas.",
    ),
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
    """A command whose `--completions` may have no value: before another option, or at the end."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Gives a `--completions` without a path an empty one."""
        spelled = [
            "--completions=" if one == "--completions" and (not rest or rest[0].startswith("-")) else one
            for one, rest in ((one, args[place + 1 :]) for place, one in enumerate(args))
        ]
        return super().parse_args(ctx, spelled)
