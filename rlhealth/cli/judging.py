"""What a command judges by: rules, aliases and ignored rules, from its flags and the project's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlhealth.cli import arguments

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlhealth.rules.model import Rule
    from rlhealth.settings.project import Settings


class Judging(NamedTuple):
    """What to judge by, as `check` and `watch` take it.

    Attributes:
        rules: with the limits of the settings; with `--select`, only the named ones.
        aliases: raw tag to canonical name.
        ignore: rule ids and families to leave out, each with the reason.
    """

    rules: list[Rule]
    aliases: dict[str, str]
    ignore: dict[str, str]


def judging(
    settings: Settings,
    rules: Sequence[Path] | None,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] | None = None,
    alias: list[str] | None = None,
    require: Sequence[str] = (),
) -> Judging:
    """The flags on top of the settings. Raises RlhealthError for a name that no rule and no family has."""
    from rlhealth.rules.loading import check_names, choose, load_rules
    from rlhealth.settings.project import apply

    known = apply(settings, load_rules(*settings.rule_folders, *(rules or ())))
    check_names(known, require, "--require")
    unwanted = arguments.listed(ignore)
    check_names(known, unwanted, "--ignore")
    return Judging(
        choose(known, arguments.listed(select)),
        {**settings.aliases, **arguments.aliases_of(alias)},
        {**settings.ignore, **dict.fromkeys(unwanted, "--ignore")},
    )
