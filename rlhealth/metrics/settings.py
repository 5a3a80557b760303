"""Translates a run's configuration into canonical settings, and gives their names in the run's trainer."""

from __future__ import annotations

import math
from typing import Any

from rlhealth.metrics.catalogue import Alias, Version
from rlhealth.metrics.recognise import Recognised
from rlhealth.run import Run

_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None, "null": None}


def settings_of(run: Run, known: Recognised) -> dict[str, Any]:
    """The canonical settings of the run; a setting that is not configured is absent."""
    found: dict[str, Any] = {}
    for alias in known.names.settings:
        key = _key(run, alias, known)
        if key is not None and found.get(alias.name) is None:
            found[alias.name] = plain(run.config[key])
    for name, rule in known.names.derived.items():
        value = _derived(rule, found)
        if value is not None and found.get(name) is None:
            found[name] = value
    return found


#: The trainer's option for each setting, and whether the run's settings include it.
Options = dict[str, tuple[Alias, bool]]


def chosen_options(run: Run, known: Recognised) -> Options:
    """The option for each setting in the run's version; a removed option comes last."""
    found: Options = {}
    for alias in known.names.settings:
        if not alias.fits(known.low, known.high):
            continue
        is_set = _key(run, alias, known) is not None
        other, other_set = found.get(alias.name, (None, False))
        if other is None or (is_set, alias.until is None) > (other_set, other.until is None):
            found[alias.name] = (alias, is_set)
    return found


def options_of(chosen: Options, known: Recognised) -> dict[str, str]:
    """The trainer's name of each setting, in the run's version, for the advice of findings."""
    return {name: alias.raw for name, (alias, _) in chosen.items()} | known.names.options


def option_versions_of(chosen: Options, known: Recognised) -> dict[str, str]:
    """The versions that have an option, if the run may be of a version without it and its settings do not show it."""
    found = {}
    for name, (alias, is_set) in chosen.items():
        late = alias.since is not None and (known.low is None or known.low < alias.since)
        early = alias.until is not None and (known.high is None or known.high > alias.until)
        if is_set or name in known.names.options or not (late or early):
            continue
        since = f"from {_dotted(alias.since)} on" if late and alias.since else ""
        until = f"until {_dotted(alias.until)}" if early and alias.until else ""
        found[name] = " ".join(filter(None, (f"in {known.names.library or 'versions'}", since, until)))
    return found


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


def planned_steps_of(run: Run, known: Recognised, settings: dict[str, Any]) -> int | None:
    """The number of planned steps, if the files of this framework are reliable about it; otherwise None."""
    planned = known.names.planned or {}
    for name in planned.get("settings", []):
        value = settings.get(name)
        if isinstance(value, int | float) and math.isfinite(value) and value > 0:
            return int(value)
    return run.planned_steps if planned.get("tracker") != "no" else None


def plain(value: Any) -> Any:
    """A setting as a Python value: trackers that store only text write "0.2", "True" and "None"."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return value


def _key(run: Run, alias: Alias, known: Recognised) -> str | None:
    if not run.config or not alias.fits(known.low, known.high):
        return None
    if alias.raw in run.config:
        return alias.raw
    candidates = (under + alias.raw for under in known.names.settings_under)
    return next((key for key in candidates if key in run.config), None)


def _derived(rule: dict[str, Any], found: dict[str, Any]) -> Any:
    if "like" in rule:
        return found.get(rule["like"])
    product = 1.0
    for key, sign in [(key, 1) for key in rule.get("multiply", [])] + [(key, -1) for key in rule.get("divide", [])]:
        value = found.get(key)
        if not isinstance(value, int | float) or value <= 0:
            return None
        product *= value**sign
    return product
