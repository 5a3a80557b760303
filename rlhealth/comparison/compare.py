"""Compares runs with known-good runs of the same task: which metric left their envelope, since which step, and which
settings differ.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from rlhealth.comparison.envelope import WINDOW, Curve, Envelope, Scale, curve
from rlhealth.comparison.known_good import (
    FAMILY,
    RULE,
    TITLE,
    WHY,
    KnownGood,
    Unlike,
    UsualBand,
    comparable,
    differences,
    known_good_of,
    missing_in,
    notes_on,
    other_trainer,
)
from rlhealth.engine.ending import ending_of
from rlhealth.engine.episodes import Episodes
from rlhealth.engine.estimate import Estimate
from rlhealth.errors import RlhealthError
from rlhealth.metrics import Metric, meaning, translate
from rlhealth.metrics.aliases import check_aliases
from rlhealth.parallel.ahead import in_turn
from rlhealth.parallel.jobs import Examination, examined, read_whole
from rlhealth.run import Floats, Run
from rlhealth.sources.discovery.places import RunSelection, find_all
from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Episode, Finding, Severity, Skipped, State
from rlhealth.verdict.gate import Gate
from rlhealth.verdict.verdicts import RunVerdict, Verdict

HOLD = 5


def compare(
    where: str | Path | Sequence[str | Path],
    known_good: str | Path | Sequence[str | Path],
    *,
    source: str | None = None,
    gate: Gate | None = None,
    aliases: Mapping[str, str] | None = None,
    ignore: Mapping[str, str] | None = None,
    hold: int = HOLD,
    jobs: int = 1,
    at_once: int | None = None,
) -> Verdict:
    """Reads runs and known-good runs of the same task, and reports where each run left the envelope of the known-good
    runs.

    Args:
        where, source, aliases: as in `check`.
        known_good: two runs or more, each a path or address, or folders that hold them. A run that is compared is never
            among them.
        gate: what makes it fail; warnings if not given.
        ignore: canonical metrics not to compare, each with the reason.
        hold: for how many points in a row a metric must be outside.
        jobs: how many processes to use for reading and comparing, if there is enough work.
        at_once: the largest number of concurrent requests to the server of online runs.

    Raises:
        RlhealthError: if there are fewer than two known-good runs, or one of them cannot be read.
    """
    begun = time.perf_counter()
    check_aliases(aliases or {})
    verdict = Verdict([], gate=gate or Gate(Severity.WARNING))
    choice = RunSelection(source, at_once=at_once)
    readers = find_all(_places(where), choice, verdict.left_out)
    mine = {reader.run.place for reader in readers}
    good: list[Run] = []
    others = [one for one in find_all(_places(known_good), choice) if one.run.place not in mine]
    for reader, read in in_turn(others, lambda one: one, read_whole):
        read()
        good.append(reader.run)
    compared = partial(compare_run, known=known_good_of(good, aliases), aliases=aliases, ignore=ignore, hold=hold)
    for found in examined(readers, Examination(compared), jobs):
        if isinstance(found, RlhealthError):
            verdict.errors.append(found)
            continue
        found.too_short = verdict.gate.too_short(found.run.last_step)
        verdict.runs.append(found)
    verdict.seconds = time.perf_counter() - begun
    return verdict


def compare_run(
    run: Run,
    known: KnownGood,
    aliases: Mapping[str, str] | None = None,
    ignore: Mapping[str, str] | None = None,
    hold: int = HOLD,
) -> RunVerdict:
    """Compares one run. Its findings are ordered by when they began; the first carries the explanation, the others
    follow it.
    """
    begun = time.perf_counter()
    translation = translate(run, aliases)
    findings: list[Finding] = []
    compared: list[str] = []
    apart: list[str] = []
    few: list[str] = []
    for name, metric in sorted(translation.metrics.items()):
        if not len(metric) or not comparable(name) or name in (ignore or {}):
            continue
        good = known.metrics(name)
        if len(good) < 2:
            apart.append(name)
            continue
        usual = known.usual(name, hold)
        mine = curve(metric, usual.scale)
        left = _left(metric, mine, good, usual, hold)
        findings += left
        judged = bool(left) or _points_compared(mine, usual) >= hold  # fewer points cannot raise a finding
        (compared if judged else few).append(name)
    unlike = Unlike(tuple(apart), tuple(few), tuple(missing_in(translation, known)))
    alien = other_trainer(translation, known)
    notes = [*run.notes, *([alien] if alien else []), *notes_on(run, known, unlike, ignore or {}, hold)]
    findings = _with_settings(findings, differences(translation, known), len(known.runs), alien)
    nothing = "" if compared else unlike.nothing_compared(hold)
    skipped = [Skipped(RULE, FAMILY, nothing)] if nothing else []
    quiet = [RULE] if compared and not findings else []
    return RunVerdict(
        replace(run, notes=notes),
        translation,
        ending_of(run, translation).state,
        findings,
        skipped,
        quiet,
        families={RULE: FAMILY},
        compared=frozenset(compared),
        seconds=time.perf_counter() - begun,
        why_not_healthy=nothing,
    )


def _points_compared(mine: Curve | None, usual: UsualBand) -> int:
    """How many points of a metric are at steps that two of the known-good runs reached."""
    if mine is None or usual.band is None:
        return 0
    low, _ = usual.band.band(mine.steps)
    return int(np.count_nonzero(~np.isnan(low)))


def _left(metric: Metric, mine: Curve | None, good: Sequence[Metric], usual: UsualBand, hold: int) -> list[Finding]:
    broken = _broken(metric, good)
    if usual.band is None or mine is None:
        return [broken] if broken else []
    found = _outside(metric, mine, usual.band, usual.scale, hold, len(good))
    both = [one for one in (found, broken) if one is not None]
    return [min(both, key=lambda one: one.first_step)] if both else []


def _outside(metric: Metric, mine: Curve, band: Envelope, scale: Scale, hold: int, runs: int) -> Finding | None:
    low, high = band.band(mine.steps)
    excess = np.fmax(low - mine.smooth, mine.smooth - high)
    known = ~np.isnan(low)  # at steps that too few known-good runs reached, nothing is inside or outside
    episodes = Episodes(hold, None, "above")
    outside = excess[known] > 1e-9 * np.abs(mine.smooth[known])
    episodes.extend(mine.steps[known], [Estimate(excess[known])], outside)
    if not episodes.raised_episodes:
        return None
    raised = [replace(one, first_step=_onset(one.first_step, mine, low, high)) for one in episodes.raised_episodes]
    worst = int(np.searchsorted(mine.steps, episodes.worst.step))
    up = bool(mine.smooth[worst] > high[worst])
    least, most = _possible(metric.name, scale.back(float(low[worst])), scale.back(float(high[worst])))
    value, limit = scale.back(float(mine.smooth[worst])), most if up else least
    meant = meaning(metric.name)
    severity = Severity.INFO if meant is not None and meant.better == ("up" if up else "down") else Severity.WARNING
    where = f"{least:.3g} to {most:.3g}"
    return _finding(
        metric=metric,
        severity=severity,
        episodes=raised,
        worst=(mine.steps[worst], value),
        limit=limit,
        side="above" if up else "below",
        message=f"{metric.name} is {value:.3g} at step {mine.steps[worst]}, {'above' if up else 'below'} the "
        f"{where} of {runs} known-good runs (median of {mine.points_at(worst)} points)",
    )


def _possible(name: str, low: float, high: float) -> tuple[float, float]:
    """The ends of a band, limited to the metric's possible values."""
    meant = meaning(name)
    least, most = (meant.low, meant.high) if meant is not None else (None, None)
    return low if least is None else max(low, least), high if most is None else min(high, most)


