"""Vital signs: eight lines that every run gets, healthy or not, each with its state and the metric that decides it."""

from __future__ import annotations

import fnmatch
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlhealth.parsing.own_texts import read_texts
from rlhealth.verdict.findings import Finding, Severity, State
from rlhealth.verdict.rises import rose_somewhat, surely_rose
from rlhealth.verdict.verdicts import RunVerdict

if TYPE_CHECKING:
    from rlhealth.metrics import Metric
    from rlhealth.run import Floats

_ENDS = 5  # points at either end, and a tenth at most, that say where a metric comes from and where it is
_TREND = 24  # finite points before anything is said of a trend
_BATCHES, _ERRORS = (
    4,
    4.0,
)  # batch means a third, and how many of their standard errors a change takes, as in rises.yaml


class VitalState(StrEnum):
    """How one vital sign stands."""

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
        id, title: reward, signal, policy, exploration, completions, numbers, critic, pace; and what reports call it.
        state: sick and watch where a critical finding or a warning holds or left a loss; over where one did, and both
            came back; well only where a rule looked and found nothing, or where its metric was compared with known-good
            runs and did not leave them for the worse; unknown where it is logged and none could look.
        metric: what decides it; None if nothing that shows it was logged.
        finding: the finding that decides it, if any.
        start, end: medians of the metric's first and last few points, in its unit; None if it has no finite point.
        trend: rose, fell, steady, or empty where the points do not say.
        moving: whether the last third still goes the way of `trend`.
        said: a few words: what is wrong, or why nothing can be said.
    """

    id: str
    title: str
    state: VitalState
    metric: Metric | None = None
    finding: Finding | None = None
    start: float | None = None
    end: float | None = None
    trend: str = ""
    moving: bool = False
    said: str = ""


def vitals(run: RunVerdict) -> tuple[Vital, ...]:
    """The eight vital signs of a run, in the order of vitals.yaml. Nothing is judged here: states follow from the
    findings."""
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
    told = [one for one in run.findings if one.worst_severity > Severity.INFO]
    worst = _worst([one for one in told if sign_of(one) == name])
    metric = _deciding(run, entry["metrics"], worst)
    if worst is None and metric is not None:  # what another sign's rule says of this very metric: it is not well
        worst = _worst([one for one in told if one.metric == metric.name])
    state, said = _state(run, name, entry, worst, metric)
    if metric is None or state is VitalState.NOT_FOR_TRAINER:
        return Vital(name, str(entry["title"]), state, finding=worst, said=said)
    values = metric.values[np.isfinite(metric.values)]
    start, end = _ends(values)
    trend, moving = trend_of(values)
    return Vital(
        id=name,
        title=str(entry["title"]),
        state=state,
        metric=metric,
        finding=worst,
        start=start,
        end=end,
        trend=trend,
        moving=moving,
        said=said,
    )


def _worst(found: list[Finding]) -> Finding | None:
    return min(found, key=lambda one: (one.state is State.OVER, -one.severity, one.first_step), default=None)


def _deciding(run: RunVerdict, names: list[str], worst: Finding | None) -> Metric | None:
    """The metric of the finding that decides, else the first listed that has points: of a comparison, one that was
    compared.
    """
    metrics = run.translation.metrics
    if worst is not None and worst.metric in metrics and len(metrics[worst.metric]):
        return metrics[worst.metric]
    listed = [metrics[key] for name in names for key in metrics if _listed(key, [name]) and len(metrics[key])]
    return next((one for one in listed if one.name in (run.compared or ())), next(iter(listed), None))


def _state(
    run: RunVerdict, name: str, entry: dict[str, Any], worst: Finding | None, metric: Metric | None
) -> tuple[VitalState, str]:
    if worst is not None:
        if worst.state is State.OVER:
            return VitalState.OVER, worst.title
        return (VitalState.SICK if worst.severity is Severity.CRITICAL else VitalState.WATCH), worst.title
    judged = bool({run.families.get(rule) for rule in run.quiet} & set(entry["families"]))
    judged |= metric is not None and metric.name in (run.compared or ())
    if not (run.translation.is_rl or judged):
        return VitalState.NOT_FOR_TRAINER, "no reinforcement learning"
    ending = _ENDINGS.get(run.state, "") if name == "pace" else ""
    if name == "pace" and not ending:
        return VitalState.UNKNOWN, "no planned length and no end in the log"
    absent = _absent(run.translation.framework, entry)
    if absent[0] is VitalState.NOT_FOR_TRAINER or (metric is None and not ending):
        return absent
    ignored = [one for one in run.ignored if sign_of(one.finding) == name]
    if ignored or judged:
        accepted = f"{len(ignored)} ignored" if ignored else ""
        return VitalState.WELL, ", ".join(filter(None, (ending, accepted)))
    return VitalState.UNKNOWN, _unjudged(run, entry["families"])


_ENDINGS = {"finished": "came to its end", "running": "still running"}


def _absent(framework: str, entry: dict[str, Any]) -> tuple[VitalState, str]:
    for pattern, reason in entry.get("not_for", {}).items():
        if fnmatch.fnmatchcase(framework, pattern):
            return VitalState.NOT_FOR_TRAINER, str(reason)
    asked = next((said for pattern, said in entry["ask"].items() if fnmatch.fnmatchcase(framework, pattern)), "")
    return VitalState.NOT_LOGGED, f"{entry['missing']}; {asked}" if asked else str(entry["missing"])


def _unjudged(run: RunVerdict, families: list[str]) -> str:
    """Why no rule of these families could look, in the commonest reason; one that counts points goes first."""
    reasons = Counter(one.reason for one in run.skipped if one.family in families)
    if not reasons:
        return "not compared with the known-good runs" if run.compared is not None else "no rule judged it"
    return max(reasons, key=lambda one: (" of the " in one, not one.startswith("it is about"), reasons[one], one))


def _listed(metric: str, names: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(metric, name) for name in names)


def _ends(values: Floats) -> tuple[float | None, float | None]:
    """Medians of the first and the last few of finite values of shape (n,): where it came from, and where it is."""
    if not len(values):
        return None, None
    few = min(_ENDS, max(1, len(values) // 10))
    halves = values / 2  # the mean of the two in the middle cannot overflow
    return 2 * float(np.median(halves[:few])), 2 * float(np.median(halves[-few:]))


def trend_of(values: Floats) -> tuple[str, bool]:
    """Where a metric went, in a word, and whether it still goes there; shape of `values`: (n,), finite.

    Most that is learned may be learned in the first points: the last third is held against the first third, and where
    that says nothing, against the first tenth, as `earned` does with the reward. Steady is what has not even moved
    somewhat; what moved somewhat, and not surely, gets no word.
    """
    word, moving = course(values)
    if word != "steady":
        return word, moving
    scaled = _scaled(values)
    if surely_rose(scaled):
        return "rose", False
    if surely_rose(-scaled):
        return "fell", False
    return ("" if rose_somewhat(scaled) or rose_somewhat(-scaled) else "steady"), False


def course(values: Floats) -> tuple[str, bool]:
    """Whether the last third lies beyond the first by more than chance, and whether it lies beyond the middle one too.

    The errors come from batch means, which know that neighbouring points are alike. Shape of `values`: (n,), finite.
    """
    if len(values) < _TREND:
        return "", False
    first, middle, last = (_level(part) for part in np.array_split(_scaled(values), 3))
    change = _beyond(first, last)
    if not change:
        return "steady", False
    return ("rose" if change > 0 else "fell"), _beyond(middle, last) == change


def _scaled(values: Floats) -> Floats:
    """The values over a power of two, so that no square of them overflows; shape (n,), as given, n above 0."""
    return np.asarray(np.ldexp(values, -np.frexp(np.abs(values).max())[1]))


def _level(values: Floats) -> tuple[float, float]:
    means = np.array([part.mean() for part in np.array_split(values, _BATCHES)])
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(_BATCHES))


def _beyond(start: tuple[float, float], end: tuple[float, float]) -> int:
    """1 if the second level is higher by more than chance, -1 if it is lower, 0 if neither can be said."""
    gained, error = end[0] - start[0], float(np.hypot(start[1], end[1]))
    return int(np.sign(gained)) if abs(gained) > _ERRORS * error else 0
