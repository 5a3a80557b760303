"""Findings: how severe they are while they hold, and once they are over."""

from __future__ import annotations

from rlhealth.verdict.findings import Severity, State
from tests.verdict.found import finding


def test_a_finding_that_comes_back_is_as_severe_as_it_was() -> None:
    back = finding("critical").in_state(State.OVER).in_state(State.STANDING)
    assert (back.severity, back.state) == (Severity.CRITICAL, State.STANDING)
