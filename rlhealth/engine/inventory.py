"""The inventory of a run: the logged metrics, the unrecognised ones, the rules that cannot run, and what to log so
that they can.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rlhealth.engine.cannot_run import CannotRun
from rlhealth.engine.metric_choice import pick_all
from rlhealth.metrics import Metric, Translation
from rlhealth.metrics.catalogue import TEXT
from rlhealth.metrics.groups import is_named
from rlhealth.metrics.spellings import Spelling, spellings
from rlhealth.rules.conditions import ALWAYS, Condition
from rlhealth.rules.model import Rule
from rlhealth.verdict.findings import Skipped
from rlhealth.verdict.verdicts import RunVerdict


@dataclass(frozen=True)
class Wanted:
    """Metrics that were not logged and that rules need.

    Attributes:
        metrics: canonical names; any one of them is enough.
        spellings: their names in the run's trainer; empty if it has no such metric.
        rules: ids of the rules that wait for it.
        alike: unrecognised tags whose last part matches one of the metrics: perhaps that metric under the user's name.
    """

    metrics: tuple[str, ...]
    spellings: tuple[Spelling, ...]
    rules: tuple[str, ...]
    alike: tuple[str, ...] = ()

    @property
    def is_measured(self) -> bool:
        """Whether rlhealth measures it from the texts of completions, and no trainer logs it."""
        return all(name.startswith(TEXT) for name in self.metrics)


@dataclass(frozen=True)
class Inventory:
    """What one run holds.

    Attributes:
        judged: the run, its metrics and the rules that could not run.
        metrics: those that have points, sorted by name.
        unrecognised: tags that match no alias.
        dropped: tags that are known but not used, each with the reason.
        wanted: missing metrics; those that the trainer could log come first.
        others: rules that could not run for another reason: a setting, the framework, too few points.
        rules: how many rules there are.
    """

    judged: RunVerdict
    metrics: tuple[Metric, ...]
    unrecognised: tuple[str, ...]
    dropped: dict[str, str]
    wanted: tuple[Wanted, ...]
    others: tuple[Skipped, ...]
    rules: int


def inventory(judged: RunVerdict, rules: Sequence[Rule]) -> Inventory:
    """Makes the inventory of a run that was judged by those rules."""
    known = {rule.id: rule for rule in rules}
    translation = judged.translation
    waiting: dict[tuple[str, ...], list[str]] = {}
    others: list[Skipped] = []
    has_no_texts = is_named(translation.framework, ("control",))
    for skipped in judged.skipped:
        missing = _missing(known[skipped.rule], translation) if skipped.rule in known else None
        if missing is None or not skipped.reason.endswith("not logged"):
            others.append(skipped)
        elif has_no_texts and missing[0].startswith(TEXT):
            others.append(replace(skipped, reason=f"it is about texts, and {translation.title} trains on none"))
        else:
            waiting.setdefault(missing, []).append(skipped.rule)
    wanted = [_wanted(judged, metrics, ids) for metrics, ids in _joined(waiting).items()]
    logged = tuple(one for _, one in sorted(translation.metrics.items()) if len(one))
    return Inventory(
        judged=judged,
        metrics=logged,
        unrecognised=translation.unrecognised,
        dropped=dict(translation.dropped),
        wanted=tuple(sorted(wanted, key=lambda one: (not one.spellings, -len(one.rules), one.metrics))),
        others=tuple(others),
        rules=len(known),
    )


def _joined(waiting: dict[tuple[str, ...], list[str]]) -> dict[tuple[str, ...], list[str]]:
    """Rules by the metrics they wait for; a group that accepts more alternatives joins one that accepts fewer."""
    joined: dict[tuple[str, ...], list[str]] = {}
    for metrics, rules in sorted(waiting.items(), key=lambda one: len(one[0])):
        fewer = next((one for one in joined if set(one) <= set(metrics)), metrics)
        joined.setdefault(fewer, []).extend(rules)
    return joined


def _missing(rule: Rule, translation: Translation) -> tuple[str, ...] | None:
    """The first of the rule's metrics that was not logged, with its alternatives; None if all were."""
    if rule.when is None:
        return None
    every = (*rule.when.conditions, *(rule.critical.and_ if rule.critical else ()))
    conditions = [one for one in every if not one.if_logged]
    for name in _names(conditions):
        if name in ALWAYS:
            continue
        try:
            pick_all(name, translation)
        except CannotRun:
            return tuple(name.split("|"))
    return None


def _names(conditions: Iterable[Condition]) -> list[str]:
    found = []
    for one in conditions:
        found.append(one.metric)
        if one.divided_by is not None and one.divided_by.metric is not None:
            found.append(one.divided_by.metric)
    return found


def _wanted(judged: RunVerdict, metrics: tuple[str, ...], rules: list[str]) -> Wanted:
    own = tuple(dict.fromkeys(spelling for name in metrics for spelling in spellings(judged.run, name)))
    ends = {name.rpartition("/")[2] for name in metrics} - {"mean", "max", "min", "std", "*"}
    alike = tuple(tag for tag in judged.translation.unrecognised if tag.replace(".", "/").rpartition("/")[2] in ends)
    return Wanted(metrics, own, tuple(rules), alike)
