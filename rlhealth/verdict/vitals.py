"""Vital signs: eight lines for every run, healthy or not, each with its state and the metric that decides it."""

from __future__ import annotations

import fnmatch
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlhealth.metrics.catalogue import pattern_of_any
from rlhealth.parsing.own_texts import read_texts
from rlhealth.verdict.courses import before, end_of, start_of, trend_of
from rlhealth.verdict.findings import Finding, Severity, State
from rlhealth.verdict.rises import rose_somewhat
from rlhealth.verdict.verdicts import RunVerdict

if TYPE_CHECKING:
    from rlhealth.metrics import Metric

_LOST = "rose, then fell"


class VitalState(StrEnum):
    """The state of one vital sign."""

    WELL = "well"
    WATCH = "watch"
    SICK = "sick"
    OVER = "over"
    UNKNOWN = "unknown"
    NOT_LOGGED = "not logged"
    NOT_FOR_TRAINER = "not for this trainer"


@dataclass(frozen=True)
class Vital:
    """One vital sign of a run.

    Attributes:
        id, title: reward, signal, policy, exploration, completions, numbers, critic, pace; and its name in reports.
        state: sick or watch if a critical finding or a warning holds or left a loss; over if one held and the run
            recovered from it; well only if a rule ran and found nothing, or if its metric was compared with known-good
            runs and is not worse; unknown if it is logged and no rule could run, if it has no finite value, or if the
            run is not healthy and the metric did not move as the sign expects.
        metric: the metric that shows it: that of the finding, if it is one of the sign's; None if none was logged.
        finding: the finding that decides it, if any.
        start, end: the start of the metric, before the finding if there is one, and its end, in its unit: medians of a
            tenth of its points, or of three points where these differ; None if it has no finite point. A metric whose
            newest point is infinite ends there.
        said: a few words: what is wrong, or why the state is unknown.
        asks: the expected direction of the metric: rise, hold, or nothing.
    """

    id: str
    title: str
    state: VitalState
    metric: Metric | None = None
    finding: Finding | None = None
    start: float | None = None
    end: float | None = None
    said: str = ""
    asks: str = ""

    @property
    def trend(self) -> str:
        """How the metric went from `start` to `end`: rose, fell, "rose, then fell", "fell, then rose", steady, or empty
        if the points do not show it."""
        return self._course[0]

    @property
    def moving(self) -> bool:
        """Whether the last third still moves in the direction of `trend`."""
        return self._course[1]

    @cached_property
    def _course(self) -> tuple[str, bool]:
        """The trend, and whether it continues; computed on demand, because a table of many runs shows none."""
        if self.metric is None or self.end is None or not np.isfinite(self.end):
            return "", False
        values = self.metric.values[np.isfinite(self.metric.values)]
        trend, moving = trend_of(values, self.start, self.end)
        is_own = self.finding is not None and self.finding.metric == self.metric.name
        if trend == "rose" and is_own and self.asks == "rise":
            return "", False  # a trend that reads as praise would contradict the finding
        return trend, moving

    @property
    def level(self) -> float | None:
        """The limit of the finding as a level of the metric; None if it is no level, or another metric's."""
        shown = self.finding is not None and self.metric is not None and self.finding.metric == self.metric.name
        return self.finding.level if self.finding is not None and shown else None


def vitals(run: RunVerdict) -> tuple[Vital, ...]:
    """The eight vital signs of a run, in the order of vitals.yaml. States follow from the findings; nothing is judged
    here."""
    return tuple(_vital(run, name, entry) for name, entry in _signs().items())


def sign_of(finding: Finding) -> str:
    """The id of the sign that a finding belongs to; empty for a cause whose metric no sign lists."""
    for name, entry in _signs().items():
        if finding.family in (*entry["families"], *entry.get("also", [])):
            return name
    return next((name for name, entry in _signs().items() if _listed(finding.metric, entry["metrics"])), "")


@cache
def _signs() -> dict[str, dict[str, Any]]:
    return dict(read_texts(Path(__file__).with_name("vitals.yaml")))


def _vital(run: RunVerdict, name: str, entry: dict[str, Any]) -> Vital:
    shown = [one for one in run.findings if one.worst_severity > Severity.INFO]
    worst = _worst([one for one in shown if sign_of(one) == name])
    metric = _deciding(run, entry["metrics"], worst)
    if worst is None and metric is not None:  # another sign's rule has a finding on this metric: it is not well
        worst = _worst([one for one in shown if one.metric == metric.name])
    state, said = _state(run, name, entry, worst, metric)
    if metric is None or state is VitalState.NOT_FOR_TRAINER:
        return Vital(name, str(entry["title"]), state, finding=worst, said=said)
    start, end = _ends(metric, worst)
    return Vital(
        id=name,
        title=str(entry["title"]),
        state=state,
        metric=metric,
        finding=worst,
        start=start,
        end=end,
        said=said,
        asks=_asked(metric, entry),
    )


def _ends(metric: Metric, worst: Finding | None) -> tuple[float | None, float | None]:
    """The level of a metric before the finding, or at its start, and its present level, as messages show them."""
    values = metric.values[np.isfinite(metric.values)]
    if not len(values):
        return None, None
    early = values if worst is None else before(metric.values, int(np.searchsorted(metric.steps, worst.first_step)))
    newest = float(metric.values[-1])
    return start_of(early), newest if np.isinf(newest) else end_of(values)


