"""The vectorised path: records that come round again in the same order are one array of bytes, a row a round, read
and checked column by column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlhealth.run import Floats, Ints
from rlhealth.sources.tensorboard.crc32c import Words, contributions, unmasked, vanishes
from rlhealth.sources.tensorboard.eventbatch import Batch, Layout

Bytes = NDArray[np.uint8]

HEADER = 12  # length, eight bytes, and its checksum, four
FOOTER = 4  # checksum of the payload
_LONGEST_PERIOD = 8192
_FEWEST_RECORDS = 128  # below that the columns cost more than the records


class Rhythm:
    """Notices when records come round again in the same order, by their numbers."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._ends: list[int] = []
        self._seen: dict[int, int] = {}
        self._period = 0
        self._matched = 0
        self._wanted = 1

    def forget(self) -> None:
        """Begins anew: the buffer has changed, or something else came between."""
        self._numbers, self._ends, self._seen = [], [], {}
        self._period = self._matched = 0

    def note(self, number: int, end: int) -> int:
        """Notes a record that ends there; the number of records in a round once a whole round has come again, else
        0.
        """
        numbers, index = self._numbers, len(self._numbers)
        numbers.append(number)
        self._ends.append(end)
        if self._period and numbers[index - self._period] == number:
            self._matched += 1
        else:
            self._period = index - self._seen.get(number, index)
            self._matched = int(self._period > 0)
        self._seen[number] = index
        return (
            self._period
            if self._period and self._matched >= self._period * self._wanted and self._period <= _LONGEST_PERIOD
            else 0
        )

    def start(self, period: int) -> int:
        """Where in the buffer the last round begins; only when it has come twice, for then a record was noted before
        it.
        """
        return self._ends[-period - 1]

    def last(self, count: int) -> list[int]:
        """The numbers of the last records, `count` or as many as there are."""
        return self._numbers[-count:]

    def failed(self) -> None:
        """It did not continue like that: ask for more before the next try, so that a file without rhythm is not slowed
        down.
        """
        self._wanted = min(self._wanted * 2, 1024)
        self._matched = 0

    def held(self) -> None:
        """It did."""
        self._wanted = 1
        self.forget()


