"""Torn and damaged logs: whatever is intact is read, what was lost is said, and nobody has to see a traceback."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.run import Run
from rlhealth.sources.rows import table
from rlhealth.sources.tensorboard.eventfile import EventFile
from rlhealth.sources.tensorboard.reader import find
from rlhealth.sources.trackio import reader as trackio
from rlhealth.sources.wandb.log import RecordLog
from tests.fuzz import seeds
from tests.fuzz.framing import event_spans, wandb_spans
from tests.fuzz.mutate import DAMAGES, Damage, blank, flip_bit, repeat, scramble, swap
from tests.trust import reference

FIXTURES = Path(__file__).parents[2] / "fixtures"
EVENTS = sorted((FIXTURES / "tensorboard").rglob("*tfevents*"), key=lambda path: path.stat().st_size)
WANDB = sorted((FIXTURES / "wandb").glob("*.wandb"))
NAMES = [damage.__name__ for damage in DAMAGES]


def payloads_read(path: Path, **how: object) -> tuple[int, dict[str, list[tuple[int, float]]], EventFile]:
    """How many records a file gives, and its points, tag by tag, in the order of the file."""
    file = EventFile(path, **how)  # type: ignore[arg-type]
    points: dict[str, list[tuple[int, float]]] = {}
    for batch in file.read():
        for tag, one in batch.points.items():
            steps, values, _ = one.arrays()
            points.setdefault(tag, []).extend(zip(steps.tolist(), values.tolist(), strict=True))
    return file.records, points, file


def points_of(payloads: list[bytes]) -> dict[str, list[tuple[int, float]]]:
    """The same by TensorBoard's own messages."""
    from tensorboard.compat.proto.event_pb2 import Event

    points: dict[str, list[tuple[int, float]]] = {}
    for payload in payloads:
        event = Event.FromString(payload)
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                points.setdefault(value.tag, []).append((event.step, value.simple_value))
    return points


def records_read(path: Path) -> tuple[list[bytes], RecordLog]:
    log = RecordLog(path)
    found = []
    for records in log.read():
        found += [
            bytes(records.buffer[start:end])
            for start, end in zip(records.start.tolist(), records.end.tolist(), strict=True)
        ]
    return found, log


def test_an_event_file_cut_at_any_byte_gives_every_whole_record_and_waits_for_the_rest(tmp_path: Path) -> None:
    raw = seeds.event_files()[0][:1200]
    ends = [end for _, end in event_spans(raw)]
    path = tmp_path / "events.out.tfevents.1"
    for size in range(len(raw) + 1):
        path.write_bytes(raw[:size])
        records, _, file = payloads_read(path)
        assert (records, file.lost, file.torn) == (sum(end <= size for end in ends), [], size not in (0, *ends))


@pytest.mark.parametrize("damage", DAMAGES, ids=NAMES)
def test_a_damaged_event_file_gives_every_record_whose_checksums_hold(damage: Damage, tmp_path: Path) -> None:
    random = Random(8)
    path = tmp_path / "events.out.tfevents.1"
    for _ in range(12):
        raw = random.choice(EVENTS[:8]).read_bytes()[:60_000]
        for _ in range(random.choice((1, 2, 5))):
            raw = damage(random, raw)
        path.write_bytes(raw)
        expected = reference.event_payloads(raw)
        records, points, _ = payloads_read(path)
        assert records == len(expected)
        np.testing.assert_equal(points, points_of(expected))
        in_pieces, again, _ = payloads_read(path, block=700)
        assert in_pieces == records
        np.testing.assert_equal(again, points)


@pytest.mark.parametrize("damage", [flip_bit, blank, scramble], ids=lambda one: one.__name__)
def test_damage_in_an_event_file_is_counted_and_never_costs_more_than_the_records_it_touches(
    damage: Damage, tmp_path: Path
) -> None:
    random = Random(3)
    path = tmp_path / "events.out.tfevents.1"
    for _ in range(40):
        raw = random.choice(EVENTS[:8]).read_bytes()
        spans = event_spans(raw)
        raw = raw[: spans[-1][1]]
        damaged = damage(random, raw)
        touched = [index for index, (start, end) in enumerate(spans) if raw[start:end] != damaged[start:end]]
        path.write_bytes(damaged)
        records, _, file = payloads_read(path)
        assert records >= len(spans) - len(touched)
        if touched and touched[-1] < len(spans) - 1:
            run = polled(find(path)[0])
            assert len(file.lost) == 1
            assert "1 damaged record skipped at byte" in run.problems[0]


def test_a_wandb_log_cut_at_any_byte_gives_every_whole_record_and_waits_for_the_rest(tmp_path: Path) -> None:
    raw = seeds.wandb_files()[1][:1200]
    ends = [end for _, end, _ in wandb_spans(raw)]
    path = tmp_path / "run-a.wandb"
    for size in range(len(raw) + 1):
        path.write_bytes(raw[:size])
        found, log = records_read(path)
        assert (len(found), log.damage) == (sum(end <= size for end in ends), [])
        assert log.torn == (size not in (0, 7, *ends))


@pytest.mark.parametrize("damage", DAMAGES, ids=NAMES)
def test_a_damaged_wandb_log_gives_every_record_whose_checksums_hold(damage: Damage, tmp_path: Path) -> None:
    random = Random(9)
    path = tmp_path / "run-a.wandb"
    for _ in range(12):
        raw = random.choice(WANDB).read_bytes()[:80_000]
        body = raw[7:]
        for _ in range(random.choice((1, 2, 4))):
            body = damage(random, body)
        path.write_bytes(raw[:7] + body)
        expected = reference.wandb_records(raw[:7] + body)
        found, log = records_read(path)
        assert found == expected
        if len(expected) < len(reference.wandb_records(raw)) - 3 and damage in (flip_bit, blank, scramble):
            assert log.damage or log.torn


