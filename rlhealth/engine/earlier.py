"""Rows that a resume replaced, or a second writer overwrote, are judged too: their findings are reported beside those
of the current run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rlhealth.run import Replaced, Run
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict

Examine = Callable[[Run], RunVerdict]


class EarlierFindings:
    """The findings of a run as it was before each of its resumes, and as its other writers logged it.

    Args:
        examine: judges one run.
        endings: ids of the rules that judge how a run ended; they are left out, because a resumed run had not ended.
    """

    def __init__(self, examine: Examine, endings: Sequence[str]) -> None:
        self._examine = examine
        self._endings = frozenset(endings)
        self._seen: object = None
        self._found: list[Finding] = []

    def findings(self, run: Run) -> list[Finding]:
        """Findings that were raised in the replaced rows; the current run also raises those from before these rows."""
        state = run.replacements
        if state != self._seen:
            self._seen = state
            self._found = [found for one in run.before() for found in self._of(one)] if any(state) else []
        return self._found

    def _of(self, one: Replaced) -> list[Finding]:
        return [
            replace(found, message=f"{one.said}: {found.message}", replaced_at=one.step)
            for found in self._examine(one.run).findings
            if found.raised_step >= one.step and found.rule not in self._endings
        ]


def with_earlier(found: Sequence[Finding], earlier: Sequence[Finding]) -> list[Finding]:
    """Both lists; of two findings of one rule on one metric the more severe, of equals the one that holds now."""
    kept = {(one.rule, one.metric): one for one in found}
    order = [*found]
    for one in earlier:
        key = one.rule, one.metric
        known = kept.get(key)
        if known is None:
            order.append(one)
            kept[key] = one
        elif one.severity > known.severity:
            order[next(place for place, other in enumerate(order) if other is known)] = one
            kept[key] = one
    return order
