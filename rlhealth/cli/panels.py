"""Help in panels: the options of a command grouped by topic, and its examples; printed without `rich`."""

from __future__ import annotations

from typing import Any

import typer

from rlhealth.cli.plain_values import PlainValues

READ = "What to read"
JUDGED = "How to judge"
FAILS = "What fails"
PRINTED = "What is printed"
RUNS = "Where it runs"
FOLLOWED = "When it reads and ends"
NOTIFIED = "Who is notified"
STOPPED = "How a run is stopped"
PANELS = (READ, JUDGED, FAILS, PRINTED, RUNS, FOLLOWED, NOTIFIED, STOPPED)

CHECK_EXAMPLES = (
    ("rlhealth check ./runs", "every run below a folder"),
    ("rlhealth check --wandb me/ppo --last 5", "newest of a wandb project"),
    ("rlhealth check run.log --fail-on warning", "warnings fail too"),
    ("rlhealth check ./runs -f junit -o health.xml", "for CI"),
    ("rlhealth check ./runs --ignore entropy", "without a family of rules"),
)
WATCH_EXAMPLES = (
    ("rlhealth watch ./run", "until it ends"),
    ("rlhealth watch ./runs --until-step 2000", "until all are there"),
    ("rlhealth watch ./runs --notify slack://…", "notifies of incidents"),
    ("rlhealth watch ./run --stop-on critical --stop-writer", "stop a failing run"),
)


def option(panel: str, *names: str, help: str, show_default: bool = False, **more: Any) -> Any:
    """An option of typer's that help shows in that panel; its default is left out where the text says it, or None."""
    return typer.Option(*names, help=help, show_default=show_default, rich_help_panel=panel, **more)


def examples(lines: tuple[tuple[str, str], ...]) -> str:
    """Commands and what each is for, as an epilog."""
    width = max(len(command) for command, _ in lines)
    return "Examples:\n" + "\n".join(f"  {command:{width}}  # {said}" for command, said in lines)


class Panelled(PlainValues):
    """A command whose help shows each option under its panel, in the order of `PANELS`; the rest comes last."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the arguments, then each panel that has options."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", *PANELS, "Options")}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                panel = getattr(param, "rich_help_panel", None)
                sections["Arguments" if param.param_type_name == "argument" else panel or "Options"].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the examples as they stand: a line of a command is never wrapped."""
        if self.epilog:
            formatter.write_paragraph()
            formatter.write(f"{self.epilog}\n")
