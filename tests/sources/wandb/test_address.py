"""Which online runs an address names, and whose key is used where."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.sources.wandb.api import find
from rlhealth.sources.wandb.faults import scrub
from tests.sources.wandb_online import IMPATIENT, PATIENCE, ROOT, RUN, expected, reader, rewards
from tests.wandb_server import KEY, HostedRun, WandbServer, status


@pytest.mark.parametrize(
    "address",
    [
        RUN,
        "ada/grpo/abc12345",
        "ada/grpo/runs/abc12345",
        "{url}/ada/grpo/runs/abc12345",
        "{url}/ada/grpo/runs/abc12345/workspace?nw=x#y",
    ],
)
def test_a_run_is_found_by_each_form_of_its_address(server: WandbServer, hosted: HostedRun, address: str) -> None:
    [one] = find(address.format(url=server.url), patience=PATIENCE)
    one.poll()
    assert rewards(one.run) == expected(1, 5)


def test_a_project_gives_its_runs_the_newest_first(server: WandbServer) -> None:
    for number in range(70):
        server.host(
            HostedRun(
                id=f"run{number:02d}",
                name=f"sun-{number}",
                state="running" if number % 2 else "finished",
                created=f"2026-01-02T03:{number % 60:02d}:{number // 60:02d}Z",
            )
        )
    assert len(find("ada/grpo", patience=PATIENCE)) == 70
    assert [one.run.name for one in find("wandb://ada/grpo", last=2, patience=PATIENCE)] == ["sun-59", "sun-58"]
    assert {one.state for one in find("ada/grpo", state="running", patience=PATIENCE)} == {"running"}
    with pytest.raises(RlhealthError, match="no run that is killed"):
        find("ada/grpo", state="killed", patience=PATIENCE)


@pytest.mark.parametrize(
    "address",
    [
        "wandb://ada",
        "wandb://",
        "ada/grpo/a/b",
        "https://wandb.ai/ada/grpo/sweeps/x1",
        "https://wandb.ai/ada/grpo/reports/R--1",
    ],
)
def test_an_address_of_something_else_is_reported_with_the_forms_that_are_read(address: str) -> None:
    with pytest.raises(RlhealthError) as caught:
        find(address)
    assert "wandb://entity/project/run" in caught.value.hint


def test_a_misspelt_run_is_reported_with_the_one_that_may_be_meant(hosted: HostedRun) -> None:
    one = find("ada/grpo/abc12354", patience=PATIENCE)[0]
    with pytest.raises(RlhealthError, match="the project has no such run") as caught:
        one.poll()
    assert caught.value.hint == f"did you mean {RUN} (brisk-river-7)?"
    assert not isinstance(caught.value, Unavailable)


def test_a_project_that_is_not_there_is_reported(hosted: HostedRun) -> None:
    with pytest.raises(RlhealthError, match="no such project"):
        find("ada/ppo/abc12345", patience=PATIENCE)[0].poll()
    with pytest.raises(RlhealthError, match="no such entity, project or run"):
        find("ada/ppo", patience=PATIENCE)


def test_a_misspelt_state_is_reported() -> None:
    with pytest.raises(RlhealthError) as caught:
        find("ada/grpo", state="runing")
    assert caught.value.hint == "did you mean running?"


def test_without_a_key_it_says_how_to_log_in_and_asks_nothing(
    server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_API_KEY")
    with pytest.raises(RlhealthError, match="no key of wandb is configured") as caught:
        reader().poll()
    assert "wandb login" in caught.value.hint and "WANDB_API_KEY" in caught.value.hint
    assert server.asked == []


def test_the_key_is_read_from_netrc(
    server: WandbServer, hosted: HostedRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WANDB_API_KEY")
    netrc = tmp_path / "home" / ".netrc"
    netrc.write_text(f"machine {server.url.removeprefix('http://')} login user password {KEY}\n")
    netrc.chmod(0o600)
    one = reader()
    one.poll()
    assert rewards(one.run) == expected(1, 5)


def test_the_key_goes_to_no_other_server_than_the_one_that_is_set(server: WandbServer) -> None:
    with pytest.raises(RlhealthError, match="not on the server") as caught:
        find("https://example.org/ada/grpo/runs/abc12345")
    assert "WANDB_BASE_URL=https://example.org" in caught.value.hint


@pytest.mark.parametrize(
    "answer", [status(401, f"invalid api key {KEY}"), status(500, f"cannot use {KEY}"), status(418, f"odd: {KEY}")]
)
def test_the_key_is_in_no_message(
    server: WandbServer, hosted: HostedRun, answer: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    server.fail(answer)
    with pytest.raises(RlhealthError) as caught:
        reader(IMPATIENT).poll()
    error = caught.value
    assert KEY not in (
        f"{error.message} {error.hint} {error.location} {error!r} {error.__cause__} {getattr(error, 'reason', '')}"
    )
    assert error.__suppress_context__
    out, err = capfd.readouterr()
    assert KEY not in out + err


def test_a_key_of_any_form_is_cut_out_of_what_a_server_says() -> None:
    said = (
        f"refused: my-own-secret, {KEY}, wandb_v1_abc_DEF, https://api:pass@host/x, Authorization: Basic YXBpOmtleQ=="
    )
    assert scrub(said, ("my-own-secret",)) == "refused: …, …, …, https://…host/x, Authorization: Basic …"


def test_nothing_is_printed_or_left_behind(hosted: HostedRun, tmp_path: Path) -> None:
    code = (
        f"from rlhealth.sources.wandb.api import find; one = find({RUN!r})[0]; "
        "print(one.poll(), len(one.run.series['train/reward']))"
    )
    folder = tmp_path / "work"
    folder.mkdir()
    given = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"} | {
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=given,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True 5\n", "", 0)
    assert [path.name for path in (*folder.rglob("*"), *(tmp_path / "home").rglob("*"))] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "work"]


def test_the_environment_is_as_before(hosted: HostedRun) -> None:
    before = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
    reader().poll()
    assert {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"} == before
