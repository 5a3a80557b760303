"""Scope: whether a rule is meant for a run, by its trainer, its settings and what it logged."""

from __future__ import annotations

import fnmatch
from typing import Any

from rlhealth.engine.operands import Unable
from rlhealth.metrics import Translation
from rlhealth.rules.model import Condition, Rule, Test


def may_look(rule: Rule, translation: Translation) -> None:
    """Raises Unable where a rule is not meant for this run: another framework, or a setting that switches it off."""
    if rule.applies_to and not any(fnmatch.fnmatchcase(translation.framework, one) for one in rule.applies_to):
        raise Unable(f"it is about {', '.join(rule.applies_to)}, and this is {translation.framework}")
    for name, test in rule.unless.items():
        setting = translation.config.get(name)
        if setting is not None and passes(setting, test):
            raise Unable(f"{name} is {setting}")
    for name in rule.unless_logged:
        if len(translation.metrics.get(name, ())):
            raise Unable(f"{name} was logged")
    for name, test in rule.only_if.items():
        setting = translation.config.get(name)
        if setting is None or not passes(setting, test):
            raise Unable(f"{name} is {'not told' if setting is None else setting}")


def passes(setting: Any, test: Any) -> bool:
    """Whether a setting is what a rule's test asks for."""
    if not isinstance(test, Test):
        return bool(setting == test)
    if test.among is not None and setting not in test.among:
        return False
    number = isinstance(setting, int | float)
    if test.above is not None and not (number and setting > test.above):
        return False
    if test.below is not None and not (number and setting < test.below):
        return False
    return "is_" not in test.model_fields_set or setting == test.is_


def asked(conditions: tuple[Condition, ...], translation: Translation) -> tuple[Condition, ...]:
    """The conditions without those that are asked only of a metric that this run does not log."""
    logged = {name for name, one in translation.metrics.items() if len(one)}
    return tuple(
        one
        for one in conditions
        if (not one.if_logged or logged & set(one.metric.split("|"))) and not logged & set(one.unless_logged.split("|"))
    )
