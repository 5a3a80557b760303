"""A finding in words: a rule's texts, filled with the numbers of one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlhealth.engine.ending import Ending
from rlhealth.metrics import Metric, Translation
from rlhealth.metrics.groups import is_named
from rlhealth.rules.filling import advise, back_to, fill, settings
from rlhealth.rules.model import Rule
from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Episode, Finding, Severity, State


def describe(
    rule: Rule,
    severity: Severity,
    first: Episode,
    episodes: tuple[Episode, ...],
    conditions: tuple[Evidence, ...],
    said: Mapping[str, Any],
) -> Finding:
    """A finding in words: the rule's texts, filled with the values in `said`."""
    return Finding(
        rule=rule.id,
        family=rule.family,
        severity=severity,
        title=rule.title,
        conditions=conditions,
        first_step=first.first_step,
        raised_step=first.raised_step,
        last_step=episodes[-1].last_step,
        state=State.STANDING if episodes[-1].active else State.OVER,
        message=fill(rule.message, said),
        why=fill(rule.because, said),
        advice=advise(rule.try_, said),
        source=rule.cites,
        episodes=episodes,
        from_outside=rule.from_outside,
        also=rule.also,
    )


def words(rule: Rule, translation: Translation, metric: Metric, first: Episode) -> dict[str, Any]:
    """The values that the message and the advice of a rule about a metric can use."""
    onset = int(np.searchsorted(metric.steps, first.first_step))
    return settings(translation) | {
        "first_step": first.first_step,
        "raised_step": first.raised_step,
        "metric": metric.name,
        "tag": metric.tag,
        "unit": metric.unit.replace("/", " per "),
        "items": _items(metric, translation),
        "back": back_to(onset, first.first_step),
        **({"start": _start(metric, onset)} if any("{start" in text for text in (rule.message, *rule.try_)) else {}),
    }


def _items(metric: Metric, translation: Translation) -> str:
    """The unit that a share of an update counts."""
    if metric.unit.startswith("fraction of "):
        return metric.unit.removeprefix("fraction of ")
    return "tokens" if is_named(translation.framework, ["language-models"]) else "samples"


def _start(metric: Metric, onset: int) -> float:
    """The start of a metric before the finding, as its vital sign shows it; NaN if it has no finite value."""
    from rlhealth.verdict.courses import before, start_of  # late: few messages use it

    values = before(metric.values, onset)
    return start_of(values) if len(values) else float("nan")


def ending_finding(rule: Rule, ending: Ending, translation: Translation) -> Finding | None:
    """The finding of a rule that reads how the run ended."""
    assert rule.when is not None
    if not ending.kinds & set(rule.when.ending):
        return None
    episode = Episode(ending.step, ending.step, ending.step)
    limit = float(ending.planned) if ending.planned else None
    reached = Evidence(
        metric="step", tag="", step=ending.step, value=float(ending.step), limit=limit, side="below", unit="steps"
    )
    said = {
        "said": ending.said,
        "step": ending.step,
        "planned": ending.planned or "?",
        "idle": ending.idle,
        **settings(translation),
    }
    return Finding(
        rule=rule.id,
        family=rule.family,
        severity=Severity.of(rule.severity),
        title=rule.title,
        conditions=(reached,),
        first_step=ending.step,
        raised_step=ending.step,
        last_step=ending.step,
        state=State.STANDING,
        message=fill(rule.message, said),
        why=fill(rule.because, said),
        advice=advise(rule.try_, said),
        source=rule.cites,
        episodes=(episode,),
    )
