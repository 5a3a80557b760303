"""Findings and verdicts: severity, the gate, and the one place that decides the exit code."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from rlhealth.metrics import Translation
    from rlhealth.run import Run, UnreadFile


class Severity(IntEnum):
    """How much a careful researcher would care: look at it (warning), or stop the run (critical)."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Severity:
        """The severity of that name. Raises KeyError for another word."""
        return cls[word.upper()]


class State(StrEnum):
    """What became of a finding: it holds now (standing), left a loss behind (lasting), or left none (over)."""

    STANDING = "standing"
    LASTING = "lasting"
    OVER = "over"


@dataclass(frozen=True)
class Episode:
    """One stretch in which a rule's condition held.

    Attributes:
        first_step: the first row that agrees with the condition: dated back into the window that raised it.
        raised_step: the first step at which it could have been known, after the rule's damping.
        last_step: the last step at which it held.
        state: standing until it has not held for as long as its rule's damping asks.
        from_start: whether no row came before `first_step`: it was so from the start.
    """

    first_step: int
    raised_step: int
    last_step: int
    state: State = State.STANDING
    from_start: bool = False

    @property
    def active(self) -> bool:
        """Whether it is standing."""
        return self.state is State.STANDING


@dataclass(frozen=True)
class Change:
    """A setting that is worth changing, as advice.

    Attributes:
        option: what the run's trainer calls it.
        setting: its canonical name.
        before: its value in this run; None if the run does not give it.
        to: the value to try.
        why: the reason, in a sentence.
    """

    option: str
    setting: str
    before: Any
    to: Any
    why: str


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a run, with its evidence. Steps are those of the run.

    Attributes:
        severity: how much it matters now: what is over is a warning at most.
        state: standing, lasting or over.
        metric, tag: the canonical metric, and the name under which it was logged.
        peak: how severe it was while it held; `severity` if not given.
        worst_value, limit: in the unit of the measure; that is the metric's own `unit` where `measured` is "value".
        side: on which side of the limit it is sick: above, below or equals.
        measured: "value" where the measure is in the metric's own unit, "ratio" where it was set against something,
            "noise" where it is in units of the metric's noise, "share" where it is a share of points, "count" or
            "correlation".
        level: the limit as a level of the metric's own values, for charts; None if the measure is something else.
        explained_by: the rule whose finding is the cause of this one, where one is.
        evidence: of a cause: what speaks for it, a line each, in the order of time.
        against: of a cause: what was looked for that would speak against it, and was not there.
        rivals: of a cause: other causes for which the evidence holds too, each with what would distinguish them.
        changes: settings that are worth changing, in the trainer's own names.
        replaced_at: the step of the resume that replaced what this was found in, or the first step that was logged
            again; None if it was found in the run as it is.
        from_outside: whether no policy could have caused it.
    """

    rule: str
    family: str
    severity: Severity
    title: str
    metric: str
    tag: str
    first_step: int
    raised_step: int
    last_step: int
    state: State
    worst_step: int
    worst_value: float
    limit: float | None
    message: str
    why: str
    advice: tuple[str, ...]
    source: str
    unit: str = ""
    side: str = "above"
    measured: str = "value"
    level: float | None = None
    explained_by: str | None = None
    episodes: tuple[Episode, ...] = ()
    replaced_at: int | None = None
    peak: Severity | None = None
    evidence: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    rivals: tuple[tuple[str, str], ...] = ()
    changes: tuple[Change, ...] = ()
    from_outside: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What makes it this finding and no other of its run: rule and metric."""
        return self.rule, self.metric

    @property
    def active(self) -> bool:
        """Whether it holds now, damping included."""
        return self.state is State.STANDING

    @property
    def ended(self) -> bool:
        """Whether it is over, and what it cost has come back: what a watcher calls cleared."""
        return self.state is State.OVER

    @property
    def from_start(self) -> bool:
        """Whether it was so from the first row of its metric on: a consequence of nothing."""
        return bool(self.episodes) and self.episodes[0].from_start

    @property
    def worst_severity(self) -> Severity:
        """How severe it was while it held."""
        return self.severity if self.peak is None else self.peak

    def in_state(self, state: State, most: Severity = Severity.WARNING) -> Finding:
        """The same finding in that state; once it is over, its severity is `most` at most."""
        severity = min(self.worst_severity, most) if state is State.OVER else self.worst_severity
        return replace(self, state=state, severity=severity, peak=self.worst_severity)


def worst_state(findings: Iterable[Finding]) -> State:
    """The state of what several findings are parts of: standing where one stands, lasting where one lasts."""
    states = {one.state for one in findings}
    return next((state for state in State if state in states), State.OVER)


@dataclass(frozen=True)
class Skipped:
    """A rule that could not run, and why. Silence is never health: every report shows these."""

    rule: str
    family: str
    reason: str


@dataclass(frozen=True)
class Ignored:
    """A finding that the user chose not to see, with the reason given (`--ignore`, settings, baseline)."""

    finding: Finding
    reason: str


