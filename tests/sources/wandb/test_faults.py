"""A wandb server that fails in every way, asked by the real SDK: what is reported, how long it takes, and that nothing
is lost.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.sources.wandb.api import find
from tests.sources.wandb_online import IMPATIENT, ROOT, RUN, blind, count_tries, expected, reader, rewards
from tests.wandb_server import KEY, HostedRun, WandbServer, drip, half_a_body, html, nothing_at_all, status
from tests.wandb_server.certificate import certificate

PASSING = {
    "429": (status(429), "limits the rate"),
    "500": (status(500), "server error"),
    "503 page": (html(503), "server error"),
    "half a body": (half_a_body, "connection was cut"),
    "no answer": (nothing_at_all, "connection was cut"),
    "html": (html(), "does not answer as wandb does"),
    "drip": (drip(8), "no response in time"),
}


@pytest.mark.parametrize(
    ("name", "operation"),
    [*((name, "HistoryPage") for name in PASSING), ("500", "Run"), ("html", "Run")],
)
def test_a_watch_is_blind_while_the_server_fails_and_then_misses_nothing(
    server: WandbServer, hosted: HostedRun, name: str, operation: str
) -> None:
    one = reader()
    one.poll()
    answer, reason = PASSING[name]
    hosted.log(train__global_step=6, train__reward=0.6)
    server.fail(answer, operation=operation)
    begun = time.time()
    failed = blind(one)
    assert reason in failed.reason
    assert begun <= failed.since <= time.time()
    server.recover()
    hosted.log(train__global_step=7, train__reward=0.7)
    assert one.poll()
    assert rewards(one.run) == expected(1, 7)
    assert one.run.series["train/reward"].revision == 0


def test_a_server_that_fails_for_a_moment_is_not_noticed(server: WandbServer, hosted: HostedRun) -> None:
    for operation, answer in {
        "Viewer": status(500),
        "Run": half_a_body,
        "RunFirstLook": html(),
        "HistoryPage": half_a_body,
    }.items():
        server.fail(answer, operation=operation, times=1)
    one = reader()
    one.poll()
    assert rewards(one.run) == expected(1, 5)


def test_a_connection_cut_between_two_pages_neither_loses_nor_doubles(server: WandbServer) -> None:
    run = server.host(HostedRun())
    for step in range(1, 3501):
        run.log(train__global_step=step, train__reward=step / 10)

    def third_page(exchange: Any) -> None:
        if exchange.given["minStep"] == 2000:
            return half_a_body(exchange)
        exchange.reply(200, json.dumps({"data": server.answer("HistoryPage", exchange.given)}))

    def pages() -> list[int]:
        return [given["minStep"] for name, given, _ in server.asked if name == "HistoryPage"]

    server.fail(third_page, operation="HistoryPage")
    one = reader()
    one.poll()
    assert rewards(one.run) == expected(1, 3500)
    assert sorted(set(pages())) == [0, 1000, 1999, 2000, 2999, 3000], "it went on from the last row"
    assert pages().count(0) == pages().count(1000) == 1


def test_retry_after_is_waited_for(server: WandbServer, hosted: HostedRun) -> None:
    server.fail(status(429, headers={"Retry-After": "2"}), operation="HistoryPage", times=1)
    one = reader()
    one.poll()
    asked = [moment for name, _, moment in server.asked if name == "HistoryPage"]
    assert asked[1] - asked[0] >= 2.0
    assert rewards(one.run) == expected(1, 5)


def test_a_retry_after_of_an_hour_is_not_waited_for(server: WandbServer, hosted: HostedRun) -> None:
    server.fail(status(429, headers={"Retry-After": "3600"}), operation="HistoryPage")
    one = reader()
    blind(one)
    server.recover()
    one.poll()
    assert rewards(one.run) == expected(1, 5)


def test_since_when_it_is_blind_is_kept_until_it_sees_again(server: WandbServer, hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    server.fail(status(403))
    first, second = blind(one), blind(one)
    assert first.since == second.since
    server.recover()
    one.poll()
    server.fail(status(403))
    assert blind(one).since > first.since


@pytest.mark.parametrize(("code", "reason"), [(401, "not accepted"), (403, "no access")])
def test_a_key_that_is_refused_is_reported_at_once_but_only_blinds_a_watch(
    server: WandbServer, hosted: HostedRun, code: int, reason: str
) -> None:
    one = reader()
    one.poll()
    server.fail(status(code, "permission denied"))
    assert reason in blind(one).reason
    other = reader(IMPATIENT)
    with pytest.raises(RlhealthError, match=reason) as caught:
        other.poll()
    assert not isinstance(caught.value, Unavailable)
    server.recover()
    one.poll()


def test_a_run_that_is_deleted_while_watched_is_reported(server: WandbServer, hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    server.projects["ada", "grpo"].clear()
    with pytest.raises(RlhealthError, match="no longer there") as caught:
        one.poll()
    assert not isinstance(caught.value, Unavailable)
    assert rewards(one.run) == expected(1, 5), "what was read stays"


def test_a_certificate_that_is_not_trusted_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = certificate(tmp_path / "made.pem")
    with WandbServer(made).serving() as serving:
        monkeypatch.setenv("WANDB_BASE_URL", serving.url)
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        with pytest.raises(RlhealthError, match="certificate") as caught:
            reader().poll()
    assert "SSL_CERT_FILE" in caught.value.hint


@pytest.mark.parametrize(
    ("host", "reason"), [("127.0.0.1:{port}", "connection refused"), ("no-such-host.invalid", "name is not known")]
)
def test_without_a_network_it_says_so_soon(monkeypatch: pytest.MonkeyPatch, host: str, reason: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    monkeypatch.setenv("WANDB_BASE_URL", f"http://{host.format(port=port)}")
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    assert reason in blind(reader()).message


def test_many_runs_do_not_wait_one_after_another_for_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with WandbServer().serving() as serving:
        monkeypatch.setenv("WANDB_BASE_URL", serving.url)
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        for number in range(20):
            serving.host(HostedRun(id=f"run{number}"))
        readers = find("ada/grpo", patience=IMPATIENT)
    tries = count_tries(monkeypatch)
    for one in readers:
        with pytest.raises(Unavailable, match="connection refused"):
            one.poll()
    assert len(tries) <= 8, "the first one tried; the others asked whether it has been tried just now"


def test_a_look_that_was_given_up_does_not_hold_the_program_when_it_ends(
    server: WandbServer, hosted: HostedRun
) -> None:
    server.fail(status(429, headers={"Retry-After": "3600"}), operation="HistoryPage")
    code = f"""
from rlhealth.sources.wandb.api import find
from rlhealth.errors import Unavailable
try: find({RUN!r}, patience=2)[0].poll()
except Unavailable as error: print(error.reason)
"""
    given = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=40)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no response in time" in done.stdout or "(429)" in done.stdout, "whichever comes first, the end or the fault"
