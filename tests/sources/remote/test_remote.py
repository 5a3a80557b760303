"""Object stores: runs in real servers on loopback, of S3 and of Google's storage, are read as the same runs in a
folder, and only what is new is fetched.
"""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlhealth.check import check
from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.parallel import jobs
from rlhealth.parallel.workers import can_be_sent
from rlhealth.sources import find_readers
from rlhealth.sources.remote import mirror
from rlhealth.sources.remote import reader as remote
from tests.sources.sick_shapes import lines, sick_rows

FIXTURES = Path(__file__).parents[3] / "fixtures"


NEEDED = "needs servers and clients: pip install 'rlhealth[remote-dev]'"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """A server that speaks S3, in a thread of this process."""
    moto = pytest.importorskip("moto.server", reason=NEEDED)
    pytest.importorskip("s3fs", reason=NEEDED)
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture(scope="module")
def gs() -> Iterator[str]:
    """A server that speaks Google's storage API, in a thread of this process."""
    emulator = pytest.importorskip("gcp_storage_emulator.server", reason=NEEDED)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false"
        )  # read on import: it asks a second server, by another protocol
        pytest.importorskip("gcsfs", reason=NEEDED)
    running = emulator.create_server("127.0.0.1", port, in_memory=True)
    running.start()
    yield f"http://127.0.0.1:{port}"
    running.stop()


class Bucket:
    """A new bucket, by a client of its own; `at` is the address of a key in it."""

    made = itertools.count()

    def __init__(self, kind: str, store: Any) -> None:
        self.kind, self.store = kind, store
        self.name = f"runs-{next(self.made)}"
        store.mkdir(self.name)

    def at(self, key: str) -> str:
        return f"{self.kind}://{self.name}/{key}"

    def put(self, key: str, content: bytes) -> None:
        self.store.pipe_file(f"{self.name}/{key}", content)

    def put_all(self, folder: Path, key: str) -> None:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{key}/{path.relative_to(folder)}", path.read_bytes())


