"""The signs that the terminal report draws with, in Unicode and in ASCII; each stands beside a word, never alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Glyphs:
    """One set of signs."""

    healthy: str
    warning: str
    critical: str
    unknown: str
    onset: str
    dot: str
    bullet: str
    ellipsis: str
    arrow: str
    times: str
    line: str
    branch: str
    last_branch: str

    def of(self, verdict: str) -> str:
        """The sign of a verdict."""
        return {"healthy": self.healthy, "warning": self.warning, "critical": self.critical, "info": self.bullet}.get(
            verdict, self.unknown
        )

    def sign(self, state: str) -> str:
        """The sign of a vital sign's state; absent is a dash, for it is neither good nor bad."""
        verdict = VITALS.get(state, "")
        return self.of(verdict) if verdict else self.line


VITALS = {"well": "healthy", "watch": "warning", "sick": "critical", "unknown": "unknown", "over": "info"}
UNICODE = Glyphs(
    healthy="✓",
    warning="▲",
    critical="✗",
    unknown="?",
    onset="▲",
    dot="·",
    bullet="·",
    ellipsis="…",
    arrow="→",
    times="×",
    line="─",
    branch="├",
    last_branch="└",
)
ASCII = Glyphs(
    healthy="ok",
    warning="!",
    critical="!!",
    unknown="??",
    onset="^",
    dot="-",
    bullet="-",
    ellipsis="...",
    arrow="->",
    times="x",
    line="-",
    branch="|",
    last_branch="`",
)

STYLES = {"healthy": "green", "warning": "yellow", "critical": "bold red", "unknown": "magenta", "info": "cyan"}
