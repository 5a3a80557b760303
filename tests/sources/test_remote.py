"""Object stores: runs in a real S3 server on loopback are read as the same runs in a folder, and only what is new is fetched."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlhealth.check import check
from rlhealth.errors import Blind, RlhealthError
from rlhealth.sources import find_readers, remote

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server that speaks S3, in a process thread of its own."""
    moto = pytest.importorskip("moto.server", reason="needs a server and a client: pip install 'rlhealth[remote-dev]'")
    pytest.importorskip("s3fs", reason="needs a client: pip install 'rlhealth[remote-dev]'")
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    """An empty bucket, by a client of its own."""
    import s3fs

    for key, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": server, "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(remote, "_mirrors", {})
    monkeypatch.setattr(remote, "FRESH", 0.0)
    s3fs.S3FileSystem.clear_instance_cache()
    store = s3fs.S3FileSystem(use_listings_cache=False)
    store.mkdir("runs")
    yield store
    store.rm("runs", recursive=True)


def put(store, folder: Path, key: str) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            store.pipe_file(f"runs/{key}/{path.relative_to(folder)}", path.read_bytes())


def said(verdict) -> list[str]:
    return [repr((one.name, one.findings, one.skipped, one.quiet)) for one in verdict.runs]


@pytest.mark.parametrize("kind", ["tensorboard", "trainer_state", "wandb"])
def test_runs_in_a_bucket_are_judged_as_runs_in_a_folder(bucket, kind: str, tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / kind, tmp_path / kind, copy_function=shutil.copy)  # written now, as the objects are
    put(bucket, folder, kind)
    there, here = check(f"s3://runs/{kind}"), check(folder)
    assert there.runs
    for one, other in zip(said(there), said(here), strict=True):
        assert one == other
    assert all(one.run.place.location.startswith(f"s3://runs/{kind}") for one in there.runs)


def test_an_address_may_be_one_file(bucket) -> None:
    path = next((FIXTURES / "tensorboard").rglob("*tfevents*"))
    bucket.pipe_file(f"runs/exp/{path.name}", path.read_bytes())
    (run,) = check(f"s3://runs/exp/{path.name}").runs
    assert run.run.series and run.run.place.location == f"s3://runs/exp/{path.name}"


def test_a_run_that_grows_is_read_on_and_only_its_new_bytes_are_fetched(bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "OVERLAP", 64)
    path = max((FIXTURES / "tensorboard").rglob("*tfevents*"), key=lambda one: one.stat().st_size)
    whole, key = path.read_bytes(), f"runs/exp/{path.name}"
    bucket.pipe_file(key, whole[:20_000])
    (reader,) = find_readers("s3://runs/exp")
    reader.poll()
    before, fetched = reader.run.last_step, reader.mirror.taken
    assert fetched == 20_000
    assert not reader.poll() and reader.mirror.taken == fetched, "nothing new, nothing fetched"
    bucket.pipe_file(key, whole)
    assert reader.poll() and reader.run.last_step > before
    assert reader.mirror.taken == fetched + len(whole) - 20_000 + 64
    (local,) = find_readers(str(path))
    local.poll()
    assert {tag: one.values.tobytes() for tag, one in reader.run.series.items()} == {tag: one.values.tobytes() for tag, one in local.run.series.items()}


def test_an_object_that_was_replaced_is_read_anew(bucket) -> None:
    rows = [f'{{"step": {step}, "reward": {step / 10}, "kl": 0.01}}\n' for step in range(1, 400)]
    bucket.pipe_file("runs/exp/metrics.jsonl", "".join(rows[:100]).encode())
    (reader,) = find_readers("s3://runs/exp")
    reader.poll()
    other = "".join(rows).replace("0.01", "0.55").encode()
    bucket.pipe_file("runs/exp/metrics.jsonl", other)
    reader.poll()
    assert reader.run.last_step == 399 and reader.run.series["kl"].values.min() == 0.55


def test_a_run_that_begins_later_is_found_without_fetching_the_others_again(bucket) -> None:
    put(bucket, FIXTURES / "trainer_state", "all")
    first = find_readers("s3://runs/all")
    taken = first[0].mirror.taken
    put(bucket, FIXTURES / "trainer_state", "all/zz")
    second = find_readers("s3://runs/all")
    assert len(second) > len(first) and second[0].mirror is first[0].mirror
    assert second[0].mirror.taken == 2 * taken


def test_a_server_that_goes_away_blinds_the_watch_and_ends_nothing(bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bucket, FIXTURES / "trainer_state", "exp")
    reader = find_readers("s3://runs/exp")[0]
    reader.poll()
    before = reader.run.last_step

    def refuse(*args: object, **kwargs: object) -> None:
        raise ConnectionRefusedError("connection refused")

    monkeypatch.setattr(reader.mirror.store, "find", refuse)
    with pytest.raises(Blind, match="connection refused"):
        reader.poll()
    monkeypatch.undo()
    assert reader.run.last_step == before


def test_a_bucket_that_is_not_there_or_empty_is_said(bucket) -> None:
    with pytest.raises(RlhealthError, match="s3://nowhere/runs") as error:
        find_readers("s3://nowhere/runs")
    assert "spelling" in error.value.hint
    with pytest.raises(RlhealthError, match="no logs found"):
        find_readers("s3://runs/nothing")


def test_an_object_cannot_be_named_out_of_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    mirror = remote.Mirror(f"file://{tmp_path}")
    assert not mirror._is_log(f"{tmp_path}/../metrics.jsonl", 10)
    assert mirror._is_log(f"{tmp_path}/metrics.jsonl", 10)


def test_a_store_whose_package_is_missing_is_said_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(RlhealthError) as error:
        find_readers("s3://runs/exp")
    assert error.value.hint == "pip install 'rlhealth[remote]'"


def test_the_copy_is_gone_when_the_program_is(tmp_path: Path) -> None:
    import subprocess

    pytest.importorskip("fsspec")
    shutil.copytree(FIXTURES / "trainer_state", tmp_path / "runs")
    code = f"import rlhealth\nprint(len(rlhealth.open_runs('file://{tmp_path}/runs')))"
    (tmp_path / "tmp").mkdir()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path / "tmp")}, check=False)
    assert int(done.stdout) > 1, done.stderr
    assert not list((tmp_path / "tmp").iterdir())
