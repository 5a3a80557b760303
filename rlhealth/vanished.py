"""Metrics that vanish: logged so far, then missing while others go on. Trainers hide NaN in this way."""

from __future__ import annotations

import fnmatch

import numpy as np

from rlhealth.findings import Episode, Finding, Severity
from rlhealth.metrics import Metric, Translation
from rlhealth.rules import Rule
from rlhealth.wording import describe, words

MISSED = 5  # a metric has vanished after this many of its own usual intervals without a point
HISTORY = 5  # and only if it had been logged this often, so that its interval is known


def vanished_findings(rule: Rule, translation: Translation, until: int) -> list[Finding]:
    """The metrics that a rule's pattern names and that stopped before step `until` while the training metrics went on.

    A metric's usual interval is the largest gap between its points, so that metrics logged on every k-th step only, or
    with the odd gap, are left alone.
    """
    assert rule.when is not None and rule.when.vanished is not None
    metrics = [one for name, one in translation.metrics.items() if not name.startswith("eval/")]
    clock = max((one for one in metrics if len(one)), key=lambda one: (len(one), int(one.steps[-1])), default=None)
    if clock is None:
        return []
    found = []
    for metric in metrics:
        if not any(fnmatch.fnmatchcase(metric.name, one) for one in rule.when.vanished.split("|")):
            continue
        gone = _gone_at(metric, clock, until)
        if gone is None:
            continue
        last, told = gone
        episode = Episode(last, told, int(clock.steps[-1]), True)
        said = words(translation, metric, episode) | {"value": float(metric.values[-1])}
        found.append(describe(rule, Severity.of(rule.severity), metric, episode, (episode,), (last, float("nan")), None, said))
    return found


def _gone_at(metric: Metric, clock: Metric, until: int) -> tuple[int, int] | None:
    steps = metric.steps[: int(np.searchsorted(metric.steps, until, side="right"))]
    ticks = clock.steps[: int(np.searchsorted(clock.steps, until, side="right"))]
    if len(steps) < HISTORY or not len(ticks):
        return None
    places = np.searchsorted(ticks, steps, side="left")
    usual = int(np.diff(places).max()) if len(places) > 1 else 1
    missed = ticks[int(np.searchsorted(ticks, steps[-1], side="right")) :]
    needed = MISSED * max(usual, 1)
    if len(missed) < needed:
        return None
    return int(missed[0]), int(missed[needed - 1])
