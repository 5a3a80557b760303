"""Findings that the user ignores, by rule or family: they are set aside with the reason, and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rlhealth.rules.model import Rule
from rlhealth.verdict.findings import Finding, Ignored

#: The findings, explained by diagnoses; the causes; the ids of the diagnoses that found nothing.
Explain = Callable[[list[Finding], Sequence[Rule]], tuple[list[Finding], list[Finding], set[str]]]


class Unwanted:
    """The rules and families whose findings are set aside, each with the reason."""

    def __init__(self, reasons: Mapping[str, str] | None = None) -> None:
        self._reasons = reasons or {}

    def has(self, one: Finding | Rule) -> bool:
        """Whether it is of an ignored rule or family."""
        return (one.rule if isinstance(one, Finding) else one.id) in self._reasons or one.family in self._reasons

    def split(self, found: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
        """The findings that stay, and those that are set aside."""
        found = list(found)
        return [one for one in found if not self.has(one)], [one for one in found if self.has(one)]

    def explained(
        self, found: list[Finding], diagnoses: Sequence[Rule], explain: Explain
    ) -> tuple[list[Finding], list[Finding], list[Finding], set[str]]:
        """The findings, explained by diagnoses that stay; their causes; the causes that are set aside, which explain
        nothing; the ids of the diagnoses that found nothing.
        """
        kept = [one for one in diagnoses if not self.has(one)]
        shown, causes, quiet = explain(found, kept)
        if len(kept) == len(diagnoses):
            return shown, causes, [], quiet
        _, every, without = explain(found, diagnoses)
        return shown, causes, self.split(every)[1], (quiet | without) - {one.rule for one in causes}

    def ignored(self, aside: Sequence[Finding]) -> list[Ignored]:
        """The findings that are set aside, with the reason: that of the rule, or of its family."""
        return [Ignored(one, self._reasons.get(one.rule) or self._reasons.get(one.family, "")) for one in aside]
