"""Without a network an address is given up at once, in one line, before a library tries for a minute."""

from __future__ import annotations

import socket
import time

import pytest

from rlhealth.errors import Unavailable
from rlhealth.sources.remote import reach
from rlhealth.sources.remote.reach import check_reachable


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)


def test_a_host_that_is_not_known_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(reach._HOSTS, "gs", ("storage.invalid", ("STORAGE_EMULATOR_HOST",)))
    begun = time.monotonic()
    with pytest.raises(Unavailable, match=r"gs://bucket/runs: cannot be read now: there is no way to storage\.invalid"):
        check_reachable("gs://bucket/runs")
    assert time.monotonic() - begun < 10


def test_a_host_that_answers_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(reach, "PORT", server.getsockname()[1])
        monkeypatch.setitem(reach._HOSTS, "gs", ("127.0.0.1", ("STORAGE_EMULATOR_HOST",)))
        check_reachable("gs://bucket/runs")


@pytest.mark.parametrize("name", ["STORAGE_EMULATOR_HOST", "HTTPS_PROXY"])
def test_another_host_or_a_proxy_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(reach._HOSTS, "gs", ("storage.invalid", ("STORAGE_EMULATOR_HOST",)))
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    check_reachable("gs://bucket/runs")
    check_reachable("s3://bucket/runs")
