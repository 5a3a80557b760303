"""Parquet for the fuzzer: damaged files, and sound ones whose columns have any name, any type and any values."""

from __future__ import annotations

import contextlib
import io
import json
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from rlhealth.errors import RlhealthError

if TYPE_CHECKING:
    import pyarrow

NAMES = ("train/kl", "train/reward", "_runtime", "prompt", "completion", "reward", "step", "a.b", "train/kl", "", "\0")
TIMES = ("s", "ms", "us", "ns")


def read_file(raw: bytes, path: Path) -> bool:
    """A file, as history that wandb exported and as completions."""
    from rlhealth.completions import tables
    from rlhealth.sources.wandb.exported import ExportReader, find
    from tests.fuzz.targets import sound

    path = path.with_suffix(".parquet")
    path.write_bytes(raw)
    read = False
    for open_it in (find, lambda one: [ExportReader([one])]):
        try:
            (reader,) = open_it(path)
            reader.poll()
            read |= sound(reader.run)
            assert not reader.poll(), "something new in a file that nobody wrote"
        except RlhealthError:
            continue
    with contextlib.suppress(RlhealthError):
        read |= bool(tables.read(path))
    return read


def read_columns(raw: bytes, path: Path) -> bool:
    """A sound file with columns of any type: the bytes choose names and types, and are the values."""
    return read_file(_written(_table(raw)), path)


def _table(raw: bytes) -> pyarrow.Table:
    import pyarrow as pa

    random = Random(raw)
    rows = random.choice((0, 1, 3, 9))
    names, columns = ["_step", "_timestamp"], [pa.array(range(rows), pa.int64()), pa.array([1.7e9] * rows)]
    for index in range(random.randrange(1, 7)):
        name = random.choice(NAMES) if random.random() < 0.8 else raw[index : index + 9].decode("utf-8", "replace")
        column = _column(random, raw, rows)
        if random.random() < 0.1:
            place = random.randrange(2)
            names[place], columns[place] = random.choice(("_step", "_timestamp", name)), column
        else:
            names.append(name)
            columns.append(column)
    return pa.table(columns, names=names)


def _column(random: Random, raw: bytes, rows: int) -> pyarrow.Array:
    """A column of any type, with the bytes, or numbers at the edges, in its cells."""
    import pyarrow as pa

    edge = [random.choice((0, 1, -1, 1 << 31, (1 << 63) - 1, -(1 << 63), 253402300800000)) for _ in range(rows)]
    small = [one % 100_000_000 for one in edge]
    texts = [raw[random.randrange(len(raw) + 1) :][:40] for _ in range(rows)]
    words = [one.decode("utf-8", "replace") for one in texts]
    zone = random.choice((None, "UTC", "Mars/Olympus", "+99:99", "Europe/Berlin"))
    made: list[Any] = [
        lambda: pa.array(edge, pa.int64()),
        lambda: pa.array(edge, pa.timestamp(random.choice(TIMES), zone)),
        lambda: pa.array(edge, pa.duration(random.choice(TIMES))),
        lambda: pa.array([one % (1 << 31) for one in edge], pa.date32()),
        lambda: pa.array([one // 86_400_000 * 86_400_000 for one in small], pa.date64()),
        lambda: pa.array(small, pa.time64("us")),
        lambda: pa.array([one & ((1 << 64) - 1) for one in edge], pa.uint64()),
        lambda: pa.array([float(one) * random.choice((1.0, 1e300, float("nan"))) for one in edge], pa.float64()),
        lambda: pa.array(np.full(rows, 1.5, np.float16)),
        lambda: pa.array(texts, pa.binary()),
        lambda: pa.array(words, random.choice((pa.string(), pa.large_string()))),
        lambda: pa.Array.from_buffers(pa.string(), rows, pa.array(texts, pa.binary()).buffers()),  # no UTF-8
        lambda: pa.array(words).dictionary_encode(),
        lambda: pa.array([one % 2 == 0 for one in edge]),
        lambda: pa.nulls(rows),
        lambda: pa.array([one % 1000 for one in edge], pa.int64()).cast(pa.decimal128(30, 4)),
        lambda: pa.array([[one, None] for one in edge], pa.list_(pa.int64())),
        lambda: pa.array([{"role": one, "content": [one]} for one in words]),
        lambda: pa.array([[{"_type": "histogram", "values": [1, 2], "bins": small[:3]}] for _ in range(rows)]),
        lambda: pa.array([{"_type": "histogram", "values": edge[:2], "bins": small[:3]} for _ in range(rows)]),
        lambda: pa.array([[(one, 1.0)] for one in words], pa.map_(pa.string(), pa.float64())),
    ]
    column = random.choice(made)()
    if rows and random.random() < 0.3:
        column = pa.concat_arrays([column.slice(0, rows - 1), pa.nulls(1, column.type)])
    return column


def _written(table: pyarrow.Table) -> bytes:
    from pyarrow import ArrowException, parquet

    written = io.BytesIO()
    try:
        parquet.write_table(table, written, compression="none")
    except ArrowException:  # a type that Parquet does not have
        return b""
    return written.getvalue()


@cache
def files() -> list[bytes]:
    """Small files: wandb's history and TRL's completions in a few rows, and one of every kind of column."""
    import pyarrow as pa

    rows = list(range(5))
    history = pa.table({"_step": rows, "_timestamp": [1.7e9] * 5, "train/kl": [0.1] * 5, "train/reward": ["NaN"] * 5})
    texts = pa.table({"step": rows, "prompt": ["a"] * 5, "completion": ["b c"] * 5, "reward": [0.5] * 5})
    talk = pa.table({"messages": [[{"role": "user", "content": "a"}]] * 5, "score": [1.0] * 5, "step": rows})
    mixed = [_written(_table(json.dumps(number).encode())) for number in range(12)]
    return [one for one in (_written(history), _written(texts), _written(talk), *mixed) if one]


@cache
def cells() -> list[bytes]:
    """What the cells of columns are made from."""
    return [b"NaN 1e5 Infinity -0 text", b"\xff\xfe\x00bytes", b'{"_type": "histogram"}', b"step=1 loss=0.5"]
