"""Run: the one shape that every source produces."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rlhealth.replaced import (
    MOST_REPLACED,
    EarlierPoints,
    Segment,
    before_resumes,
    by_other_writers,
    segment_until,
)
from rlhealth.series import Floats, Histogram, Ints, Points, Series

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "INTERRUPT",
    "LONGEST_TAG",
    "MOST_TAGS",
    "Floats",
    "Histogram",
    "Ints",
    "Place",
    "Points",
    "Replaced",
    "Run",
    "Segment",
    "Series",
    "UnreadFile",
    "flat",
    "unique_name",
]
#: More metrics than this in one run are dropped, with a problem that says so; a longer name is no name.
MOST_TAGS = 100_000
LONGEST_TAG = 4096
INTERRUPT = "KeyboardInterrupt"  # how an exception begins with which somebody stopped a run


@dataclass(frozen=True)
class Place:
    """Where a run was read from: the kind of tracker, a path or address, and which of its runs, where a file holds
    several.
    """

    kind: str
    file: str
    part: str = ""

    @property
    def location(self) -> str:
        """All of it as reports show it: `logs/train.log#2`."""
        return f"{self.file}#{self.part}" if self.part else self.file


@dataclass(frozen=True)
class Replaced:
    """A run as it stood before a resume, or as another writer logged it: from `step` on it differs from the run as it
    is; `said` names it.
    """

    step: int
    said: str
    run: Run


@dataclass(frozen=True)
class UnreadFile:
    """A file that looks like a log and was not read, and why."""

    location: str
    reason: str


@dataclass(repr=False)
class Run:
    """One training run, whichever tracker wrote it.

    Attributes:
        name: what reports call it.
        place: the tracker and the location.
        series: scalars by raw tag.
        histograms: distributions by raw tag.
        config: the trainer's arguments, flat; nested keys are joined with a dot.
        versions: library versions that a file contains, such as {"trl": "1.16.0"}.
        exit_code: how the process ended, where the tracker recorded it.
        planned_steps: the number of steps that the tracker itself says were planned (not the config).
        step_axis: what the steps count, in a word ("global_step", "row").
        resumed_at: the first step of each continuation after the first start.
        replaced: what each resume replaced, in the order of the resumes.
        problems: what was damaged or lost in reading, one sentence each.
        notes: what was assumed or chosen in reading, one sentence each.
        modified: when the files were last written, seconds since 1970. A copy is fresh: no verdict rests on it.
        clean: True if the log shows that training ended in good order, False if it shows that its writer died (a
            torn end); None if it shows nothing.
        raised: the exception that ended training, where the console or the cell of the notebook ends with one:
            `RuntimeError: …`.
        solved: the line in which the script says that its task is solved: `Environment solved in 747 episodes!`.
        refused: how often points came under a name that is not kept: too long, or one too many.
        heartbeat: when the tracker's server last heard from the run, seconds since 1970.
        trainer: the name of the trainer's class, where the log or the code beside it names it, such as "GRPOTrainer".
        begun_anew: its log goes on with another run, whose steps begin again: nobody says that this one had ended.
        excerpted: tags of which somebody displayed a part of the steps: that the others lack them says nothing.
    """

    name: str
    place: Place
    series: dict[str, Series] = field(default_factory=dict)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    planned_steps: int | None = None
    step_axis: str = "global_step"
    resumed_at: list[int] = field(default_factory=list)
    replaced: list[Segment] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    modified: float = float("nan")
    clean: bool | None = None
    raised: str = ""
    solved: str = ""
    refused: int = 0
    heartbeat: float = float("nan")
    trainer: str = ""
    begun_anew: bool = False
    excerpted: set[str] = field(default_factory=set)

    def __repr__(self) -> str:
        steps = "" if self.first_step is None else f", steps {self.first_step} to {self.last_step}"
        return f"Run({self.name!r}, {self.place.kind}, {len(self.series)} metrics{steps})"

    @property
    def died_at_start(self) -> bool:
        """Whether an exception ended it before its second row, and not somebody at the keyboard. (The first row of a
        console may be settings.)"""
        is_short = all(len(one) < 2 for kept in (self.series, self.histograms) for one in kept.values())
        return bool(self.raised) and is_short and not self.raised.startswith(INTERRUPT)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of it: no point, no distribution, and no exception that ended it at its start."""
        return not (self.series or self.histograms or self.died_at_start)

    def keeps(self, tag: str, more: int = 0) -> bool:
        """Whether there is room for that name: known, or of sane length and among the first `MOST_TAGS` (`more` are
        known elsewhere).
        """
        if (
            tag in self.series
            or tag in self.histograms
            or (len(tag) <= LONGEST_TAG and max(len(self.series), len(self.histograms), more) < MOST_TAGS)
        ):
            return True
        self.refused += 1
        return False

    @property
    def refusals(self) -> list[str]:
        """What was not read for its names, as a problem; nothing if all was."""
        said = f"left out: more than {MOST_TAGS:,} metrics, or names longer than {LONGEST_TAG:,} characters"
        return [f"{said} (met {self.refused:,} times)"] if self.refused else []

    def add(
        self,
        tag: str,
        steps: Sequence[int] | Ints,
        values: Sequence[float] | Floats,
        times: Sequence[float] | Floats | None = None,
    ) -> None:
        """Adds points of one scalar, each of shape (k,)."""
        series = self.series.get(tag)
        if series is None:
            if not self.keeps(tag):
                return
            series = self.series[tag] = Series(tag)
        series.extend(steps, values, times)

    def histogram(self, tag: str) -> Histogram:
        """The distribution of that tag, made on first use; where there is no room for the name, one that nobody
        keeps.
        """
        found = self.histograms.get(tag)
        if found is None:
            found = Histogram(tag)
            if self.keeps(tag):
                self.histograms[tag] = found
        return found

    def rewind(self, step: int) -> None:
        """Notes that the run was resumed at `step`: what was logged from there on is replaced, and kept in
        `replaced`.
        """
        points = {tag: one.since(step) for tag, one in self.series.items() if len(one) and one.steps[-1] >= step}
        bins = {tag: one.since(step) for tag, one in self.histograms.items() if len(one) and one.steps[-1] >= step}
        if points or bins:
            self.replaced.append(Segment(int(step), points, bins))
        self.forget(step)
        self.resumed_at.append(int(step))

    def clear(self) -> None:
        """Drops every point, and what resumes replaced, to read the run again from its beginning."""
        self.series.clear()
        self.histograms.clear()
        self.resumed_at.clear()
        self.replaced.clear()

    def forget(self, step: int) -> None:
        """Drops what stands at `step` or later, to read it again."""
        for one in self.series.values():
            one.rewind(step)
        for other in self.histograms.values():
            other.rewind(step)

    @property
    def replacements(self) -> tuple[int, int]:
        """How many resumes replaced something, and how often values were overwritten: where neither has changed,
        `before` is as it was.
        """
        return len(self.replaced), sum(len(one.overwritten) for one in self.series.values())

    def before(self) -> Iterator[Replaced]:
        """The run as it stood before each resume, the newest resume first, then as the writers logged it whose values
        were overwritten.

        Of more than `MOST_REPLACED` the others are left, and a problem says so.
        """
        resumes = before_resumes(self.series, self.histograms, self.replaced)
        for number, one in zip(range(len(self.replaced) - 1, -1, -1), resumes, strict=False):
            yield self._as(one, self.resumed_at[:number])
        if len(self.replaced) > MOST_REPLACED:
            _add_once(
                f"resumed {len(self.replaced):,} times: what the first "
                f"{len(self.replaced) - MOST_REPLACED:,} replaced was not judged",
                self.problems,
            )
        for count, one in by_other_writers(self.series, self.histograms):
            _add_once(f"{count:,} steps were logged again with other values: both were judged", self.notes)
            yield self._as(one, self.resumed_at)

    def _as(self, one: EarlierPoints, resumed_at: list[int]) -> Replaced:
        run = Run(
            name=self.name,
            place=self.place,
            series=one.series,
            histograms=one.histograms,
            config=self.config,
            versions=self.versions,
            exit_code=None,
            planned_steps=self.planned_steps,
            step_axis=self.step_axis,
            resumed_at=list(resumed_at),
            modified=self.modified,
            begun_anew=True,
            excerpted=self.excerpted,
        )
        return Replaced(one.step, one.said, run)

    def until(self, step: int) -> Run:
        """The run as it stood when `step` had been written: the prefix that a watcher would have seen."""
        return Run(
            name=self.name,
            place=self.place,
            series={tag: one.until(step) for tag, one in self.series.items()},
            histograms={tag: one.until(step) for tag, one in self.histograms.items()},
            config=self.config,
            versions=self.versions,
            exit_code=None,
            planned_steps=self.planned_steps,
            step_axis=self.step_axis,
            resumed_at=[s for s in self.resumed_at if s <= step],
            replaced=[segment_until(one, step) for one in self.replaced if one.step <= step],
            problems=list(self.problems),
            notes=list(self.notes),
            modified=self.modified,
            clean=None,
            trainer=self.trainer,
            excerpted=self.excerpted,
        )

    @property
    def first_step(self) -> int | None:
        """The first step of any scalar, or None if there is none."""
        return min((int(one.steps[0]) for one in self.series.values() if len(one)), default=None)

    @property
    def last_step(self) -> int | None:
        """The last step of any scalar, or None if there is none."""
        return max((int(one.steps[-1]) for one in self.series.values() if len(one)), default=None)

    @property
    def last_time(self) -> float:
        """Wall time of the newest point, seconds since 1970; NaN if none is known."""
        newest = [float(one.times[-1]) for one in self.series.values() if len(one)]
        known = [time for time in newest if np.isfinite(time)]
        return max(known, default=float("nan"))

    def frame(self) -> pd.DataFrame:
        """The scalars as one long table: run, tag, step, time (seconds since 1970), value."""
        import pandas as pd  # late: half a second, and only tables need it

        parts = [
            pd.DataFrame({"run": self.name, "tag": tag, "step": one.steps, "time": one.times, "value": one.values})
            for tag, one in self.series.items()
        ]
        columns = ["run", "tag", "step", "time", "value"]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _add_once(said: str, where: list[str]) -> None:
    if said not in where:
        where.append(said)


def flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one level, keys joined with a dot: {"a": {"b": 1}} gives {"a.b": 1}."""
    found: dict[str, Any] = {}
    for key, value in nested.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found.update(flat(value, f"{name}."))
        else:
            found[name] = value
    return found


def unique_name(name: str, taken: Collection[str]) -> str:
    """`name`, or `name (2)`, `name (3)` … where it is taken; of many names, `taken` is a set."""
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name} ({count})"
    return candidate
