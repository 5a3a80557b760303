"""The values of an event, read from their bytes without protobuf: tensors, histograms, texts, hyper-parameters."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlhealth.run import Floats

_NUMBERS = {
    1: ("<f4", 5),
    2: ("<f8", 6),
    3: ("<i4", 7),
    9: ("<i8", 10),
    4: ("u1", 7),
    10: ("?", 11),
    6: ("i1", 7),
    5: ("<i2", 7),
    17: ("<u2", 7),
    22: ("<u4", 16),
    23: ("<u8", 17),
}
"""TensorFlow's dtype numbers: how `tensor_content` holds them, and which field of TensorProto holds them singly."""
_STRING = 7
_FIXED = {5: "<f4", 6: "<f8"}
_LARGEST_TEXT = 1 << 20


@dataclass(slots=True)
class Scalar:
    """A number under a tag. `at` and `kind` give its position in the record, if it stands there as plain bytes
    (`<f4`, `<f8`).
    """

    tag: str
    value: float
    at: int = -1
    kind: str = ""


@dataclass(slots=True)
class Bins:
    """A distribution: edges of shape (b+1,), counts of shape (b,)."""

    tag: str
    edges: Floats
    counts: Floats


@dataclass(slots=True)
class Text:
    """A text summary."""

    tag: str
    text: str


@dataclass(slots=True)
class Settings:
    """Hyper-parameters of the hparams plugin (session start)."""

    values: dict[str, Any]


Item = Scalar | Bins | Text | Settings

Field = tuple[int, int, int, int]
"""Number, wire type, and either (start, end) of the bytes or (value, end) of a varint."""


def varint(raw: bytes, at: int) -> tuple[int, int]:
    """The varint at `at`, and where it ends.

    Raises:
        ValueError: if it runs over ten bytes or out of the record.
    """
    value = shift = 0
    while shift < 70:
        if at >= len(raw):
            raise ValueError("a varint runs out of the record")
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise ValueError("a varint of more than ten bytes")


def fields(raw: bytes, at: int, end: int) -> Iterator[Field]:
    """The fields of the message that fills raw[at:end].

    Raises:
        ValueError: if the bytes are no message.
    """
    while at < end:
        key = raw[at]
        key, at = (key, at + 1) if key < 0x80 else varint(raw, at)  # nearly all are one byte
        kind = key & 7
        if kind == 0:
            value, at = varint(raw, at)
            yield key >> 3, kind, value, at
            continue
        size = 8 if kind == 1 else 4 if kind == 5 else -1
        if kind == 2:
            size = raw[at] if at < end else 0x80
            size, at = (size, at + 1) if size < 0x80 else varint(raw, at)
        if size < 0 or at + size > end:
            raise ValueError("a field runs out of its message")
        yield key >> 3, kind, at, at + size
        at += size


