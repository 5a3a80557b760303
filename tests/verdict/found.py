"""A finding, as a rule reports it."""

from __future__ import annotations

from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Episode, Finding, Severity, State


def finding(
    severity: str, rule: str = "some-rule", family: str = "kl-high", first: int = 1, explained_by: str | None = None
) -> Finding:
    return Finding(
        rule,
        family,
        Severity.of(severity),
        "title",
        (Evidence(metric="kl", tag="train/kl", step=5, value=2.0, limit=1.0),),
        first,
        first,
        9,
        State.STANDING,
        "message",
        "why",
        ("try",),
        "source",
        explained_by=explained_by,
        episodes=(Episode(first, first, 9),),
    )
