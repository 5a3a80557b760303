"""A run whose points were all logged without a step is numbered; one that only writes a step again is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event, SessionLog

import rlhealth
from rlhealth.sources.tensorboard.reader import find
from tests.sources.event_files import START, framed, scalar, write

TAGS = ("reward", "loss")


def points(count: int, first: int = 0, step: int = 0) -> list[bytes]:
    """What `writer.add_scalar(tag, value)` writes: no step is step 0."""
    return [
        scalar(tag, float(n), step, START + n).SerializeToString() for n in range(first, first + count) for tag in TAGS
    ]


def log(tmp_path: Path, *parts: list[bytes]) -> Path:
    path = write(tmp_path / "events.out.tfevents.1.host", [])
    path.write_bytes(path.read_bytes() + b"".join(framed(part) for part in parts))
    return path


@pytest.mark.parametrize("reader", ["fast", "tbparse"])
@pytest.mark.parametrize("step", [0, 8192])
def test_points_without_steps_are_numbered(tmp_path: Path, reader: str, step: int) -> None:
    (found,) = find(log(tmp_path, points(40, step=step)), reader=reader)
    found.poll()
    for tag in TAGS:
        assert found.run.series[tag].steps.tolist() == list(range(1, 41))
        assert found.run.series[tag].values.tolist() == list(range(40))
        assert not found.run.series[tag].overwritten
    assert found.run.notes == [f"every point was logged at step {step}: they are numbered in their order"]
    (run,) = rlhealth.check(tmp_path).runs
    assert run.run.last_step == 40


def test_it_is_the_same_where_they_come_one_by_one(tmp_path: Path) -> None:
    path = log(tmp_path)
    (found,) = find(path)
    for n in range(40):
        with path.open("ab") as file:
            file.write(framed(points(1, n)))
        found.poll()
        if n < 9:
            assert [len(series) for series in found.run.series.values()] == [1, 1], "a step may be written again"
    assert found.run.series["reward"].values.tolist() == list(range(40))
    assert len(found.run.notes) == 1


@pytest.mark.parametrize("again", [2, 12])
def test_a_first_step_that_is_written_again_and_again_is_one_step_once_another_follows(
    tmp_path: Path, again: int
) -> None:
    path = log(tmp_path, points(again))
    (found,) = find(path)
    found.poll()
    with path.open("ab") as file:
        file.write(framed(point for step in (1, 2, 3) for point in points(1, 100 * step, step)))
    found.poll()
    for tag in TAGS:
        assert found.run.series[tag].steps.tolist() == [0, 1, 2, 3]
        assert found.run.series[tag].values.tolist() == [again - 1, 100, 200, 300]
    assert found.run.notes == []


def test_a_writer_that_voids_its_past_and_then_counts_has_what_it_counts(tmp_path: Path) -> None:
    void = Event(wall_time=START + 50, step=1, session_log=SessionLog(status=SessionLog.START)).SerializeToString()
    (found,) = find(log(tmp_path, points(20), [void], points(1, 100, 1), points(1, 200, 2)))
    found.poll()
    for tag in TAGS:
        assert found.run.series[tag].steps.tolist()[-2:] == [1, 2]
        assert found.run.series[tag].values.tolist()[-2:] == [100, 200]
