"""Event files for tests, written by TensorBoard's own writer, and what protobuf and tbparse read in them."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from rlhealth.sources.tensorboard.eventfile import EventFile

FIXTURES = Path(__file__).parents[2] / "fixtures" / "tensorboard"
FILES = sorted(FIXTURES.rglob("*tfevents*"))
START = 1_795_207_000.25  # seconds since 1970

Columns = dict[str, tuple[list[int], list[float], list[float]]]


def scalar(tag: str, value: float, step: int, time: float = START) -> Event:
    return Event(wall_time=time, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)]))


def rows(tags: Iterable[str], steps: Iterable[int], every: float = 3.5) -> list[Event]:
    """One event a tag and step, as trainers write them."""
    tags = list(tags)
    return [
        scalar(tag, step + number / 8, step, START + step * every + number / 1e5)
        for step in steps
        for number, tag in enumerate(tags)
    ]


def framed(payloads: Iterable[bytes]) -> bytes:
    """The payloads as records."""
    stream = io.BytesIO()
    writer = RecordWriter(stream)
    for payload in payloads:
        writer.write(payload)
    return stream.getvalue()


def write(path: Path, events: Iterable[Event], *, head: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    first = [Event(wall_time=START, file_version="brain.Event:2")] if head else []
    path.write_bytes(framed(event.SerializeToString() for event in [*first, *events]))
    return path


def columns(file: EventFile) -> Columns:
    """What the file still has to give: steps, values and times of each tag, in the order of the file."""
    found: Columns = {}
    for batch in file.read():
        for tag, points in batch.points.items():
            for column, more in zip(found.setdefault(tag, ([], [], [])), points.arrays(), strict=True):
                column.extend(more.tolist())
    return found


def by_protobuf(path: Path) -> Columns:
    """The scalars of a file by the Event class and TensorBoard's own loader."""
    found: Columns = {}
    for payload in RawEventFileLoader(str(path)).Load():
        event = Event.FromString(payload)
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                for column, one in zip(
                    found.setdefault(value.tag, ([], [], [])),
                    (event.step, value.simple_value, event.wall_time),
                    strict=True,
                ):
                    column.append(one)
    return found


def by_tbparse(path: Path) -> Columns:
    from tbparse import SummaryReader

    table = SummaryReader(str(path), pivot=False, extra_columns={"wall_time"}, event_types={"scalars"}).scalars
    groups = table.groupby("tag", sort=False) if len(table) else ()
    return {tag: (part["step"].tolist(), part["value"].tolist(), part["wall_time"].tolist()) for tag, part in groups}


def assert_same(found: Columns, expected: Columns) -> None:
    """The same tags, and in each the same points in the same order, NaN being NaN."""
    assert found.keys() == expected.keys()
    for tag, parts in expected.items():
        for mine, theirs in zip(found[tag], parts, strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=tag)