@pytest.fixture(params=["s3", "gs"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    fsspec = pytest.importorskip("fsspec", reason=NEEDED)
    server = request.getfixturevalue(request.param)
    said = {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_ENDPOINT_URL": server,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for key, value in (said if request.param == "s3" else {"STORAGE_EMULATOR_HOST": server}).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(remote, "_mirrors", {})
    monkeypatch.setattr(mirror, "FRESH", 0.0)
    fsspec.get_filesystem_class(request.param).clear_instance_cache()
    return Bucket(request.param, fsspec.filesystem(request.param, use_listings_cache=False))


def said(verdict) -> list[str]:
    return [repr((one.name, one.findings, one.skipped, one.quiet)) for one in verdict.runs]


@pytest.mark.parametrize(
    "kind", ["tensorboard", "trainer_state", "wandb", "notebooks", "consoles", "trackers/mlruns", "trackers/dvclive"]
)
def test_runs_in_a_bucket_are_judged_as_runs_in_a_folder(bucket, kind: str, tmp_path: Path) -> None:
    folder = shutil.copytree(
        FIXTURES / kind, tmp_path / kind, copy_function=shutil.copy
    )  # written now, as the objects are
    bucket.put_all(folder, kind)
    there, here = check(bucket.at(kind)), check(folder)
    assert there.runs
    for one, other in zip(said(there), said(here), strict=True):
        assert one == other
    assert all(one.run.place.location.startswith(bucket.at(kind)) for one in there.runs)


def test_no_object_that_may_be_a_log_is_passed_by(bucket) -> None:
    bucket.put("exp/healthy/trainer_state.json", (FIXTURES / "compare/good-tight-kl/trainer_state.json").read_bytes())
    rows = lines(sick_rows())
    bucket.put("exp/sick/board.data", rows.encode())
    bucket.put("exp/packed/train.jsonl.zst", b"\x28\xb5\x2f\xfd" + bytes(200))
    bucket.put("exp/large/board.data", rows.encode() * (2 + (1 << 20) // len(rows)))
    for name in ("model.safetensors", "optimizer.pt", "chart.png", "train.py"):
        bucket.put(f"exp/healthy/{name}", bytes(range(256)) * (1 << 13))
    verdict = check(bucket.at("exp"))
    assert sorted(run.verdict for run in verdict.runs) == ["critical", "healthy"]
    assert {one.location: one.reason for one in verdict.left_out} == {
        bucket.at("exp/packed/train.jsonl.zst"): "packed as zst: unpack it",
        bucket.at("exp/large/board.data"): mirror.UNKNOWN,
    }
    assert check(bucket.at("exp/large/board.data")).exit_code == 1, "it is read if it is named"


def test_a_metric_of_mlflow_is_read_however_long_it_is_and_only_its_new_rows_are_fetched(
    bucket, tmp_path: Path
) -> None:
    folder = shutil.copytree(FIXTURES / "trackers" / "mlruns", tmp_path / "mlruns")
    metric = next(one for one in folder.rglob("reward") if one.is_file())
    rows = "".join(f"17000000{step:05d} {step / 1e5} {step}\n" for step in range(60_000))
    metric.write_text(rows)
    key = f"mlruns/{metric.relative_to(folder)}"
    bucket.put_all(folder, "mlruns")
    assert len(rows) > mirror.LARGEST_UNKNOWN
    (reader,) = find_readers(bucket.at("mlruns"))
    reader.poll()
    assert len(next(one for tag, one in reader.run.series.items() if tag.endswith("reward"))) == 60_000
    fetched = reader.mirror.taken
    bucket.put(key, (rows + "1700000060000 0.6 60000\n").encode())
    assert reader.poll() and reader.run.last_step == 60_000
    assert reader.mirror.taken - fetched < 2 * mirror.OVERLAP
    assert check(bucket.at("mlruns")).left_out == []


@pytest.mark.parametrize("name", ["trackers/mlflow.db", "notebooks/resumed.ipynb"])
def test_a_database_of_mlflow_and_a_notebook_may_be_named(bucket, name: str) -> None:
    path = FIXTURES / name
    bucket.put(f"exp/{path.name}", path.read_bytes())
    there, here = check(bucket.at(f"exp/{path.name}")), check(path)
    assert said(there) == said(here) != []
    assert all(one.run.place.location.startswith(bucket.at(f"exp/{path.name}")) for one in there.runs)


def test_an_address_may_be_one_file(bucket) -> None:
    path = next((FIXTURES / "tensorboard").rglob("*tfevents*"))
    bucket.put(f"exp/{path.name}", path.read_bytes())
    (run,) = check(bucket.at(f"exp/{path.name}")).runs
    assert run.run.series and run.run.place.location == bucket.at(f"exp/{path.name}")


def test_a_run_that_grows_is_read_on_and_only_its_new_bytes_are_fetched(
    bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "OVERLAP", 64)
    path = max((FIXTURES / "tensorboard").rglob("*tfevents*"), key=lambda one: one.stat().st_size)
    whole, key = path.read_bytes(), f"exp/{path.name}"
    bucket.put(key, whole[:20_000])
    (reader,) = find_readers(bucket.at("exp"))
    reader.poll()
    before, fetched = reader.run.last_step, reader.mirror.taken
    assert fetched == 20_000
    assert not reader.poll() and reader.mirror.taken == fetched, "nothing new, nothing fetched"
    bucket.put(key, whole)
    assert reader.poll() and reader.run.last_step > before
    assert reader.mirror.taken == fetched + len(whole) - 20_000 + 64
    (local,) = find_readers(str(path))
    local.poll()
    assert {tag: one.values.tobytes() for tag, one in reader.run.series.items()} == {
        tag: one.values.tobytes() for tag, one in local.run.series.items()
    }


def test_an_object_that_was_replaced_is_read_anew(bucket) -> None:
    rows = [f'{{"step": {step}, "reward": {step / 10}, "kl": 0.01}}\n' for step in range(1, 400)]
    bucket.put("exp/metrics.jsonl", "".join(rows[:100]).encode())
    (reader,) = find_readers(bucket.at("exp"))
    reader.poll()
    other = "".join(rows).replace("0.01", "0.55").encode()
    bucket.put("exp/metrics.jsonl", other)
    reader.poll()
    assert reader.run.last_step == 399 and reader.run.series["kl"].values.min() == 0.55


def test_a_run_that_begins_later_is_found_without_fetching_the_others_again(bucket) -> None:
    bucket.put_all(FIXTURES / "trainer_state", "all")
    first = find_readers(bucket.at("all"))
    taken = first[0].mirror.taken
    bucket.put_all(FIXTURES / "trainer_state", "all/zz")
    second = find_readers(bucket.at("all"))
    assert len(second) > len(first) and second[0].mirror is first[0].mirror
    assert second[0].mirror.taken == 2 * taken


def test_a_server_that_goes_away_blinds_the_watch_and_ends_nothing(bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put_all(FIXTURES / "trainer_state", "exp")
    reader = find_readers(bucket.at("exp"))[0]
    reader.poll()
    before = reader.run.last_step

    def refuse(*args: object, **kwargs: object) -> None:
        raise ConnectionRefusedError("connection refused")

    monkeypatch.setattr(reader.mirror.store, "find", refuse)
    with pytest.raises(Unavailable, match="connection refused"):
        reader.poll()
    monkeypatch.undo()
    assert reader.run.last_step == before


def test_a_bucket_that_is_not_there_or_empty_is_said(bucket) -> None:
    with pytest.raises(RlhealthError, match=f"{bucket.kind}://nowhere/runs") as error:
        find_readers(f"{bucket.kind}://nowhere/runs")
    assert "spelling" in error.value.hint
    with pytest.raises(RlhealthError, match="no logs found"):
        find_readers(bucket.at("nothing"))


def test_workers_judge_the_copies_that_this_process_has_made(bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PATIENCE", -1.0)
    bucket.put_all(FIXTURES / "tensorboard", "all")
    readers = find_readers(bucket.at("all"))
    assert all(map(can_be_sent, readers))
    alone, together = check(bucket.at("all")), check(bucket.at("all"), jobs=2)
    assert said(together) == said(alone) and alone.runs
    assert [one.run.place for one in together.runs] == [one.run.place for one in alone.runs]


def test_a_store_that_cannot_be_reached_is_one_line_whatever_its_library_raises(
    cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub", reason=NEEDED)
    done = cli(
        "check",
        "hf://datasets/a/b",
        FIXTURES / "runs" / "lr-jump",
        HF_ENDPOINT="http://127.0.0.1:9",
        HF_HUB_DISABLE_TELEMETRY="1",
    )
    assert done.returncode == 2
    assert (
        len(
            [
                line
                for line in done.stdout.splitlines()
                if line.startswith("error: hf://datasets/a/b: cannot be read now: ")
            ]
        )
        == 1
    )
    assert "kl-surge" in done.stdout, "the run beside it is judged"
    assert "Traceback" not in done.stderr + done.stdout


def test_an_object_cannot_be_named_out_of_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    copy = mirror.Mirror(f"file://{tmp_path}")
    assert not copy._is_log(f"{tmp_path}/../metrics.jsonl", 10)
    assert copy._is_log(f"{tmp_path}/metrics.jsonl", 10)


def test_a_store_whose_package_is_missing_is_said_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(RlhealthError) as error:
        find_readers("s3://runs/exp")
    assert error.value.hint == "pip install 'rlhealth[remote]'"


def test_an_object_that_holds_less_than_its_list_says_is_read_as_far_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec")
    from tests.fuzz.listings import listings, mirrored

    monkeypatch.setattr(mirror, "PIECE", 64)
    assert mirrored(next(one for one in listings() if b"1000000000000000" in one), tmp_path)


def test_the_copy_is_gone_when_the_program_is(tmp_path: Path) -> None:
    import subprocess

    pytest.importorskip("fsspec")
    shutil.copytree(FIXTURES / "trainer_state", tmp_path / "runs")
    code = f"import rlhealth\nprint(len(rlhealth.open_runs('file://{tmp_path}/runs')))"
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        check=False,
    )
    assert int(done.stdout) > 1, done.stderr
    assert not list((tmp_path / "tmp").iterdir())
