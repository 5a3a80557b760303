"""Advice as settings: which of a run's own settings a rule would change, and to what."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlhealth.metrics import Metric, Translation
from rlhealth.rules.model import Rule, SettingChange
from rlhealth.verdict.findings import Change

NEXT_TO_NOTHING = 0.1  # of the usual value: a setting below this is raised to the usual value
CLEARLY_BELOW = 0.4  # of the present value: a usual value above this would change almost nothing


def changes_of(rule: Rule, translation: Translation) -> tuple[Change, ...]:
    """The settings that a rule would change, in the names and from the values of this run; of several changes of one
    setting the first that applies.

    A setting is left out if the run's trainer is not known to have it, if it is switched off, or if the rule asks for
    a multiple of a present value that is not known.
    """
    found = [one for one in (_change(one, translation) for one in rule.changes) if one is not None]
    return tuple({one.setting: one for one in reversed(found)}.values())[::-1]


def _change(one: SettingChange, translation: Translation) -> Change | None:
    option = translation.options.get(one.setting)
    if option is None or one.setting in translation.inert:
        return None
    if one.instead_of and one.instead_of not in translation.lacks:
        return None
    before, why = translation.config.get(one.setting), one.why
    if before is None and one.to is None and one.metric is not None and one.metric in translation.metrics:
        before = _highest(translation.metrics[one.metric])
        why += f"; the largest {one.metric} that was logged stands for the setting" if before is not None else ""
    to = one.to if one.to is not None else _number(one, before, translation.usual.get(one.setting))
    if to is None or to == before:
        return None
    versions = translation.option_versions.get(one.setting)
    return Change(option, one.setting, before, to, f"{why} ({versions})" if versions else why)


def _highest(metric: Metric) -> float | None:
    """The largest logged value, to two digits: a scheduled value stays a little below its setting."""
    finite = metric.values[np.isfinite(metric.values)]
    return float(f"{finite.max():.2g}") if len(finite) else None


def _number(one: SettingChange, before: Any, usual: float | None) -> float | int | None:
    """The new value of a numeric setting; None if it needs no change, or if the new value is not known."""
    if before is None:
        return one.unknown
    if isinstance(before, bool) or not isinstance(before, int | float):
        return None
    if one.only_above is not None and before <= one.only_above:
        return None
    if one.up_to_usual:
        return usual if usual is not None and 0 <= before < NEXT_TO_NOTHING * usual else None
    if one.times is None:
        return None
    to = float(before) * float(one.times) if before else one.from_zero
    if to is None:
        return None
    if one.stops_at_usual and usual is not None and to < usual < CLEARLY_BELOW * before:
        to = usual
    to = min(to, float(one.at_most)) if one.at_most is not None else to
    to = max(to, float(one.at_least)) if one.at_least is not None else to
    if (to - before) * (one.times - 1) <= 0:  # it lies beyond the bound already
        return None
    whole = isinstance(before, int) and float(to) >= 1
    return round(to) if whole else float(f"{to:.3g}")
