"""The gate: which findings make a check fail, and what a run needs to be judged at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlhealth.verdict.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Gate:
    """What makes a check fail.

    Attributes:
        fail_on: the lowest severity that fails; None never fails.
        exit_zero: report only: exit with code 0 in any case, unless no run could be read.
        require: rule ids or families that must be able to run.
        min_steps: a run with fewer steps has no verdict.
        strict: a file that looks like a log and was not read means no verdict.
        fail_on_past: a finding that is over counts as severe as it was while it held, and not at most as a warning.
    """

    fail_on: Severity | None = Severity.CRITICAL
    exit_zero: bool = False
    require: tuple[str, ...] = ()
    min_steps: int = 0
    strict: bool = False
    fail_on_past: bool = False

    def __str__(self) -> str:
        return "never" if self.fail_on is None else str(self.fail_on)

    def too_short(self, last_step: int | None) -> str:
        """Why a run up to `last_step` is too short for a verdict; empty if it is not."""
        return (
            f"it has {last_step or 0} of the {self.min_steps} steps that --min-steps asks for"
            if (last_step or 0) < self.min_steps
            else ""
        )

    def hits(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings at or above the gate. A finding that is over is at most a warning, unless the past counts
        too."""
        if self.fail_on is None:
            return []
        past = self.fail_on_past
        return [one for one in findings if (one.worst_severity if past else one.severity) >= self.fail_on]
