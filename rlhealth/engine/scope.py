"""Scope: whether a rule is meant for a run, by its trainer, its settings and what it logged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlhealth.engine.cannot_run import CannotRun
from rlhealth.engine.metric_choice import is_logged
from rlhealth.metrics import Translation
from rlhealth.metrics.groups import is_named
from rlhealth.rules.conditions import Condition
from rlhealth.rules.model import Rule
from rlhealth.rules.scope import Bounds


def check_scope(rule: Rule, translation: Translation) -> None:
    """Raises CannotRun if a rule does not apply to this run: no reinforcement learning, another framework,
    or a setting that switches it off."""
    scope = rule.scope
    if not (translation.is_rl or scope.any_training):
        raise CannotRun(f"it is about reinforcement learning, and this is {translation.title}")
    if not is_named(translation.framework, scope.frameworks):
        raise CannotRun(f"it is about {_meant(scope.frameworks)}, and this is {translation.title}")
    if scope.texts and (scope.texts == "shown") != bool(translation.writes_texts):
        said = "it is about texts, and nothing shows any" if scope.texts == "shown" else "this run makes texts"
        raise CannotRun(said)
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


def _meant(frameworks: Sequence[str]) -> str:
    """For which trainers a rule is meant, in words."""
    words = {"language-models": "language models", "control": "control tasks", "generic": "trainers that are not known"}
    return " and ".join(words.get(one, one) for one in frameworks)


def passes(setting: Any, test: Any) -> bool:
    """Whether a setting passes a rule's test: a value, or bounds."""
    if not isinstance(test, Bounds):
        return bool(setting == test)
    number = isinstance(setting, int | float)
    if test.above is not None and not (number and setting > test.above):
        return False
    return test.below is None or (number and setting < test.below)


def applicable(conditions: tuple[Condition, ...], translation: Translation) -> tuple[Condition, ...]:
    """The conditions that apply to this run: those that are optional and whose metric is not logged are left out."""
    return tuple(
        one
        for one in conditions
        if not (one.if_logged and _lacks(one, translation)) and not is_logged(one.unless_logged, translation)
    )


def _lacks(condition: Condition, translation: Translation) -> bool:
    """Whether a run does not log the metric of a condition, or the metric that it is divided by."""
    divisor = condition.divided_by.metric if condition.divided_by is not None else None
    return not all(is_logged(one, translation) for one in (condition.metric, divisor) if one not in (None, "same"))
