"""The `compare` command: runs against known-good runs of the same task. `cli` registers it."""

from __future__ import annotations

from typing import Annotated

from rlhealth.cli import arguments, flags, panels, printing
from rlhealth.errors import RlhealthError

KnownGood = Annotated[
    list[str],
    panels.option(
        panels.JUDGED,
        "--baseline",
        help="A known-good run of the same task, or a folder of them; repeat it for several.",
    ),
]
IgnoreMetric = Annotated[list[str] | None, panels.option(panels.JUDGED, "--ignore", help="A metric not to compare.")]
Hold = Annotated[
    int,
    panels.option(
        panels.JUDGED,
        "--for",
        min=1,
        help="For how many consecutive points a metric has to be outside.",
        show_default=True,
    ),
]


def compare(
    where: flags.Where,
    baseline: KnownGood,
    hold: Hold = 5,
    ignore: IgnoreMetric = None,
    fail_on: flags.FailOnDefault = flags.FailOn.warning,
    exit_zero: flags.ExitZero = False,
    min_steps: flags.MinSteps = None,
    format: flags.Formats = None,
    output: flags.Outputs = None,
    source: flags.SourceFlag = None,
    alias: flags.Alias = None,
    config: flags.Config = None,
    color: flags.ColorFlag = flags.Color.auto,
    width: flags.Width = None,
    jobs: flags.Jobs = None,
    quiet: flags.Quiet = False,
    show_all: Annotated[
        bool, panels.option(panels.PRINTED, "--all", help="Also show runs that stayed inside, and every note.")
    ] = False,
) -> None:
    """Report where a run left the envelope of known-good runs.

    Every metric is compared with two or more known-good runs of the same task, step by step. Exits with code 0 if all
    stayed inside, 1 if one left, 2 if nothing could be compared.
    """
    from rlhealth.comparison.compare import compare as compare_runs
    from rlhealth.metrics import meaning
    from rlhealth.parallel.jobs import cores

    for name in ignore or ():
        if meaning(name) is None:
            raise RlhealthError(f"--ignore {name}: no such metric", hint="`rlhealth metrics WHERE` lists the names")
    settings = arguments.settings_of(config)
    verdict = compare_runs(
        where,
        baseline,
        source=source,
        gate=arguments.gate_of(fail_on, exit_zero, (), arguments.first_said(min_steps, settings.min_steps)),
        aliases={**settings.aliases, **arguments.aliases_of(alias)},
        ignore=dict.fromkeys(ignore or (), "--ignore"),
        hold=hold,
        jobs=jobs or cores(),
        at_once=jobs,
    )
    printing.report(verdict, format, output, arguments.report_options(color, width, quiet, show_all))
    raise SystemExit(verdict.exit_code)
