"""wandb's server on loopback, for a test that needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wandb_server import KEY, HostedRun, WandbServer


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no settings and no folder of whoever runs the tests."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith("WANDB_") and name != "WANDB_SERVICE"] + ["NETRC"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def server(nobody: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    with WandbServer().serving() as serving:
        monkeypatch.setenv("WANDB_BASE_URL", serving.url)
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        yield serving


@pytest.fixture
def hosted(server: WandbServer) -> HostedRun:
    run = server.host(HostedRun())
    for step in range(1, 6):
        run.log(train__global_step=step, train__reward=step / 10)
    return run
