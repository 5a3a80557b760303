"""Advice as settings: which of a run's own settings a rule would change, and to what."""

from __future__ import annotations

import numpy as np

from rlhealth.metrics import Translation
from rlhealth.rules.model import Rule, SettingChange
from rlhealth.verdict.findings import Change


def changes_of(rule: Rule, translation: Translation) -> tuple[Change, ...]:
    """The settings that a rule would change, in the names and from the values of this run.

    Nothing is said of a setting that the run's trainer is not known to have, or of which a multiple is asked and the
    present value is not known.
    """
    found = (_change(one, translation) for one in rule.changes)
    return tuple(one for one in found if one is not None)


def _change(one: SettingChange, translation: Translation) -> Change | None:
    option = translation.options.get(one.setting)
    if option is None:
        return None
    before = translation.config.get(one.setting)
    if before is None and one.metric is not None and one.metric in translation.metrics:
        values = translation.metrics[one.metric].values
        finite = values[np.isfinite(values)]
        before = float(finite.max()) if len(finite) else None
    if one.to is not None:
        return None if one.to == before else Change(option, one.setting, before, one.to, one.why)
    if isinstance(before, bool) or not isinstance(before, int | float) or one.times is None:
        return None
    to = float(before) * float(one.times) if before else one.from_zero
    if to is None:
        return None
    to = min(to, float(one.at_most)) if one.at_most is not None else to
    to = max(to, float(one.at_least)) if one.at_least is not None else to
    if (to - before) * (one.times - 1) <= 0:  # it lies beyond the bound already
        return None
    whole = isinstance(before, int) and float(to) >= 1
    return Change(option, one.setting, before, round(to) if whole else float(f"{to:.3g}"), one.why)
