"""One run that several trackers wrote is one run: which readers belong together, and which of them is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Run, unique_name
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.walk import seen_from
from rlhealth.sources.discovery.registry import TEXTS

if TYPE_CHECKING:
    from rlhealth.sources.rows.trainer_plan import Plan

#: Folders that trackers and trainers make below the folder that the user named.
_LAYOUT = re.compile(
    r"runs|logs?|tb|tb_logs|tensorboard(_logs)?|events|csv|wandb|files|latest-run|offline-run-.*|run-\d{8}_\d{6}-.*|trackio|checkpoints?|checkpoint-\d+",
    re.IGNORECASE,
)
_DATED = re.compile(r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\d\d_\d\d-\d\d-\d\d", re.IGNORECASE)
#: Trackers whose runs have names that people gave them, in folders whose names are numbers.
NAMED = frozenset({"mlflow", "swanlab"})
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_STAMP = re.compile(
    r"(?:^|/)(?:(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?P<day>\d\d)_(?P<hour>\d\d)-(?P<minute>\d\d)-(?P<second>\d\d)"
    r"|(?:offline-)?run-\d{4}(?P<month>\d\d)(?P<day2>\d\d)_(?P<hour2>\d\d)(?P<minute2>\d\d)(?P<second2>\d\d)-)[^/]*(?:/[^/]*)?$",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"^[ \t]*[-*][ \t]*(TRL|Transformers|Pytorch|Datasets|Tokenizers|PEFT)[ \t]*:[ \t]*v?(\d[\w.+-]{0,40})[ \t\r]*$",
    re.MULTILINE | re.IGNORECASE,
)
_LARGEST_CARD = 1 << 20
_LAUNCH_SLACK = 600.0  # seconds between the first tracker's start and the last one's
_SAME_SHARE = 0.5  # of the values that two trackers could have in common
_FEWEST_VALUES = 5
_COMPARED = 2000  # values of one metric, from its end
_AGREEING = 0.9  # of the values at the same steps, where two trackers agree
_TELLING = ("seed", "learning_rate", "beta", "kl_coef", "num_generations", "per_device_train_batch_size", "max_steps")
_CLOCK_SLACK = 60.0  # seconds
#: These are alike in different runs of one script.
_ALIKE = frozenset({"epoch", "learning_rate", "lr", "num_tokens", "episode", "total_flos"})


class JoinedReader:
    """A run that was also written elsewhere: it is read in one place, and takes the planned number of steps from the
    trainer's state.
    """

    def __init__(self, main: Reader, others: Sequence[Reader]) -> None:
        self.main = main
        self.others = list(others)
        self.run: Run = main.run
        self._plan = _plan(others)
        kinds = [one.run.place.kind for one in others]
        also = ", ".join(
            kind if kinds.count(kind) == 1 else f"{kinds.count(kind)} of {kind}" for kind in dict.fromkeys(kinds)
        )
        self._note = f"read from {main.run.place.kind}; the same run is also in {also}: --source chooses"

    def poll(self) -> bool:
        """Reads what is new in the main place."""
        changed = self.main.poll()
        run = self.run
        if self._note not in run.notes:
            run.notes.append(self._note)
        if self._plan is not None and run.planned_steps is None:
            run.planned_steps = self._plan.steps(run)
        return changed


def output_folder(place: Path, root: Path) -> Path:
    """The folder of a run, as a person would name it, given the place of its log; never above `root`."""
    folder = place if place.is_dir() else place.parent
    while folder != root and folder.parent != folder:
        inside_runs = _DATED.match(folder.name) and _LAYOUT.fullmatch(folder.parent.name)
        if not (_LAYOUT.fullmatch(folder.name) or inside_runs):
            break
        folder = folder.parent
    return folder


@lru_cache(256)
def home(folder: Path) -> Path:
    """The first folder above, or this one, that no tracker has named."""
    for one in (folder, *folder.parents):
        if (
            one.name
            and not _LAYOUT.fullmatch(one.name)
            and not (_DATED.match(one.name) and _LAYOUT.fullmatch(one.parent.name))
        ):
            return one
    return folder


def join(readers: Iterable[Reader], root: Path, order: Sequence[str]) -> list[Reader]:
    """Folds readers of one run into one, the first kind in `order` is read; different runs stay different, none is
    lost or counted twice.
    """
    groups: dict[Path, list[Reader]] = {}
    for reader in readers:
        groups.setdefault(output_folder(Path(reader.run.place.location.partition("#")[0]), root), []).append(reader)
    found: list[Reader] = []
    for folder, group in groups.items():
        kept = _joined(sorted(group, key=lambda one: order.index(one.run.place.kind)), folder)
        versions = _card_versions(folder)
        for reader in kept:
            _rename(reader, folder, root, alone=len(kept) == 1, only=len(groups) == 1)
            for name, version in versions.items():
                reader.run.versions.setdefault(name, version)
        found += kept
    names: set[str] = set()
    for reader in found:
        reader.run.name = unique_name(reader.run.name, names)
        names.add(reader.run.name)
    return found


def _joined(group: list[Reader], folder: Path) -> list[Reader]:
    kinds = Counter(one.run.place.kind for one in group)
    if len(kinds) == 1 and not kinds.keys() & set(TEXTS):
        return group  # one tracker, which tells its own runs apart: perhaps ten thousand of them
    kept: list[list[Reader]] = []
    for reader in group:
        others = [one for one in kept if one[0].run.place.kind != reader.run.place.kind]
        lone = len(others) == 1 and kinds[reader.run.place.kind] == 1 and kinds[others[0][0].run.place.kind] == 1
        if (
            lone
            and _is_laid_out(reader, folder)
            and _is_laid_out(others[0][0], folder)
            and _may_be_same(others[0][0], reader)
            and is_same(others[0][0], reader) is not False
        ):
            others[0].append(reader)
            continue
        same = [(one, is_same(one[0], reader)) for one in others]
        match = next((one for one, verdict in same if verdict), None) or (
            others[0] if lone and same[0][1] is None else None
        )
        match = match or next((one for one in kept if is_copy(one[0], reader)), None)
        if match:
            match.append(reader)
        else:
            kept.append([reader])
    return [one[0] if len(one) == 1 else _read_furthest(one) for one in kept]


def _read_furthest(group: list[Reader]) -> JoinedReader:
    """The readers of one run as one: it is read where it reaches furthest, and of equals where it is preferred."""
    main = group[0]
    for other in group[1:]:
        found = _at_same_steps(main.run, other.run)
        compared, alike = sum(one for one, _ in found), sum(one for _, one in found)
        here, there = main.run.last_step, other.run.last_step
        aligned = compared >= _FEWEST_VALUES and alike >= _AGREEING * compared
        if here is not None and there is not None and aligned and there - here > 2 * _pace(main.run):
            main = other
    return JoinedReader(main, [one for one in group if one is not main])


def _pace(run: Run) -> int:
    """The usual number of steps between two points of the run's fullest series."""
    fullest = max(run.series.values(), key=len)
    return int(np.median(np.diff(fullest.steps))) if len(fullest) > 1 else 1


