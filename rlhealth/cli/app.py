"""Commands and flags; the only module that prints errors and exits."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from rlhealth import __version__
from rlhealth.cli import arguments, flags, panels, printing
from rlhealth.cli.judging import judging
from rlhealth.cli.plain_values import PlainGroup, PlainValues
from rlhealth.errors import RlhealthError
from rlhealth.reports.unsteered import CommandFreeStream
from rlhealth.system import process

#: Each command in the order of the help: the module that holds it, and its options for typer.
_COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "check": ("app", {"cls": flags.WithCompletions, "epilog": panels.examples(panels.CHECK_EXAMPLES)}),
    "watch": ("watch", {"cls": flags.WithCompletions, "epilog": panels.examples(panels.WATCH_EXAMPLES)}),
    "advise": ("advise", {}),
    "preflight": ("preflight", {}),
    "explain": ("rules", {}),
    "rules": ("rules", {}),
    "metrics": ("inventory", {}),
    "report": ("report", {"cls": flags.WithCompletions}),
    "compare": ("compare", {"cls": panels.Panelled}),
    "init": ("init", {}),
    "mcp": ("mcp", {}),
    "read": ("read", {}),
}


# typer has a copy of click, whose base class of usage errors is not exported
_MISUSED: type[Exception] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")


def main() -> None:
    """Runs the command line. Exits with code 0, 1, 2 or 130; an internal error never exits with code 1."""
    _open_streams()
    try:
        with process.settled():
            code = _app(sys.argv[1:2])(prog_name="rlhealth", standalone_mode=False)
        if code == 130:  # typer's answer to an interrupt, which it takes for itself
            raise KeyboardInterrupt
        _flush()
        raise SystemExit(code if isinstance(code, int) else 0)
    except SystemExit:
        _flush()
        raise
    except _MISUSED as error:
        _misused(error)
    except RlhealthError as error:
        fail(error)
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that closing stdout stays silent
        raise SystemExit(2) from None
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise SystemExit(_internal(error)) from None
        _unwritable(error)
    except Exception as error:
        raise SystemExit(_internal(error)) from None


def _app(asked: list[str]) -> typer.Typer:
    """The command line: only the requested command, or all commands if there is none, for example for help.

    Importing the others and building their hundred options would take a tenth of the time of a check.
    """
    app = typer.Typer(
        cls=PlainGroup,
        name="rlhealth",
        help="Reports whether a reinforcement-learning run is healthy, since which step it is not, why, and what to "
        "try.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    )
    app.callback()(_options)
    for name in asked if asked and asked[0] in _COMMANDS else _COMMANDS:
        file, options = _COMMANDS[name]
        module = sys.modules[__name__] if file == "app" else import_module(f"rlhealth.cli.{file}")
        if name == "rules":
            app.add_typer(module.rules_app, name=name)
        else:
            app.command(name, **{"cls": PlainValues, **options})(getattr(module, name))
    return app


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def _flush() -> None:
    """Flushes the output, so that a write error is reported here and not when the interpreter exits."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(2) from None
    except OSError as error:
        _unwritable(error)


def _unwritable(error: OSError) -> NoReturn:
    """Reports that the output could not be written, and exits with code 2."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    said = (error.strerror or type(error).__name__).lower()
    fail(RlhealthError(f"standard output cannot be written: {said}", hint="write the report to a file: -o FILE"))


def _internal(error: Exception) -> int:
    """Reports an internal error; returns the exit code."""
    if os.environ.get("RLHEALTH_DEBUG"):
        return _traceback(error)
    hint = "this is a bug; run again with RLHEALTH_DEBUG=1 and report what it prints"
    sys.stderr.write(f"rlhealth: internal error: {type(error).__name__}: {error}\nhint: {hint}\n")
    return 2


def _open_streams() -> None:
    """Sets up the streams: escapes characters that a stream cannot encode, breaks up text that a CI system would read
    as a command, and replaces a closed stream by the null device."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (it stays open)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, CommandFreeStream(getattr(sys, name)))
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 (it stays open)


