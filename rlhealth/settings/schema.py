"""What a settings file may hold, and its content checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from rlhealth.errors import RlhealthError
from rlhealth.metrics import meaning, meanings
from rlhealth.parsing.checked import Marks, checked, meant, place
from rlhealth.rules.model import Number, Strict

HINT = "`rlhealth rules schema --settings` prints what may be set"


class Ignore(Strict):
    """A rule or family to leave out of the verdict, why, and the last day on which that holds."""

    rule: StrictStr
    reason: Annotated[StrictStr, Field(min_length=1)]
    until: date | None = None


class CriticalLimits(Strict):
    """When a finding becomes critical."""

    above: Number | None = None
    below: Number | None = None
    for_: Annotated[StrictInt, Field(ge=1)] | None = Field(default=None, alias="for")


class Parameters(Strict):
    """What may be changed about a rule: its limit (`limit`, or by its side: `above`, `below`), its damping and its severity."""

    limit: Number | None = None
    above: Number | None = None
    below: Number | None = None
    for_: Annotated[StrictInt, Field(ge=1)] | None = Field(default=None, alias="for")
    clear: Annotated[StrictInt, Field(ge=1)] | None = None
    needs: Annotated[StrictInt, Field(ge=1)] | None = None
    severity: Literal["info", "warning", "critical"] | None = None
    critical: CriticalLimits | None = None


class GateSettings(Strict):
    """What a gate may take for granted (`ended`: every run is over), and what it refuses.

    `strict` refuses files left unread; `fail_on_past` counts what is over as severe as it was.
    """

    ended: StrictBool = False
    strict: StrictBool = False
    fail_on_past: StrictBool = False


class SettingsFile(Strict):
    """What a settings file may hold."""

    fail_on: Literal["critical", "warning", "info", "never"] | None = Field(default=None, alias="fail-on")
    select: tuple[StrictStr, ...] = ()
    require: tuple[StrictStr, ...] = ()
    min_steps: Annotated[StrictInt, Field(ge=0)] | None = Field(default=None, alias="min-steps")
    gate: GateSettings = Field(default_factory=GateSettings)
    rule_folders: tuple[StrictStr, ...] = Field(default=(), alias="rule-folders")
    ignore: tuple[Ignore, ...] = ()
    rules: dict[str, Parameters] = Field(default_factory=dict)
    aliases: dict[str, StrictStr] = Field(default_factory=dict)


def checked_settings(raw: Mapping[str, Any], marks: Marks, location: str, folder: Path) -> SettingsFile:
    """The content of the file at `location`, in `folder`: every key, every metric of an alias and every folder of rules is there.

    Raises:
        RlhealthError: naming `file:line:column` and, for a misspelt name, what may have been meant.
    """
    said = checked(SettingsFile, raw, marks, location, HINT)
    for tag, name in said.aliases.items():
        if meaning(name) is None:
            at = place(location, marks, ("aliases", tag))
            raise RlhealthError(
                f"{at}: there is no metric `{name}`{meant(name, meanings())}", hint=HINT, location=location
            )
    for index, one in enumerate(said.rule_folders):
        if not (folder / one).exists():
            at = place(location, marks, ("rule-folders", index))
            raise RlhealthError(
                f"{at}: there is no folder {one}",
                hint="rule-folders are seen from the folder of the settings file",
                location=location,
            )
    return said
