"""Many runs of one server at once, with the real SDK against a server on loopback: the same as one by one, bounded, and
slower where the server asks for it.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlhealth.check import check
from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.rules.loading import load_rules
from rlhealth.run import Run
from rlhealth.sources.discovery.places import RunSelection
from rlhealth.sources.wandb.api import find
from rlhealth.sources.wandb.turns import Turns
from rlhealth.watch.loop import Watch
from tests.sources.wandb_online import EXPORTED, GRPO, PATIENCE, offline, reader, rows_of, same_points, wait_for
from tests.wandb_server import HostedRun, WandbServer, status
from tests.wandb_server.server import Exchange
from tests.watching import HandClock

PROJECT = "wandb://ada/grpo"
SICK = Path(__file__).parents[3] / "fixtures" / "wandb" / "run-grpo-old-nan.wandb"


def sweep(server: WandbServer, count: int, **given: Any) -> list[HostedRun]:
    """Runs of two kinds, each with a number of its own in its rows."""
    kinds = [rows_of(GRPO), rows_of(SICK)]
    return [
        server.host(
            HostedRun(
                id=f"run{number}",
                name=f"sun-{number}",
                rows=[{**row, "number": number} for row in kinds[number % 2]],
                created=f"2026-01-01T00:{number:02d}:00Z",
                **given,
            )
        )
        for number in range(count)
    ]


def points(run: Run) -> dict[str, Any]:
    return {tag: (one.steps.tolist(), one.values.tolist(), one.times.tolist()) for tag, one in run.series.items()}


def test_many_at_once_say_what_one_by_one_says_in_the_same_order(server: WandbServer) -> None:
    sweep(server, 12, state="finished", requirements="trl==1.0.0\n")
    alone = check(PROJECT, choice=RunSelection(at_once=1))
    assert server.most_at_once == 1
    server.delay = 0.1
    together = check(PROJECT, choice=RunSelection(at_once=8))
    assert 4 <= server.most_at_once <= 8
    assert [one.name for one in together.runs] == [one.name for one in alone.runs]
    assert len(together.runs) == 12 and not together.errors
    for one, other in zip(together.runs, alone.runs, strict=True):
        np.testing.assert_equal(points(one.run), points(other.run))
        assert [repr(found) for found in one.findings] == [repr(found) for found in other.findings]
        assert one.run.versions == other.run.versions != {}


def test_an_unreadable_run_among_many_hides_no_other(server: WandbServer) -> None:
    sweep(server, 6)

    def one_of_them(exchange: Exchange) -> None:
        if exchange.given["run"] == "run3":
            return status(403, "permission denied")(exchange)
        exchange.answer("HistoryPage")

    server.fail(one_of_them, operation="HistoryPage")
    found = check(PROJECT)
    assert len(found.runs) == 5 and [one.location for one in found.errors] == [f"{PROJECT}/run3"]


def test_one_question_is_about_several_runs_and_the_same_libraries_are_fetched_once(server: WandbServer) -> None:
    runs = sweep(server, 12, requirements="trl==1.0.0\n")
    runs[5].requirements = "trl==1.1.0\n"
    found = check(PROJECT)
    assert server.operations().count("RunFirstLook") == 2
    assert server.operations().count("GET requirements") == 2
    versions = {one.run.place.location[-4:]: one.run.versions["trl"] for one in found.runs}
    assert versions.pop("run5") == "1.1.0" and set(versions.values()) == {"1.0.0"}


def test_a_run_of_which_nothing_is_reported_has_the_others_asked_one_by_one(server: WandbServer) -> None:
    sweep(server, 6, requirements="trl==1.0.0\n")

    def not_of_one(exchange: Exchange) -> None:
        if "run3" in exchange.given.values():
            return status(403, "permission denied")(exchange)
        exchange.answer("RunFirstLook")

    server.fail(not_of_one, operation="RunFirstLook")
    found = check(PROJECT)
    assert len(found.runs) == 5 and [one.location for one in found.errors] == [f"{PROJECT}/run3"]
    assert {one.run.versions["trl"] for one in found.runs} == {"1.0.0"}


def test_a_question_refused_for_its_rate_is_asked_again_about_all_its_runs_together(server: WandbServer) -> None:
    sweep(server, 6)
    server.fail(status(429), operation="RunFirstLook", times=2)  # the SDK itself asks once more
    for one in find(PROJECT, patience=4.0):
        assert one.poll()
    assert server.operations().count("RunFirstLook") == 3


def test_a_server_that_limits_the_rate_gets_fewer_at_once_and_loses_nothing(server: WandbServer) -> None:
    runs = sweep(server, 12)
    refused = []

    def at_most_three(exchange: Exchange) -> None:
        if server.under_way > 3:
            refused.append(server.under_way)
            return status(429, headers={"Retry-After": "1"})(exchange)
        exchange.answer("HistoryPage")

    server.delay = 0.05
    server.fail(at_most_three, operation="HistoryPage")
    readers = find(PROJECT, at_once=16, patience=PATIENCE)
    found = check([str(one.address) for one in readers])
    assert refused and not found.errors and len(found.runs) == len(runs)
    for one in found.runs:
        assert len(one.run.series["number"]) > 20


def test_turns_are_halved_once_for_all_that_were_refused_together_and_come_back_one_by_one() -> None:
    turns = Turns(8)
    with turns.one("run") as first:
        pass
    turns.slow_down(first)
    turns.slow_down(first)
    assert turns.allowed == 4
    with turns.one("run") as second:
        turns.slow_down(second)
    assert turns.allowed == 2
    for _ in range(100):
        with turns.one("run"):
            pass
    assert turns.allowed == 8


def test_no_more_turns_are_given_than_there_are() -> None:
    turns, numbers = Turns(3), []

    def take() -> None:
        with turns.one("run") as turn:
            numbers.append(turn.number)
            time.sleep(0.01)

    threads = [threading.Thread(target=take) for _ in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(set(numbers)) == [0, 1, 2] and len(numbers) == 12


def test_a_run_that_was_begun_is_asked_about_before_the_next_one() -> None:
    turns, asked = Turns(1), []

    def ask(place: str) -> None:
        with turns.one(place):
            asked.append(place)

    with turns.one("first"):
        threads = []
        for place in ("second", "third", "second", "first"):
            threads.append(threading.Thread(target=ask, args=(place,)))
            threads[-1].start()
            while len(turns._waiting) < len(threads):
                time.sleep(0.001)
    for one in threads:
        one.join()
    assert asked == ["first", "second", "second", "third"]


def test_pages_of_one_long_run_come_at_once_and_in_order(server: WandbServer) -> None:
    run = server.host(HostedRun())
    for step in range(1, 12_001):
        run.log(train__global_step=step, train__reward=step / 10)
    server.delay = 0.1
    one = reader()
    one.poll()
    series = one.run.series["train/reward"]
    assert series.steps.tolist() == list(range(1, 12_001)) and series.values[-1] == 1200.0
    assert server.operations().count("HistoryPage") == 12 and server.most_at_once > 1


def test_rows_that_were_exported_after_the_first_look_are_read_from_the_export(server: WandbServer) -> None:
    rows = rows_of(GRPO)
    run = server.host(HostedRun(id="exported-later", rows=rows[:60], live_only=True))
    one = find(f"{PROJECT}/exported-later", patience=PATIENCE)[0]
    one.poll()
    run.rows, run.parquet, run.parquet_rows = rows, [path.read_bytes() for path in EXPORTED], 160
    one.poll()
    same_points(one.run, offline(GRPO))


@pytest.mark.parametrize("count", [5])
def test_a_look_at_a_project_lists_its_runs_once_and_asks_each_for_one_page(server: WandbServer, count: int) -> None:
    runs = sweep(server, count)
    watch = Watch([PROJECT], load_rules(), clock=HandClock())
    watch.look()
    assert server.operations().count("Run") == 0, "the list has told it"
    before = len(server.asked)
    for run in runs:
        run.log(**{**run.rows[-1], "_step": run.last_step + 1})
    watch.look()
    asked = server.operations()[before:]
    assert sorted(asked) == ["HistoryPage"] * count + ["Runs"]
    before = len(server.asked)
    watch.look()
    assert server.operations()[before:] == ["Runs"], "nothing is new"


def test_a_run_that_is_no_longer_listed_is_asked_for_by_itself(server: WandbServer) -> None:
    runs = sweep(server, 3, state="running")
    readers = find(PROJECT, state="running", patience=PATIENCE)
    for one in readers:
        one.poll()
    runs[1].state = "finished"
    for one in readers:
        one.poll()
    assert [one.state for one in readers] == ["running", "finished", "running"]
    assert server.operations().count("Run") == 1


def test_a_list_that_fails_blinds_every_run_at_once(server: WandbServer) -> None:
    sweep(server, 6)
    watch = Watch([PROJECT], load_rules(), clock=HandClock())
    watch.look()
    server.fail(status(500))
    for one in watch.followers:
        one.reader.patience = 1.0  # type: ignore[attr-defined]
    begun = time.monotonic()
    events = watch.look()
    assert [one.kind for one in events] == ["blind"] * 6
    assert time.monotonic() - begun < 10, "not one after another"
    server.recover()


def test_of_very_many_runs_only_the_names_are_listed(server: WandbServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlhealth.sources.wandb import session

    monkeypatch.setattr(session, "MOST_WHOLE", 3)
    sweep(server, 5)
    assert len(check(PROJECT).runs) == 5
    assert server.operations().count("Run") == 5


def test_an_error_of_the_list_is_each_readers_own(server: WandbServer) -> None:
    sweep(server, 2)
    readers = find(PROJECT, patience=PATIENCE)
    for one in readers:
        one.poll()
    for one in readers:
        wait_for(one, 1.0)
    server.fail(status(500))
    raised = []
    for one in readers:
        with pytest.raises(Unavailable) as caught:
            one.poll()
        raised.append(caught.value)
    assert raised[0] is not raised[1]
    assert all(isinstance(one, RlhealthError) for one in raised)
