"""One run that several trackers wrote is one run: which readers belong together, and which of them is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from os.path import isdir, split
from pathlib import Path

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Run, unique_name
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.walk import seen_from
from rlhealth.sources.discovery.parts import with_parts_joined
from rlhealth.sources.discovery.registry import TEXTS
from rlhealth.sources.discovery.same_run import (
    AGREEING,
    FEWEST_VALUES,
    at_same_steps,
    is_copy,
    is_same,
    may_be_same,
    plan_of,
)

#: Folders that trackers and trainers make below the folder that the user named.
_LAYOUT = re.compile(
    r"runs|logs?|tb|tb_logs|tensorboard(_logs)?|events|csv|wandb|files|latest-run|offline-run-.*|run-\d{8}_\d{6}-.*|trackio|checkpoints?|checkpoint-\d+",
    re.IGNORECASE,
)
_DATED = re.compile(r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\d\d_\d\d-\d\d-\d\d", re.IGNORECASE)
#: Trackers whose runs have names that people gave them, in folders whose names are numbers.
NAMED = frozenset({"mlflow", "swanlab"})
_VERSION = re.compile(
    r"^[ \t]*[-*][ \t]*(TRL|Transformers|Pytorch|Datasets|Tokenizers|PEFT)[ \t]*:[ \t]*v?(\d[\w.+-]{0,40})[ \t\r]*$",
    re.MULTILINE | re.IGNORECASE,
)
_LARGEST_CARD = 1 << 20
#: How a run ended: its exit code, whether its log shows a good end, and the exception.
Ending = tuple[int | None, bool | None, str]


class JoinedReader:
    """A run that was also written elsewhere: it is read in one place, takes the planned number of steps from the
    trainer's state, and how it ended from where that is told: wandb's exit code, the traceback in a console.
    """

    def __init__(self, main: Reader, others: Sequence[Reader]) -> None:
        self.main = main
        self.others = list(others)
        self.run: Run = main.run
        self._plan = plan_of(others)
        self._note = _also_in(main, others)
        self._own = _ending_of(self.run)

    def poll(self) -> bool:
        """Reads what is new in the main place; where nothing is, the others may say that the run ended."""
        _set_ending(self.run, self._own)
        changed = self.main.poll()
        self._own = _ending_of(self.run)
        if not changed:
            for one in self.others:
                with suppress(RlhealthError, OSError):
                    one.poll()
        run = self.run
        if self._note not in run.notes:
            run.notes.append(self._note)
        if self._plan is not None and run.planned_steps is None:
            run.planned_steps = self._plan.steps(run)
        _set_ending(run, self._ending_by_all())
        return changed

    def _ending_by_all(self) -> Ending:
        """How the run ended, by its own log and by those others that reach its newest step."""
        code, clean, raised = self._own
        telling = [one.run for one in self.others if _ending_of(one.run) != (None, None, "")]
        reached = (self.run.last_step or 0) - 2 * _pace(self.run) if telling else 0
        for run in telling:
            if run.last_step is not None and run.last_step >= reached:
                code = run.exit_code if code is None else code
                clean = run.clean if clean is None else clean
                raised = raised or run.raised
        return code, clean, raised


def _ending_of(run: Run) -> Ending:
    return run.exit_code, run.clean, run.raised


def _set_ending(run: Run, ending: Ending) -> None:
    run.exit_code, run.clean, run.raised = ending


def _also_in(main: Reader, others: Sequence[Reader]) -> str:
    """Where the run is read, where it is too, and how to choose: `--source` cannot distinguish files of one kind."""
    mine = main.run.place
    kinds = [one.run.place.kind for one in others]
    elsewhere = [kind for kind in dict.fromkeys(kinds) if kind != mine.kind]
    also = [kind if kinds.count(kind) == 1 else f"{kinds.count(kind)} of {kind}" for kind in elsewhere]
    files = [Path(one.run.place.location).name for one in others if one.run.place.kind == mine.kind]
    where = f"{mine.kind} ({Path(mine.location).name})" if files else mine.kind
    choice = "--source chooses" if elsewhere else "name the file to read it"
    return f"read from {where}; the same run is also in {', '.join([*also, *files])}: {choice}"


def output_folder(place: str, root: str) -> Path:
    """The folder of a run, as a person would name it, given the place of its log; never above `root`."""
    folder = place if isdir(place) else split(place)[0]  # noqa: PTH112 (ten times as fast, and asked for every log)
    while folder != root:
        above, name = split(folder)
        is_layout = _LAYOUT.fullmatch(name) or (_DATED.match(name) and _LAYOUT.fullmatch(split(above)[1]))
        if not name or not is_layout:
            break
        folder = above
    return Path(folder)


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
        groups.setdefault(output_folder(reader.run.place.file, str(root)), []).append(reader)
    found: list[Reader] = []
    for folder, group in groups.items():
        kept = with_parts_joined(_joined(sorted(group, key=lambda one: order.index(one.run.place.kind)), folder))
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
        return group  # one tracker, which already separates its runs: perhaps ten thousand of them
    kept: list[list[Reader]] = []
    for reader in group:
        others = [one for one in kept if one[0].run.place.kind != reader.run.place.kind]
        lone = len(others) == 1 and kinds[reader.run.place.kind] == 1 and kinds[others[0][0].run.place.kind] == 1
        if (
            lone
            and _is_laid_out(reader, folder)
            and _is_laid_out(others[0][0], folder)
            and may_be_same(others[0][0], reader)
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
        found = at_same_steps(main.run, other.run)
        compared, alike = sum(one for one, _ in found), sum(one for _, one in found)
        here, there = main.run.last_step, other.run.last_step
        aligned = compared >= FEWEST_VALUES and alike >= AGREEING * compared
        if here is not None and there is not None and aligned and there - here > 2 * _pace(main.run):
            main = other
    return JoinedReader(main, [one for one in group if one is not main])


def _pace(run: Run) -> int:
    """The usual number of steps between two points of the run's fullest series."""
    if not run.series:
        return 1
    fullest = max(run.series.values(), key=len)
    return int(np.median(np.diff(fullest.steps))) if len(fullest) > 1 else 1


def _is_laid_out(reader: Reader, folder: Path) -> bool:
    """Whether a log lies where trainers put it below their output folder; what lies loose in a folder may be another
    run's.
    """
    place = Path(reader.run.place.location)
    return reader.run.place.kind == "trainer_state" or (place if place.is_dir() else place.parent) != folder


def _rename(reader: Reader, folder: Path, root: Path, alone: bool, only: bool) -> None:
    """Names a run by its folder as seen from where the search began; its own name distinguishes it from others in that
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
