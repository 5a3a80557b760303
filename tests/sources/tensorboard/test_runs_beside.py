"""Launches in dated folders side by side: looking runs up by how they begin joins the same files, in linear time."""

from __future__ import annotations

import cProfile
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.sources.discovery.find import find_readers
from rlhealth.sources.tensorboard import eventheads, eventruns
from rlhealth.sources.tensorboard.eventextent import Extent
from rlhealth.sources.tensorboard.eventheads import Head, SeenBefore, head_of, starts_alike
from rlhealth.sources.tensorboard.eventruns import Launches, _Found, continues, join
from tests.conftest import FIXTURES, SICK
from tests.examples import examples

STEPS = st.integers(1, 40)
EXTENTS = st.builds(
    lambda starts, long, every, time: Extent(time, time + long, max(starts.values(), default=-1) + long, every, starts),
    st.dictionaries(st.sampled_from(["train/loss", "train/reward", "eval/reward"]), STEPS, max_size=3),
    STEPS,
    st.integers(0, 5),
    st.floats(0, 300),
)
FILES = st.lists(st.tuples(st.integers(0, 3), EXTENTS), min_size=1, max_size=12)


@given(FILES)
def test_what_is_looked_up_continues_exactly_what_a_look_at_every_run_finds(files: list[tuple[int, Extent]]) -> None:
    found = _Found()
    for number, (folder, new) in enumerate(files):
        path = Path(f"/runs/Nov{folder + 1:02d}_10-00-00_host/events.out.tfevents.{number}.host.{number % 2}.0")
        fits = [run for run in found.worth_a_look(path, new) if continues(run, path, new)]
        assert fits == [run for run in found.all if continues(run, path, new)]
        assert found.beside(path) == [run for run in found.all if run.files[-1].parent == path.parent]
        if fits:
            found.forget(fits[0])
            join(fits[0], path, new)
            found.add(fits[0])
        else:
            found.add(Launches([path], new))


def test_finding_launches_takes_as_many_calls_a_launch_whether_there_are_fifty_or_four_hundred(tmp_path: Path) -> None:
    log = next((SICK / "runs").glob("*/events.out.tfevents.*")).read_bytes()[:8192]
    calls = {}
    for count in (50, 400):
        for number in range(count):
            folder = tmp_path / str(count) / "runs" / f"Nov01_{number // 60:02d}-{number % 60:02d}-00_host"
            folder.mkdir(parents=True)
            (folder / f"events.out.tfevents.{1_700_000_000 + number}.host.{number}.0").write_bytes(log)
        find_readers(tmp_path / str(count))  # what is imported at the first need is there
        profile = cProfile.Profile()
        assert len(profile.runcall(find_readers, tmp_path / str(count))) == count
        calls[count] = sum(one.callcount for one in profile.getstats()) / count
    assert calls[400] < 1.02 * calls[50]


def test_launches_that_begin_alike_are_not_compared_with_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = next((SICK / "runs").glob("*/events.out.tfevents.*"))
    folders = [tmp_path / "runs" / f"Nov01_10-{number:02d}-00_host" for number in range(40)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / f"events.out.tfevents.{1_700_000_000 + number}.host.{number}.0").write_bytes(log.read_bytes())
    compared: list[Path] = []

    def counted(run: Launches, path: Path, new: Extent) -> bool:
        compared.append(path)
        return continues(run, path, new)

    monkeypatch.setattr(eventruns, "continues", counted)
    found = find_readers(tmp_path)
    assert len({reader.run.name for reader in found}) == len(found) == 40
    assert len(compared) <= 40  # 780 where each is compared with each


def files_of(root: Path) -> list[tuple[str, list[str]]]:
    """Each run that is found, with the files that it reads."""
    return [(one.run.name, [str(path) for path in one._launches.files]) for one in find_readers(root)]  # type: ignore[attr-defined]


def dated(root: Path, logs: list[Path]) -> Path:
    for number, log in enumerate(logs):
        folder = root / "runs" / f"Nov01_10-{number:02d}-00_host"
        folder.mkdir(parents=True)
        (folder / log.name).write_bytes(log.read_bytes())
    return root


RESUMED = sorted((FIXTURES / "tensorboard" / "grpo-resumed").rglob("*tfevents*"))
LOGS = [next((FIXTURES / "tensorboard" / name).rglob("*tfevents*")) for name in ("grpo-sort", "grpo-sentences")]


@pytest.mark.parametrize(
    "logs",
    [[*LOGS] * 5, [RESUMED[0]] * 9 + [RESUMED[1]], [*LOGS[:1] * 9, *RESUMED], RESUMED],
    ids=["alike", "one goes on", "mixed", "two"],
)
def test_first_points_alone_find_the_same_runs_as_a_longer_look(
    logs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = dated(tmp_path, logs)
    quick = files_of(root)
    monkeypatch.setattr(eventruns, "starts_alike", lambda paths: None)
    assert quick == files_of(root)


def test_a_launch_without_points_or_with_damage_is_looked_at_longer(tmp_path: Path) -> None:
    root = dated(tmp_path, LOGS[:1] * 10)
    paths = sorted(root.rglob("*tfevents*"))
    assert starts_alike(paths) is not None
    paths[3].write_bytes(paths[3].read_bytes()[:200])
    assert starts_alike(paths) is None
    assert starts_alike(paths[:2]) is None


def test_what_earlier_files_taught_changes_no_head(tmp_path: Path) -> None:
    files = sorted(FIXTURES.rglob("events.out.tfevents.*"))
    renamed = tmp_path / "renamed"  # the same records under a tag of the same length, so that only the tag differs
    renamed.write_bytes(files[0].read_bytes().replace(b"loss", b"lost"))
    known = SeenBefore()
    heads = [head_of(path, known) for path in (*files, renamed, *files)]
    assert heads == [head_of(path) for path in (*files, renamed, *files)]
    assert sum(head is not None for head in heads) > 10
    assert known.tags
    assert known.pattern is not None


HEADS = [SICK / "runs", *sorted((FIXTURES / "tensorboard").iterdir())]
LAUNCHES = [path for folder in HEADS for path in sorted(folder.rglob("events.out.tfevents.*"))[:1] if head_of(path)]


def said_of(head: Head | None) -> object:
    """A head, with its time spelled out, so that NaN is NaN."""
    return head and (head.step, struct.pack("<d", head.time), head.tags)


@given(st.sampled_from(LAUNCHES), st.integers(0, 6000), st.integers(0, 255))
@settings(max_examples=examples(500))
def test_a_launch_that_differs_in_a_byte_begins_as_it_does_when_looked_at_alone(
    launch: Path, place: int, byte: int
) -> None:
    changed = bytearray(launch.read_bytes())
    changed[place % len(changed)] = byte
    known = SeenBefore()
    head_of(launch, known)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changed"
        path.write_bytes(changed)
        assert said_of(head_of(path, known)) == said_of(head_of(path))


def test_a_launch_of_the_same_script_is_not_looked_at_record_by_record(monkeypatch: pytest.MonkeyPatch) -> None:
    known = SeenBefore()
    first = head_of(LAUNCHES[0], known)
    monkeypatch.setattr(eventheads, "_looked_through", lambda raw, known: pytest.fail("looked through"))
    assert head_of(LAUNCHES[0], known) == first
