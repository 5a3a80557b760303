"""Settings of a project: `rlhealth.toml`, or `[tool.rlhealth]` in pyproject.toml, from the folder of the call
upwards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlhealth.errors import RlhealthError
from rlhealth.parsing.checked import Marks, meant, place
from rlhealth.rules.conditions import Condition
from rlhealth.rules.loading import known_names
from rlhealth.rules.model import Aspect, CriticalLevel, Rule, Source

if TYPE_CHECKING:
    from rlhealth.settings.schema import Parameters, SettingsFile

OWN = "rlhealth.toml"
SHARED = "pyproject.toml"


@dataclass(frozen=True)
class Settings:
    """A project's settings, ready for use.

    Attributes:
        location: the file; empty if there is none.
        ignore: rule or family to the reason, of those that have not expired.
        notes: what the user should know, one sentence each: an `ignore` that has expired.
    """

    location: str = ""
    fail_on: str | None = None
    select: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    min_steps: int | None = None
    ended: bool = False
    strict: bool = False
    fail_on_past: bool = False
    interval: float | None = None
    timeout: float | None = None
    bell: bool = False
    rule_folders: tuple[Path, ...] = ()
    ignore: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Parameters] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    _said: SettingsFile | None = field(default=None, repr=False)
    _marks: Marks = field(default_factory=dict, repr=False)


def load_settings(start: Path | None = None, file: Path | None = None, today: date | None = None) -> Settings:
    """The settings of the nearest file from `start` (the working folder, if not given) upwards, or of `file`.

    Raises:
        RlhealthError: naming `file:line:column` and, for a misspelt key, what may have been meant.
    """
    if file is not None:
        return _read(file, today or date.today())
    folder = (start or Path.cwd()).absolute()
    for one in (folder, *folder.parents):
        for name in (OWN, SHARED):
            if (one / name).is_file():
                found = _read(one / name, today or date.today(), only_own_table=name == SHARED)
                if found.location:
                    return found
    return Settings()


def _read(path: Path, today: date, only_own_table: bool = False) -> Settings:
    location = _near(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RlhealthError(
            f"{location}: cannot be read: {error}", hint="--config takes a TOML file", location=location
        ) from None
    if only_own_table and "rlhealth" not in text:
        return Settings()  # another tool's file
    raw = _toml(text, location)
    under: tuple[str, ...] = ()
    if only_own_table or path.name == SHARED:
        tool = raw.get("tool")
        if not isinstance(tool, dict) or not isinstance(tool.get("rlhealth"), dict):
            return Settings()
        raw, under = tool["rlhealth"], ("tool", "rlhealth")
    from rlhealth.parsing.toml_places import toml_places
    from rlhealth.settings.schema import checked_settings  # late: most projects set nothing

    marks = {keys[len(under) :]: mark for keys, mark in toml_places(text).items() if keys[: len(under)] == under}
    said = checked_settings(raw, marks, location, path.parent, "".join(f"{key}." for key in under))
    expired = [one for one in said.ignore if one.until is not None and one.until < today]
    return Settings(
        location=location,
        fail_on=said.fail_on,
        select=said.select,
        require=said.require,
        min_steps=said.min_steps,
        ended=said.gate.ended,
        strict=said.gate.strict,
        fail_on_past=said.gate.fail_on_past,
        interval=said.watch.interval,
        timeout=said.watch.timeout,
        bell=said.watch.bell,
        rule_folders=tuple(path.parent / one for one in said.rule_folders),
        ignore={one.rule: one.reason for one in said.ignore if one not in expired},
        aliases=said.aliases,
        parameters=said.rules,
        notes=tuple(
            f"{location}: ignoring {one.rule} ({one.reason}) ended on {one.until}: it counts again" for one in expired
        ),
        _said=said,
        _marks=marks,
    )


def _toml(text: str, location: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = f"{location}:{_place_in(str(error), text)}"
        raise RlhealthError(
            f"{place}: {_without_place(str(error))}", hint="the file must be TOML", location=location
        ) from None
    except (ValueError, RecursionError):
        raise RlhealthError(
            f"{location}: a number of thousands of digits, or nested too deep",
            hint="the file must be TOML",
            location=location,
        ) from None


def apply(settings: Settings, rules: Sequence[Rule]) -> list[Rule]:
    """The rules with the settings' parameters; each changed rule names the file among its sources.

    Raises:
        RlhealthError: for a name that is no rule or family, or a limit that the rule does not have, with
            `file:line:column`.
    """
    if settings._said is None:
        return list(rules)
    known = {rule.id for rule in rules}
    both = known_names(rules)
    named: list[tuple[tuple[Any, ...], str, set[str]]] = [
        (("ignore", index, "rule"), one.rule, both) for index, one in enumerate(settings._said.ignore)
    ]
    named += [
        ((part, index), one, both)
        for part in ("select", "require")
        for index, one in enumerate(getattr(settings._said, part))
    ]
    named += [(("rules", name), name, known) for name in settings.parameters]
    for path, name, allowed in named:
        if name not in allowed:
            word = "rule" if allowed is known else "rule or family"
            raise _wrong(
                settings, path, f"there is no {word} `{name}`{meant(name, allowed)}", "`rlhealth rules list` shows them"
            )
    return [
        _changed(rule, settings.parameters[rule.id], settings) if rule.id in settings.parameters else rule
        for rule in rules
    ]


def _changed(rule: Rule, said: Parameters, settings: Settings) -> Rule:
    severity = said.severity or rule.severity
    scope = rule.scope if said.min_points is None else rule.scope.model_copy(update={"min_points": said.min_points})
    when, critical, aspects = rule.when, rule.critical, rule.aspects
    if said.limit is not None or said.above is not None or said.below is not None:
        sign, limit = _side(rule, said, settings)
        assert when is not None
        part = "all" if when.all else "any"
        conditions = list(when.conditions)
        index = next(index for index, one in enumerate(conditions) if getattr(one, sign) is not None)
        own = conditions[index]
        conditions[index] = own.model_copy(update={sign: limit})
        aspects = tuple(_repeating(one, own, conditions[index]) for one in aspects)
        when = when.model_copy(update={part: tuple(conditions)})
    if when is not None and said.held_for is not None:
        when = when.model_copy(update={"held_for": said.held_for})
    if said.critical is not None:
        critical = (critical or CriticalLevel()).model_copy(update=said.critical.model_dump(exclude_none=True))
    _ordered(rule, when.conditions[0] if when and when.conditions else None, critical, settings)
    source = (Source(text=f"changed in {settings.location}"), *rule.source)
    if said.severity is not None:
        aspects = tuple(_graded(one, said.severity) for one in aspects)
        critical = None if said.severity == "critical" else critical
    new = {
        "severity": severity,
        "scope": scope,
        "when": when,
        "critical": critical,
        "aspects": aspects,
        "source": source,
    }
    return rule.model_copy(update=new)


def _repeating(one: Aspect, own: Condition, changed: Condition) -> Aspect:
    """An aspect in which the rule's own condition, where it is repeated there, has the limit that was set."""
    conditions = tuple(changed if part == own else part for part in one.when.all)
    return one.model_copy(update={"when": one.when.model_copy(update={"all": conditions})})


