"""Commands and flags; the only module that prints errors and exits."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from rlhealth import __version__
from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from rlhealth.findings import Gate, Verdict
    from rlhealth.reports import Look
    from rlhealth.settings import Settings

app = typer.Typer(
    name="rlhealth",
    help="Says whether a reinforcement-learning run is healthy, since which step it is not, why, and what to try.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    """When to colour."""

    auto = "auto"
    always = "always"
    never = "never"


Where = Annotated[
    list[str],
    typer.Argument(help="A run, or a folder of runs; wandb://entity/project/run, trackio://project/run, or - for standard input.", show_default=False),
]
Places = Annotated[
    list[str] | None,
    typer.Argument(help="A run, or a folder of runs; wandb://entity/project/run, trackio://project/run, or - for standard input.", show_default=False),
]
FailOnFlag = Annotated[
    FailOn | None, typer.Option("--fail-on", help="The least severity that makes the check fail (exit 1); critical where not given.", show_default=False)
]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Report only: leave with 0 whatever was found.")]
Formats = Annotated[
    list[str] | None, typer.Option("-f", "--format", help="terminal, json, … ; may be given several times, each followed by its own -o.", show_default=False)
]
Outputs = Annotated[list[str] | None, typer.Option("-o", "--output", help="The file for the format given before it; - is standard output.", show_default=False)]
SourceFlag = Annotated[
    str | None,
    typer.Option("--source", help="Read this tracker where a run was written by several: tensorboard, wandb, trackio, trainer_state.", show_default=False),
]
RulesDir = Annotated[list[Path] | None, typer.Option("--rules", help="A folder of rules to add; a rule with a shipped id takes its place.", show_default=False)]
Select = Annotated[list[str] | None, typer.Option("--select", help="Judge by these rules or families only.", show_default=False)]
IgnoreFlag = Annotated[
    list[str] | None, typer.Option("--ignore", help="Leave these rules or families out of the verdict; they are counted.", show_default=False)
]
Alias = Annotated[list[str] | None, typer.Option("--alias", help="Your own name for a metric: my/kl=kl, or a YAML file of them.", show_default=False)]
Online = Annotated[
    list[str] | None, typer.Option("--wandb", help="A run on a wandb server, entity/project/run, or all runs of entity/project.", show_default=False)
]
Last = Annotated[int | None, typer.Option("--last", min=1, help="Of a wandb project, only so many of its newest runs.", show_default=False)]
State = Annotated[str | None, typer.Option("--state", help="Of a wandb project, only the runs in this state: running, finished, …", show_default=False)]
ColorFlag = Annotated[Color, typer.Option("--color", help="When to colour.")]
Require = Annotated[
    list[str] | None, typer.Option("--require", help="Fail where these rules or families could not look; several with commas.", show_default=False)
]
MinSteps = Annotated[int | None, typer.Option("--min-steps", min=0, help="A run with fewer steps is no answer (exit 2).", show_default=False)]
BaselineFlag = Annotated[Path | None, typer.Option("--baseline", help="Accept the findings in this file: only what is new or worse fails.", show_default=False)]
WriteBaseline = Annotated[Path | None, typer.Option("--write-baseline", help="Accept everything found now, and write it to this file.", show_default=False)]
Config = Annotated[
    Path | None, typer.Option("--config", help="The settings file; else rlhealth.toml or pyproject.toml, from here upwards.", show_default=False)
]
Width = Annotated[int | None, typer.Option("--width", min=40, help="Columns to fill; the terminal's own where not given.", show_default=False)]


def main() -> None:
    """Runs the command line. Leaves with 0, 1, 2 or 130; an error of rlhealth's own never leaves with 1."""
    _open_streams()
    try:
        app(prog_name="rlhealth")
    except RlhealthError as error:
        fail(error)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that closing stdout stays silent
        raise SystemExit(2) from None
    except Exception as error:
        if os.environ.get("RLHEALTH_DEBUG"):
            raise SystemExit(_traceback(error)) from None
        sys.stderr.write(
            f"rlhealth: internal error: {type(error).__name__}: {error}\nhint: this is a bug; run again with RLHEALTH_DEBUG=1 and report what it prints\n"
        )
        raise SystemExit(2) from None


