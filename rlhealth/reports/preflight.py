"""What a preflight found, as lines for people and as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from rlhealth import __version__
from rlhealth.preflight.looking import Examined, Hurt, Preflight
from rlhealth.reports.words import clean, plural

SCHEMA = "rlhealth.preflight/1"


def lines(found: Preflight, show_all: bool = False, quiet: bool = False) -> str:
    """A line a finding, the worst first, and last what was looked at, the gate and the exit code."""
    said: list[str] = []
    if not quiet:
        said += [_line(one) for one in found.hurts]
        for part in found.examined if show_all else ():
            said += [
                f"{clean(part.settings.options_of.location)}: skipped {check}: {clean(why)}"
                for check, why in part.skipped.items()
            ]
    return "\n".join([*said, _last(found, show_all)]) + "\n"


def _line(one: Hurt) -> str:
    value = f"{clean(one.option)}={_value(one.value)}{' (default)' if one.is_default else ''}"
    return f"{clean(one.place)}: {one.severity}[{one.check}] {value}: {clean(one.message)}; try {clean(one.try_[0])}"


def _last(found: Preflight, show_all: bool) -> str:
    parts = []
    for title, same in _by_trainer(found.examined).items():
        settings = max(one.settings.count for one in same)
        parts.append(
            f"{title}, {plural(settings, 'setting')}" if len(same) == 1 else f"{title}, {plural(len(same), 'training')}"
        )
    counts = [
        f"{count} {word}"
        for word in ("critical", "warning", "info")
        if (count := sum(str(one.severity) == word for one in found.hurts))
    ]
    if found.examined:
        parts.append(", ".join(counts) or "nothing found")
        ran = {check for one in found.examined for check in (*one.quiet, *(hurt.check for hurt in one.hurts))}
        skipped = {check for one in found.examined for check in one.skipped} - ran
        hint = "" if show_all or not skipped else " (--all says why)"
        parts.append(f"{plural(len(ran), 'check')} ran, {len(skipped)} could not{hint}")
    if found.errors:
        parts.append(f"{len(found.errors)} could not be read or checked")
    gate = "never" if found.fail_on is None else str(found.fail_on)
    return "; ".join([*parts, f"fail-on {gate}", f"exit {found.exit_code}"])


def _by_trainer(examined: list[Examined]) -> dict[str, list[Examined]]:
    found: dict[str, list[Examined]] = {}
    for one in examined:
        found.setdefault(one.settings.title, []).append(one)
    return found


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else clean(value)


def as_json(found: Preflight) -> str:
    """The same for programs; a number that is not finite is a text, as in the report of a check."""
    document = {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": found.exit_code,
        "trainings": [
            {
                "location": part.settings.options_of.location,
                "framework": part.settings.framework,
                "settings": {name: _plain(value) for name, value in part.settings.values.items()},
                "findings": [_finding(one) for one in sorted(part.hurts, key=lambda one: -one.severity)],
                "quiet": part.quiet,
                "skipped": [{"check": check, "reason": why} for check, why in part.skipped.items()],
            }
            for part in found.examined
        ],
        "errors": [{"location": one.location, "error": one.message, "hint": one.hint} for one in found.errors],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finding(one: Hurt) -> dict[str, Any]:
    return {
        "check": one.check,
        "severity": str(one.severity),
        "option": one.option,
        "value": _plain(one.value),
        "is_default": one.is_default,
        "place": one.place,
        "title": one.title,
        "message": one.message,
        "try": list(one.try_),
        "source": list(one.source),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if isinstance(value, bool | int | float | str | None) else str(value)
