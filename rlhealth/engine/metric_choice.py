"""Metric choice: which of a run's metrics the name in a rule means."""

from __future__ import annotations

from dataclasses import replace

from rlhealth.engine.cannot_run import CannotRun
from rlhealth.metrics import Metric, Translation
from rlhealth.metrics.catalogue import pattern_of_any
from rlhealth.metrics.metric import Clock


def pick(name: str, translation: Translation, anchor: Metric | None = None) -> Metric:
    """The metric of that canonical name, or the first logged of `one|another`; raises CannotRun if there is none.

    `*` stands for any part of a name, because users choose the names of reward functions.

    `step` is the step itself, at the points of `anchor` or else of the metric logged most often; `same` is the anchor.
    """
    if name == "same" and anchor is not None:
        return anchor
    for one in name.split("|"):
        metric = clock_of(anchor, translation) if one == "step" else _named(one, translation)
        if metric is not None and len(metric):
            return metric
    raise CannotRun(f"{name.replace('|', ' or ')} was not logged")


def named_metric(name: str, own: Metric | None, translation: Translation) -> Metric:
    """The metric of a name that `pick` found; for `step`, the steps of the rule's own metric."""
    if own is not None and name == own.name:
        return own
    clock = clock_of(own, translation) if name == "step" else None
    return translation.metrics[name] if clock is None else clock


def is_logged(names: str, translation: Translation) -> bool:
    """Whether a metric that `one|pattern/*` names has points."""
    found = (_named(one, translation) for one in names.split("|"))
    return any(one is not None and len(one) > 0 for one in found)


def _named(name: str, translation: Translation) -> Metric | None:
    """The metric of that name, or the first logged metric that matches it as a pattern."""
    if "*" not in name:
        return translation.metrics.get(name)
    pattern = pattern_of_any(name)
    return next((one for key, one in translation.metrics.items() if pattern.match(key) and len(one)), None)


def clock_of(anchor: Metric | None, translation: Translation) -> Metric | None:
    """The step itself as a metric."""
    longest = anchor or max(translation.metrics.values(), key=len, default=None)
    if longest is None:
        return None
    return replace(longest, name="step", tag="", unit="steps", transform="", source=Clock(longest.tag, longest.source))


def pick_all(names: str, translation: Translation) -> list[Metric]:
    """Every logged metric that `one|pattern/*` names; raises CannotRun if there is none."""
    pattern = pattern_of_any(names)
    found = [one for key, one in translation.metrics.items() if pattern.match(key) and len(one)]
    if not found:
        raise CannotRun(f"{names.replace('|', ' or ')} was not logged")
    return found
