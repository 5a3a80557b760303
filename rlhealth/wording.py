"""Wording: a rule's texts filled with the numbers of one run, into a finding."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

from rlhealth.ending import Ending
from rlhealth.findings import Episode, Finding, Severity
from rlhealth.metrics import Metric, Translation
from rlhealth.rules import Rule


def describe(
    rule: Rule, severity: Severity, metric: Metric, first: Episode, episodes: tuple[Episode, ...], worst: tuple[int, float], limit: float | None, said: Mapping[str, Any]
) -> Finding:  # fmt: skip
    """A finding in words: the rule's texts, filled with what may be `said`; `worst` is a step and its value."""
    return Finding(
        rule.id, rule.family, severity, rule.title, metric.name, metric.tag, first.first_step, first.raised_step, episodes[-1].last_step,
        any(one.active for one in episodes), *worst, limit, fill(rule.message, said), rule.because.strip(),
        tuple(fill(one, said) for one in rule.try_), rule.cites, metric.unit, episodes=episodes,
    )  # fmt: skip


def words(translation: Translation, metric: Metric, first: Episode) -> dict[str, Any]:
    """What any message about a metric may name."""
    return settings(translation) | {
        "first_step": first.first_step, "raised_step": first.raised_step, "metric": metric.name, "tag": metric.tag, "unit": metric.unit,
    }  # fmt: skip


def settings(translation: Translation) -> dict[str, Any]:
    """The run's settings, and what its trainer calls them, as a message names them: {config.beta}, {option.kl_coef}."""
    return {f"config.{key}": value for key, value in translation.config.items()} | {f"option.{key}": name for key, name in translation.options.items()}


class _Fill(string.Formatter):
    """Fills {name} and {name:format} from a flat mapping; nothing in a message can reach an attribute or an index."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        return kwargs.get(field_name, _Unknown(field_name)), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        try:
            return str(super().format_field(value, format_spec))
        except (ValueError, TypeError):
            return str(value)


class _Unknown:
    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name.rpartition(".")[2]


def fill(text: str, said: Mapping[str, Any]) -> str:
    """A message with its fields filled; a setting that the run does not tell is named by its own name."""
    return _Fill().vformat(text, (), said).strip()


def ending_finding(rule: Rule, ending: Ending, translation: Translation) -> Finding | None:
    """The finding of a rule that reads how the run ended."""
    assert rule.when is not None
    if not ending.kinds & set(rule.when.ending):
        return None
    episode = Episode(ending.step, ending.step, ending.step, True)
    limit = float(ending.planned) if ending.planned else None
    said = {"said": ending.said, "step": ending.step, "planned": ending.planned or "?", "idle": ending.idle, **settings(translation)}
    return Finding(
        rule.id, rule.family, Severity.of(rule.severity), rule.title, "step", "", ending.step, ending.step, ending.step, True, ending.step, float(ending.step),
        limit, fill(rule.message, said), rule.because.strip(), tuple(fill(one, said) for one in rule.try_), rule.cites, "steps", episodes=(episode,),
    )  # fmt: skip
