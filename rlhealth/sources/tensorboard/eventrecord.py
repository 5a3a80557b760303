"""One record of an event file (a TensorBoard `Event`), read from its bytes without protobuf."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from rlhealth.sources.tensorboard.eventvalues import (
    Item,
    Scalar,
    fields,
    hyper_parameters,
    old_histogram,
    signed,
    tensor,
)


@dataclass(slots=True)
class Event:
    """One event. `step_at` and `step_bytes` give the position of the step's varint (0 bytes: it was left out, and is 0;
    -1: it is longer than need be).

    `restart` marks a purge.
    """

    time: float = 0.0
    step: int = 0
    items: list[Item] = field(default_factory=list)
    restart: bool = False
    time_at: int = -1
    step_at: int = -1
    step_bytes: int = 0


def event(raw: bytes, plugins: dict[str, str]) -> Event:
    """The event in `raw`. `plugins` remembers the plugin of each tag, which new-style writers write once per file.

    Raises:
        ValueError: if the bytes are no event.
    """
    found = Event()
    for number, kind, start, end in fields(raw, 0, len(raw)):
        if number == 1 and kind == 1:
            found.time, found.time_at = struct.unpack_from("<d", raw, start)[0], start
        elif number == 2 and kind == 0:
            found.step = signed(start)
            found.step_bytes = max((start.bit_length() + 6) // 7, 1) if raw[end - 1] or not start else -1
            found.step_at = end - found.step_bytes
        elif number == 5 and kind == 2:
            for inner, inner_kind, a, b in fields(raw, start, end):
                if inner == 1 and inner_kind == 2:
                    item = _value(raw, a, b, plugins)
                    if item is not None:
                        found.items.append(item)
        elif number == 7 and kind == 2:
            found.restart = any(
                inner == 1 and value == 1 for inner, inner_kind, value, _ in fields(raw, start, end) if inner_kind == 0
            )
    return found


def _value(raw: bytes, start: int, end: int, plugins: dict[str, str]) -> Item | None:
    tag, simple, spot, bins, content = "", -1, None, None, b""
    for number, kind, a, b in fields(raw, start, end):
        if number == 1 and kind == 2:
            tag = raw[a:b].decode("utf-8", "replace")
        elif number == 2 and kind == 5:
            simple = a
        elif number == 5 and kind == 2:
            bins = (a, b)
        elif number == 8 and kind == 2:
            spot = (a, b)
        elif number == 9 and kind == 2:
            plugin, content = _plugin(raw, a, b)
            plugins.setdefault(tag, plugin)
    if simple >= 0:
        return Scalar(tag, struct.unpack_from("<f", raw, simple)[0], simple, "<f4")
    if bins is not None:
        return old_histogram(tag, raw, *bins)
    if plugins.get(tag) == "hparams" and content:
        return hyper_parameters(content)
    return tensor(tag, raw, *spot, plugins.get(tag, "")) if spot is not None else None


def _plugin(raw: bytes, start: int, end: int) -> tuple[str, bytes]:
    name, content = "", b""
    for number, kind, a, b in fields(raw, start, end):
        if number == 1 and kind == 2:
            for inner, inner_kind, c, d in fields(raw, a, b):
                if inner == 1 and inner_kind == 2:
                    name = raw[c:d].decode("utf-8", "replace")
                elif inner == 2 and inner_kind == 2:
                    content = raw[c:d]
    return name, content
