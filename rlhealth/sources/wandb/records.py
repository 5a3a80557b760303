"""The records of a `.wandb` file that a diagnosis needs, distinguished many at a time: history, summary, config, run,
telemetry, exit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlhealth.run import Ints
from rlhealth.sources.base.decimals import MARGIN, Bytes, Flags, words_of
from rlhealth.sources.base.values import END_OF_TRAINING
from rlhealth.sources.wandb.items import item_of, put
from rlhealth.sources.wandb.log import Records
from rlhealth.sources.wandb.protowire import fields, signed

HISTORY, SUMMARY, CONFIG, TELEMETRY, RUN, EXIT = 2, 3, 5, 11, 17, 18
_CONTROL = 16
_HISTORY_TAG, _SUMMARY_TAG = HISTORY << 3 | 2, SUMMARY << 3 | 2
#: The first byte of the records that are decoded one by one: config, telemetry, run and exit.
_OTHER_TAGS = np.array([CONFIG << 3 | 2, TELEMETRY << 3 | 2, 0x8A, 0x92], np.uint8)
_ENDINGS = np.array(
    sorted(
        {
            int.from_bytes(f"{prefix}{key}".encode()[:8], "little")
            for key in END_OF_TRAINING
            for prefix in ("", "train/")
        }
    ),
    np.uint64,
)


@dataclass
class RecordContents:
    """What was found in some records.

    Attributes:
        start, end: the messages `HistoryRecord`, each of shape (R,).
        number: the number of each of their records, shape (R,).
        other: indices of the records to be decoded one by one.
        unreadable: how many records are not wandb's.
    """

    start: Ints
    end: Ints
    number: Ints
    other: list[int]
    unreadable: int


def sort(records: Records) -> RecordContents:
    """Separates history from other records by the first bytes of each record."""
    octets = np.frombuffer(records.buffer, np.uint8)
    number, at = _varints(octets, records.start + 1)
    numbered = octets[records.start] == 0x08
    number = np.where(numbered, number, 0)
    at = np.where(numbered, at, records.start)
    at = _past_the_envelope(octets, at)
    tag = octets[at]
    size, body = _varints(octets, at + 1)
    fits = (body + size <= records.end) & (records.start < records.end)
    history = np.flatnonzero((tag == _HISTORY_TAG) & fits)
    ends = np.flatnonzero((tag == _SUMMARY_TAG) & fits)
    ends = ends[_ends_training(octets, body[ends])] if len(ends) else ends
    other = np.sort(np.append(np.flatnonzero(np.isin(tag, _OTHER_TAGS)), ends))
    unreadable = int((((tag == _HISTORY_TAG) | (tag == _SUMMARY_TAG)) & ~fits).sum())
    return RecordContents(body[history], body[history] + size[history], number[history], other.tolist(), unreadable)


def _past_the_envelope(octets: Bytes, at: Ints) -> Ints:
    """Where the message itself begins: `_info` (field 200) and `control` (field 16) may come before it."""
    for _ in range(2):
        first, second = octets[at], octets[at + 1]
        wrapped = np.flatnonzero(((first == 0xC2) & (second == 0x0C)) | ((first == 0x82) & (second == 0x01)))
        if not len(wrapped):
            break
        size, body = _varints(octets, at[wrapped] + 2)
        at = at.copy()
        at[wrapped] = np.minimum(body + size, len(octets) - MARGIN)
    return at


def _varints(octets: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The varint at each place, and the place after it; of one longer than five bytes, the first five."""
    value = (octets[at] & 127).astype(np.int64)
    more = octets[at] >= 128
    at = at + 1
    for shift in (7, 14, 21, 28):
        if not more.any():
            break
        value = np.where(more, value | (octets[at] & 127).astype(np.int64) << shift, value)
        following = more & (octets[at] >= 128)
        at = np.where(more, at + 1, at)
        more = following
    return value, at


def _ends_training(octets: Bytes, body: Ints) -> Flags:
    """Whether a summary begins with one of the five numbers that transformers leaves at the end; each is in a separate
    record.
    """
    key = body + 4 + (octets[body + 1] >= 128)
    found: NDArray[np.bool_] = np.isin(words_of(octets)[key], _ENDINGS)
    return found


class Settings:
    """What the records other than history say about a run.

    Attributes:
        config: the user's settings, nested as they came.
        summary: what transformers left at the end of training.
        name: the run's display name, or its id.
        run_id: wandb's own.
        started: seconds since 1970, or 0.
        versions: of libraries.
        exit_code: None until the run has ended.
    """

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.name = ""
        self.run_id = ""
        self.started = 0.0
        self.versions: dict[str, str] = {}
        self.exit_code: int | None = None

    def take(self, record: bytes) -> int | None:
        """Takes a serialised `Record`; returns its kind if it is one that is used.

        Raises:
            ValueError: if it is none.
        """
        for kind, message in fields(record):
            if not isinstance(message, bytes) or kind == _CONTROL:
                continue
            if kind == CONFIG:
                self._update(self.config, message)
            elif kind == SUMMARY:
                self._update(self.summary, message)
            elif kind == RUN:
                self._run(message)
            elif kind == TELEMETRY:
                self._telemetry(message)
            elif kind == EXIT:
                self.exit_code = signed(
                    next((value for field, value in fields(message) if field == 1 and isinstance(value, int)), 0), 32
                )
            else:
                continue
            return kind
        return None

    def _update(self, settings: dict[str, Any], message: bytes) -> None:
        for field, item in fields(message):
            if isinstance(item, bytes) and field in (1, 2):
                path, value = item_of(item)
                if field == 1:
                    put(settings, path, value)
                elif len(path) == 1:
                    settings.pop(path[0], None)

    def _run(self, message: bytes) -> None:
        """Takes the run's name and id; ignores host, user, command and git."""
        for field, value in fields(message):
            if not isinstance(value, bytes):
                continue
            if field == 1:
                self.run_id = value.decode("utf-8", "replace")
            elif field == 4:
                self._update(self.config, value)
            elif field == 8:
                self.name = value.decode("utf-8", "replace")
            elif field == 17:
                time = dict(fields(value))
                self.started = float(int(time.get(1, 0))) + int(time.get(2, 0)) / 1e9
            elif field == 19:
                self._telemetry(value)

    def _telemetry(self, message: bytes) -> None:
        for field, value in fields(message):
            if field in (4, 5, 6) and isinstance(value, bytes) and value:
                self.versions[{4: "python", 5: "wandb", 6: "transformers"}[field]] = value.decode("utf-8", "replace")[
                    :100
                ]
