"""What a hostile or mistaken server sends is bounded: answers without end, of hundreds of megabytes, or packed small;
exports on another host are read from this one.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.sources.wandb import history, history_info, one_host, session
from rlhealth.sources.wandb.api import find
from tests.sources.conftest import hosted, nobody, server  # noqa: F401 (fixtures)
from tests.sources.wandb.test_one_server import Listener, stranger  # noqa: F401 (fixture)
from tests.sources.wandb_online import EXPORTED, GRPO, blind, expected, reader, rewards, rows_of
from tests.wandb_server import HostedRun, WandbServer, answers
from tests.wandb_server.server import Exchange

BEYOND = 1 << 53


def claims(monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """Every run says that it has logged so many rows."""
    facts, keys = HostedRun.facts, HostedRun.keys
    monkeypatch.setattr(HostedRun, "facts", lambda self, name: {**facts(self, name), "historyLineCount": last})
    monkeypatch.setattr(HostedRun, "keys", lambda self: {**keys(self), "lastStep": last})


def serves(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Every page holds so many rows, wherever it begins."""

    def page(server: WandbServer, given: dict[str, Any]) -> dict[str, Any]:
        first = given["minStep"]
        page = [
            json.dumps({"_step": step, "train/global_step": step, "train/reward": 0.5})
            for step in range(first, first + rows)
        ]
        return {"project": {"run": {"history": page}}}

    monkeypatch.setitem(answers.ANSWERS, "HistoryPage", page)


def test_pages_without_end_end_and_the_report_says_so(
    hosted: HostedRun, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims(monkeypatch, 10**9)
    serves(monkeypatch, 1000)
    monkeypatch.setattr(history, "MOST_VALUES", 10_000)
    one = reader()
    assert one.poll() and not one.poll()
    assert 10_000 / 3 <= len(one.run.series["train/reward"]) < 10_000
    (problem,) = one.run.problems
    assert "more than 10,000 values" in problem
    assert server.operations().count("HistoryPage") < 10


def test_pages_without_rows_end(hosted: HostedRun, server: WandbServer, monkeypatch: pytest.MonkeyPatch) -> None:
    claims(monkeypatch, BEYOND)
    serves(monkeypatch, 0)
    monkeypatch.setattr(history_info, "MOST_PAGES", 20)
    one = reader()
    one.poll()
    assert not one.run.series and 15 <= server.operations().count("HistoryPage") <= 25


def test_a_project_that_lists_runs_without_end_is_an_error(
    hosted: HostedRun, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[int] = []

    def runs(server: WandbServer, given: dict[str, Any]) -> dict[str, Any]:
        listed.append(len(listed))
        edges = [
            {"node": {**hosted.facts("grpo"), "name": f"run{len(listed)}x{index}"}, "cursor": str(len(listed))}
            for index in range(50)
        ]
        page = {"endCursor": str(len(listed)), "hasNextPage": True}
        return {
            "project": {
                "internalId": "77",
                "runCount": 50,
                "readOnly": False,
                "runs": {"edges": edges, "pageInfo": page},
            }
        }

    monkeypatch.setitem(answers.ANSWERS, "Runs", runs)
    monkeypatch.setattr(session, "MOST_RUNS", 120)
    with pytest.raises(RlhealthError, match="more than 120 runs") as refused:
        find("wandb://ada/grpo")
    assert "--last" in refused.value.hint and len(listed) <= 4


def test_an_answer_of_two_hundred_megabytes_is_cut_off_before_it_is_held(
    hosted: HostedRun, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_host, "LARGEST_ANSWER", 1 << 20)
    sent: list[int] = []

    def large(exchange: Exchange) -> None:
        exchange.send_response(200)
        exchange.send_header("Content-Length", str(200 << 20))
        exchange.end_headers()
        sent.append(0)
        try:
            for _ in range(200):
                exchange.wfile.write(b" " * (1 << 20))
                sent[-1] += 1
        except OSError:
            exchange.close_connection = True

    one = reader()
    one.poll()
    server.fail(large, operation="HistoryPage")
    hosted.log(train__global_step=6, train__reward=0.6)
    failed = blind(one)
    assert failed.reason == "an answer of more than 64 MiB was cut off" and max(sent) < 50
    assert rewards(one.run) == expected(1, 5)
    server.recover()
    one.poll()
    assert rewards(one.run) == expected(1, 6)


def test_pages_that_are_too_large_are_asked_for_in_smaller_ones(
    server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = server.host(HostedRun())
    for step in range(1, 401):
        run.log(train__global_step=step, train__reward=step / 10, note="so it goes " * 100)
    monkeypatch.setattr(one_host, "LARGEST_ANSWER", 200_000)
    one = reader()
    one.poll()
    assert rewards(one.run) == expected(1, 400) and one.run.problems == []


def test_no_answer_is_unpacked_so_that_its_size_is_what_came(hosted: HostedRun, server: WandbServer) -> None:
    one = reader()
    one.poll()
    assert server.encodings == {"identity"}
    bomb = gzip.compress(b'{"data": {}}' + b" " * (50 << 20))

    def packed(exchange: Exchange) -> None:
        exchange.send_response(200)
        exchange.send_header("Content-Encoding", "gzip")
        exchange.send_header("Content-Length", str(len(bomb)))
        exchange.end_headers()
        exchange.wfile.write(bomb)

    server.fail(packed, operation="HistoryPage")
    hosted.log(train__global_step=6, train__reward=0.6)
    assert blind(one).reason.startswith("it does not answer as wandb does")
    assert rewards(one.run) == expected(1, 5)


def test_exports_on_another_host_get_no_request_and_their_rows_are_read_from_the_server(
    server: WandbServer,
    stranger: Listener,
) -> None:
    rows = rows_of(GRPO)
    run = server.host(HostedRun(rows=rows, parquet=[path.read_bytes() for path in EXPORTED]))
    server.exports_at = stranger.url
    one = reader()
    one.poll()
    assert one.run.series and len(one.run.series["train/reward"]) == sum("train/reward" in row for row in rows)
    assert stranger.asked == []
    first = server.operations().count("RunParquetHistory")
    run.log(train__global_step=1000, train__reward=0.5)
    one.poll()
    assert server.operations().count("RunParquetHistory") == first, "it is known by now"
    assert one.run.last_step == 1000