def _open_streams() -> None:
    """What a stream cannot encode is escaped, and a stream that was closed before the start is one into the void."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 (it lives as long as the process)


def fail(error: RlhealthError) -> NoReturn:
    """Prints what went wrong and what to try, and leaves with 2."""
    print_error(error)
    raise SystemExit(2)


def print_error(error: RlhealthError) -> None:
    """One line for what went wrong, one for what to try, on stderr; nothing from a log can control the terminal."""
    from rlhealth.reports.words import clean

    sys.stderr.write(f"error: {clean(error.message)}\n")
    if error.hint:
        sys.stderr.write(f"hint: {clean(error.hint)}\n")


def _traceback(error: BaseException) -> int:
    import traceback

    traceback.print_exception(error)
    return 2


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"rlhealth {__version__}")
        raise typer.Exit


@app.callback()
def _options(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")] = False) -> None:
    """Says whether a reinforcement-learning run is healthy, since which step it is not, why, and what to try."""


@app.command()
def check(
    where: Places = None,
    wandb: Online = None,
    last: Last = None,
    state: State = None,
    fail_on: FailOnFlag = None,
    exit_zero: ExitZero = False,
    format: Formats = None,
    output: Outputs = None,
    source: SourceFlag = None,
    reader: Annotated[Readers, typer.Option("--reader", help="How event files are read; tbparse knows unusual plugins, and is slow.")] = Readers.fast,
    rules: RulesDir = None,
    select: Select = None,
    ignore: IgnoreFlag = None,
    alias: Alias = None,
    require: Require = None,
    min_steps: MinSteps = None,
    baseline: BaselineFlag = None,
    write_baseline: WriteBaseline = None,
    config: Config = None,
    color: ColorFlag = Color.auto,
    width: Width = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Processes to use for many runs; as many as there are cores where not given.", show_default=False)
    ] = None,
    ray: Annotated[
        str | None, typer.Option("--ray", help="Check each run on this Ray cluster: auto, HOST:PORT, or local.", metavar="ADDRESS", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="The last line only.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Show healthy runs and every skipped rule too.")] = False,
) -> None:
    """Judge runs that were written: 0 healthy, 1 at or above the gate, 2 no answer."""
    from rlhealth import baseline as known
    from rlhealth.check import check as check_runs
    from rlhealth.jobs import cores
    from rlhealth.progress import Progress
    from rlhealth.rules import check_names, choose, load_rules
    from rlhealth.settings import apply
    from rlhealth.sources.places import Choice

    settings = settings_of(config)
    judged_by = apply(settings, load_rules(*settings.rule_folders, *(rules or ())))
    gate = _gate(fail_on or FailOn(settings.fail_on or "critical"), exit_zero, _listed(require) or settings.require, _first(min_steps, settings.min_steps))
    check_names(judged_by, gate.require, "--require")
    check_names(judged_by, ignore or (), "--ignore")
    accepted = known.read_baseline(baseline) if baseline else known.Baseline()
    with Progress("reading and judging") as progress:
        verdict = check_runs(
            places_of(where, wandb), choice=Choice(source, reader.value, last, state), rules=choose(judged_by, select or settings.select), gate=gate,
            aliases={**settings.aliases, **_aliases(alias)}, ignore={**settings.ignore, **dict.fromkeys(ignore or (), "--ignore")}, baseline=accepted,
            jobs=jobs or cores(), ray=ray, tick=progress.tick,
        )  # fmt: skip
    if write_baseline:
        known.write_baseline(known.accept_all(verdict, accepted), write_baseline)
    report(verdict, format, output, look_of(color, width, quiet, show_all))
    raise SystemExit(verdict.exit_code)


def places_of(where: list[str] | None, wandb: list[str] | None) -> list[str]:
    """Everything that was named as a place of runs. Raises RlhealthError where nothing was."""
    places = [*(where or ()), *(one if "://" in one else f"wandb://{one}" for one in wandb or ())]
    if not places:
        raise RlhealthError("no run is named", hint="rlhealth check ./runs/exp1, or rlhealth check --wandb entity/project/run")
    return places


def settings_of(config: Path | None) -> Settings:
    """The project's settings; what the user should know of them goes to stderr."""
    from rlhealth.settings import load_settings

    settings = load_settings(file=config)
    for note in settings.notes:
        sys.stderr.write(f"note: {note}\n")
    return settings


