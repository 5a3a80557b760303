"""Launches in dated folders side by side: looking runs up by how they begin joins the same files, in linear time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.sources.discovery.find import find_readers
from rlhealth.sources.tensorboard import eventruns
from rlhealth.sources.tensorboard.eventruns import Extent, Launches, _Found, continues, join
from tests.conftest import SICK

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
