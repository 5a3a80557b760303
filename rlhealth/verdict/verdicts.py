"""Verdicts: the result for one run and for all runs of a check, and the one place that decides the exit code."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlhealth.errors import RlhealthError
from rlhealth.verdict.findings import Finding, Ignored, Severity, Skipped
from rlhealth.verdict.gate import Gate

if TYPE_CHECKING:
    import pandas as pd

    from rlhealth.metrics import Translation
    from rlhealth.run import Run, UnreadFile


@dataclass(repr=False)
class RunVerdict:
    """The result for one run.

    Attributes:
        state: finished, running, stopped (it ended before its planned steps, or died) or unknown.
        quiet: ids of the rules that ran and found nothing.
        translation: the canonical metrics, for charts; reports never judge with them.
        families: the family of each rule on metrics that judged the run, including rules that found nothing.
        beside_metrics: ids of the quiet rules that judge no values, but how a run ends, metrics that vanish, or
            findings.
        compared: metrics that were compared with known-good runs, including those inside the envelope; None for a
            check.
        too_short: why the run is too short for a verdict (`--min-steps`); empty if it is not.
        why_not_healthy: why a run without findings is not healthy: no reward or no witness of learning was recognised
            with enough points, the reward did not rise, no rule judged a metric, or it is no reinforcement learning.
        reward_is_best: whether reward has risen, and its newest level is the highest so far, within the noise.
    """

    run: Run
    translation: Translation
    state: str
    findings: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    quiet: list[str] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)
    families: dict[str, str] = field(default_factory=dict)
    beside_metrics: frozenset[str] = frozenset()
    compared: frozenset[str] | None = None
    seconds: float = 0.0
    too_short: str = ""
    why_not_healthy: str = ""
    reward_is_best: bool = False

    def __repr__(self) -> str:
        return str(_interactive().text_of(self))

    def _repr_html_(self) -> str:
        return str(_interactive().framed(Verdict([self])))

    def frame(self) -> pd.DataFrame:
        """The findings as a table, one row each; a single row with the verdict if there are none."""
        made: pd.DataFrame = _interactive().frame([self])
        return made

    def vitals(self) -> pd.DataFrame:
        """The eight vital signs as a table: vital, state, metric, unit, start, end, trend, said."""
        made: pd.DataFrame = _interactive().vitals_frame([self])
        return made

    @property
    def name(self) -> str:
        """The name of the run in reports."""
        return self.run.name

    @property
    def ok(self) -> bool:
        """Whether the run is healthy: judged, and no finding at or above warning."""
        return self.verdict == "healthy"

    @property
    def judged(self) -> bool:
        """Whether at least one rule could run."""
        return bool(self.quiet or self.findings or self.ignored)

    @property
    def looked(self) -> set[str]:
        """Rules that could run, and families with at least one such rule."""
        found = [*self.findings, *(one.finding for one in self.ignored)]
        rules = {*self.quiet, *(one.rule for one in found)}
        return rules | {self.families[one] for one in rules if one in self.families} | {one.family for one in found}

    @property
    def sick(self) -> bool:
        """Whether there is a finding at or above warning."""
        return any(one.severity > Severity.INFO for one in self.findings)

    @property
    def no_answer(self) -> str:
        """Why the run's health is unknown; empty if it is known."""
        if self.too_short:
            return self.too_short
        if not self.sick and self.why_not_healthy:
            return self.why_not_healthy
        return "" if self.judged else "no rule could run"

    @property
    def verdict(self) -> str:
        """healthy, warning, critical; or unknown, if there is no finding and no evidence of health."""
        if self.sick:
            return str(max(one.severity for one in self.findings))
        return "unknown" if self.no_answer else "healthy"

    @property
    def causes(self) -> list[Finding]:
        """Findings that no other finding explains: the worst first, by the worst of what they explain, of equals those
        that explain others, then the earliest. A finding whose cause is ignored or accepted is listed by itself."""

        def order(one: Finding) -> tuple[int, bool, int]:
            follows = self.consequences(one)
            return -max(each.severity for each in (one, *follows)), not follows, one.first_step

        shown = {one.rule for one in self.findings}
        return sorted((one for one in self.findings if one.explained_by not in shown), key=order)

    def consequences(self, cause: Finding) -> list[Finding]:
        """The findings that `cause` explains, in the order in which they began."""
        return sorted(
            (one for one in self.findings if one.explained_by == cause.rule), key=lambda one: (one.first_step, one.rule)
        )


