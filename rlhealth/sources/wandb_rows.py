"""Rows as wandb and Trackio keep them: which step they belong to, what in them is a number, what a distribution, what a setting."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rlhealth.run import Floats, Run, flat

#: What counts training steps, the first that is there wins; `_step` counts calls of wandb.log and serves where none is.
AXES = ("train/global_step", "global_step", "training/global_step", "trainer/global_step")
#: An axis that first shows itself after so many rows of metrics is a metric of its own, not the axis.
LATE_AXIS = 100
#: transformers writes these once, when training has ended, and never into the history of wandb.
END_OF_TRAINING = ("train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos", "train_loss")
#: Python lists of numbers take four times the room of the arrays that they end in.
FLUSHED_ROWS = 2000
LIST_BINS = 32  # as many as wandb makes of a longer array
LONGEST_SETTING = 2000  # characters; what is longer is a template or a prompt, not a setting
NON_FINITE = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf, "inf": math.inf, "-inf": -math.inf, "+infinity": math.inf, "+inf": math.inf}
EVALUATION = ("eval/", "val/", "test/", "eval_", "val-core/", "val-aux/", "validation/")
SKIPPED = ("_", "profiling/", "system/")
_TRAINER = re.compile(r"profiling/Time taken: (\w+)\.")
_PRIVATE_KEY = re.compile(
    r"(?:^|[._/-])(?:hub_token|push_to_hub_token|access_token|auth_token|token|api_?key|secret\w*|passw\w*|credentials?|private_key|e?mail|host|hostname|host_?name"
    r"|user|username|user_name|base_url|command|cmd|argv|executable)$|(?:access|auth|hub|api|bearer|hf)_?(?:key|token)$|_(?:host|key|secret|password|email)$",
    re.IGNORECASE,
)
_PRIVATE_VALUE = re.compile(
    r"\b(?:hf_|sk-|ghp_|github_pat_|xox[bap]-|AKIA)[A-Za-z0-9_-]{12,}|[\w.+-]+@[\w-]+\.[A-Za-z]{2,}|://[^/\s:@]+:[^/\s@]+@|^[0-9a-f]{40}$|^local-[0-9a-f]{40}$"
)


def number(value: object) -> float | None:
    """The number that `value` is, however NaN and the infinities are spelt; None where it is not one (null, text, list, dict)."""
    if isinstance(value, float):
        return value
    if isinstance(value, int):  # bool too: transformers logs flags
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str):
        return NON_FINITE.get(value.lower())
    return None


def distribution(value: object) -> tuple[Floats, Floats] | None:
    """Bin edges, shape (b+1,), and counts, shape (b,), of a stored histogram or of a plain list of numbers; None where there is neither.

    A histogram is `{"_type": "histogram", "values": counts, "bins": edges}` (wandb), with `packedBins: {min, size, count}` in place of
    the edges (wandb's server), or of `_type` "trackio.histogram". Of a list, the finite numbers are counted in 32 bins of equal width.
    """
    if isinstance(value, Mapping):
        return _stored(value) if value.get("_type") in ("histogram", "trackio.histogram") else None
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)) or not value:
        return None
    numbers = [number(one) for one in value]
    if any(one is None for one in numbers):
        return None
    found = np.asarray(numbers, np.float64)
    return _counted(found[np.isfinite(found)])


def _stored(value: Mapping[str, Any]) -> tuple[Floats, Floats] | None:
    try:
        counts: Floats = np.asarray(value["values"], np.float64)
        if "bins" in value:
            edges: Floats = np.asarray(value["bins"], np.float64)
        else:
            packed = value["packedBins"]
            edges = np.asarray(float(packed["min"]) + float(packed["size"]) * np.arange(counts.size + 1), np.float64)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    fits = counts.ndim == edges.ndim == 1 and len(edges) == len(counts) + 1 and len(counts) > 0
    return (edges, counts) if fits and np.isfinite(edges).all() and np.isfinite(counts).all() else None


def _counted(found: Floats) -> tuple[Floats, Floats] | None:
    if not len(found):
        return None
    low, high = float(found.min()), float(found.max())
    if low == high:  # numpy would make a bin of width 1 round it, and the mean would be off by up to half a bin
        half = max(abs(low), 1.0) * 1e-9
        return np.array([low - half, low + half]), np.array([float(len(found))])
    try:
        counts, edges = np.histogram(found, LIST_BINS)
    except ValueError:  # the range overflows, or is too narrow to be cut in 32
        return None
    return edges, counts.astype(np.float64)


def training_config(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The trainer's settings, flat, without wandb's own (`_…`), without the wrapping {"value": …}, and without anything private.

    A setting is private where its name says so (token, key, password, e-mail, host, command) or its value looks like one. Very long
    texts (chat templates) are left out too.
    """
    bare = {str(key): _unwrapped(value) for key, value in settings.items() if not str(key).startswith("_")}
    return {key: value for key, value in flat(bare).items() if not _private(key, value)}


def _unwrapped(value: object) -> object:
    if isinstance(value, Mapping) and "value" in value and set(value) <= {"value", "desc"}:
        return value["value"]
    return value


def _private(key: str, value: object) -> bool:
    if isinstance(value, str) and (len(value) > LONGEST_SETTING or _PRIVATE_VALUE.search(value)):
        return True
    if isinstance(value, (list, tuple)) and any(isinstance(one, str) and _PRIVATE_VALUE.search(one) for one in value[:100]):
        return True
    return not isinstance(value, (int, float)) and _PRIVATE_KEY.search(key) is not None


def end_of_training(summary: Mapping[str, Any]) -> dict[str, float]:
    """What transformers leaves in the summary only, when training has ended: {"train/train_runtime": seconds, …}, named as in TensorBoard."""
    found = {f"train/{key}": number(summary.get(key, summary.get(f"train/{key}"))) for key in END_OF_TRAINING}
    return {tag: value for tag, value in found.items() if value is not None}


class Rows:
    """Takes history rows in the order in which they were logged and fills a run with them.

    The step of a row is its value of the first of `AXES` that the run has, or the last such value before it; else its `_step`, else its number.
    A tag that goes back to a step it has passed means that the run was resumed there: what was logged later is dropped.
    `null` is NaN for a tag that is a number elsewhere. Call `flush` when the rows of a poll are in.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.axis: str | None = None
        self.rows = 0
        self._step = 0
        self._highest = -1
        self._last: dict[str, int] = {}
        self._pending: dict[str, tuple[list[int], list[float], list[float]]] = {}
        self._nulls: dict[str, tuple[list[int], list[float], list[float]]] = {}
        self._skipped_lists: dict[str, int] = {}
        run.step_axis = "_step"

    def take(self, row: Mapping[str, Any]) -> None:
        """Takes one row, `{"train/reward": 0.5, "_step": 12, …}`; nested values are dicts (a histogram, a table, a group of metrics)."""
        found = {tag: value for tag, value in _metrics(row) if tag not in AXES}
        step = self._step_of(row, bool(found))
        if not found:
            self._name_trainer(row)
            return
        self.rows += 1
        if step < self._highest:
            self._look_for_a_resume(step, found)
        self._highest = max(self._highest, step)
        time = number(row.get("_timestamp", math.nan))
        for tag, value in found.items():
            self._put(tag, value, step, math.nan if time is None else time)
        if self.rows % FLUSHED_ROWS == 0:
            self.flush()

    def flush(self) -> bool:
        """Moves what was taken into the run; True where there was anything."""
        moved = bool(self._pending)
        for tag, (steps, values, times) in self._pending.items():
            self.run.add(tag, steps, values, times)
        self._pending.clear()
        return moved

    def end(self, summary: Mapping[str, Any]) -> bool:
        """Adds what the summary alone holds of the end of training, at the last step; True where there was any."""
        found = end_of_training(summary)
        if not found:
            return False
        self.flush()
        step = self.run.last_step or 0
        for tag, value in found.items():
            self.run.series.pop(tag, None)
            self.run.add(tag, [step], [value], [self.run.last_time])
        return True

    def _step_of(self, row: Mapping[str, Any], has_metrics: bool) -> int:
        if self.axis is None and self.rows < LATE_AXIS:
            self.axis = next((name for name in AXES if _whole(row.get(name)) is not None), None)
            if self.axis:
                self._change_axis(row)
        if self.axis:
            step = _whole(row.get(self.axis))
            self._step = self._step if step is None else step
        else:
            step = _whole(row.get("_step"))
            self._step = self._step + (self.rows > 0 and has_metrics) if step is None else step
        return self._step

    def _change_axis(self, row: Mapping[str, Any]) -> None:
        """What came before the axis showed itself is put at the first step that the axis names: its own numbers count something else."""
        assert self.axis is not None
        self.run.step_axis = self.axis
        if not self.rows:
            return
        self.flush()
        first = _whole(row[self.axis]) or 0
        for tag, series in self.run.series.items():
            last, time = float(series.values[-1]), float(series.times[-1])
            series.rewind(int(series.steps[0]))
            series.extend([first], [last], [time])
            self._last[tag] = first
        for histogram in self.run.histograms.values():
            histogram.rewind(histogram.steps[-1] + 1)
            edges, counts, seconds = histogram.edges[-1], histogram.counts[-1], histogram.times[-1]
            histogram.rewind(histogram.steps[0])
            histogram.add(first, edges, counts, seconds)
        self._highest = first
        self.run.notes.append(f"{self.rows} rows were logged before {self.axis} first appeared; they stand at step {first}, the last of them per metric")

    def _look_for_a_resume(self, step: int, found: Mapping[str, Any]) -> None:
        again = [tag for tag in found if self._last.get(tag, -1) > step and not tag.startswith(EVALUATION)]
        if not again:
            return
        self.flush()
        self.run.rewind(step)
        self._last = {tag: min(last, step - 1) for tag, last in self._last.items()}
        self._highest = step

    def _put(self, tag: str, value: object, step: int, time: float) -> None:
        found = number(value)
        if found is None and value is not None:
            self._put_distribution(tag, value, step, time)
            return
        known = tag in self._last
        if found is None and not known:  # null: NaN if the tag turns out to be a number
            steps, values, times = self._nulls.setdefault(tag, ([], [], []))
        else:
            if not known and tag in self._nulls:
                self._pending[tag] = self._nulls.pop(tag)
            steps, values, times = self._pending.setdefault(tag, ([], [], []))
            self._last[tag] = step
        steps.append(step)
        values.append(math.nan if found is None else found)
        times.append(time)

    def _put_distribution(self, tag: str, value: object, step: int, time: float) -> None:
        found = distribution(value)
        if found is not None:
            self.run.histogram(tag).add(step, *found, time)
        if isinstance(value, list) and any((one := number(each)) is not None and not math.isfinite(one) for each in value):
            note = f"{tag}: numbers that are not finite were left out of its distribution"
            if note not in self.run.notes:
                self.run.notes.append(note)

    def _name_trainer(self, row: Mapping[str, Any]) -> None:
        """TRL's profiling rows name the trainer's class, which its metrics do not tell (GRPO and RLOO log the same names)."""
        if "trainer_class" in self.run.config:
            return
        for key in row:
            named = _TRAINER.match(key)
            if named:
                self.run.config["trainer_class"] = named[1]
                return


def _metrics(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Tags and values of a row; a dict without `_type` is a group of metrics, which wandb names `outer.inner`; media and tables are no metrics."""
    for key, value in row.items():
        if not prefix and key.startswith(SKIPPED):
            continue
        if isinstance(value, Mapping):
            if value.get("_type") in ("histogram", "trackio.histogram"):
                yield f"{prefix}{key}", value
            elif "_type" not in value and prefix.count(".") < 8:  # deeper than anything a trainer logs
                yield from _metrics(value, f"{prefix}{key}.")
        elif not isinstance(value, str) or value.lower() in NON_FINITE:
            yield f"{prefix}{key}", value


def _whole(value: object) -> int | None:
    found = number(value)
    return int(found) if found is not None and math.isfinite(found) and abs(found) < 2**62 else None
