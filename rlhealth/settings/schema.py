"""The schema of a settings file, and its content checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from rlhealth.errors import RlhealthError
from rlhealth.metrics import meaning, meanings
from rlhealth.metrics.aliases import check_alias
from rlhealth.parsing.checked import KeyPath, Marks, checked, meant, place
from rlhealth.parsing.own_texts import read_texts
from rlhealth.parsing.strict_data import Number
from rlhealth.parsing.strict_model import StrictModel

HINT = "`rlhealth rules schema --settings` prints what may be set"


class Ignore(StrictModel):
    """A rule or family to leave out of the verdict, why, and the last day on which that holds."""

    rule: StrictStr = Field(description="The rule id or family.")
    reason: Annotated[StrictStr, Field(min_length=1)] = Field(description="Why; reports show it.")
    until: date | None = Field(default=None, description="The last day on which it is ignored.")


class CriticalLimits(StrictModel):
    """When a finding becomes critical."""

    above: Number | None = Field(default=None, description="Critical above this value.")
    below: Number | None = Field(default=None, description="Critical below this value.")
    held_for: Annotated[StrictInt, Field(ge=1)] | None = Field(
        default=None, description="Points in a row that must be critical."
    )


class Parameters(StrictModel):
    """What may be changed about a rule: its limit (`limit`, or by its side: `above`, `below`), its damping and its
    severity."""

    limit: Number | None = Field(default=None, description="The rule's limit, where it has one.")
    above: Number | None = Field(default=None, description="The upper limit of a rule with two.")
    below: Number | None = Field(default=None, description="The lower limit of a rule with two.")
    held_for: Annotated[StrictInt, Field(ge=1)] | None = Field(
        default=None, description="Points in a row that must be beyond the limit."
    )
    min_points: Annotated[StrictInt, Field(ge=1)] | None = Field(
        default=None, description="Points that the metric must have before the rule runs."
    )
    severity: Literal["info", "warning", "critical"] | None = Field(
        default=None, description="How severe a finding is."
    )
    critical: CriticalLimits | None = Field(default=None, description="When a finding becomes critical.")


class GateSettings(StrictModel):
    """What a gate may take for granted (`ended`: every run is over), and what it refuses.

    `strict` refuses files left unread; `fail_on_past` counts what is over as severe as it was.
    """

    ended: StrictBool = Field(default=False, description="Every run is over: one short of its plan died.")
    strict: StrictBool = Field(default=False, description="A file that looks like a log and was not read: exit code 2.")
    fail_on_past: StrictBool = Field(
        default=False, description="A finding that is over counts as severe as it was, not as a warning at most."
    )


class WatchSettings(StrictModel):
    """How `rlhealth watch` follows a run. Whom it notifies and what it stops can be set by flags only."""

    interval: Annotated[Number, Field(ge=0.1)] | None = Field(
        default=None, description="Seconds between two reads; 15 for files and 60 for servers where not given."
    )
    timeout: Annotated[Number, Field(ge=0)] | None = Field(
        default=None, description="Stop watching after this many seconds."
    )
    bell: StrictBool = Field(
        default=False, description="Ring the terminal's bell when an incident opens or gets worse."
    )


class SettingsFile(StrictModel):
    """What a settings file may hold."""

    fail_on: Literal["critical", "warning", "info", "never"] | None = Field(
        default=None, alias="fail-on", description="The least severity that makes a check exit with code 1."
    )
    select: tuple[StrictStr, ...] = Field(default=(), description="Judge by these rules or families only.")
    require: tuple[StrictStr, ...] = Field(
        default=(), description="Rules or families that must be able to run; else the check exits with code 2."
    )
    min_steps: Annotated[StrictInt, Field(ge=0)] | None = Field(
        default=None, alias="min-steps", description="A run with fewer steps has no verdict (exit code 2)."
    )
    gate: GateSettings = Field(
        default_factory=GateSettings, description="What the gate takes for granted, and what it refuses."
    )
    watch: WatchSettings = Field(
        default_factory=WatchSettings, description="How `rlhealth watch` follows a run. A flag wins."
    )
    rule_folders: tuple[StrictStr, ...] = Field(
        default=(),
        alias="rule-folders",
        description="Folders of your own rules, relative to this file; a rule with a shipped id replaces it.",
    )
    ignore: tuple[Ignore, ...] = Field(
        default=(), description="Rules or families whose findings are counted but left out of the verdict."
    )
    rules: dict[str, Parameters] = Field(
        default_factory=dict, description="Limits, damping and severity of single rules, by rule id."
    )
    aliases: dict[str, StrictStr] = Field(
        default_factory=dict, description="Your own metric names: logged tag to canonical metric."
    )


def examples(section: str) -> dict[str, str]:
    """Lines of TOML that set each key, in a file that holds the settings under `section` ("tool.rlhealth." or "")."""
    found: dict[str, str] = read_texts(Path(__file__).with_name("examples.yaml"))
    return {key: lines.format(section=section) for key, lines in found.items()}


def _hint(path: KeyPath, section: str) -> str:
    """The hint for an error at that key path: an example of its key, if there is one."""
    lines = [f"`{line}`" for line in examples(section).get(str(path[0]) if path else "", "").splitlines()]
    if not lines:
        return HINT
    return f"for example {', '.join(lines)}{', each on its own line' if len(lines) > 1 else ''}; {HINT}"


def checked_settings(
    raw: Mapping[str, Any], marks: Marks, location: str, folder: Path, section: str = ""
) -> SettingsFile:
    """The content of the file at `location`, in `folder`, under `section`: every key, every metric of an alias and
    every folder of rules is there.

    Raises:
        RlhealthError: naming `file:line:column` and, for a misspelt name, what may have been meant.
    """
    said = checked(SettingsFile, raw, marks, location, lambda path: _hint(path, section))
    for tag, name in said.aliases.items():
        at = place(location, marks, ("aliases", tag))
        if meaning(name) is None:
            raise RlhealthError(
                f"{at}: there is no metric `{name}`{meant(name, meanings())}", hint=HINT, location=location
            )
        check_alias(name, at, location)
    for index, one in enumerate(said.rule_folders):
        if not (folder / one).exists():
            at = place(location, marks, ("rule-folders", index))
            raise RlhealthError(
                f"{at}: there is no folder {one}",
                hint="rule-folders are seen from the folder of the settings file",
                location=location,
            )
    return said
