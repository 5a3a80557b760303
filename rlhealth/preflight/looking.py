"""The main path: options or runs -> canonical settings -> checks -> findings, skips and an exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlhealth.engine.scope import passes
from rlhealth.errors import RlhealthError
from rlhealth.metrics.groups import is_named
from rlhealth.parsing.strict_yaml import read_yaml
from rlhealth.preflight.conditions import depends, holds, measured, missing, pick
from rlhealth.preflight.model import Asked, Check, load_checks
from rlhealth.preflight.options import is_config, read_options
from rlhealth.preflight.trainer import Settings, entry_of, settings_in, settings_of_run
from rlhealth.rules.filling import fill
from rlhealth.sources.discovery.opening import open_all
from rlhealth.verdict.findings import Severity

DEFAULTS = Path(__file__).parent / "defaults.yaml"


@dataclass(frozen=True)
class Hurt:
    """A setting that will hurt.

    Attributes:
        option: the trainer's own name for it; of several, joined with a plus or times sign.
        value: its present value; `is_default` where nobody set it.
        place: the file and line, or the run.
    """

    check: str
    severity: Severity
    option: str
    value: Any
    is_default: bool
    place: str
    title: str
    message: str
    try_: tuple[str, ...]
    source: tuple[str, ...]


@dataclass
class Examined:
    """One training: what will hurt, which checks found nothing, and which could not run, with the reason."""

    settings: Settings
    hurts: list[Hurt] = field(default_factory=list)
    quiet: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


@dataclass
class Preflight:
    """The answer: every training that was found, and what could not be read."""

    examined: list[Examined] = field(default_factory=list)
    errors: list[RlhealthError] = field(default_factory=list)
    fail_on: Severity | None = Severity.CRITICAL

    @property
    def hurts(self) -> list[Hurt]:
        """Everything that was found, the worst first."""
        return sorted((one for part in self.examined for one in part.hurts), key=lambda one: -one.severity)

    @property
    def exit_code(self) -> int:
        """0 if no finding is at or above the gate, 1 if one is, 2 if something could not be read or checked."""
        if self.fail_on is not None and any(one.severity >= self.fail_on for one in self.hurts):
            return 1
        return 2 if self.errors or not self.examined else 0


def preflight(
    where: str | Path | Sequence[str | Path],
    *,
    framework: str | None = None,
    devices: int | None = None,
    fail_on: Severity | None = Severity.CRITICAL,
) -> Preflight:
    """Looks for settings that will hurt.

    Args:
        where: a config file (YAML, JSON, .py, .ipynb, .sh), or a run as `check` takes it; or several of them.
        framework: the trainer, where the options do not give it: an id such as `trl-grpo`.
        devices: how many processes will train; a batch must be whole groups over all of them.
        fail_on: the least severity that fails; None never does.

    Raises:
        RlhealthError: only where `framework` names no trainer.
    """
    if framework is not None:
        entry_of(framework)
    found = Preflight(fail_on=fail_on)
    for place in [where] if isinstance(where, str | Path) else where:
        try:
            for one in _settings(str(place), framework, found.errors):
                found.examined.append(examine(one, devices))
        except RlhealthError as error:
            found.errors.append(error)
    return found


def _settings(place: str, framework: str | None, errors: list[RlhealthError]) -> list[Settings]:
    """The settings of each training at a place. Raises RlhealthError if there are none to check."""
    if is_config(place):
        settings = [settings_in(one, framework) for one in read_options(Path(place))]
    else:
        runs, unread = open_all(place)
        errors += unread
        settings = [settings_of_run(run) for run in runs]
    known = [one for one in settings if one.values]
    errors += [
        RlhealthError(
            f"{one.options_of.location}: contains no settings",
            hint="name the trainer's config file",
            location=one.options_of.location,
        )
        for one in settings
        if not one.values
    ]
    training = [one for one in known if one.is_rl]
    if known and not training:
        said = f"{place}: {known[0].title} is not reinforcement learning"
        raise RlhealthError(said, hint="--framework names the trainer, where this is wrong", location=place)
    return training


def examine(settings: Settings, devices: int | None = None) -> Examined:
    """Runs every check on the settings of one training."""
    found = Examined(settings)
    defaults = {
        name: value for name, value in _defaults().get(settings.framework, {}).items() if name not in settings.values
    }
    values = defaults | settings.values | ({} if devices is None else {"devices": devices})
    for check in load_checks():
        reason = _out_of_scope(check, settings, values)
        if reason:
            found.skipped[check.id] = reason
            continue
        unset = missing(check, values)
        if unset:
            found.skipped[check.id] = f"{settings.options.get(unset, unset)} is not set"
            continue
        if any(depends(one, values) for one in check.conditions):
            found.skipped[check.id] = "it depends on how many processes train: --devices N says it"
        elif all(holds(one, values) for one in check.conditions):
            found.hurts.append(_hurt(check, settings, values, frozenset(defaults)))
        else:
            found.quiet.append(check.id)
    return found


@lru_cache(maxsize=1)
def _defaults() -> dict[str, dict[str, Any]]:
    """The trainer's defaults, by trainer and canonical name."""
    found: dict[str, dict[str, Any]] = read_yaml(DEFAULTS.read_text(encoding="utf-8"), str(DEFAULTS))[0]
    return found


def _out_of_scope(check: Check, settings: Settings, values: Mapping[str, Any]) -> str:
    """Why a check does not apply to these settings; empty if it does."""
    if not is_named(settings.framework, check.scope.frameworks):
        return f"it is about {', '.join(check.scope.frameworks)}, and this is {settings.framework}"
    if check.scope.until_started and settings.started:
        return "the run has started"
    moot = settings.options_of.libraries & set(check.scope.unless_library)
    if moot:
        return f"{', '.join(sorted(moot))} corrects it"
    for name, test in check.scope.unless.items():
        if values.get(name) is not None and _passes(values[name], test):
            return f"{settings.options.get(name, name)} is {values[name]}"
    for name, test in check.scope.only_if.items():
        if values.get(name) is None or not _passes(values[name], test):
            return f"{settings.options.get(name, name)} is {values.get(name, 'not set')}"
    return ""


def _passes(value: Any, test: Any) -> bool:
    return any(value == one for one in test) if isinstance(test, tuple) else passes(value, test)


def _hurt(check: Check, settings: Settings, values: Mapping[str, Any], defaults: frozenset[str]) -> Hurt:
    asked = check.conditions[0]
    used = [pick(name, values) or name for name in asked.names if name != "devices" or name in values]
    value = measured(asked, values)
    worse = check.critical
    severity = Severity.of(check.severity)
    if worse is not None and any(
        holds(Asked.model_validate({"setting": asked.setting, sign: limit}), values)
        for sign, limit in (("above", worse.above), ("below", worse.below))
        if limit is not None
    ):
        severity = Severity.CRITICAL
    calls = {f"option.{name}": option for name, option in settings.options.items()}
    said = {f"config.{name}": one for name, one in values.items()} | calls | {"value": value}
    written = [settings.options.get(name, name) for name in used]
    return Hurt(
        check=check.id,
        severity=severity,
        option=(" + " if asked.sum else " * ").join(written),
        value=value,
        is_default=all(name in defaults for name in used),
        place=next(
            (place for one in written if (place := settings.options_of.place(one)) != settings.options_of.location),
            settings.options_of.location,
        ),
        title=check.title,
        message=fill(check.message, said),
        try_=tuple(fill(one, said) for one in check.try_),
        source=tuple(f"{one.text} ({one.url})" if one.url else one.text for one in check.source),
    )