def _graded(one: Aspect, severity: str) -> Aspect:
    """An aspect of a rule whose severity was set; if all of it is critical, there is no higher level."""
    return one.model_copy(update={"severity": severity, "critical": None if severity == "critical" else one.critical})


def _side(rule: Rule, said: Parameters, settings: Settings) -> tuple[str, float]:
    """Which limit of the rule is meant, and its new value."""
    given = [name for name in ("limit", "above", "below") if getattr(said, name) is not None]
    path = ("rules", rule.id, given[-1])
    if len(given) > 1:
        raise _wrong(settings, path, f"`{given[0]}` and `{given[1]}` exclude each other", "set one of them")
    conditions = rule.when.conditions if rule.when is not None else ()
    own = [
        sign
        for one in (conditions if rule.when and rule.when.any else conditions[:1])
        for sign in ("above", "below")
        if getattr(one, sign) is not None
    ]
    if not own:
        raise _wrong(
            settings,
            path,
            f"{rule.id} has no limit that could be set",
            f"`rlhealth explain {rule.id}` shows what it looks at",
        )
    if given[0] != "limit" and given[0] not in own:
        raise _wrong(
            settings,
            path,
            f"{rule.id} has no limit `{given[0]}`; it has `{own[0]}`",
            f"`rlhealth explain {rule.id}` shows what it looks at",
        )
    if given[0] == "limit" and len(own) > 1:
        raise _wrong(
            settings,
            path,
            f"{rule.id} has two limits; say `above` or `below`",
            f"`rlhealth explain {rule.id}` shows what it looks at",
        )
    return (own[0] if given[0] == "limit" else given[0]), float(getattr(said, given[0]))


def _ordered(rule: Rule, first: Condition | None, critical: CriticalLevel | None, settings: Settings) -> None:
    for sign, direction in (("above", 1), ("below", -1)):
        worse = getattr(critical, sign, None)
        base = getattr(first, sign, None)
        if worse is not None and base is None:
            raise _wrong(
                settings,
                ("rules", rule.id, "critical", sign),
                f"{rule.id} has no limit `{sign}`",
                f"`rlhealth explain {rule.id}` shows what it looks at",
            )
        if isinstance(worse, int | float) and isinstance(base, int | float) and (worse - base) * direction < 0:
            hint = f"set critical.{sign} under [rules.{rule.id}] too"
            raise _wrong(
                settings,
                ("rules", rule.id),
                f"{rule.id} would be critical at {worse:g}, before the warning at {base:g}",
                hint,
            )


def _wrong(settings: Settings, path: tuple[Any, ...], said: str, hint: str) -> RlhealthError:
    return RlhealthError(
        f"{place(settings.location, settings._marks, path)}: {said}", hint=hint, location=settings.location
    )


def _near(path: Path) -> str:
    """The shortest form of the path from the working folder."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _place_in(said: str, text: str) -> str:
    found = re.search(r"at line (\d+), column (\d+)", said)
    if found:
        return f"{found[1]}:{found[2]}"
    lines = text.split("\n")  # an error without a place is at the end
    return f"{len(lines)}:{len(lines[-1]) + 1}"


def _without_place(said: str) -> str:
    return re.sub(r" \(at (?:line \d+, column \d+|end of document)\)", "", said)