@dataclass(repr=False)
class Verdict:
    """The answer to one `check`: every run, what could not be read, and the exit code.

    Attributes:
        asked: the places that the user named, as given; places below a named folder are not among them.
    """

    runs: list[RunVerdict]
    errors: list[RlhealthError] = field(default_factory=list)
    gate: Gate = field(default_factory=Gate)
    seconds: float = 0.0
    left_out: list[UnreadFile] = field(default_factory=list)
    asked: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return str(_interactive().text_of_all(self))

    def _repr_html_(self) -> str:
        return str(_interactive().framed(self))

    @property
    def ok(self) -> bool:
        """Whether the check passes: exit code 0."""
        return self.exit_code == 0

    def run(self, name: str) -> RunVerdict:
        """The run of that name. Raises RlhealthError, with the nearest names, if there is none."""
        found = next((one for one in self.runs if one.name == name), None)
        if found is None:
            import difflib

            names = [one.name for one in self.runs]
            near = difflib.get_close_matches(name, names, 3, 0.5) or names[:3]
            hint = f"there is {', '.join(near)}" if near else "no run could be read"
            raise RlhealthError(f"there is no run {name!r} among {len(names)}", hint=hint)
        return found

    def frame(self) -> pd.DataFrame:
        """The findings of all runs as a table, worst runs first: one row each, and one for a run without findings.

        Columns: run, framework, verdict, severity, rule, family, metric, tag, first_step, raised_step, last_step,
        worst_step, worst_value, limit (in the unit of the measure), state, explained_by, message.
        """
        made: pd.DataFrame = _interactive().frame(self.runs)
        return made

    def vitals(self) -> pd.DataFrame:
        """The eight vital signs of each run as a table, worst runs first, eight rows per run.

        Columns: run, vital, state, metric, unit, start, end (in that unit), trend, said.
        """
        made: pd.DataFrame = _interactive().vitals_frame(self.runs)
        return made

    def save(self, path: str | Path) -> Path:
        """Writes the report in the format of the suffix: .html, .json, .md, .csv, .sarif, .xml (JUnit) or .txt.

        Raises:
            RlhealthError: for another suffix, a file that cannot be written, and a path that is one of the logs judged.
        """
        saved: Path = _interactive().save(self, path)
        return saved

    @property
    def verdict(self) -> str:
        """The worst verdict of any run; unknown outranks healthy and warning, critical outranks it."""
        words = {one.verdict for one in self.runs if not self.is_aside(one)}
        words |= {"unknown"} if self.errors or not self.runs else set()
        return next(word for word in ("critical", "unknown", "warning", "healthy") if word in words)

    @property
    def unmet(self) -> list[tuple[RunVerdict, str]]:
        """Rules that `--require` names and that could not run, by run."""
        judged = [run for run in self.runs if not self.is_aside(run)]
        return [(run, name) for run in judged for name in self.gate.require if name not in run.looked]

    def is_aside(self, run: RunVerdict) -> bool:
        """Whether a run is supervised training in the same file as a judged reinforcement-learning run, such as a
        notebook.

        Its health is not what a user of that file wants to know: it stays unknown, is shown, and does not affect the
        gate.
        """
        if run.translation.is_rl or not run.no_answer:
            return False
        file = run.run.place.file
        return bool(file) and any(
            one.translation.is_rl and not one.no_answer and one.run.place.file == file for one in self.runs
        )

    @property
    def unanswered(self) -> bool:
        """Whether something that the user named has no verdict: a place, or a rule of `--require`."""
        blank = [run for run in self.runs if run.no_answer and not self.is_aside(run)]
        places = {one.location for one in self.errors} | {run.run.place.location for run in blank}
        return bool(self.unmet) or any(_same_place(one, named) for one in places for named in self.asked)

    @property
    def exit_code(self) -> int:
        """0 no finding at or above the gate; 1 at least one; 2 no verdict.

        A run at or above the gate gives 1 even if something beside it could not be judged, because the gate has failed
        in any case. 2 takes precedence only if the part without a verdict was named by the user or by `--require`. A
        run with lost records gets a verdict on its intact records: it can fail, but never pass.
        """
        if self.gate.exit_zero:
            return 0 if self.runs else 2
        if self.unanswered:
            return 2
        judged = [run for run in self.runs if not run.no_answer]
        if any(self.gate.hits(run.findings) for run in judged):
            return 1
        unread = self.errors or not self.runs or (self.gate.strict and self.left_out)
        blank = any(run.no_answer and not self.is_aside(run) for run in self.runs)
        return 2 if unread or blank or any(run.run.problems for run in self.runs) else 0


def _interactive() -> Any:
    """The display of a verdict in Python; reports are a layer above, so they are imported only when needed."""
    return import_module("rlhealth.reports.interactive")


def _same_place(one: str, named: str) -> bool:
    if "://" in one or "://" in named:
        return one.rstrip("/") == named.rstrip("/")
    return bool(one) and os.path.realpath(one) == os.path.realpath(named)  # Path.resolve raises at a loop of links


def counts(verdict: Verdict) -> dict[str, int]:
    """How many runs have each result: healthy, warning, critical, unknown, unreadable."""
    found = dict.fromkeys(("healthy", "warning", "critical", "unknown"), 0)
    for run in verdict.runs:
        found[run.verdict] += 1
    return found | {"unreadable": len(verdict.errors)}
