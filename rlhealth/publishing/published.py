"""What is written back of one run: its verdict as facts, a line, Markdown and a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlhealth.reports import write
from rlhealth.rules.filling import within_a_sentence
from rlhealth.verdict.findings import Severity
from rlhealth.verdict.verdicts import RunVerdict, Verdict

PAGE = "rlhealth.html"


@dataclass(frozen=True)
class Published:
    """What is written of one run.

    Attributes:
        verdict: in a word.
        first_step: the first step of what makes it so; None if nothing was found.
        headline: one line for people.
        markdown: the report as Markdown.
        page: the report as a file, deleted after the write.
    """

    name: str
    verdict: str
    first_step: int | None
    cause: str
    headline: str
    markdown: str
    page: Path

    @property
    def facts(self) -> dict[str, str | int]:
        """The verdict as names with values; missing ones are left out."""
        facts: dict[str, str | int] = {"rlhealth/verdict": self.verdict}
        if self.first_step is not None:
            facts["rlhealth/first_step"] = self.first_step
        if self.cause:
            facts["rlhealth/cause"] = self.cause
        return facts


def published(run: RunVerdict, folder: Path) -> Published:
    """What is written back of a run; the page is made in `folder`."""
    alone = Verdict([run])
    page = folder / PAGE
    page.write_text(write(alone, "html"), encoding="utf-8")
    worst = max((one.severity for one in run.findings), default=Severity.INFO)
    decisive = [one for one in run.findings if one.severity is worst and worst > Severity.INFO]
    first = min((one.first_step for one in decisive), default=None)
    standing = min((one.since_step for one in decisive), default=None)
    causes = [one for one in run.findings if one.family == "diagnosis"]
    cause = causes[0] if causes else min(decisive, key=lambda one: one.first_step, default=None)
    since = "" if standing is None else f" since step {standing}"
    why = f": {within_a_sentence(cause.title)}" if cause is not None else ""
    return Published(
        name=run.name,
        verdict=run.verdict,
        first_step=first,
        cause=cause.rule if cause is not None else "",
        headline=f"{run.verdict}{since}{why}",
        markdown=write(alone, "markdown"),
        page=page,
    )