def _first(given: int | None, said: int | None) -> int:
    return given if given is not None else said or 0


def _gate(fail_on: FailOn, exit_zero: bool, require: tuple[str, ...] = (), min_steps: int = 0) -> Gate:
    from rlhealth.findings import Gate, Severity

    return Gate(None if fail_on is FailOn.never else Severity.of(fail_on.value), exit_zero, require, min_steps)


def _listed(said: list[str] | None) -> tuple[str, ...]:
    """Names given one a flag or several with commas, each once."""
    return tuple(dict.fromkeys(name.strip() for one in said or () for name in one.split(",") if name.strip()))


def _aliases(pairs: list[str] | None) -> dict[str, str]:
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


def look_of(color: Color, width: int | None, quiet: bool, show_all: bool) -> Look:
    """How the terminal report is to look: the flags first, then what the terminal and the environment say."""
    from rlhealth.reports import Look

    terminal = sys.stdout.isatty()
    colored = terminal and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    if color is not Color.auto:
        colored = color is Color.always
    elif os.environ.get("FORCE_COLOR") and not os.environ.get("NO_COLOR"):
        colored = True
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    columns = width or (os.get_terminal_size(sys.stdout.fileno()).columns if terminal else 80) or 80
    return Look(max(columns, 40), colored, not encoding.startswith("utf"), not terminal and width is None and color is not Color.always, show_all, quiet)


def pairs(formats: list[str], outputs: list[str], said: list[str]) -> list[tuple[str, str]]:
    """Each format with its file, `-` for stdout: in the order in which they were said, an output belongs to the format before it."""
    found = [[name, "-"] for name in formats]
    rest = iter(outputs)
    at = -1
    for word in said:
        if word in ("-f", "--format") or (word.startswith(("-f", "--format=")) and word != "--fail-on"):
            at += 1
        elif word in ("-o", "--output") or word.startswith(("-o", "--output=")):
            found[max(at, 0)][1] = next(rest, "-")
    for file in rest:  # not said on this command line: by their order
        next(one for one in found if one[1] == "-")[1] = file
    return [(name, file) for name, file in found]


def write_file(file: str, text: str, *, append: bool = False) -> None:
    """Writes a report to a file. Raises RlhealthError where it cannot be written."""
    try:
        with Path(file).open("a" if append else "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise RlhealthError(f"{file}: {error.strerror}", hint="-o takes a file in a folder that exists", location=file) from None


def report(verdict: Verdict, formats: list[str] | None, outputs: list[str] | None, look: Look) -> None:
    """Writes each format where it is to go: an `-o` belongs to the `-f` before it; a format without one goes to stdout.

    In GitHub Actions the terminal report is followed by annotations, and the job summary is written too.
    """
    from rlhealth.reports import write

    wanted = formats or ["terminal"]
    if len(outputs or ()) > len(wanted):
        raise RlhealthError("there are more -o than -f", hint="give each -f its own -o: -f junit -o health.xml -f terminal")
    for name, file in pairs(wanted, outputs or [], sys.argv[1:]):
        text = write(verdict, name, look)
        if file == "-":
            sys.stdout.write(text)
        else:
            write_file(file, text)
        if name == "terminal" and file == "-" and os.environ.get("GITHUB_ACTIONS") == "true":
            sys.stdout.write(write(verdict, "github", look))
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        from rlhealth.reports import github

        write_file(summary, github.summary(verdict, look), append=True)
    if formats and "terminal" not in formats:
        for unread in verdict.errors:
            print_error(unread)


from rlhealth import compare_cli, inventory_cli, report_cli, rules_cli, watch_cli  # noqa: E402 (they take their flags from here)

app.command()(watch_cli.watch)
app.command()(rules_cli.explain)
app.add_typer(rules_cli.rules_app, name="rules")
app.command()(inventory_cli.metrics)
app.command()(report_cli.report)
app.command()(compare_cli.compare)

if __name__ == "__main__":
    main()
