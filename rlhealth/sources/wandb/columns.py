"""History records of a `.wandb` file decoded many at a time with numpy: one column per metric, one row a record,
whatever order the items come in.

wandb's core writes the items of a row in random order, so nothing repeats from row to row. All rows are decoded in
parallel instead: each round takes one item of each row. Anything but a plain number under a plain key (a histogram, a
list, a nested key) is decoded one by one, in Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlhealth.run import Ints
from rlhealth.sources.base.columns import MOST_CELLS, NULL, NUMBER, Columns
from rlhealth.sources.base.decimals import Bytes, Words, decimals, words_of
from rlhealth.sources.base.values import number
from rlhealth.sources.wandb.items import item_of, put, value_of
from rlhealth.sources.wandb.keys import LONGEST_KEY, Keys

_ITEM, _STEP = 0x0A, 0x12


def columns_of(keys: Keys, buffer: bytes, start: Ints, end: Ints) -> Columns | None:
    """The history records (`HistoryRecord`, without the record round them) at `start` to `end`, each of shape (R,);
    None if they must be read one by one.
    """
    octets = np.frombuffer(buffer, np.uint8)
    words = words_of(octets)
    items = _items(octets, start, end)
    if items is None:
        return None
    body, size, row = items
    length = octets[body + 1].astype(np.int64)
    place = body + 2
    after = place + length
    width = octets[after + 2].astype(np.int64)
    tag = octets[body]
    plain = (
        ((tag == 0x12) | (tag == 0x0A))
        & (length > 0)
        & (length <= LONGEST_KEY)
        & (octets[after] == 0x82)
        & (octets[after + 1] == 1)
    )
    plain &= (width > 0) & (width < 128) & (after + 3 + width == body + size)
    odd: dict[int, dict[str, Any]] = {}
    if not plain.all():
        _decode(odd, buffer, body[~plain], size[~plain], row[~plain])
        body, size, row, place, length, after, width = (
            column[plain] for column in (body, size, row, place, length, after, width)
        )
    key = keys.find(buffer, words, place, length)
    if (key < 0).any():
        _decode(odd, buffer, body[key < 0], size[key < 0], row[key < 0])
    shape = len(keys.tags), len(start)
    if shape[0] * shape[1] > MOST_CELLS:
        return None
    columns = Columns(list(keys.tags), np.empty(shape), np.zeros(shape, np.uint8), odd)
    if shape[0]:
        use = np.flatnonzero((key >= 0) & keys.wanted[key])
        _fill(
            columns=columns,
            buffer=buffer,
            octets=octets,
            words=words,
            start=after[use] + 3,
            size=width[use],
            key=key[use].astype(np.int64),
            row=row[use],
        )
    return columns


def _items(octets: Bytes, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints] | None:
    """Place, size and row of every item, each of shape (n,); None if a record holds anything unexpected."""
    found: list[tuple[Ints, Ints, Ints]] = []
    row = np.arange(len(start))
    at = start
    while len(row):
        tag = octets[at]
        size = octets[at + 1].astype(np.int64)
        body = at + 2
        long = np.flatnonzero(size >= 128)
        if len(long):
            second = octets[at[long] + 2].astype(np.int64)
            if (second >= 128).any():
                third = octets[at[long] + 3].astype(np.int64)
                third[second < 128] = 0
                if (third >= 128).any():
                    return None
                second = (second & 127) | third << 7
                body[long] += octets[at[long] + 2] >= 128
            size[long] = (size[long] & 127) | second << 7
            body[long] += 1
        at = body + size
        is_item = tag == _ITEM
        if (at > end).any():
            return None
        if is_item.all():
            found.append((body, size, row))
        else:
            if not (is_item | (tag == _STEP)).all():
                return None
            found.append((body[is_item], size[is_item], row[is_item]))
        more = at < end
        if not more.all():
            at, end, row = at[more], end[more], row[more]
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    body, size, row = (np.concatenate([one[which] for one in found]) for which in range(3))
    return body, size, row


def _decode(odd: dict[int, dict[str, Any]], buffer: bytes, body: Ints, size: Ints, row: Ints) -> None:
    """Decodes items one by one."""
    for at, length, index in zip(body.tolist(), size.tolist(), row.tolist(), strict=True):
        try:
            path, value = item_of(buffer[at : at + length])
        except ValueError:
            continue
        put(odd.setdefault(index, {}), path, value)


def _fill(
    columns: Columns, buffer: bytes, octets: Bytes, words: Words, start: Ints, size: Ints, key: Ints, row: Ints
) -> None:
    """Reads the values at `start` into their columns."""
    if not len(start):
        return
    values, read = decimals(octets, words, start, size)
    state = read.astype(np.uint8)  # NUMBER is 1
    for index in np.flatnonzero(~read).tolist():
        value = value_of(buffer[start[index] : start[index] + size[index]])
        found = number(value)
        if found is not None:
            values[index], state[index] = found, NUMBER
        elif value is None:
            values[index], state[index] = math.nan, NULL
        else:
            columns.odd.setdefault(int(row[index]), {})[columns.tags[key[index]]] = value
    columns.values[key, row] = values
    columns.state[key, row] = state
