"""A finding, as a rule reports it."""

from __future__ import annotations

from rlhealth.verdict.findings import Episode, Finding, Severity, State


def finding(
    severity: str, rule: str = "some-rule", family: str = "kl-high", first: int = 1, explained_by: str | None = None
) -> Finding:
    return Finding(
        rule,
        family,
        Severity.of(severity),
        "title",
        "kl",
        "train/kl",
        first,
        first,
        9,
        State.STANDING,
        5,
        2.0,
        1.0,
        "message",
        "why",
        ("try",),
        "source",
        explained_by=explained_by,
        episodes=(Episode(first, first, 9),),
    )
