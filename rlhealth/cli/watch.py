"""The `watch` command: its flags, and what is built from them. `cli` registers it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rlhealth.cli import arguments, flags, panels, printing
from rlhealth.cli import stopping as stopping_cli
from rlhealth.cli.judging import judging
from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlhealth.reports import ReportOptions
    from rlhealth.verdict.verdicts import Verdict
    from rlhealth.watch.actions import Action, Actions
    from rlhealth.watch.loop import Limits, Watch
    from rlhealth.watch.stopping import Stopping


class AlertTo(StrEnum):
    """The trackers that an alert can be written into."""

    wandb = "wandb"
    trackio = "trackio"


Where = Annotated[
    list[str] | None,
    typer.Argument(
        help="A run, or a folder of runs, which may not exist yet; wandb://entity/project/run, trackio://project/run.",
        show_default=False,
    ),
]
Online = Annotated[
    list[str] | None, panels.option(panels.READ, "--wandb", help="A run on a wandb server: entity/project/run.")
]
Interval = Annotated[
    float | None,
    panels.option(
        panels.FOLLOWED, "--interval", min=0.1, help="Seconds between two reads; default 15 for files, 60 for servers."
    ),
]
UntilStep = Annotated[
    int | None,
    panels.option(panels.FOLLOWED, "--until-step", min=0, help="Stop watching when every run has reached this step."),
]
Timeout = Annotated[
    float | None, panels.option(panels.FOLLOWED, "--timeout", min=0, help="Stop watching after this many seconds.")
]
OnChange = Annotated[
    str | None,
    panels.option(
        panels.NOTIFIED,
        "--on-change",
        help="A command to run at each change, without a shell, with the finding as JSON on its standard input.",
    ),
]
Notify = Annotated[
    list[str] | None,
    panels.option(panels.NOTIFIED, "--notify", help="An apprise address to notify: slack://…, discord://…, mailto://…"),
]
AlertFlag = Annotated[
    AlertTo | None, panels.option(panels.NOTIFIED, "--alert-to", help="Write an alert to the tracker for each finding.")
]
Bell = Annotated[
    bool,
    panels.option(
        panels.NOTIFIED,
        "--bell",
        help="Ring the terminal's bell, and notify (OSC 9), when an incident opens or gets worse.",
    ),
]


def watch(
    where: Where = None,
    wandb: Online = None,
    interval: Interval = None,
    until_step: UntilStep = None,
    timeout: Timeout = None,
    on_change: OnChange = None,
    notify: Notify = None,
    alert_to: AlertFlag = None,
    stop_on: stopping_cli.StopOnFlag = None,
    stop_pid: stopping_cli.StopPid = None,
    stop_run: stopping_cli.StopRun = None,
    stop_command: stopping_cli.StopCommand = None,
    stop_writer: stopping_cli.StopWriter = False,
    stop_slurm: stopping_cli.StopSlurm = None,
    grace: stopping_cli.Grace = 30.0,
    bell: Bell = False,
    fail_on: flags.FailOnFlag = None,
    exit_zero: flags.ExitZero = False,
    format: flags.Formats = None,
    output: flags.Outputs = None,
    source: flags.SourceFlag = None,
    rules: flags.RulesDir = None,
    select: flags.Select = None,
    ignore: flags.IgnoreFlag = None,
    alias: flags.Alias = None,
    require: flags.Require = None,
    min_steps: flags.MinSteps = None,
    strict: flags.Strictly = False,
    fail_on_past: flags.FailOnPast = False,
    baseline: flags.BaselineFlag = None,
    config: flags.Config = None,
    color: flags.ColorFlag = flags.Color.auto,
    completions: flags.Completions = None,
    write_back: flags.WriteBack = False,
) -> None:
    """Follow runs while they are logged: report incidents as they open and end, and stop a failing run on request.

    Ends when the run ends, or with q or Ctrl-C, with the report and exit code of `check`.
    """
    from rlhealth.verdict.baseline import read_baseline
    from rlhealth.watch.loop import Limits, Watch

    places = arguments.places_of("watch", where, wandb)
    if "-" in places:
        raise RlhealthError(
            "watch: standard input can be read only once",
            hint="name the log file itself, or pipe it into rlhealth check -",
        )
    settings = arguments.settings_of(config)
    gate = arguments.gate_with(settings, fail_on, exit_zero, require, min_steps, strict, fail_on_past)
    by = judging(settings, rules, select=select or settings.select, ignore=ignore, alias=alias, require=gate.require)
    subject = Watch(
        places,
        by.rules,
        source=source,
        gate=gate,
        aliases=by.aliases,
        ignore=by.ignore,
        baseline=read_baseline(baseline) if baseline else None,
        interval=settings.interval if interval is None else interval,
        completions=completions,
    )
    look = arguments.report_options(color, None, False, False)
    live = (
        sys.stdout.isatty()
        and not look.piped
        and os.environ.get("TERM") != "dumb"
        and not _writes_to_stdout(format, output)
    )
    means = stopping_cli.Means(stop_pid, stop_command, stop_writer, stop_slurm)
    stopping = stopping_cli.stopping_of(stop_on, means, grace, places, stop_run, source)
    actions = _actions(subject, on_change, notify, alert_to, live)
    if stopping is not None:
        sys.stderr.write(f"{stopping}\n")
    verdict = _run(
        subject,
        Limits(until_step, settings.timeout if timeout is None else timeout),
        look,
        live,
        actions,
        stopping,
        quiet_stdout=_writes_to_stdout(format, output),
        bell=bell or settings.bell,
    )
    shown = arguments.with_completions(arguments.report_options(color, None, False, False), verdict, completions)
    printing.report(verdict, format, output, shown)
    written = not write_back or printing.write_back(verdict)
    raise SystemExit(
        1 if stopping is not None and stopping.done else verdict.exit_code or (0 if written or exit_zero else 2)
    )


def _run(
    subject: Watch,
    limits: Limits,
    look: ReportOptions,
    live: bool,
    actions: Actions | None,
    stopping: Stopping | None,
    *,
    quiet_stdout: bool,
    bell: bool = False,
) -> Verdict:
    from rlhealth.watch import loop as main
    from rlhealth.watch.lines import LineDisplay, sentence

    if threading.current_thread() is threading.main_thread():
        signal.signal(
            signal.SIGTERM, signal.default_int_handler
        )  # a watch that is asked to end reports first, as after Ctrl-C
    if live:
        from rlhealth.watch.screen import Screen

        screen = Screen(look, bell=bell)
        with screen.shown():
            verdict = main.watch(subject, limits, screen, actions, stopping)
        for moment, event in screen.events:
            if event.kind in ("stopping", "stopped", "trouble"):  # what was done must not vanish with the screen
                LineDisplay(sys.stderr, ascii=look.ascii).say(moment, f"{event.run}: {sentence(event)}")
        return verdict
    return main.watch(
        subject, limits, LineDisplay(sys.stderr if quiet_stdout else sys.stdout, ascii=look.ascii), actions, stopping
    )


def _writes_to_stdout(formats: Sequence[str] | None, outputs: Sequence[str] | None) -> bool:
    """Whether a machine-readable report goes to stdout, which must then contain nothing else."""
    files = [*(outputs or ()), *["-"] * max(0, len(formats or ()) - len(outputs or ()))]
    return any(file == "-" and name != "terminal" for name, file in zip(formats or (), files, strict=False))


def _actions(
    subject: Watch, on_change: str | None, notify: Sequence[str] | None, alert_to: AlertTo | None, live: bool
) -> Actions | None:
    from rlhealth.watch.actions import Actions, apprise_to, argv, change_document, run_command
    from rlhealth.watch.alerts import alert_in

    wanted: list[Action] = []
    if on_change is not None:
        command = argv(on_change, "--on-change")
        wanted.append(
            lambda change, run: run_command(command, change_document(change, run, subject.clock.wall()), shown=not live)
        )
    if notify:
        wanted.append(apprise_to(notify))
    if alert_to is not None:
        wanted.append(alert_in(alert_to.value))
    return Actions(wanted) if wanted else None