def polled(reader: object) -> Run:
    reader.poll()  # type: ignore[attr-defined]
    return reader.run  # type: ignore[attr-defined,no-any-return]


def points(run: Run) -> set[tuple[str, int, str]]:
    return {
        (tag, int(step), repr(float(value)))
        for tag, one in run.series.items()
        for step, value in zip(one.steps, one.values, strict=True)
    }


def test_log_rows_cut_at_any_byte_give_every_whole_row(tmp_path: Path) -> None:
    raw = seeds.rows_of_json()[1]
    path = tmp_path / "log.jsonl"
    path.write_bytes(raw)
    whole = points(polled(table.find(path)[0]))
    ends = [index for index in range(len(raw)) if raw[index : index + 1] == b"}"]
    steps = sorted({step for _, step, _ in whole})
    for size in range(60, len(raw)):
        path.write_bytes(raw[:size])
        there = sum(end < size for end in ends)
        try:
            found = points(polled(table.find(path, "jsonl")[0]))
        except RlhealthError:
            found = set()
        assert found == {one for one in whole if one[1] in steps[:there]}


def test_a_trainer_state_cut_at_any_byte_gives_every_whole_entry(tmp_path: Path) -> None:
    raw = seeds.trainer_states()[1]
    path = tmp_path / "trainer_state.json"
    path.write_bytes(raw)
    whole = points(polled(table.find(path)[0]))
    first = raw.index(b'"log_history"')
    ends = [index for index in range(first, len(raw)) if raw[index : index + 1] == b"}"][:3]
    steps = sorted({step for _, step, _ in whole})
    for size in range(0, len(raw), 3):
        path.write_bytes(raw[:size])
        try:
            run = polled(table.find(path, "trainer_state")[0])
            found = points(run)
        except RlhealthError:
            found = set()
        assert found == {one for one in whole if one[1] in steps[: sum(end < size for end in ends)]}


@pytest.mark.parametrize("damage", [flip_bit, blank, scramble, repeat, swap], ids=lambda one: one.__name__)
def test_text_logs_lose_no_row_that_the_damage_did_not_touch(damage: Damage, tmp_path: Path) -> None:
    raw = b"".join(b'{"loss": %d.5, "reward": 0.%d, "step": %d}\n' % (step, step, step) for step in range(1, 200))
    random = Random(4)
    path = tmp_path / "log.jsonl"
    for _ in range(25):
        damaged = damage(random, raw)
        path.write_bytes(damaged)
        run = polled(table.find(path, "jsonl")[0])
        intact = set(raw.splitlines()) & set(damaged.replace(b"\0", b"").splitlines())
        lost = 199 - len(intact)
        assert len(run.series["loss"]) >= 199 - lost
        if damage in (blank, scramble) and lost > 2:
            assert run.problems


def test_a_table_cut_at_any_byte_gives_every_whole_line(tmp_path: Path) -> None:
    raw = b"step,loss,reward\n" + b"".join(b"%d,%d.25,0.5\n" % (step, step) for step in range(1, 12))
    path = tmp_path / "progress.csv"
    for size in range(17, len(raw) + 1):
        path.write_bytes(raw[:size])
        lines = raw[:size].count(b"\n") - 1
        try:
            run = polled(table.find(path, "csv")[0])
        except RlhealthError:
            assert lines == 0
            continue
        assert len(run.series["loss"]) == lines
        assert run.series["loss"].values.tolist() == [step + 0.25 for step in range(1, lines + 1)]


@pytest.mark.parametrize("damage", DAMAGES, ids=NAMES)
def test_a_damaged_trackio_database_is_kept_apart_from_a_sound_one(damage: Damage, tmp_path: Path) -> None:
    raw = seeds.databases()[1]
    path = tmp_path / "project.db"
    path.write_bytes(raw)
    whole = points(polled(trackio.find(path)[0]))
    assert whole
    random = Random(5)
    for _ in range(40):
        path.write_bytes(damage(random, raw))
        try:
            runs = [polled(reader) for reader in trackio.find(path)]
        except RlhealthError as error:
            assert error.hint
            continue
        found = set().union(*(points(run) for run in runs)) if runs else set()
        assert len(found) <= len(whole) + 60


def test_what_was_lost_is_said_with_the_answer_and_not_instead_of_it(cli, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import json

    raw = bytearray((FIXTURES / "runs" / "lr-jump").rglob("*tfevents*").__next__().read_bytes())
    raw[100_000:100_004] = b"\xff\xff\xff\xff"
    path = tmp_path / "events.out.tfevents.1.a"
    path.write_bytes(raw)
    done = cli("check", path, "-f", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 1, "what was intact is critical, and fails the gate"
    assert cli("check", path, "--fail-on", "never").returncode == 2, "an answer that is not whole never passes"
    assert report["verdict"] == "critical"
    assert (
        "damaged record skipped at byte 1000" in report["runs"][0]["problems"][0]
        or "damaged record skipped at byte 99" in report["runs"][0]["problems"][0]
    )
    for format in ("terminal", "markdown", "html", "junit", "sarif", "github"):
        assert "damaged record" in cli("check", path, "-f", format).stdout.replace("\u202f", " ").replace("\n", " "), (
            format
        )


def test_a_log_that_is_nothing_but_noise_is_no_answer(cli, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    noise = Random(1).randbytes(5000)
    for name in (
        "events.out.tfevents.1.a",
        "run-a.wandb",
        "project.db",
        "trainer_state.json",
        "log.jsonl",
        "progress.csv",
        "train.log",
    ):
        (tmp_path / name).write_bytes(noise)
        done = cli("check", tmp_path / name)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