@dataclass(repr=False)
class RunVerdict:
    """What was found out about one run.

    Attributes:
        state: finished, running, stopped (it ended before its plan, or died) or unknown.
        quiet: ids of the rules that ran and found nothing.
        translation: the canonical metrics, for charts; reports never judge with them.
        families: the family of each rule on metrics that the run was judged by, those that found nothing too.
        too_short: why the run is too short for an answer (`--min-steps`); empty if it is not.
        why_not_healthy: why the run would not be healthy though nothing was found: no reward or no witness of learning
            was recognised with enough points, the reward did not rise, or it is no reinforcement learning.
        reward_is_best: whether reward has risen, and its newest level is the highest there was, within the noise.
    """

    run: Run
    translation: Translation
    state: str
    findings: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    quiet: list[str] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)
    families: dict[str, str] = field(default_factory=dict)
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
        """What reports call the run."""
        return self.run.name

    @property
    def ok(self) -> bool:
        """Whether the run is healthy: judged, and no finding at or above warning."""
        return self.verdict == "healthy"

    @property
    def judged(self) -> bool:
        """Whether at least one rule could look."""
        return bool(self.quiet or self.findings or self.ignored)

    @property
    def looked(self) -> set[str]:
        """Rules, and families, of which at least one could look."""
        found = [*self.findings, *(one.finding for one in self.ignored)]
        rules = {*self.quiet, *(one.rule for one in found)}
        return rules | {self.families[one] for one in rules if one in self.families} | {one.family for one in found}

    @property
    def sick(self) -> bool:
        """Whether there is a finding at or above warning."""
        return any(one.severity > Severity.INFO for one in self.findings)

    @property
    def no_answer(self) -> str:
        """Why nothing can be said about the run's health; empty if something can."""
        if self.too_short:
            return self.too_short
        if not self.sick and self.why_not_healthy:
            return self.why_not_healthy
        return "" if self.judged else "no rule could run"

    @property
    def verdict(self) -> str:
        """healthy, warning, critical, or unknown if nothing was found and health was not earned."""
        if self.sick:
            return str(max(one.severity for one in self.findings))
        return "unknown" if self.no_answer else "healthy"

    @property
    def causes(self) -> list[Finding]:
        """Findings that no other explains, causes of others first, then the worst and earliest."""
        explaining = {one.explained_by for one in self.findings}
        alone = [one for one in self.findings if one.explained_by is None]
        return sorted(alone, key=lambda one: (one.rule not in explaining, -one.severity, one.first_step))

    def consequences(self, cause: Finding) -> list[Finding]:
        """The findings that `cause` explains, in the order in which they began."""
        return sorted(
            (one for one in self.findings if one.explained_by == cause.rule), key=lambda one: (one.first_step, one.rule)
        )


@dataclass(frozen=True)
class Gate:
    """What makes a check fail.

    Attributes:
        fail_on: the least severity that fails; None never fails.
        exit_zero: report only: exit with code 0 even so.
        require: rule ids or families that must have been able to run.
        min_steps: a run that did not come this far has no verdict.
        strict: a file that looks like a log and was not read is no answer.
        fail_on_past: a finding that is over counts as severe as it was while it held, not as a warning at most.
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
        """Why a run that came as far as `last_step` is too short for an answer; empty if it is not."""
        return (
            f"it has {last_step or 0} of the {self.min_steps} steps that --min-steps asks for"
            if (last_step or 0) < self.min_steps
            else ""
        )

    def hits(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings at or above the gate: what is over is a warning at most, unless the past counts too."""
        if self.fail_on is None:
            return []
        past = self.fail_on_past
        return [one for one in findings if (one.worst_severity if past else one.severity) >= self.fail_on]


@dataclass(repr=False)
class Verdict:
    """The answer to one `check`: every run, what could not be read, and the exit code.

    Attributes:
        asked: the places that were named, as they were named; what lies below a named folder was not itself asked for.
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

        Whoever names that file does not ask for its health: it stays unknown and is shown, and the gate does not wait
        for it.
        """
        if run.translation.is_rl or not run.no_answer:
            return False
        file = run.run.place.location.partition("#")[0]
        return bool(file) and any(
            one.translation.is_rl and not one.no_answer and one.run.place.location.partition("#")[0] == file
            for one in self.runs
        )

    @property
    def unanswered(self) -> bool:
        """Whether something that was asked for by name has no verdict: a place, or a rule that `--require` names."""
        blank = [run for run in self.runs if run.no_answer and not self.is_aside(run)]
        places = {one.location for one in self.errors} | {run.run.place.location for run in blank}
        return bool(self.unmet) or any(_same_place(one, named) for one in places for named in self.asked)

    @property
    def exit_code(self) -> int:
        """0 no finding at or above the gate; 1 at least one; 2 no verdict.

        A run at or above the gate gives 1 even where a fragment beside it could not be judged, for whoever waits for
        the gate has the answer. 2 outranks it only where the part without a verdict was asked for by name, or by
        `--require`. A run of which records were lost has a verdict for what was intact: it can fail, but never pass.
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
    """How a verdict is shown in Python; reports are above this module, so they are imported only when asked for."""
    return import_module("rlhealth.reports.interactive")


def _same_place(one: str, named: str) -> bool:
    if "://" in one or "://" in named:
        return one.rstrip("/") == named.rstrip("/")
    return bool(one) and os.path.realpath(one) == os.path.realpath(named)  # Path.resolve raises at a loop of links


def counts(verdict: Verdict) -> dict[str, int]:
    """How many runs came out how: healthy, warning, critical, unknown, unreadable."""
    found = dict.fromkeys(("healthy", "warning", "critical", "unknown"), 0)
    for run in verdict.runs:
        found[run.verdict] += 1
    return found | {"unreadable": len(verdict.errors)}


def strict(value: Any) -> Any:
    """A value for strict JSON: a non-finite number becomes the string "NaN", "Infinity" or "-Infinity"."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: strict(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [strict(one) for one in value]
    return value
