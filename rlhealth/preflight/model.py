"""The schema of a settings check, and how checks are loaded: one YAML file per topic, with the keys of rules."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, model_validator

from rlhealth.parsing.checked import checked
from rlhealth.parsing.strict_data import Number, Setting, Text
from rlhealth.parsing.strict_model import StrictModel
from rlhealth.parsing.strict_yaml import read_yaml
from rlhealth.rules.conditions import Limit
from rlhealth.rules.model import Source
from rlhealth.rules.scope import Bounds

FOLDER = Path(__file__).parent / "checks"


class Asked(StrictModel):
    """One setting, or a sum or product of some, compared with a limit; `a|b` is the first of them that is set.

    `devices`, in a product, is the number of processes; if it is not given, the condition must hold for every usual
    number.
    """

    setting: str = ""
    sum: tuple[str, ...] = ()
    product: tuple[str, ...] = ()
    above: Number | Limit | None = None
    below: Number | Limit | None = None
    equals: Setting = None
    not_divisible_by: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Asked:
        if sum(map(bool, (self.setting, self.sum, self.product))) != 1:
            raise ValueError("needs exactly one of `setting`, `sum` and `product`")
        tests = (self.above, self.below, self.equals, self.not_divisible_by)
        if sum(one is not None for one in tests) != 1:
            raise ValueError("needs exactly one of `above`, `below`, `equals` and `not_divisible_by`")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that the condition reads, each perhaps with alternatives, without the setting of its limit."""
        return self.sum or self.product or (self.setting,)


class All(StrictModel):
    """Conditions that must all hold; the first one's setting is the one that is reported."""

    all: Annotated[tuple[Asked, ...], Field(min_length=1)]


class CriticalLevel(StrictModel):
    """When the finding is critical: another limit for the first condition."""

    above: Number | Limit | None = None
    below: Number | Limit | None = None


class Scope(StrictModel):
    """The trainings that a check is about; elsewhere it is skipped, with the reason.

    Attributes:
        frameworks: trainers, where `*` matches anything; all of them where left out.
        only_if, unless: other settings: a value, one of a list, or bounds; one that is not set passes none.
        unless_library: libraries that correct the setting, where the script imports one.
        until_started: the trainer refuses to start with it, so that a logged run cannot have it.
    """

    frameworks: tuple[str, ...] = ()
    only_if: dict[str, Setting | Bounds | tuple[Setting, ...]] = Field(default_factory=dict)
    unless: dict[str, Setting | Bounds | tuple[Setting, ...]] = Field(default_factory=dict)
    unless_library: tuple[str, ...] = ()
    until_started: StrictBool = False


class Check(StrictModel):
    """One check, as its YAML says it."""

    id: str
    title: Annotated[str, Field(max_length=200)]
    severity: Literal["info", "warning", "critical"]
    scope: Scope = Field(default_factory=Scope)
    when: Asked | All
    critical: CriticalLevel | None = None
    message: Text
    try_: tuple[Text, ...] = Field(alias="try", min_length=1)
    source: tuple[Source, ...] = Field(min_length=1)

    @property
    def conditions(self) -> tuple[Asked, ...]:
        """The conditions, all of which must hold."""
        return self.when.all if isinstance(self.when, All) else (self.when,)


class _File(StrictModel):
    checks: tuple[Check, ...]


@lru_cache(maxsize=1)
def load_checks() -> tuple[Check, ...]:
    """Every shipped check, file by file in the order of their names.

    Raises:
        RlhealthError: naming the file, line and column of what is wrong.
    """
    found: list[Check] = []
    for path in sorted(FOLDER.glob("*.yaml")):
        raw, marks = read_yaml(path.read_text(encoding="utf-8"), str(path))
        found += checked(_File, {"checks": raw}, _under(marks), str(path), "a check in rlhealth/preflight").checks
    return tuple(found)


def _under(marks: dict[tuple[Any, ...], tuple[int, int]]) -> dict[tuple[Any, ...], tuple[int, int]]:
    return {("checks", *path): place for path, place in marks.items()}
