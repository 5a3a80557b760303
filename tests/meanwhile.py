"""What rules say while a run goes on."""

from __future__ import annotations

from collections.abc import Iterable

from rlhealth.rules.model import Rule


def asked_meanwhile(rules: Iterable[Rule]) -> list[Rule]:
    """The rules without what they ask only of the end of a run."""
    return [
        rule.model_copy(update={"aspects": tuple(one for one in rule.aspects if not one.when.at_end)}) for rule in rules
    ]