def _worst(found: list[Finding]) -> Finding | None:
    return min(found, key=lambda one: (one.state is State.OVER, -one.severity, one.first_step), default=None)


def _deciding(run: RunVerdict, names: list[str], worst: Finding | None) -> Metric | None:
    """The metric that shows the sign: that of the deciding finding, if it is listed; otherwise the first listed with
    numbers, in a comparison one that was compared. If none was logged, the finding's metric.
    """
    metrics = run.translation.metrics
    listed = [metrics[key] for name in names for key in metrics if _listed(key, [name]) and len(metrics[key])]
    own = metrics.get(worst.metric) if worst is not None else None
    if own is not None and len(own) and (not listed or _listed(own.name, names)):
        return own
    shown = [one for one in listed if np.isfinite(one.values).any()] or listed
    return next((one for one in shown if one.name in (run.compared or ())), next(iter(shown), None))


def _state(
    run: RunVerdict, name: str, entry: dict[str, Any], worst: Finding | None, metric: Metric | None
) -> tuple[VitalState, str]:
    if worst is not None:
        said = worst.title if metric is None or metric.name == worst.metric else f"{worst.title} ({worst.metric})"
        if worst.state is State.OVER:
            return VitalState.OVER, said
        return (VitalState.SICK if worst.severity is Severity.CRITICAL else VitalState.WATCH), said
    judged = bool({run.families.get(rule) for rule in run.quiet} & set(entry["families"]))
    judged |= metric is not None and metric.name in (run.compared or ())
    if not (run.translation.is_rl or judged):
        return VitalState.NOT_FOR_TRAINER, "no reinforcement learning"
    ending = _ENDINGS.get(run.state, "") if name == "pace" else ""
    if name == "pace" and not ending:
        return VitalState.UNKNOWN, _unended(run)
    absent = _absent(run.translation.framework, entry)
    if absent[0] is VitalState.NOT_FOR_TRAINER or (metric is None and not ending):
        return absent
    if not (judged or any(sign_of(one.finding) == name for one in run.ignored)):
        return VitalState.UNKNOWN, _unjudged(run, entry["families"])
    if metric is not None and (unproven := _unproven(run, metric, _asked(metric, entry))):
        return VitalState.UNKNOWN, unproven
    ignored = [one for one in run.ignored if sign_of(one.finding) == name]
    accepted = f"{len(ignored)} ignored" if ignored else ""
    return VitalState.WELL, ", ".join(filter(None, (ending, accepted)))


_ENDINGS = {"finished": "came to its end", "running": "still running"}


def _unended(run: RunVerdict) -> str:
    """The state, in words, of a run that neither finished nor continues."""
    last, planned = run.run.last_step, run.run.planned_steps or run.translation.planned_steps
    plan = f" of {planned:,} planned" if planned and last is not None and planned > last else ""
    if run.state == "stopped":
        return f"stopped at step {last or 0:,}{plan}"
    return f"step {last or 0:,}{plan}, and no end in the log" if plan else "no planned length and no end in the log"


def _asked(metric: Metric, entry: dict[str, Any]) -> str:
    """The direction that a sign expects of its metric: rise, hold, or nothing."""
    return next((str(way) for name, way in entry.get("asks", {}).items() if _listed(metric.name, [name])), "")


def _unproven(run: RunVerdict, metric: Metric, asked: str) -> str:
    """Why a metric without findings does not prove that the sign is well: it has no number; or, in a run that is not
    healthy, it did not move as the sign expects.
    """
    values = metric.values[np.isfinite(metric.values)]
    if not len(values):
        return f"{metric.name} has no finite value"
    if run.verdict == "healthy" or not asked:
        return ""
    trend, _ = trend_of(values)
    if trend in ("fell", _LOST):
        return f"no rule found anything, but it {trend}"
    return "no rule found anything, but it has not risen" if asked == "rise" and not rose_somewhat(values) else ""


def _absent(framework: str, entry: dict[str, Any]) -> tuple[VitalState, str]:
    for pattern, reason in entry.get("not_for", {}).items():
        if fnmatch.fnmatchcase(framework, pattern):
            return VitalState.NOT_FOR_TRAINER, str(reason)
    asked = next((said for pattern, said in entry["ask"].items() if fnmatch.fnmatchcase(framework, pattern)), "")
    return VitalState.NOT_LOGGED, f"{entry['missing']}; {asked}" if asked else str(entry["missing"])


def _unjudged(run: RunVerdict, families: list[str]) -> str:
    """Why no rule of these families could run: the commonest reason; a reason that counts points goes first."""
    reasons = Counter(one.reason for one in run.skipped if one.family in families)
    if not reasons:
        return "not compared with the known-good runs" if run.compared is not None else "no rule judged it"
    return max(reasons, key=lambda one: (" of the " in one, not one.startswith("it is about"), reasons[one], one))


def _listed(metric: str, names: list[str]) -> bool:
    return pattern_of_any("|".join(names)).match(metric) is not None
