"""Texts: the completions of one run become series of it, step by step, beside those that its trainer logged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rlhealth.completions.batch import Batch
from rlhealth.completions.places import find, is_online, named
from rlhealth.completions.stores import CompletionFolder, Store
from rlhealth.metrics.catalogue import TEXT
from rlhealth.run import Run
from rlhealth.sources.base.reader import Reader

if TYPE_CHECKING:
    from rlhealth.sources.trackio.project import Project

#: The first so many steps are measured one by one, then every second, and every fourth as often again, and so on: a
#: long run costs little more than a short one, and whether a step is measured does not depend on later steps.
EVERY = 250
_COMPARED = 5  # steps at which the rewards of the texts are compared with those that the run logged
_SAME = 1e-3
_MOST_REPORTED = 3
_REWARDS = ("rewards/{f}/mean", "train/rewards/{f}/mean")


class CompletionReader:
    """Reads the completions of a run as they appear, and adds what was measured of them to its series.

    Only numbers are kept: the texts themselves are read again where they are to be shown.

    Args:
        run: whose texts they are.
        places: where the texts lie, if not beside its logs.
        project: the database from which the run is read, where Trackio wrote it, so that it is not opened twice.
        asked: whether the user asked for completions, so that they are fetched from a server.
    """

    def __init__(
        self, run: Run, places: Sequence[str] = (), project: Project | None = None, *, asked: bool = False
    ) -> None:
        self.run = run
        self.places = list(places)
        self.project = project
        self.asked = asked
        self.store: Store | None = None
        self.sampled = 0
        self._said: list[str] = []
        self._waiting: dict[int, dict[str, float]] = {}
        self._compared: dict[int, bool] = {}
        self._foreign = False
        self._graded = False  # whether a reward was seen that is not simply right or wrong
        self._resumed = len(run.resumed_at)
        self._searched: object = None

    def poll(self) -> bool:
        """Measures what is new; True if a point was added to the run. What cannot be read becomes a problem of the
        run."""
        if self._foreign:
            return False
        self._find()
        if self.store is None:
            self._write_problems()
            return False
        if len(self.run.resumed_at) != self._resumed:
            self._resumed = len(self.run.resumed_at)
            if isinstance(self.store, CompletionFolder):
                self.store.look_again()
        for batch in self.store.poll(is_measured):
            self._take(batch)
        added = False if self._foreign else self._move()
        self._write_problems()
        return added

    def add(self, batch: Batch) -> None:
        """Measures the texts of one step that a training loop hands over."""
        self._take(batch)

    def move(self) -> bool:
        """Adds what was measured to the run, as far as the run has come; True where a point was added."""
        return self._move()

    def _find(self) -> None:
        """Looks for the texts, again where the run has grown since they were not there."""
        if self.store is not None and (self.places or self.store.steps() or is_online(self.run)):
            return
        if self.places:
            self.store = named(self.places[0])
            return
        here = None if is_online(self.run) else (self.run.last_step, len(self.run.config))
        if (here,) == self._searched:  # of an online run, once
            return
        self._searched = (here,)
        found, self._said = find(self.run, self.project, asked=self.asked)
        if found and (self.store is None or found[0].place != self.store.place):
            self.store = found[0]

    def _take(self, batch: Batch) -> None:
        if batch.step is None:
            return
        from rlhealth.completions.measures import measured  # late: most runs log no texts
        from rlhealth.completions.rewards import SOLVED, is_right_or_wrong

        values, looked = measured(batch)
        self._graded = self._graded or not is_right_or_wrong(batch)
        if self._graded:
            values = {name: value for name, value in values.items() if name not in SOLVED}
        self.sampled += looked < len(batch) + batch.left_out
        self._waiting[batch.step] = values
        if len(self._compared) < _COMPARED and not self.places:
            self._compare(batch)

    def _move(self) -> bool:
        """Adds the measures of the steps that the run has reached; texts beyond its last step may be of an earlier
        start."""
        last = max(
            (int(one.steps[-1]) for tag, one in self.run.series.items() if len(one) and not is_text(tag)), default=None
        )
        ready = sorted(step for step in self._waiting if last is None or step <= last)
        for step in ready:
            for tag, value in self._waiting.pop(step).items():
                self.run.add(tag, [step], [value])
        return bool(ready)

    def _compare(self, batch: Batch) -> None:
        """Whether the rewards of these texts are those that the run logged at that step; a folder may hold the texts of
        another run."""
        for name, values in batch.functions.items():
            for tag in _REWARDS:
                series = self.run.series.get(tag.replace("{f}", name))
                if series is None or batch.step is None:
                    continue
                place = int(np.searchsorted(series.steps, batch.step))
                if place < len(series) and series.steps[place] == batch.step and math.isfinite(series.values[place]):
                    logged, mine = float(series.values[place]), float(np.nanmean(values))
                    self._compared[batch.step] = abs(logged - mine) <= _SAME * max(abs(logged), abs(mine), 1.0)
        self._foreign = len(self._compared) >= _COMPARED and not any(self._compared.values()) and self._every_step()

    def _every_step(self) -> bool:
        """Whether the run logged every step; else its rewards are means over several, and the texts are of the last
        one."""
        first = next((one for tag, one in self.run.series.items() if tag.endswith("reward") and len(one) > 1), None)
        return first is not None and bool(np.median(np.diff(first.steps)) == 1)

    def _write_problems(self) -> None:
        """Writes the notes and problems about the texts into the run, whose reader may have replaced its lists."""
        said = list(self._said)
        if self.store is not None:
            said += _first(self.store.problems)
            if self._foreign:
                said.append(
                    f"completions: {self.store.place} holds those of another run (its rewards differ); not read"
                )
            if self.sampled:
                said.append(f"completions: at {self.sampled:,} steps only some of the texts were measured (too many)")
            if len(self.store.steps()) > EVERY:
                said.append(
                    f"completions: every step up to the {EVERY}th was measured, then every second, every fourth, …"
                )
        self.run.problems[:] = [one for one in self.run.problems if not one.startswith("completions: ")]
        self.run.notes[:] = [one for one in self.run.notes if not one.startswith("completions: ")]
        lost = _first(self.store.problems) if self.store is not None else []
        self.run.problems += lost
        self.run.notes += [one for one in said if one not in lost]


def is_measured(number: int) -> bool:
    """Whether the step with that number (from 0) is measured: each of the first `EVERY`, then one in 2, 4, 8, … for as
    many again."""
    return number % (1 << (number // EVERY).bit_length()) == 0


def is_text(tag: str) -> bool:
    """Whether a series was measured from completions."""
    return tag.startswith(TEXT)


def _first(problems: list[str]) -> list[str]:
    more = len(problems) - _MOST_REPORTED
    return problems[:_MOST_REPORTED] + (
        [f"completions: and {more:,} more files that could not be read"] if more > 0 else []
    )


def texts_of(reader: Reader, place: str | None = None) -> CompletionReader:
    """The reader of a run's texts; an empty `place` means those beside its logs or on its server."""
    project: Project | None = None
    if reader.run.place.kind == "trackio":
        project = getattr(getattr(reader, "main", reader), "project", None)
    return CompletionReader(reader.run, [place] if place else [], project, asked=place is not None)


def read_texts(reader: Reader, place: str | None = None) -> None:
    """Adds the measures of a run's completions, as far as they are written, to the run that was read.

    Raises:
        RlhealthError: if `place` was named and holds none.
    """
    texts_of(reader, place).poll()
