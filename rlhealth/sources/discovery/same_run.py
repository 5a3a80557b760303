"""Whether two logs are of one run: by their settings, their numbers, and when they were launched."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Run
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.discovery.registry import TEXTS

if TYPE_CHECKING:
    from rlhealth.sources.rows.trainer_plan import Plan

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_STAMP = re.compile(
    r"(?:^|/)(?:(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?P<day>\d\d)_(?P<hour>\d\d)-(?P<minute>\d\d)-(?P<second>\d\d)"
    r"|(?:offline-)?run-\d{4}(?P<month>\d\d)(?P<day2>\d\d)_(?P<hour2>\d\d)(?P<minute2>\d\d)(?P<second2>\d\d)-)[^/]*(?:/[^/]*)?$",
    re.IGNORECASE,
)
_LAUNCH_SLACK = 600.0  # seconds between the first tracker's start and the last one's
_SAME_SHARE = 0.5  # of the values that two trackers could have in common
FEWEST_VALUES = 5
_COMPARED = 2000  # values of one metric, from its end
AGREEING = 0.9  # of the values at the same steps, where two trackers agree
_OF_A_LAUNCH = (
    "seed",
    "learning_rate",
    "beta",
    "kl_coef",
    "num_generations",
    "per_device_train_batch_size",
    "max_steps",
)
_CLOCK_SLACK = 60.0  # seconds
#: These are alike in different runs of one script.
_ALIKE = frozenset({"epoch", "learning_rate", "lr", "num_tokens", "episode", "total_flos"})


def plan_of(readers: Iterable[Reader]) -> Plan | None:
    """What the first trainer's state among them says of the run's steps."""
    from rlhealth.sources.rows.trainer_plan import Plan  # late: most runs are in one place
    from rlhealth.sources.rows.trainer_state import TrainerState

    state = next((one for one in readers if isinstance(one, TrainerState)), None)
    return None if state is None else Plan(state.path)


def may_be_same(main: Reader, other: Reader) -> bool:
    """Whether a glance at two logs, which lie where one run's would, finds nothing against it: their folders' dates,
    a state's last rows.
    """
    plan = plan_of([other])
    if plan is not None:
        try:
            main.poll()
        except RlhealthError:
            return True
        return plan.is_of(main.run)
    first, second = _started(main.run.place.location), _started(other.run.place.location)
    return first is None or second is None or abs((first - second).total_seconds()) <= _LAUNCH_SLACK


def _started(location: str) -> datetime | None:
    """The launch time in a folder's name, in local time; transformers leaves the year out, so it is left out
    here.
    """
    found = _STAMP.search(location)
    if found is None:
        return None
    try:
        month = _MONTHS.index(found["name"].lower()) + 1 if found["name"] else int(found["month"])
        day, hour, minute, second = (
            int(found[part] or found[f"{part}2"]) for part in ("day", "hour", "minute", "second")
        )
        return datetime(2000, month, day, hour, minute, second)
    except ValueError:
        return None


def is_same(one: Reader, other: Reader) -> bool | None:
    """Whether two trackers wrote the same run: they hold the same numbers, or, where none can be compared, at the
    same time. None: unknown.
    """
    for reader in (one, other):
        try:
            reader.poll()
        except RlhealthError:
            return None
    if _other_settings(one.run, other.run):
        return False
    found = at_same_steps(one.run, other.run)
    aligned = sum(alike for _, alike in found) >= _SAME_SHARE * sum(compared for compared, _ in found)
    if aligned and any(compared - alike >= FEWEST_VALUES and alike < AGREEING * compared for compared, alike in found):
        return False  # they have the same steps and different values of some metric: both are judged
    mine, theirs = _numbers(one.run), _numbers(other.run)
    pairs = [(mine[tag], theirs[tag]) for tag in mine.keys() & theirs.keys()]
    most = sum(min(len(a), len(b)) for a, b in pairs)
    if most >= FEWEST_VALUES:
        return sum(len(a & b) for a, b in pairs) >= _SAME_SHARE * most
    first, second = _times(one.run), _times(other.run)
    if first and second:
        return first[0] <= second[1] + _CLOCK_SLACK and second[0] <= first[1] + _CLOCK_SLACK
    return None


def is_copy(one: Reader, other: Reader) -> bool:
    """Whether two text logs of the same kind, in different files, hold the very same numbers."""
    first, second = one.run, other.run
    kinds = {first.place.kind, second.place.kind}
    if len(kinds) > 1 or not kinds <= set(TEXTS) or first.place.file == second.place.file:
        return False
    if first.series.keys() != second.series.keys() or not first.series:
        return False
    return all(
        np.array_equal(series.steps, second.series[tag].steps)
        and np.array_equal(series.values, second.series[tag].values, equal_nan=True)
        for tag, series in first.series.items()
    )


def _numbers(run: Run) -> dict[str, set[str]]:
    """By tag without its `train/`, the values that no other run would have: not whole, to four digits."""
    found: dict[str, set[str]] = {}
    for tag, series in run.series.items():
        bare = tag.removeprefix("train/")
        if bare not in _ALIKE:
            values = series.values[-_COMPARED:]
            values = values[np.isfinite(values)]
            fractions = {f"{value:.4g}" for value in values[values != np.round(values)].tolist()}
            if len(fractions) > 1:
                found[bare] = fractions
    return found


def _times(run: Run) -> tuple[float, float] | None:
    times = [one.times[np.isfinite(one.times)] for one in run.series.values()]
    known = [time for time in times if len(time)]
    return (min(float(time[0]) for time in known), max(float(time[-1]) for time in known)) if known else None


def at_same_steps(one: Run, other: Run) -> list[tuple[int, int]]:
    """Of each metric of both logs, how many values they have at the same steps, and how many of them are alike, as
    printed logs round.
    """
    theirs = {tag.removeprefix("train/"): series for tag, series in other.series.items()}
    found = []
    for tag, series in one.series.items():
        twin = theirs.get(tag.removeprefix("train/"))
        if twin is None or tag.removeprefix("train/") in _ALIKE or "time" in tag:
            continue
        _, mine, others = np.intersect1d(series.steps, twin.steps, assume_unique=True, return_indices=True)
        same = np.isclose(series.values[mine], twin.values[others], rtol=0.05, atol=1e-3, equal_nan=True)
        found.append((len(same), int(np.count_nonzero(same))))
    return found


def _other_settings(one: Run, other: Run) -> bool:
    """Whether both logged their settings and these differ: another seed, learning rate, …"""
    pairs = [(one.config.get(name), other.config.get(name)) for name in _OF_A_LAUNCH]
    return any(a is not None and b is not None and a != b for a, b in pairs)
