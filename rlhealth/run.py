"""Run, Series, Histogram: the one shape that every source produces."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

#: More metrics than this in one run are dropped, with a problem that says so; a longer name is no name.
MOST_TAGS = 100_000
LONGEST_TAG = 4096
#: More replaced parts of one run than this are not judged, with a problem that says so.
MOST_REPLACED = 32
#: So many values of one metric must have been overwritten for them to be judged as another writer's; one that is not
#: finite is enough.
FEWEST_OVERWRITTEN = 3
DENSE = 0.9  # of the steps between the first and the last of them must be theirs
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Points = tuple[Ints, Floats, Floats]  # steps, values, times


class Series:
    """One scalar over steps. It grows at its end; steps are strictly increasing, NaN and infinities are kept.

    Attributes:
        tag: the name as the tracker wrote it.
        revision: counts the changes that were not a growth at the end (a rewind, a late point).
        overwritten: points whose values a later point at the same step replaced with others, in the order in which that
            happened.
    """

    __slots__ = ("_size", "_steps", "_times", "_values", "overwritten", "revision", "tag")

    def __init__(
        self,
        tag: str,
        steps: Sequence[int] | Ints = (),
        values: Sequence[float] | Floats = (),
        times: Sequence[float] | Floats | None = None,
    ) -> None:
        self.tag = tag
        self.revision = 0
        self.overwritten: list[Points] = []
        self._size = 0
        self._steps: Ints = np.empty(0, np.int64)
        self._values: Floats = np.empty(0, np.float64)
        self._times: Floats = np.empty(0, np.float64)
        if len(steps):
            self.extend(steps, values, times)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Series({self.tag!r}, {self._size} points)"

    @property
    def steps(self) -> Ints:
        """Steps, shape (n,), strictly increasing."""
        return self._steps[: self._size]

    @property
    def values(self) -> Floats:
        """Values, shape (n,), in the unit in which they were logged."""
        return self._values[: self._size]

    @property
    def times(self) -> Floats:
        """Wall times, shape (n,), seconds since 1970; NaN if the tracker kept none."""
        return self._times[: self._size]

    def extend(
        self,
        steps: Sequence[int] | Ints,
        values: Sequence[float] | Floats,
        times: Sequence[float] | Floats | None = None,
    ) -> None:
        """Adds points, each of shape (k,). Points may come unordered or twice: the later one wins at its step."""
        new_steps = np.asarray(steps, np.int64)
        new_values = np.asarray(values, np.float64)
        new_times = np.full(len(new_steps), np.nan) if times is None else np.asarray(times, np.float64)
        if not len(new_steps):
            return
        grows = (not self._size or new_steps[0] > self._steps[self._size - 1]) and bool(
            np.all(new_steps[1:] > new_steps[:-1])
        )
        if not grows:
            new_steps = np.concatenate([self.steps, new_steps])
            new_values = np.concatenate([self.values, new_values])
            new_times = np.concatenate([self.times, new_times])
            order = np.argsort(new_steps, kind="stable")
            ordered = new_steps[order]
            last = np.append(ordered[1:] != ordered[:-1], True)
            keep = order[last]
            if not last.all():
                self._note_overwritten(order, last, new_steps, new_values, new_times)
            if self._size:
                self.revision += 1
            self._size = 0
            new_steps, new_values, new_times = new_steps[keep], new_values[keep], new_times[keep]
        self._reserve(self._size + len(new_steps))
        end = self._size + len(new_steps)
        self._steps[self._size : end] = new_steps
        self._values[self._size : end] = new_values
        self._times[self._size : end] = new_times
        self._size = end

    def _note_overwritten(
        self, order: Ints, last: NDArray[np.bool_], steps: Ints, values: Floats, times: Floats
    ) -> None:
        """Keeps the points that give way to a later one with another value at their step."""
        kept_by = np.flatnonzero(last)[np.searchsorted(np.flatnonzero(last), np.arange(len(order)))]
        before, after = values[order], values[order[kept_by]]
        other = ~last & (before != after) & ~(np.isnan(before) & np.isnan(after))
        if other.any():
            lost = order[other]
            self.overwritten.append((steps[lost], values[lost], times[lost]))

    def rewind(self, step: int) -> None:
        """Drops every point at `step` or later: the run was resumed from before it."""
        keep = int(np.searchsorted(self.steps, step, side="left"))
        if keep < self._size:
            self._size = keep
            self.revision += 1

    def until(self, step: int) -> Series:
        """The points up to and including `step`, as a view."""
        end = int(np.searchsorted(self.steps, step, side="right"))
        cut = Series(self.tag)
        cut._steps, cut._values, cut._times, cut._size = self._steps[:end], self._values[:end], self._times[:end], end
        for steps, values, times in self.overwritten:
            there = steps <= step
            cut.overwritten.append((steps[there], values[there], times[there]))
        return cut

    def since(self, step: int) -> Points:
        """Copies of the points at `step` or later."""
        start = int(np.searchsorted(self.steps, step, side="left"))
        return self.steps[start:].copy(), self.values[start:].copy(), self.times[start:].copy()

    def _reserve(self, size: int) -> None:
        if size <= len(self._steps):
            return
        room = max(size, 2 * len(self._steps)) if self._size else size
        for name in ("_steps", "_values", "_times"):
            old = getattr(self, name)
            grown = np.empty(room, old.dtype)
            grown[: self._size] = old[: self._size]
            setattr(self, name, grown)


class Histogram:
    """One distribution over steps: at each step, bin edges of shape (b+1,) and counts of shape (b,)."""

    __slots__ = ("counts", "edges", "revision", "steps", "tag", "times")

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.revision = 0
        self.steps: list[int] = []
        self.times: list[float] = []
        self.edges: list[Floats] = []
        self.counts: list[Floats] = []

    def __len__(self) -> int:
        return len(self.steps)

    def add(
        self, step: int, edges: Sequence[float] | Floats, counts: Sequence[float] | Floats, time: float = float("nan")
    ) -> None:
        """Adds the distribution at `step`; one already there, or later, is dropped (the later writer wins).

        Raises:
            ValueError: if there is not one edge more than counts.
        """
        if len(edges) != len(counts) + 1:
            raise ValueError(f"{self.tag}: {len(edges)} edges for {len(counts)} counts")
        if self.steps and step <= self.steps[-1]:
            self.rewind(step)
        self.steps.append(int(step))
        self.times.append(float(time))
        self.edges.append(np.asarray(edges, np.float64))
        self.counts.append(np.asarray(counts, np.float64))

    def rewind(self, step: int) -> None:
        """Drops every distribution at `step` or later."""
        keep = int(np.searchsorted(self.steps, step, side="left"))
        if keep < len(self.steps):
            for kept in (self.steps, self.times, self.edges, self.counts):
                del kept[keep:]
            self.revision += 1

    def since(self, step: int) -> Histogram:
        """The distributions at `step` or later."""
        start = int(np.searchsorted(self.steps, step, side="left"))
        return self._part(slice(start, None))

    def until(self, step: int) -> Histogram:
        """The distributions up to and including `step`."""
        end = int(np.searchsorted(self.steps, step, side="right"))
        return self._part(slice(0, end))

    def _part(self, part: slice) -> Histogram:
        cut = Histogram(self.tag)
        cut.steps, cut.times, cut.edges, cut.counts = (
            self.steps[part],
            self.times[part],
            self.edges[part],
            self.counts[part],
        )
        return cut


@dataclass(frozen=True)
class Place:
    """Where a run was read from: the kind of tracker and a path or address."""

    kind: str
    location: str


@dataclass(frozen=True)
class Segment:
    """What a resume replaced: every point from `step` on, as it was before, by tag."""

    step: int
    points: dict[str, Points]
    histograms: dict[str, Histogram]


@dataclass(frozen=True)
class Replaced:
    """A run as it stood before a resume, or as another writer told it: from `step` on it differs from the run as it
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
        versions: library versions that a file tells, such as {"trl": "1.16.0"}.
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
        refused: how often points came under a name that is not kept: too long, or one too many.
        heartbeat: when the tracker's server last heard from the run, seconds since 1970.
        trainer: the name of the trainer's class, where the log or the code beside it names it, such as "GRPOTrainer".
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
    refused: int = 0
    heartbeat: float = float("nan")
    trainer: str = ""

    def __repr__(self) -> str:
        steps = "" if self.first_step is None else f", steps {self.first_step} to {self.last_step}"
        return f"Run({self.name!r}, {self.place.kind}, {len(self.series)} metrics{steps})"

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
        """The run as it stood before each resume, the newest resume first, then as the writers told it whose values
        were overwritten.

        Of more than `MOST_REPLACED` the others are left, and a problem says so.
        """
        now, bins = dict(self.series), dict(self.histograms)
        for number in range(len(self.replaced) - 1, max(-1, len(self.replaced) - 1 - MOST_REPLACED), -1):
            segment = self.replaced[number]
            now = {tag: _with_tail(tag, now.get(tag), segment) for tag in now.keys() | segment.points.keys()}
            bins = {tag: _with_bins(tag, bins.get(tag), segment) for tag in bins.keys() | segment.histograms.keys()}
            said = f"before the run was resumed at step {segment.step:,}"
            yield Replaced(segment.step, said, self._as(now, bins, self.resumed_at[:number]))
        if len(self.replaced) > MOST_REPLACED:
            self._tell(
                f"resumed {len(self.replaced):,} times: what the first "
                f"{len(self.replaced) - MOST_REPLACED:,} replaced was not judged"
            )
        yield from self._overwritten()

    def _overwritten(self) -> Iterator[Replaced]:
        """The run with the values that were overwritten, those of the first writer first."""
        writers = [_by_writer(one) for one in self.series.values()]
        for number in range(min(MOST_REPLACED, max(map(len, writers), default=0))):
            told = {
                one.tag: writer[number]
                for one, writer in zip(self.series.values(), writers, strict=True)
                if len(writer) > number
            }
            if not any(_is_telling(points, self.series[tag]) for tag, points in told.items()):
                continue
            first = min(int(steps[0]) for steps, _, _ in told.values())
            count = max(len(steps) for steps, _, _ in told.values())
            self._tell(f"{count:,} steps were logged again with other values: both were judged", self.notes)
            series = {tag: _with_points(one, told.get(tag)) for tag, one in self.series.items()}
            said = "as it was logged first, at steps that were logged again with other values"
            yield Replaced(first, said, self._as(series, self.histograms, self.resumed_at))

    def _as(self, series: dict[str, Series], histograms: dict[str, Histogram], resumed_at: list[int]) -> Run:
        return Run(
            name=self.name,
            place=self.place,
            series=series,
            histograms=histograms,
            config=self.config,
            versions=self.versions,
            exit_code=None,
            planned_steps=self.planned_steps,
            step_axis=self.step_axis,
            resumed_at=list(resumed_at),
            modified=self.modified,
        )

    def _tell(self, said: str, where: list[str] | None = None) -> None:
        where = self.problems if where is None else where
        if said not in where:
            where.append(said)

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
            replaced=[_segment_until(one, step) for one in self.replaced if one.step <= step],
            problems=list(self.problems),
            notes=list(self.notes),
            modified=self.modified,
            clean=None,
            trainer=self.trainer,
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