def _at_same_steps(one: Run, other: Run) -> list[tuple[int, int]]:
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
    """Whether both tell their settings and were launched with others: another seed, learning rate, …"""
    pairs = [(one.config.get(name), other.config.get(name)) for name in _TELLING]
    return any(a is not None and b is not None and a != b for a, b in pairs)


def _is_laid_out(reader: Reader, folder: Path) -> bool:
    """Whether a log lies where trainers put it below their output folder; what lies loose in a folder may be another
    run's.
    """
    place = Path(reader.run.place.location)
    return reader.run.place.kind == "trainer_state" or (place if place.is_dir() else place.parent) != folder


def _plan(readers: Iterable[Reader]) -> Plan | None:
    """What the first trainer's state among them says of the run's steps."""
    from rlhealth.sources.rows.trainer_plan import Plan  # late: most runs are in one place
    from rlhealth.sources.rows.trainer_state import TrainerState

    state = next((one for one in readers if isinstance(one, TrainerState)), None)
    return None if state is None else Plan(state.path)


def _may_be_same(main: Reader, other: Reader) -> bool:
    """Whether a glance at two logs, which lie where one run's would, finds nothing against it: their folders' dates,
    a state's last rows.
    """
    plan = _plan([other])
    if plan is not None:
        try:
            main.poll()
        except RlhealthError:
            return True
        return plan.is_of(main.run)
    first, second = _started(main.run.place.location), _started(other.run.place.location)
    return first is None or second is None or abs((first - second).total_seconds()) <= _LAUNCH_SLACK


