"""Flags of `watch` that say when and how a run is stopped, and what is built from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from rlhealth.cli import panels
from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlhealth.watch.slurm import SlurmJob
    from rlhealth.watch.stopping import Command, Process, Stopping, WandbStop


class StopOn(StrEnum):
    """The least severity at which a run is stopped."""

    critical = "critical"
    warning = "warning"


StopOnFlag = Annotated[
    StopOn | None,
    panels.option(
        panels.STOPPED, "--stop-on", help="Stop the run at the first finding of this severity, and exit with code 1."
    ),
]
StopPid = Annotated[
    int | None, panels.option(panels.STOPPED, "--stop-pid", help="How to stop: the process id of the training.")
]
StopRun = Annotated[
    str | None,
    panels.option(panels.STOPPED, "--stop-run", help="Which run to stop, by its name, where several are watched."),
]
StopCommand = Annotated[
    str | None,
    panels.option(
        panels.STOPPED, "--stop-command", help="How to stop: a command, with the finding as JSON on its standard input."
    ),
]
StopWriter = Annotated[
    bool,
    panels.option(
        panels.STOPPED,
        "--stop-writer",
        help="How to stop: the process that writes the run, or its torchrun or Ray driver; it is shown first.",
    ),
]
StopSlurm = Annotated[
    str | None, panels.option(panels.STOPPED, "--stop-slurm", help="How to stop: scancel this job.", metavar="JOBID")
]
Grace = Annotated[
    float,
    panels.option(
        panels.STOPPED,
        "--grace",
        min=0,
        help="Seconds between SIGTERM and SIGKILL, or for --stop-command to end.",
        show_default=True,
    ),
]


@dataclass(frozen=True)
class Means:
    """How to stop a run: one of these, or none for a run on a wandb server."""

    pid: int | None = None
    command: str | None = None
    writer: bool = False
    slurm: str | None = None

    @property
    def said(self) -> list[str]:
        """The flags that were given."""
        given = {
            "--stop-pid": self.pid is not None,
            "--stop-command": self.command is not None,
            "--stop-writer": self.writer,
            "--stop-slurm": self.slurm is not None,
        }
        return [flag for flag, there in given.items() if there]


def stopping_of(
    stop_on: StopOn | None,
    means: Means,
    grace: float,
    places: Sequence[str],
    named: str | None = None,
    source: str | None = None,
) -> Stopping | None:
    """What stops the run, and when; None if no flag requests it.

    Raises:
        RlhealthError: where the flags do not fit.
    """
    from rlhealth.verdict.findings import Severity
    from rlhealth.watch.stopping import Stopping

    if stop_on is None:
        if means.said:
            raise RlhealthError(f"{' and '.join(means.said)}: how to stop, not when", hint="add --stop-on critical")
        return None
    if len(means.said) > 1:
        raise RlhealthError(f"{' and '.join(means.said)}: one of them", hint="a command can stop the process too")
    return Stopping(Severity.of(stop_on.value), _means(means, grace, places, source), named)


def _means(
    means: Means, grace: float, places: Sequence[str], source: str | None
) -> Process | Command | WandbStop | SlurmJob:
    """What stops the run. Raises RlhealthError if nothing does, or if the process cannot be identified."""
    from rlhealth.sources.discovery.registry import is_online
    from rlhealth.watch.stopping import Command, Process, WandbStop

    if means.pid is not None:
        from rlhealth.watch.launchers import launcher_note

        return Process(means.pid, grace, why=launcher_note(means.pid))
    if means.command is not None:
        return Command(means.command, grace)
    if means.slurm is not None:
        from rlhealth.watch.slurm import SlurmJob

        return SlurmJob(means.slurm)
    if means.writer:
        from rlhealth.sources.discovery.places import RunSelection, find_all
        from rlhealth.watch.launchers import target_of

        readers = find_all(places, RunSelection(source))
        if len({one.run.place.location for one in readers}) != 1:
            raise RlhealthError(
                f"--stop-writer: the process of one run, and there are {len(readers)} here", hint="name the run itself"
            )
        readers[0].poll()  # its files are known only after the first read
        target = target_of(readers)
        return Process(
            target.pid,
            grace,
            why=f"the process that writes the run {target.why}" if target.why else "it writes the run",
            whole=bool(target.why),
        )
    if all(map(is_online, places)):
        from rlhealth.sources.wandb.actions import stop_run

        return WandbStop(stop_run)
    raise RlhealthError(
        "--stop-on: how is the run to be stopped?",
        hint="--stop-pid PID, --stop-writer, --stop-slurm JOBID or --stop-command 'COMMAND'; "
        "only runs on a wandb server need none",
    )