class Pattern:
    """One round of records, as bytes, and what may vary in it.

    Attributes:
        stride: bytes of a round.
        period: records of a round.
        numbers: the numbers of its records' kinds.
        fewest: rounds that are worth taking at once.
    """

    def __init__(self, row: bytes, layouts: list[Layout], numbers: list[int]) -> None:
        self.stride = len(row)
        self.period = len(layouts)
        self.numbers = numbers
        self.fewest = max(-(-_FEWEST_RECORDS // self.period), 2)
        self._row = np.frombuffer(row, np.uint8)
        lengths = np.asarray([layout.length for layout in layouts])
        ends = np.cumsum(lengths + HEADER + FOOTER) - FOOTER
        self._starts = (ends - lengths).tolist()
        self._layouts = layouts
        free = np.zeros(self.stride, np.uint8)
        for start, layout in zip(self._starts, layouts, strict=True):
            free[start + layout.time_at : start + layout.time_at + 8] = 0xFF
            free[start + layout.step_at : start + layout.step_at + layout.step_bytes] = (
                0x7F  # the bit that says whether the number continues is fixed
            )
            free[start + layout.length : start + layout.length + FOOTER] = 0xFF
            for _, at, kind in layout.values:
                free[start + at : start + at + int(kind[2])] = 0xFF
        self._fixed = ~free
        self._check_columns = (ends[:, None] + np.arange(FOOTER)).ravel()
        self._checks = unmasked(self._row[self._check_columns].view("<u4"))
        self._step_columns = np.concatenate(
            [
                start + layout.step_at + np.arange(layout.step_bytes)
                for start, layout in zip(self._starts, layouts, strict=True)
            ]
        )
        place = np.arange(self.stride)
        record = np.searchsorted(ends + FOOTER, place, side="right")
        self._record_of = np.where((place >= (ends - lengths)[record]) & (place < ends[record]), record, -1)
        self._behind = ends[record] - 1 - place  # bytes of the payload that follow

    def take(self, buffer: bytearray, at: int, size: int, batch: Batch) -> int:
        """Adds the rounds that stand at buffer[at:size] to the batch, as many as keep the pattern and their checksums;
        returns how many.

        Where they are too few to be worth it, none.
        """
        rounds = (size - at) // self.stride
        if rounds < self.fewest or not self._fits(
            np.frombuffer(buffer, np.uint8, self.stride, at + (self.fewest - 1) * self.stride)
        ):
            return 0
        rows = np.frombuffer(buffer, np.uint8, rounds * self.stride, at).reshape(rounds, self.stride)
        differs = rows ^ self._row
        varied = np.bitwise_or.reduce(differs, axis=0)
        if np.any(varied & self._fixed):
            broken = np.flatnonzero(varied & self._fixed)
            rounds = int(np.argmax(np.any(differs[:, broken] & self._fixed[broken], axis=1)))
            rows, differs = rows[:rounds], differs[:rounds]
        if rounds < self.fewest:
            return 0
        rounds = self._intact(rows, differs, varied)
        if rounds:
            self._add(rows[:rounds], batch)
        return rounds

    def follows(self, rhythm: Rhythm) -> bool:
        """Whether what was noted last is a whole round of this."""
        return rhythm.last(self.period) == self.numbers

    def _fits(self, row: Bytes) -> bool:
        return not np.any((row ^ self._row) & self._fixed)

    def _intact(self, rows: Bytes, differs: Bytes, varied: Bytes) -> int:
        """How many rows come before the first with a wrong checksum.

        CRC is linear: a record is intact if, where it differs from an intact one, the differing payload and the
            differing checksum cancel out. So does then
        a whole stretch of them, which one pass over its bytes shows; where it does not, each record is looked at.
        """
        checks = unmasked(rows.take(self._check_columns, axis=1).view("<u4")) ^ self._checks
        differs[:, self._check_columns] = checks.view(np.uint8)
        return len(rows) if vanishes(differs.reshape(-1)) else self._singly_intact(differs, varied, checks)

    def _singly_intact(self, differs: Bytes, varied: Bytes, wrong: Words) -> int:
        """The same, record by record: each byte of a payload that differs changes its checksum by its own
        contribution.
        """
        columns = np.flatnonzero((varied != 0) & (self._record_of >= 0))
        records = self._record_of[columns]
        turn = np.arange(len(columns)) - np.searchsorted(records, records)  # the how-manieth of its record
        for index in range(int(turn.max(initial=-1)) + 1):
            chosen = turn == index
            which = columns[chosen]
            found = contributions(self._behind[which].max() + 1).take(
                differs.take(which, axis=1) + 256 * self._behind[which]
            )
            if len(which) == self.period:
                wrong ^= found
            else:
                wrong[:, records[chosen]] ^= found
        bad = wrong.any(axis=1)
        return int(np.argmax(bad)) if bad.any() else len(differs)

    def _add(self, rows: Bytes, batch: Batch) -> None:
        found: dict[str, list[tuple[Ints, Floats, Floats]]] = {}
        agree = self._steps_agree(rows)
        steps: Ints | None = None
        with np.errstate(invalid="ignore"):  # a NaN that signals is a NaN
            for start, layout in zip(self._starts, self._layouts, strict=True):
                if steps is None or not agree:
                    steps = _steps(rows, start + layout.step_at, layout.step_bytes)
                times = _column(rows, start + layout.time_at, "<f8")
                for tag, at, kind in layout.values:
                    found.setdefault(tag, []).append(
                        (steps, _column(rows, start + at, kind).astype(np.float64, copy=False), times)
                    )
        for tag, parts in found.items():
            if len(parts) == 1:
                batch.of(tag).extend(*parts[0])
            else:  # several times a round: in the order of the file
                together = (np.stack(part, axis=1).ravel() for part in zip(*parts, strict=True))
                batch.of(tag).extend(*together)

    def _steps_agree(self, rows: Bytes) -> bool:
        """Whether all records of each row are of the same step."""
        count = self._layouts[0].step_bytes
        if any(layout.step_bytes != count for layout in self._layouts):
            return False
        raw = rows.take(self._step_columns, axis=1).reshape(len(rows), self.period, count)
        return bool((raw == raw[:, :1]).all())


def _column(rows: Bytes, at: int, kind: str) -> NDArray[Any]:
    """The numbers that begin at byte `at` of each row, copied, shape (n,)."""
    return np.ndarray((len(rows),), kind, rows.data, at, (rows.shape[1],)).copy()


def _steps(rows: Bytes, at: int, count: int) -> Ints:
    """The steps that the varints of `count` bytes at byte `at` of each row mean."""
    steps = np.zeros(len(rows), np.int64)
    for index in range(count):
        steps |= (rows[:, at + index].astype(np.int64) & 0x7F) << 7 * index
    return steps
