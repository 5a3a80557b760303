"""What a stretch of an event file holds, and the decoder that adds records to it one by one."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rlhealth.run import Floats, Ints
from rlhealth.sources.eventrecord import Event, Item, Scalar, event

_MOST_KNOWN = 100_000
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
            self._chunks.append((np.asarray(self._steps, np.int64), np.asarray(self._values, np.float64), np.asarray(self._times, np.float64)))
            self._steps, self._values, self._times = [], [], []


@dataclass(slots=True)
class Batch:
    """What one stretch of the file holds. Where `restart` is a step, the writer started again there: what was logged from that step on is void."""

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
    """Where a payload of `length` bytes holds its time, its step and its values (tag, place, `<f4` or `<f8`); all other bytes are always the same."""

    length: int
    time_at: int
    step_at: int
    step_bytes: int
    values: tuple[tuple[str, int, str], ...]


class Decoder:
    """Adds payloads to `batch`, one by one.

    Attributes:
        batch: what was added since it was last taken away.
        full: batches that a restart has closed.
        layouts: the layout of each kind of payload met, by the number that `take` gave it.
    """

    def __init__(self) -> None:
        self.batch = Batch()
        self.full: list[Batch] = []
        self.layouts: dict[int, Layout] = {}
        self._known: dict[bytes, tuple[str, int]] = {}
        self._shapes: dict[tuple[bytes, ...], int] = {}
        self._plugins: dict[str, str] = {}

    def take(self, payload: bytes) -> int:
        """Adds one intact payload. The same number for the same kind of scalars at the same places, 0 for anything else.

        Raises:
            ValueError: if it is no event.
        """
        if len(payload) > 15 and payload[0] == 9 and payload[9] == 16:  # a time, then a step: the form of nearly every record
            at, step, shift = 10, 0, 0
            while payload[at] >= 0x80 and at < 14:
                step |= (payload[at] & 0x7F) << shift
                shift += 7
                at += 1
            known = self._known.get(payload[at + 1 : -4])
            if known is not None and payload[at] < 0x80:
                tag, shape = known
                self.batch.of(tag).add(
                    step | payload[at] << shift, struct.unpack_from("<f", payload, len(payload) - 4)[0], struct.unpack_from("<d", payload, 1)[0]
                )
                number = shape * 16 + at - 9
                if number not in self.layouts:
                    self.layouts[number] = Layout(len(payload), 1, 10, at - 9, ((tag, len(payload) - 4, "<f4"),))
                return number
        return self._take_unusual(payload)

    def taken(self) -> list[Batch]:
        """What was added since the last call, in order."""
        ready = [batch for batch in [*self.full, self.batch] if batch.points or batch.items or batch.restart is not None]
        self.full, self.batch = [], Batch()
        return ready

    def _take_unusual(self, payload: bytes) -> int:
        found = event(payload, self._plugins)
        if found.restart and found.step > 0:
            self.full.append(self.batch)
            self.batch = Batch(restart=found.step)
        for item in found.items:
            if isinstance(item, Scalar):
                self.batch.of(item.tag).add(found.step, item.value, found.time)
            else:
                self.batch.items.append((found.step, found.time, item))
        return self._number(payload, found)

    def _number(self, payload: bytes, found: Event) -> int:
        scalars = [item for item in found.items if isinstance(item, Scalar) and item.kind]
        regular = bool(scalars) and len(scalars) == len(found.items) and not found.restart and found.time_at >= 0
        if not regular or len(payload) > _LONGEST or found.step_bytes > _LONGEST_STEP or len(self._shapes) >= _MOST_KNOWN:
            return 0
        layout = Layout(len(payload), found.time_at, found.step_at, found.step_bytes, tuple((item.tag, item.at, item.kind) for item in scalars))
        spans = sorted([(layout.time_at, 8), (layout.step_at, layout.step_bytes), *((at, int(kind[2])) for _, at, kind in layout.values)])
        constant, done = [], 0
        for at, size in spans:
            if at < done and size:
                return 0  # a field written twice: the last one counts, which only the whole parser knows
            constant.append(payload[done:at])
            done = max(at + size, done)
        shape = self._shapes.setdefault((*constant, payload[done:]), len(self._shapes) + 1)
        number = shape * 16 + layout.step_bytes
        self.layouts[number] = layout
        if len(scalars) == 1 and found.time_at == 1 and found.step_at == 10 and scalars[0].at == len(payload) - 4 and scalars[0].kind == "<f4":
            self._known[payload[10 + found.step_bytes : -4]] = (scalars[0].tag, shape)
        return number