def _onset(step: int, mine: Curve, low: Floats, high: Floats) -> int:
    """The first point in the median's window from which on all points are outside, because the median itself reacts
    late.
    """
    place = int(np.searchsorted(mine.steps, step))
    back = place
    while back > max(0, place - WINDOW + 1) and not low[back - 1] <= mine.values[back - 1] <= high[back - 1]:
        back -= 1
    return int(mine.steps[back])


def _broken(metric: Metric, good: Sequence[Metric]) -> Finding | None:
    """A finding for NaN or infinity, if no known-good run ever had one."""
    lost = ~np.isfinite(metric.values)
    if not lost.any() or any(not np.isfinite(one.values).all() for one in good):
        return None
    place = int(np.argmax(lost))
    step, last = int(metric.steps[place]), int(metric.steps[np.flatnonzero(lost)[-1]])
    value = float(metric.values[place])
    said = (
        f"{metric.name} is {'NaN' if value != value else 'infinite'} at step {step}; "
        f"none of {len(good)} known-good runs ever was"
    )
    return _finding(
        metric=metric,
        severity=Severity.WARNING,
        episodes=[Episode(step, step, last, State.STANDING if lost[-1] else State.OVER)],
        worst=(step, value),
        limit=None,
        side="above",
        message=said,
    )


def _finding(
    metric: Metric,
    severity: Severity,
    episodes: Sequence[Episode],
    worst: tuple[int, float],
    limit: float | None,
    side: str,
    message: str,
) -> Finding:
    first = episodes[0]
    seen = Evidence(
        metric=metric.name,
        tag=metric.tag,
        step=int(worst[0]),
        value=worst[1],
        limit=limit,
        side=side,
        unit=metric.unit,
    )
    return Finding(
        rule=RULE,
        family=FAMILY,
        severity=severity,
        title=TITLE,
        conditions=(seen,),
        first_step=first.first_step,
        raised_step=first.raised_step,
        last_step=episodes[-1].last_step,
        state=episodes[-1].state,
        message=message,
        why="",
        advice=(),
        source="",
        episodes=tuple(episodes),
    )


def _with_settings(findings: Sequence[Finding], differing: str, runs: int, alien: str) -> list[Finding]:
    """The findings in the order in which they began. The later ones are explained by the first, which carries the
    explanation. For runs of another trainer, `alien`, no setting is named as the cause, because one metric name may
    stand for two quantities.
    """
    ordered = sorted(
        (replace(one, source=f"envelope of {runs} known-good runs") for one in findings),
        key=lambda one: (-one.severity, one.first_step, one.raised_step),
    )
    if not ordered:
        return []
    first, *others = ordered
    later = f"; {len(others)} more metric{'s' if len(others) > 1 else ''} left the envelope" if others else ""
    later += f"; {alien}" if alien else ""
    advice = (
        (alien and "Compare with known-good runs of the same trainer: metrics of one name may be two quantities.")
        or differing
        or "No logged setting differs from the known-good runs: check the data, the code, the model and the seed.",
        f"Look at what happened at step {first.first_step}: the batch, the checkpoint before it, the learning rate.",
    )
    return [
        replace(first, message=first.message + later, why=WHY, advice=advice),
        *(replace(one, explained_by=RULE) for one in others),
    ]


def _places(where: str | Path | Sequence[str | Path]) -> list[str | Path]:
    return [where] if isinstance(where, str | Path) else list(where)