def _with_tail(tag: str, now: Series | None, segment: Segment) -> Series:
    """A series as it stood before a resume: what stands before the resume's step, then what the resume replaced."""
    kept = Series(tag) if now is None else now.until(segment.step - 1)
    made = Series(tag, kept.steps, kept.values, kept.times)
    if tag in segment.points:
        made.extend(*segment.points[tag])
    return made


def _with_bins(tag: str, now: Histogram | None, segment: Segment) -> Histogram:
    made = (Histogram(tag) if now is None else now).until(segment.step - 1)
    tail = segment.histograms.get(tag)
    if tail is not None:
        made.steps, made.times = made.steps + tail.steps, made.times + tail.times
        made.edges, made.counts = made.edges + tail.edges, made.counts + tail.counts
    return made


def _with_points(one: Series, points: Points | None) -> Series:
    """A series with other values at some of its steps; steps that it does not have are left out."""
    made = Series(one.tag, one.steps, one.values, one.times)
    if points is not None:
        steps, values, times = points
        there = np.isin(steps, one.steps)
        made.extend(steps[there], values[there], times[there])
    made.overwritten.clear()
    return made


def _by_writer(one: Series) -> list[Points]:
    """The overwritten points of a series, one list for the first value of each step, one for the second, …"""
    if not one.overwritten:
        return []
    steps, values, times = (np.concatenate(part) for part in zip(*one.overwritten, strict=True))
    order = np.argsort(steps, kind="stable")
    steps, values, times = steps[order], values[order], times[order]
    begins = np.flatnonzero(np.append(True, steps[1:] != steps[:-1]))
    turn = np.arange(len(steps)) - np.repeat(begins, np.diff(np.append(begins, len(steps))))
    return [
        (steps[turn == number], values[turn == number], times[turn == number]) for number in range(int(turn.max()) + 1)
    ]


def _is_telling(points: Points, series: Series) -> bool:
    """Whether what was overwritten is another writer's: it wrote most steps of a stretch, or a value that is not
    finite.

    Several environments that end an episode at one step log several values there, now and then.
    """
    steps, values, _ = points
    if not np.isfinite(values).all():
        return True
    begin, end = np.searchsorted(series.steps, [steps[0], steps[-1] + 1])
    return bool(len(steps) >= max(FEWEST_OVERWRITTEN, DENSE * (end - begin)))


def _segment_until(one: Segment, step: int) -> Segment:
    points = {}
    for tag, (steps, values, times) in one.points.items():
        end = int(np.searchsorted(steps, step, side="right"))
        points[tag] = steps[:end], values[:end], times[:end]
    return Segment(one.step, points, {tag: bins.until(step) for tag, bins in one.histograms.items()})


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