def signed(value: int) -> int:
    """A 64-bit varint as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def tensor(tag: str, raw: bytes, start: int, end: int, plugin: str) -> Item | None:
    """A new-style summary: its plugin gives its kind, or, if no writer named one, its type and shape."""
    dtype, shape, content, listed, texts = 0, [], (0, 0), [], []
    for number, kind, a, b in fields(raw, start, end):
        if number == 1 and kind == 0:
            dtype = a
        elif number == 2 and kind == 2:
            shape = [signed(size) for size in _sizes(raw, a, b)]
        elif number == 4 and kind == 2:
            content = (a, b)
        elif number == 8 and kind == 2:
            texts.append((a, b))
        elif number in (5, 6, 7, 10, 11, 16, 17):
            listed.append((number, kind, a, b))
    if dtype == _STRING:
        if not texts or plugin not in ("", "text") or texts[0][1] - texts[0][0] > _LARGEST_TEXT:
            return None
        return Text(tag, raw[texts[0][0] : texts[0][1]].decode("utf-8", "replace"))
    if dtype not in _NUMBERS or plugin not in ("", "scalars", "histograms"):
        return None
    if plugin == "histograms" or (not plugin and len(shape) == 2 and shape[1] == 3):
        return _new_histogram(tag, _numbers(raw, dtype, content, listed), shape)
    if any(size != 1 for size in shape):
        return None
    return _tensor_scalar(tag, raw, dtype, content, listed)


def _sizes(raw: bytes, start: int, end: int) -> Iterator[int]:
    for number, kind, a, b in fields(raw, start, end):
        if number == 2 and kind == 2:
            size = 0
            for inner, inner_kind, value, _ in fields(raw, a, b):
                if inner == 1 and inner_kind == 0:
                    size = value
            yield size


def _tensor_scalar(tag: str, raw: bytes, dtype: int, content: tuple[int, int], listed: list[Field]) -> Scalar:
    kind = _NUMBERS[dtype][0]
    if kind in ("<f4", "<f8"):
        size = int(kind[2])
        spots = (
            [content]
            if content[1] > content[0]
            else [(a, b) for number, _, a, b in listed if number == _NUMBERS[dtype][1]]
        )
        if len(spots) == 1 and spots[0][1] - spots[0][0] == size:
            at = spots[0][0]
            return Scalar(tag, struct.unpack_from("<f" if size == 4 else "<d", raw, at)[0], at, kind)
    numbers = _numbers(raw, dtype, content, listed)
    return Scalar(tag, float(numbers[0]) if len(numbers) else 0.0)


def _numbers(raw: bytes, dtype: int, content: tuple[int, int], listed: list[Field]) -> Floats:
    kind, place = _NUMBERS[dtype]
    if content[1] > content[0]:
        return np.frombuffer(raw[content[0] : content[1]], kind).astype(np.float64)
    found: list[float] = []
    for number, wire, a, b in listed:
        if number != place:
            continue
        if place in _FIXED:
            found += np.frombuffer(raw[a:b], _FIXED[place]).tolist()
        elif wire == 0:
            found.append(signed(a))
        else:
            while a < b:
                value, a = varint(raw, a)
                found.append(signed(value))
    return np.asarray(found, np.float64)


def _new_histogram(tag: str, numbers: Floats, shape: list[int]) -> Bins | None:
    """Rows of left edge, right edge, count: shape (k, 3)."""
    if len(shape) != 2 or shape[1] != 3 or not len(numbers) or len(numbers) % 3:
        return None
    rows = numbers.reshape(-1, 3)
    return Bins(tag, np.append(rows[:, 0], rows[-1, 1]), rows[:, 2].copy())


def old_histogram(tag: str, raw: bytes, start: int, end: int) -> Bins | None:
    """HistogramProto: right edges and counts; the outermost edges are tightened to the smallest and the largest
    value.
    """
    low = high = 0.0
    lists: dict[int, list[float]] = {6: [], 7: []}
    for number, kind, a, b in fields(raw, start, end):
        if number == 1 and kind == 1:
            low = struct.unpack_from("<d", raw, a)[0]
        elif number == 2 and kind == 1:
            high = struct.unpack_from("<d", raw, a)[0]
        elif number in lists and kind in (1, 2) and not (b - a) % 8:
            lists[number] += np.frombuffer(raw[a:b], "<f8").tolist()
    limits, counts = np.asarray(lists[6], np.float64), np.asarray(lists[7], np.float64)
    if not len(limits) or len(limits) != len(counts):
        return None
    if (
        len(counts) > 1 and not counts[0] and low >= limits[0]
    ):  # torch writes the left edge of its first bucket as an empty bucket
        edges, counts = limits, counts[1:]
    else:
        edges = np.concatenate([[min(low, limits[0])], limits])
    edges[0] = max(edges[0], min(low, edges[1]))
    edges[-1] = min(edges[-1], max(high, edges[-2]))
    return Bins(tag, edges, counts)


def hyper_parameters(content: bytes) -> Settings | None:
    """HParamsPluginData with a session's start: a map of names to google.protobuf.Value."""
    found: dict[str, Any] = {}
    for number, kind, start, end in fields(content, 0, len(content)):
        if number == 3 and kind == 2:
            for inner, inner_kind, a, b in fields(content, start, end):
                if inner == 1 and inner_kind == 2:
                    name, value = _setting(content, a, b)
                    found[name] = value
    return Settings(found) if found else None


def _setting(raw: bytes, start: int, end: int) -> tuple[str, Any]:
    name, value = "", None
    for number, kind, a, b in fields(raw, start, end):
        if number == 1 and kind == 2:
            name = raw[a:b].decode("utf-8", "replace")
        elif number == 2 and kind == 2:
            for inner, inner_kind, c, d in fields(raw, a, b):
                if inner == 2 and inner_kind == 1:
                    number_value = struct.unpack_from("<d", raw, c)[0]
                    value = int(number_value) if number_value.is_integer() else number_value
                elif inner == 3 and inner_kind == 2:
                    value = raw[c:d].decode("utf-8", "replace")
                elif inner == 4 and inner_kind == 0:
                    value = bool(c)
    return name, value
