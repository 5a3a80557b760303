"""Event files: the vectorised reader, the reader record by record, protobuf and tbparse agree; torn ends, damage and
growth.
"""

from __future__ import annotations

import io
import math
import random
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.plugins.histogram import summary_v2 as histogram_summary
from tensorboard.plugins.hparams import summary_v2 as hparams_summary
from tensorboard.plugins.scalar import summary_v2 as scalar_summary
from tensorboard.plugins.text import summary_v2 as text_summary

from rlhealth.sources.tensorboard import crc32c, eventfile
from rlhealth.sources.tensorboard.eventbatch import Decoder
from rlhealth.sources.tensorboard.eventfile import EventFile
from rlhealth.sources.tensorboard.eventvalues import Bins, Settings, Text
from tests.examples import examples
from tests.sources.event_files import (
    FILES,
    START,
    Columns,
    assert_same,
    by_protobuf,
    by_tbparse,
    columns,
    framed,
    rows,
    scalar,
    write,
)

TAGS = ["train/loss", "train/reward", "train/kl", "train/completions/mean_length", "train/epoch"]
PAYLOADS = [
    event.SerializeToString()
    for event in (
        scalar("train/loss", 0.25, 300),
        Event(step=4, summary=histogram_summary.histogram_pb("ratio", [1.0, 2.0, 3.0], buckets=2)),
        Event(
            step=3,
            summary={
                "value": [
                    {
                        "tag": "ratio",
                        "histo": {"min": 0.5, "max": 1.75, "bucket_limit": [1.0, 2.0], "bucket": [3.0, 5.0]},
                    }
                ]
            },
        ),
        Event(step=0, summary=text_summary.text_pb("args/text_summary", '{"beta": 0.04}')),
        Event(step=0, summary=hparams_summary.hparams_pb({"lr": 1e-3, "name": "a", "adaptive": True})),
        Event(step=0, summary=scalar_summary.scalar_pb("new", 0.5)),
    )
]
anything = settings(
    max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def taken_singly(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one for every record that was not taken in a round."""
    taken: list[int] = []
    take = Decoder.take

    def counting(self: Decoder, payload: bytes) -> int:
        taken.append(len(payload))
        return take(self, payload)

    monkeypatch.setattr(Decoder, "take", counting)
    return taken


# --- the same as others read
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.parent.parent.name + "/" + path.parent.name)
def test_real_files_read_as_protobuf_and_tbparse_read_them(path: Path) -> None:
    expected = by_protobuf(path)
    assert_same(columns(EventFile(path)), expected)
    assert_same(columns(EventFile(path, vectorised=False)), expected)
    assert_same(columns(EventFile(path, block=3000)), expected)
    assert_same(by_tbparse(path), expected)


def stretches() -> st.SearchStrategy[list[Event]]:
    """Files as trainers write them, and as they do not: rows of the same tags with all sorts of things between."""
    value = st.floats(width=32) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-45])
    tag = st.sampled_from([*TAGS, "x", "eval/" + "long" * 40, "ünï/cødé", ""])
    step = st.sampled_from(
        [0, 1, 126, 127, 128, 16_382, 16_384, 2_097_151, -1, -(2**63), 2**40, 2**63 - 1]
    ) | st.integers(-5, 300)
    some_rows = st.builds(
        lambda tags, first, count, stride: rows(tags, range(first, first + count * stride, stride)),
        st.lists(tag, min_size=1, max_size=6),
        step.filter(lambda one: one < 2**62),
        st.integers(1, 90),
        st.sampled_from([1, 5, 100]),
    )
    lone = st.builds(
        lambda tag, value, step, time: [scalar(tag, value, step, time)], tag, value, step, st.floats(0, 2e9)
    )
    several = st.builds(
        lambda pairs, step: [
            Event(
                wall_time=START,
                step=step,
                summary={"value": [{"tag": tag, "simple_value": value} for tag, value in pairs]},
            )
        ],
        st.lists(st.tuples(tag, value), min_size=2, max_size=4),
        step,
    ).map(lambda one: one * 150)
    text = st.just([Event(wall_time=START, step=7, summary=text_summary.text_pb("note", "hello"))])
    histogram = st.just(
        [Event(wall_time=START, step=7, summary=histogram_summary.histogram_pb("ratio", [0.5, 1.0, 2.0], buckets=3))]
    )
    return st.lists(some_rows | lone | several | text | histogram, max_size=8).map(
        lambda parts: [event for part in parts for event in part]
    )


@given(stretches(), st.sampled_from([700, 5000, 1 << 21]))
@anything
def test_any_file_reads_vectorised_as_record_by_record_as_by_protobuf(
    tmp_path: Path, events: list[Event], block: int
) -> None:
    path = write(tmp_path / "events.out.tfevents.1.host.1.0", events)
    expected = by_protobuf(path)
    assert_same(columns(EventFile(path, block=block)), expected)
    assert_same(columns(EventFile(path, block=block, vectorised=False)), expected)


@given(stretches())
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_reads_as_tbparse_reads_it(tmp_path: Path, events: list[Event]) -> None:
    named = [
        event for event in events if all(value.tag for value in event.summary.value)
    ]  # tbparse takes an empty tag for none
    path = write(tmp_path / "events.out.tfevents.1.host.1.0", named)
    assert as_sets(columns(EventFile(path))) == as_sets(by_tbparse(path))


def as_sets(found: Columns) -> dict[str, list[str]]:
    """The points of each tag without their order, for tbparse sorts them; as text, in which NaN equals itself."""
    return {tag: sorted(map(repr, zip(*parts, strict=True))) for tag, parts in found.items()}


@pytest.mark.parametrize("every", [1, 2, 4])
def test_rows_that_hold_some_tags_only_now_and_then_keep_their_order(tmp_path: Path, every: int) -> None:
    events = [event for step in range(1, 400) for event in rows(TAGS if step % every == 0 else TAGS[:2], [step])]
    path = write(tmp_path / "events.out.tfevents.1.host.1.0", events)
    assert_same(columns(EventFile(path)), by_protobuf(path))


def test_a_tag_written_twice_a_step_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    events = [scalar("loss", step + part / 4, step) for step in range(1, 600) for part in range(3)]
    path = write(tmp_path / "events.out.tfevents.1.host.1.0", events)
    assert_same(columns(EventFile(path)), by_protobuf(path))


def test_a_signalling_nan_is_a_nan_and_no_warning(tmp_path: Path) -> None:
    payloads = [scalar("loss", 1.0, step).SerializeToString()[:-4] + b"\x01\x00\x80\x7f" for step in range(1, 300)]
    path = tmp_path / "events.out.tfevents.1.host.1.0"
    path.write_bytes(framed(payloads))
    assert np.isnan(columns(EventFile(path))["loss"][1]).all()


# --- rounds
# -------------------------------------------------------------------------------------------------------------------------------


def test_nearly_all_records_of_a_regular_file_are_taken_in_rounds(tmp_path: Path, taken_singly: list[int]) -> None:
    path = write(
        tmp_path / "events.out.tfevents.1.host.1.0", rows([f"regular/{number}" for number in range(20)], range(1, 1001))
    )
    file = EventFile(path, block=100_000)
    assert sum(len(steps) for steps, _, _ in columns(file).values()) == file.records - 1 == 20_000
    assert len(taken_singly) < 400


def test_rounds_go_on_after_a_text_or_an_evaluation_between_them(tmp_path: Path, taken_singly: list[int]) -> None:
    between = {
        200: rows([f"eval/{number}" for number in range(5)], [200]),
        400: [Event(wall_time=START, step=400, summary=text_summary.text_pb("note", "x"))],
    }
    tags = [f"between/{number}" for number in range(20)]
    path = write(
        tmp_path / "events.out.tfevents.1.host.1.0",
        [event for step in range(1, 601) for event in [*rows(tags, [step]), *between.get(step, [])]],
    )
    assert_same(columns(EventFile(path)), by_protobuf(path))
    taken_singly.clear()
    columns(EventFile(path))
    assert len(taken_singly) < 200


def test_new_style_scalars_are_taken_in_rounds_too(tmp_path: Path, taken_singly: list[int]) -> None:
    events = [
        Event(wall_time=START + step, step=step, summary=scalar_summary.scalar_pb(f"new/{tag}", step / 4))
        for step in range(1, 500)
        for tag in "abcd"
    ]
    found = columns(EventFile(write(tmp_path / "events.out.tfevents.1.host.1.0", events)))
    assert found["new/c"][:2] == (list(range(1, 500)), [step / 4 for step in range(1, 500)])
    assert len(taken_singly) < 100


# --- other records
# ------------------------------------------------------------------------------------------------------------------------


def items(path: Path) -> list[tuple[int, object]]:
    return [(step, item) for batch in EventFile(path).read() for step, _, item in batch.items]


def test_histograms_of_both_styles_have_one_edge_more_than_counts(tmp_path: Path) -> None:
    old = Event(
        step=3,
        summary={
            "value": [
                {
                    "tag": "ratio",
                    "histo": {"min": 0.5, "max": 1.75, "bucket_limit": [0.25, 1.0, 2.0], "bucket": [0.0, 3.0, 5.0]},
                }
            ]
        },
    )
    new = Event(step=4, summary=histogram_summary.histogram_pb("ratio", [1.0, 2.0, 3.0, 5.0], buckets=2))
    (first, torch_like), (second, tensor) = items(write(tmp_path / "events.out.tfevents.1.host.1.0", [old, new]))
    assert (first, second) == (3, 4)
    assert isinstance(torch_like, Bins) and isinstance(tensor, Bins)
    assert (torch_like.edges.tolist(), torch_like.counts.tolist()) == ([0.5, 1.0, 1.75], [3.0, 5.0])
    assert (tensor.edges.tolist(), tensor.counts.tolist()) == ([1.0, 3.0, 5.0], [2.0, 2.0])


def test_text_and_hyper_parameters_are_read(tmp_path: Path) -> None:
    text = Event(step=0, summary=text_summary.text_pb("args/text_summary", '{"beta": 0.04}'))
    start = Event(step=0, summary=hparams_summary.hparams_pb({"lr": 1e-3, "steps": 20, "name": "a", "adaptive": True}))
    (_, args), (_, hparams) = items(write(tmp_path / "events.out.tfevents.1.host.1.0", [text, start]))
    assert args == Text("args/text_summary", '{"beta": 0.04}')
    assert hparams == Settings({"lr": 1e-3, "steps": 20, "name": "a", "adaptive": True})


def test_a_writer_that_starts_again_voids_what_came_after_its_step(tmp_path: Path) -> None:
    again = Event(wall_time=START, step=6, session_log=SessionLog(status=SessionLog.START))
    batches = list(
        EventFile(
            write(tmp_path / "events.out.tfevents.1.host.1.0", [*rows(TAGS, range(1, 10)), again, *rows(TAGS, [6])])
        ).read()
    )
    assert [(batch.restart, len(batch.points["train/kl"].arrays()[0])) for batch in batches] == [(None, 9), (6, 1)]


# --- growth
# -------------------------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 60_000), max_size=12), st.sampled_from(FILES))
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_read_as_it_grows_gives_what_it_gives_at_once(tmp_path: Path, cuts: list[int], path: Path) -> None:
    whole, growing = path.read_bytes(), tmp_path / "events.out.tfevents.2.host.2.0"
    growing.write_bytes(b"")
    file, found = EventFile(growing), {}
    for cut in [*sorted(cuts), len(whole)]:
        growing.write_bytes(whole[:cut])
        for tag, parts in columns(file).items():
            for column, more in zip(found.setdefault(tag, ([], [], [])), parts, strict=True):
                column.extend(more)
        assert not file.lost
    assert_same(found, by_protobuf(path))


def test_many_polls_read_each_byte_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    class Counting(io.FileIO):
        def readinto(self, buffer: object) -> int:
            counted.append(super().readinto(buffer))
            return counted[-1]

    whole, growing = FILES[0].read_bytes(), tmp_path / "events.out.tfevents.2.host.2.0"
    file = EventFile(growing)
    monkeypatch.setattr(Path, "open", lambda self, *args, **options: Counting(self))
    for cut in range(0, len(whole), 997):
        append(growing, whole[cut : cut + 997])
        for _ in range(3):
            columns(file)
    assert sum(counted) == len(whole) == file.offset


def append(path: Path, more: bytes) -> None:
    with io.FileIO(path, "a") as stream:
        stream.write(more)


def test_a_torn_tail_is_waited_for_not_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "events.out.tfevents.1.host.1.0", rows(TAGS, range(1, 50)))
    whole = path.read_bytes()
    for missing in (1, 5, 20, 60):
        path.write_bytes(whole[:-missing])
        file = EventFile(path)
        before = columns(file)
        assert file.torn and not file.lost
        path.write_bytes(whole)
        after = columns(file)
        assert not file.torn and not file.lost
        assert sum(len(parts[0]) for found in (before, after) for parts in found.values()) == 49 * len(TAGS)


def test_room_that_was_allotted_and_not_yet_written_is_a_torn_tail(tmp_path: Path) -> None:
    path = write(tmp_path / "events.out.tfevents.1.host.1.0", rows(TAGS, range(1, 50)))
    path.write_bytes(path.read_bytes() + bytes(5000))
    file = EventFile(path)
    assert len(columns(file)["train/kl"][0]) == 49
    assert file.torn and not file.lost


# --- damage
# -------------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def long_file(tmp_path: Path) -> tuple[Path, list[int]]:
    """A file of 1,001 records, and where each of them begins."""
    path = write(tmp_path / "events.out.tfevents.1.host.1.0", rows(TAGS, range(1000, 1200)))
    raw, begins, at = path.read_bytes(), [], 0
    while at < len(raw):
        begins.append(at)
        at += 16 + int.from_bytes(raw[at : at + 8], "little")
    return path, begins


@pytest.mark.parametrize("where", ["payload", "length", "checksum of the length", "checksum of the payload"])
@pytest.mark.parametrize("block", [2000, 1 << 21])
def test_a_damaged_record_is_skipped_and_all_others_are_kept(
    long_file: tuple[Path, list[int]], where: str, block: int
) -> None:
    path, begins = long_file
    whole = by_protobuf(path)
    raw, chosen = bytearray(path.read_bytes()), [400, 405, 700]  # all of one tag: the same damage must not cancel out
    for number in chosen:
        end = begins[number + 1]
        raw[
            {
                "payload": end - 6,
                "length": begins[number],
                "checksum of the length": begins[number] + 9,
                "checksum of the payload": end - 2,
            }[where]
        ] ^= 0x10
    path.write_bytes(raw)
    file = EventFile(path, block=block)
    found = columns(file)
    assert sum(len(parts[0]) for parts in found.values()) == 1000 - len(chosen)
    assert all(
        set(zip(*found[tag], strict=True)) < set(zip(*parts, strict=True)) or found[tag] == parts
        for tag, parts in whole.items()
    )
    assert file.lost[0] == begins[400] and begins[700] in file.lost
    assert len(file.lost) == 3 if "payload" in where else len(file.lost) >= 2


@pytest.mark.parametrize("change", ["bytes missing", "bytes too many", "zeros", "text"])
def test_reading_goes_on_behind_a_damaged_stretch(long_file: tuple[Path, list[int]], change: str) -> None:
    path, begins = long_file
    raw = path.read_bytes()
    a, b = begins[500] + 7, begins[510] + 3
    junk = {
        "bytes missing": b"",
        "bytes too many": raw[a:b] + b"\1\2\3" * 9 + raw[b - 3 : b],
        "zeros": bytes(b - a),
        "text": b"disk full! " * 50,
    }[change]
    path.write_bytes(raw[:a] + junk + raw[b:])
    file = EventFile(path)
    assert sum(len(parts[0]) for parts in columns(file).values()) >= 1000 - 12
    assert file.lost and file.lost[0] == begins[510 if change == "bytes too many" else 500]
    assert not file.torn


@given(st.data())
@anything
def test_no_damage_makes_it_fail_or_invent_points(tmp_path: Path, data: st.DataObject) -> None:
    whole = rows(TAGS, range(100, 160))
    path = write(tmp_path / "events.out.tfevents.1.host.1.0", whole)
    expected, raw = by_protobuf(path), bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        end = data.draw(st.integers(at, min(at + 80, len(raw))))
        raw[at:end] = data.draw(st.binary(max_size=80))
    path.write_bytes(raw)
    file = EventFile(path, block=data.draw(st.sampled_from([500, 4000, 1 << 21])))
    found = columns(file)
    for tag, parts in found.items():
        assert set(zip(*parts, strict=True)) <= set(zip(*expected[tag], strict=True))
    again = columns(EventFile(path, vectorised=False))
    assert_same(found, again)


@given(
    st.lists(
        st.binary(max_size=60)
        | st.tuples(st.sampled_from(PAYLOADS), st.integers(0, 400), st.binary(min_size=1, max_size=4)),
        max_size=20,
    )
)
@anything
def test_an_intact_record_that_is_no_event_is_counted_and_breaks_nothing(
    tmp_path: Path, records: list[bytes | tuple[bytes, int, bytes]]
) -> None:
    payloads = [
        one if isinstance(one, bytes) else one[0][: one[1]] + one[2] + one[0][one[1] + len(one[2]) :] for one in records
    ]
    path = tmp_path / "events.out.tfevents.1.host.1.0"
    path.write_bytes(framed([*payloads, scalar("last", 1.5, 7).SerializeToString()]))
    file = EventFile(path)
    assert columns(file)["last"] == ([7], [1.5], [START])
    assert file.records + len(file.lost) >= len(payloads) + 1 and not file.torn


def test_a_length_of_two_to_the_sixty_allots_nothing(tmp_path: Path) -> None:
    size = struct.pack("<Q", 1 << 60)
    lie = size + struct.pack("<I", crc32c.masked(size)) + b"short"
    path = write(tmp_path / "events.out.tfevents.1.host.1.0", rows(TAGS, range(1, 50)))
    path.write_bytes(path.read_bytes() + lie + framed(event.SerializeToString() for event in rows(TAGS, range(50, 60))))
    file = EventFile(path)
    tracemalloc.start()
    found = columns(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found["train/kl"][0] == list(range(1, 60))
    assert len(file.lost) == 1
    assert peak < 5_000_000


def test_a_file_without_a_record_yields_nothing_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.host.1.0"
    path.write_bytes(random.Random(0).randbytes(300_000))
    file = EventFile(path)
    assert not columns(file) and not file.records and file.lost == [0]


def test_of_a_long_file_only_the_damaged_record_is_lost(long_file: tuple[Path, list[int]]) -> None:
    path, begins = long_file
    assert_same(columns(EventFile(path)), by_protobuf(path))
    raw = bytearray(path.read_bytes())
    raw[begins[300] + 20] ^= 1
    path.write_bytes(raw)
    file = EventFile(path)
    assert sum(len(parts[0]) for parts in columns(file).values()) == 999
    assert file.lost == [begins[300]]


def test_what_a_byte_adds_to_a_checksum_is_what_the_library_says() -> None:
    table = crc32c.contributions(64)
    for behind in (0, 1, 7, 63):
        for byte in (1, 2, 128, 255):
            differs = crc32c.crc32c(bytes([byte]) + bytes(behind)) ^ crc32c.crc32c(bytes(behind + 1))
            assert table[256 * behind + byte] == differs


def test_memory_does_not_follow_the_file(tmp_path: Path) -> None:
    once = framed(event.SerializeToString() for event in rows(TAGS, range(1000, 3000)))
    path = tmp_path / "events.out.tfevents.1.host.1.0"
    path.write_bytes(once * 40)
    tracemalloc.start()
    points = sum(len(part.arrays()[0]) for batch in EventFile(path).read() for part in batch.points.values())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert points == 2000 * len(TAGS) * 40
    assert path.stat().st_size > 20_000_000
    assert peak < 6 * eventfile.BLOCK
