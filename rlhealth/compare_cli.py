"""The `compare` command: runs against known-good runs of the same task. `cli` registers it."""

from __future__ import annotations

from typing import Annotated

import typer

from rlhealth import cli
from rlhealth.errors import RlhealthError

KnownGood = Annotated[
    list[str], typer.Option("--baseline", help="A known-good run of the same task, or a folder of them; may be given several times.", show_default=False)
]
IgnoreMetric = Annotated[list[str] | None, typer.Option("--ignore", help="A metric not to compare.", show_default=False)]
Hold = Annotated[int, typer.Option("--for", min=1, help="For how many points in a row a metric has to be outside.")]


def compare(
    where: cli.Where,
    baseline: KnownGood,
    hold: Hold = 5,
    ignore: IgnoreMetric = None,
    fail_on: Annotated[cli.FailOn, typer.Option("--fail-on", help="The least severity that makes it fail (exit 1).")] = cli.FailOn.warning,
    exit_zero: cli.ExitZero = False,
    min_steps: cli.MinSteps = None,
    format: cli.Formats = None,
    output: cli.Outputs = None,
    source: cli.SourceFlag = None,
    alias: cli.Alias = None,
    config: cli.Config = None,
    color: cli.ColorFlag = cli.Color.auto,
    width: cli.Width = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="The last line only.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Show runs that stayed inside, too, and every note.")] = False,
) -> None:
    """Tell where a run left the envelope of known-good runs.

    Every metric is compared with two or more known-good runs of the same task, step by step. Leaves with 0 where all stayed inside, 1 where one left,
    2 where nothing could be compared.
    """
    from rlhealth.compare import compare as compare_runs
    from rlhealth.metrics import meaning

    for name in ignore or ():
        if meaning(name) is None:
            raise RlhealthError(f"--ignore {name}: no such metric", hint="`rlhealth metrics WHERE` lists the names")
    settings = cli.settings_of(config)
    verdict = compare_runs(
        where, baseline, source=source, gate=cli._gate(fail_on, exit_zero, (), cli._first(min_steps, settings.min_steps)),
        aliases={**settings.aliases, **cli._aliases(alias)}, ignore=dict.fromkeys(ignore or (), "--ignore"), hold=hold,
    )  # fmt: skip
    cli.report(verdict, format, output, cli.look_of(color, width, quiet, show_all))
    raise SystemExit(verdict.exit_code)
