"""Scope: whether a rule is meant for a run, by its trainer, its settings and what it logged."""

from __future__ import annotations

from typing import Any

from rlhealth.engine.operands import CannotRun, is_logged
from rlhealth.metrics import Translation
from rlhealth.metrics.groups import is_named
from rlhealth.rules.model import Bounds, Condition, Rule


def check_scope(rule: Rule, translation: Translation) -> None:
    """Raises CannotRun if a rule is not meant for this run: another framework, or a setting that switches it off."""
    scope = rule.scope
    if not is_named(translation.framework, scope.frameworks):
        raise CannotRun(f"it is about {', '.join(scope.frameworks)}, and this is {translation.framework}")
    for name, test in scope.unless.items():
        setting = translation.config.get(name)
        if setting is not None and passes(setting, test):
            raise CannotRun(f"{name} is {setting}")
    for name in scope.unless_logged:
        if len(translation.metrics.get(name, ())):
            raise CannotRun(f"{name} was logged")
    for name, test in scope.only_if.items():
        setting = translation.config.get(name)
        if setting is None or not passes(setting, test):
            raise CannotRun(f"{name} is {'unknown' if setting is None else setting}")


def passes(setting: Any, test: Any) -> bool:
    """Whether a setting is what a rule's test asks for: a value, or bounds."""
    if not isinstance(test, Bounds):
        return bool(setting == test)
    number = isinstance(setting, int | float)
    if test.above is not None and not (number and setting > test.above):
        return False
    return test.below is None or (number and setting < test.below)


def applicable(conditions: tuple[Condition, ...], translation: Translation) -> tuple[Condition, ...]:
    """The conditions without those that are asked only of a metric that this run does not log."""
    if not any(one.if_logged or one.unless_logged for one in conditions):
        return conditions
    return tuple(
        one
        for one in conditions
        if (not one.if_logged or is_logged(one.metric, translation)) and not is_logged(one.unless_logged, translation)
    )