def _misused(error: Any) -> NoReturn:
    """Reports a usage error like every other error; a command without arguments shows its help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        raise SystemExit(error.exit_code)
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "rlhealth"
    fail(
        RlhealthError(
            error.format_message().replace("Value error, ", "").rstrip("."), hint=f"`{command} -h` shows the options"
        )
    )


def fail(error: RlhealthError) -> NoReturn:
    """Prints what went wrong and what to try, and exits with code 2."""
    printing.print_error(error)
    raise SystemExit(2)


def _traceback(error: BaseException) -> int:
    import traceback

    traceback.print_exception(error)
    return 2


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"rlhealth {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Reports whether a reinforcement-learning run is healthy, since which step it is not, why, and what to try."""


def check(
    where: flags.Places = None,
    wandb: flags.Online = None,
    last: flags.Last = None,
    state: flags.State = None,
    fail_on: flags.FailOnFlag = None,
    exit_zero: flags.ExitZero = False,
    format: flags.Formats = None,
    output: flags.Outputs = None,
    source: flags.SourceFlag = None,
    reader: Annotated[
        flags.Readers,
        panels.option(
            panels.READ,
            "--reader",
            help="How event files are read; tbparse supports unusual plugins, but is slow.",
            show_default=True,
        ),
    ] = flags.Readers.fast,
    rules: flags.RulesDir = None,
    select: flags.Select = None,
    ignore: flags.IgnoreFlag = None,
    alias: flags.Alias = None,
    require: flags.Require = None,
    min_steps: flags.MinSteps = None,
    ended: flags.Ended = False,
    strict: flags.Strictly = False,
    fail_on_past: flags.FailOnPast = False,
    baseline: flags.BaselineFlag = None,
    write_baseline: flags.WriteBaseline = None,
    config: flags.Config = None,
    color: flags.ColorFlag = flags.Color.auto,
    width: flags.Width = None,
    jobs: flags.Jobs = None,
    ray: Annotated[
        str | None,
        panels.option(
            panels.RUNS,
            "--ray",
            help="Check each run on this Ray cluster: auto, HOST:PORT, or local.",
            metavar="ADDRESS",
        ),
    ] = None,
    completions: flags.Completions = None,
    write_back: flags.WriteBack = False,
    quiet: flags.Quiet = False,
    show_all: Annotated[
        bool,
        panels.option(
            panels.PRINTED, "--all", help="Also show healthy runs, skipped rules, and what made each rule fire."
        ),
    ] = False,
) -> None:
    """Judge logged runs: exit code 0 healthy, 1 findings at or above the gate, 2 no verdict."""
    from rlhealth.check import check as check_runs
    from rlhealth.parallel.jobs import cores
    from rlhealth.sources.discovery.places import RunSelection
    from rlhealth.system.progress import Progress
    from rlhealth.verdict import baseline as known

    if completions and not where and not wandb:  # `check --completions RUN`
        where, completions = [completions], ""
    settings = arguments.settings_of(config)
    gate = arguments.gate_with(settings, fail_on, exit_zero, require, min_steps, strict, fail_on_past)
    by = judging(settings, rules, select=select or settings.select, ignore=ignore, alias=alias, require=gate.require)
    accepted = known.read_baseline(baseline) if baseline else known.Baseline()
    with Progress("reading and judging") as progress:
        verdict = check_runs(
            arguments.places_of("check", where, wandb),
            choice=RunSelection(source, reader.value, last, state, jobs),
            rules=by.rules,
            gate=gate,
            aliases=by.aliases,
            ignore=by.ignore,
            baseline=accepted,
            ended=ended or settings.ended,
            jobs=jobs or cores(),
            ray=ray,
            completions=completions,
            tick=progress.tick,
        )
    arguments.note_unused(verdict, by.aliases, last, state)
    if write_baseline:
        known.accept_findings(verdict, write_baseline, accepted)
    look = arguments.with_completions(arguments.report_options(color, width, quiet, show_all), verdict, completions)
    printing.report(verdict, format, output, look)
    written = not write_back or printing.write_back(verdict)
    raise SystemExit(verdict.exit_code or (0 if written or exit_zero else 2))


if __name__ == "__main__":
    main()