def _started(location: str) -> datetime | None:
    """The launch that a folder's name tells, in local time; transformers leaves the year out, so it is left out
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
    same time. None: nothing tells.
    """
    for reader in (one, other):
        try:
            reader.poll()
        except RlhealthError:
            return None
    if _other_settings(one.run, other.run):
        return False
    found = _at_same_steps(one.run, other.run)
    aligned = sum(alike for _, alike in found) >= _SAME_SHARE * sum(compared for compared, _ in found)
    if aligned and any(
        compared - alike >= _FEWEST_VALUES and alike < _AGREEING * compared for compared, alike in found
    ):
        return False  # they count the same steps, and tell different things of some metric: both are judged
    mine, theirs = _numbers(one.run), _numbers(other.run)
    pairs = [(mine[tag], theirs[tag]) for tag in mine.keys() & theirs.keys()]
    most = sum(min(len(a), len(b)) for a, b in pairs)
    if most >= _FEWEST_VALUES:
        return sum(len(a & b) for a, b in pairs) >= _SAME_SHARE * most
    first, second = _times(one.run), _times(other.run)
    if first and second:
        return first[0] <= second[1] + _CLOCK_SLACK and second[0] <= first[1] + _CLOCK_SLACK
    return None


def is_copy(one: Reader, other: Reader) -> bool:
    """Whether two text logs of the same kind, in different files, hold the very same numbers."""
    first, second = one.run, other.run
    kinds = {first.place.kind, second.place.kind}
    if (
        len(kinds) > 1
        or not kinds <= set(TEXTS)
        or first.place.location.partition("#")[0] == second.place.location.partition("#")[0]
    ):
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
            telling = {f"{value:.4g}" for value in values[values != np.round(values)].tolist()}
            if len(telling) > 1:
                found[bare] = telling
    return found


def _times(run: Run) -> tuple[float, float] | None:
    times = [one.times[np.isfinite(one.times)] for one in run.series.values()]
    known = [time for time in times if len(time)]
    return (min(float(time[0]) for time in known), max(float(time[-1]) for time in known)) if known else None


def _rename(reader: Reader, folder: Path, root: Path, alone: bool, only: bool) -> None:
    """Names a run by its folder as seen from where the search began; its own name tells it from others in that
    folder.
    """
    run = reader.run
    if run.place.kind in NAMED or (not alone and run.place.kind == "tensorboard"):
        return  # named by its server, or by its files
    below = seen_from(root, folder)
    if not below:
        name = home(folder).name or folder.name
    else:
        name = f"{root.name}/{below}" if only and not _LAYOUT.fullmatch(root.name) else below
    if not alone:
        name += run.name.removeprefix(folder.name) if run.name.startswith(folder.name) else f"/{run.name}"
    run.name = name


def _card_versions(folder: Path) -> dict[str, str]:
    """Library versions by the model card that TRL leaves in the output folder: "- TRL: 0.15.2"."""
    try:
        with open_regular(folder / "README.md") as file:
            text = file.read(_LARGEST_CARD).decode("utf-8", "replace")
    except (RlhealthError, OSError):
        return {}
    found: dict[str, str] = {}
    for name, version in _VERSION.findall(text):
        found.setdefault(name.lower(), version)
    return found
