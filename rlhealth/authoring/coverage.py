"""docs/coverage.md: which rules answer which symptom, what they need, and which trainers log it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from rlhealth.metrics.catalogue import frameworks, names
from rlhealth.metrics.groups import is_named
from rlhealth.rules.conditions import ALWAYS
from rlhealth.rules.model import FAMILIES, Rule


def coverage_page(rules: Sequence[Rule], about: dict[str, str], written: str) -> str:
    """Every rule that reads metrics, by family: the metrics that it needs, and the trainers that log all of them."""
    lines = [
        "# What each trainer can show",
        "",
        written,
        "A rule runs where all of its metrics are logged; `a or b` is the first of them that is. Trainers are named "
        "by the ids that `rlhealth check` reports. Unknown trainers are read by the names that many of them share "
        "(generic).",
        "",
    ]
    for family in FAMILIES:
        mine = [rule for rule in rules if rule.family == family and needed(rule)]
        if mine:
            lines += [f"## {family}", "", about.get(family, ""), "", "| rule | needs | logged by |", "|---|---|---|"]
            lines += [_row(rule) for rule in mine] + [""]
    return "\n".join(lines)


def needed(rule: Rule) -> list[tuple[str, ...]]:
    """The metrics that a rule cannot do without, each as its alternatives; empty for one that reads no metric."""
    conditions = rule.when.all or rule.when.any[:1] if rule.when is not None else ()
    found = (tuple(one.metric.split("|")) for one in conditions if not one.if_logged)
    return list(dict.fromkeys(one for one in found if not set(one) & set(ALWAYS)))


def trainers_of(rule: Rule) -> list[str]:
    """The trainers that log all that a rule needs, and that it is meant for."""
    return [
        framework
        for framework, logged in _logged().items()
        if all(any(_is_among(name, logged) for name in one) for one in needed(rule))
        and is_named(framework, rule.scope.frameworks)
    ]


@cache
def _logged() -> dict[str, frozenset[str]]:
    """Each trainer's id, and the canonical metrics that its file of names knows."""
    found: dict[str, frozenset[str]] = {}
    for one in frameworks():
        known = names(one["names"])
        groups = [*known.exact.values(), *known.histograms.values(), *(group for _, group in known.patterns)]
        logged = {alias.name for group in groups for alias in group} | {alias.name for _, alias in known.sums}
        found[str(one["id"])] = found.get(str(one["id"]), frozenset()) | logged
    return found


def _is_among(name: str, logged: Iterable[str]) -> bool:
    pattern = name.replace("*", "x")
    return any(pattern == one.replace("{f}", "x") for one in logged)


def _row(rule: Rule) -> str:
    needs = "; ".join(" or ".join(f"`{name}`" for name in one) for one in needed(rule)).replace("|", "\\|")
    return (
        f"| [{rule.id}](../rules/{rule.family}/{rule.id}.yaml) | {needs} | {', '.join(trainers_of(rule)) or 'none'} |"
    )
