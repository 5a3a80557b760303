"""What a stretch of an event file holds, and the decoder that adds records to it one by one."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rlhealth.run import Floats, Ints
from rlhealth.sources.tensorboard.eventrecord import Event, event
from rlhealth.sources.tensorboard.eventvalues import Item, Scalar

_MOST_KINDS = 100_000
_SIMPLE_VALUE = 0x15  # the key of Summary.Value.simple_value
_LONGEST_STEP = 5  # bytes of a step's varint that the vectorised path takes: steps below 2^35
_LONGEST = 4096  # bytes of a payload that it takes


class Points:
    """The points of one tag in the order of the file, collected one by one or as arrays."""

    __slots__ = ("_chunks", "_steps", "_times", "_values")

    def __init__(self) -> None:
        self._chunks: list[tuple[Ints, Floats, Floats]] = []
        self._steps: list[int] = []
        self._values: list[float] = []
        self._times: list[float] = []

    def add(self, step: int, value: float, time: float) -> None:
        """Adds one point."""
        self._steps.append(step)
        self._values.append(value)
        self._times.append(time)

    def extend(self, steps: Ints, values: Floats, times: Floats) -> None:
        """Adds points as arrays, each of shape (k,), which must not change any more."""
        self._close()
        self._chunks.append((steps, values, times))

    def arrays(self) -> tuple[Ints, Floats, Floats]:
        """Steps, values and times, each of shape (n,)."""
        self._close()
        if len(self._chunks) > 1:
            steps, values, times = zip(*self._chunks, strict=True)
            self._chunks = [(np.concatenate(steps), np.concatenate(values), np.concatenate(times))]
        return self._chunks[0]

    def _close(self) -> None:
        if self._steps:
            self._chunks.append(
                (
                    np.asarray(self._steps, np.int64),
                    np.asarray(self._values, np.float64),
                    np.asarray(self._times, np.float64),
                )
            )
            self._steps, self._values, self._times = [], [], []


@dataclass(slots=True)
class Batch:
    """What one stretch of the file holds. Where `restart` is a step, the writer started again there: what was logged
    from that step on is void.
    """

    points: dict[str, Points] = field(default_factory=dict)
    items: list[tuple[int, float, Item]] = field(default_factory=list)
    restart: int | None = None

    def of(self, tag: str) -> Points:
        """The points of that tag, made on first use."""
        found = self.points.get(tag)
        if found is None:
            found = self.points[tag] = Points()
        return found


class Layout(NamedTuple):
    """Where a payload of `length` bytes holds its time, its step and its values (tag, place, `<f4` or `<f8`); all
    other bytes are always the same.
    """

    length: int
    time_at: int
    step_at: int
    step_bytes: int
    values: tuple[tuple[str, int, str], ...]


class Kinds:
    """The kinds of payload met so far. All files of a process share them, for trainers write the same records run after
    run.

    Attributes:
        layouts: by the number of the kind; 0 is no kind.
    """

    def __init__(self) -> None:
        self.layouts: dict[int, Layout] = {}
        self._usual: dict[bytes, tuple[str, int]] = {}
        self._shapes: dict[tuple[bytes, ...], int] = {}

    def usual(self, rest: bytes) -> tuple[str, int] | None:
        """The tag and the shape of a payload of one scalar, by all that stands between its step and its value."""
        return self._usual.get(rest)

    def number(self, payload: bytes, found: Event) -> int:
        """The number of the payload's kind, the same for all that differ in nothing but time, step and values; 0
        where it is not so simple.
        """
        scalars = [item for item in found.items if isinstance(item, Scalar) and item.kind]
        regular = bool(scalars) and len(scalars) == len(found.items) and not found.restart and found.time_at >= 0
        if (
            not regular
            or len(payload) > _LONGEST
            or not 0 <= found.step_bytes <= _LONGEST_STEP
            or len(self._shapes) >= _MOST_KINDS
        ):
            return 0
        spans = [(found.time_at, 8), *((item.at, int(item.kind[2])) for item in scalars)]
        if found.step_bytes:
            spans.append((found.step_at, found.step_bytes))
        constant, done = [], 0
        for at, size in sorted(spans):
            constant.append(payload[done:at])
            done = at + size
        shape = self._shapes.setdefault((*constant, payload[done:]), len(self._shapes) + 1)
        number = shape * 16 + found.step_bytes
        only = scalars[0]
        self.layouts[number] = Layout(
            len(payload),
            found.time_at,
            found.step_at,
            found.step_bytes,
            tuple((item.tag, item.at, item.kind) for item in scalars),
        )
        if (
            len(scalars) == 1
            and (found.time_at, found.step_at) == (1, 10)
            and only.at == len(payload) - 4
            and payload[-5] == _SIMPLE_VALUE
        ):
            self._usual[payload[10 + found.step_bytes : -4]] = (only.tag, shape)
        return number


SHARED = Kinds()


class Decoder:
    """Adds payloads to `batch`, one by one.

    Attributes:
        batch: what was added since it was last taken away.
    """

    def __init__(self, kinds: Kinds = SHARED) -> None:
        self.batch = Batch()
        self.kinds = kinds
        self._full: list[Batch] = []
        self._plugins: dict[str, str] = {}

    def take(self, payload: bytes) -> int:
        """Adds one intact payload; returns the number of its kind.

        Raises:
            ValueError: if it is no event.
        """
        if (
            len(payload) > 15 and payload[0] == 9 and payload[9] == 16
        ):  # a time, then a step: the form of nearly every record
            at, step, shift = 10, 0, 0
            while payload[at] >= 0x80 and at < 9 + _LONGEST_STEP:
                step |= (payload[at] & 0x7F) << shift
                shift += 7
                at += 1
            usual = self.kinds.usual(payload[at + 1 : -4])
            if usual is not None and payload[at] < 0x80:
                tag, shape = usual
                step |= payload[at] << shift
                self.batch.of(tag).add(
                    step,
                    struct.unpack_from("<f", payload, len(payload) - 4)[0],
                    struct.unpack_from("<d", payload, 1)[0],
                )
                number = shape * 16 + at - 9
                if number not in self.kinds.layouts:
                    self.kinds.layouts[number] = Layout(len(payload), 1, 10, at - 9, ((tag, len(payload) - 4, "<f4"),))
                return number
        return self._take_unusual(payload)

    def taken(self) -> list[Batch]:
        """What was added since the last call, in order."""
        ready = [
            batch for batch in [*self._full, self.batch] if batch.points or batch.items or batch.restart is not None
        ]
        self._full, self.batch = [], Batch()
        return ready

    def _take_unusual(self, payload: bytes) -> int:
        found = event(payload, self._plugins)
        if found.restart and found.step > 0:
            self._full.append(self.batch)
            self.batch = Batch(restart=found.step)
        for item in found.items:
            if isinstance(item, Scalar):
                self.batch.of(item.tag).add(found.step, item.value, found.time)
            else:
                self.batch.items.append((found.step, found.time, item))
        return self.kinds.number(payload, found)
