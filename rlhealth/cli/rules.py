"""The commands `rules …` and `explain`: their flags, and what is printed. `cli` registers them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlhealth.cli import arguments, flags
from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from rlhealth.rules.model import Rule

rules_app: typer.Typer = typer.Typer(
    help="The rules that runs are judged by.", no_args_is_help=True, rich_markup_mode=None
)


def _rules(added: list[Path] | None, config: Path | None) -> tuple[list[Rule], list[Path]]:
    """The rules as they apply in this project, and the folders that they come from."""
    from rlhealth.rules.loading import load_rules, shipped_rules
    from rlhealth.settings.project import apply

    settings = arguments.settings_of(config)
    folders = [*settings.rule_folders, *(added or ())]
    return apply(settings, load_rules(*folders)), [shipped_rules(), *folders]


def _put(text: str) -> None:
    from rlhealth.reports.words import plain

    utf = (sys.stdout.encoding or "ascii").lower().replace("-", "").startswith("utf")
    sys.stdout.write(text if utf else plain(text.replace("─", "-")))


@rules_app.command("list")
def list_(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ID|FAMILY]...", help="Only these.", show_default=False)
    ] = None,
    rules: flags.RulesDir = None,
    config: flags.Config = None,
) -> None:
    """List the rules: id, family, severity, title; tab-separated when piped."""
    from rlhealth.cli.rules_bodies import list_text
    from rlhealth.rules.loading import choose

    known, _ = _rules(rules, config)
    _put(list_text(choose(known, names or ()), piped=not sys.stdout.isatty()))


def explain(
    names: Annotated[list[str], typer.Argument(metavar="ID|FAMILY...", help="Rules or families.", show_default=False)],
    rules: flags.RulesDir = None,
    config: flags.Config = None,
) -> None:
    """Explain when a rule fires, why it matters, what to try, the source of its limits, and its tests."""
    from rlhealth.cli.rules_bodies import explain_text

    known, folders = _rules(rules, config)
    _put(explain_text(names, known, folders))


@rules_app.command("test")
def test(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Rule files, their tests, or folders of them; default the shipped rules.", show_default=False
        ),
    ] = None,
    rules: flags.RulesDir = None,
) -> None:
    """Check rule files and run their test cases: exit code 0 all pass, 1 some fail, 2 a file cannot be used."""
    from rlhealth.cli.rules_bodies import test_text
    from rlhealth.rules.loading import load_rules, shipped_rules

    _there(paths)
    added = [one for one in paths or () if one.is_dir() or ".test." not in one.name]
    text, passed = test_text(paths or [shipped_rules()], load_rules(*added, *(rules or ())))
    _put(text)
    raise SystemExit(0 if passed else 1)


def _there(paths: list[Path] | None) -> None:
    for one in paths or ():
        if not one.exists():
            raise RlhealthError(
                f"no rules at {one}", hint="give rule files, their tests, or folders of them", location=str(one)
            )


@rules_app.command("schema")
def schema(
    tests: Annotated[bool, typer.Option("--tests", help="The schema of test files.")] = False,
    settings: Annotated[
        bool, typer.Option("--settings", help="The schema of rlhealth.toml and [tool.rlhealth].")
    ] = False,
) -> None:
    """Print the JSON Schema of rule files, for editors to complete and check."""
    from rlhealth.cli.rules_bodies import schema_text

    _put(schema_text("settings" if settings else "test" if tests else "rule"))


@rules_app.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="ID", help="The id of the rule.", show_default=False)],
    family: Annotated[str, typer.Option("--family", help="Its family.")] = "kl-high",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write both files into this folder.", show_default=False)
    ] = None,
) -> None:
    """Print a commented rule and its test as a template."""
    from rlhealth.cli.rules_bodies import new_texts
    from rlhealth.system.files import write_whole

    for file, text in new_texts(name, family).items():
        if output is None:
            _put(f"{text}\n" if file.endswith(".test.yaml") else f"{text}---\n")
            continue
        try:
            if os.path.lexists(output / file):
                raise FileExistsError(17, "File exists")
            write_whole(output / file, text)
        except OSError as error:
            raise RlhealthError(
                f"{output / file}: {error.strerror}",
                hint="-o takes a folder that exists; files in it are not replaced",
                location=str(output),
            ) from None
        _put(f"{output / file}\n")


@rules_app.command("docs")
def docs(
    write: Annotated[bool, typer.Option("--write", help="Write them.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with code 1 if they are stale.")] = False,
) -> None:
    """Write rules/README.md and docs/trl-guidance.md from the rules, or check that they are up to date."""
    from rlhealth.authoring.docs import repository, stale
    from rlhealth.authoring.docs import write as write_docs

    if write == check:
        raise RlhealthError("rules docs takes --write or --check", hint="rlhealth rules docs --write")
    names = write_docs(repository()) if write else stale(repository())
    _put("".join(f"{'wrote' if write else 'stale'} {name}\n" for name in names) or "up to date\n")
    raise SystemExit(1 if check and names else 0)


rules_app.command("explain")(explain)  # also at the top level, where users look for it
