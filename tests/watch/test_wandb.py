"""A run on a wandb server that fails in between: nothing is lost, nothing is reported twice, and since when it is blind
is reported once.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from rlhealth.check import judge
from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import load_rules
from rlhealth.sources import find_readers
from rlhealth.sources.wandb.actions import stop_run
from rlhealth.verdict.findings import Severity
from rlhealth.watch.actions import change_document as document
from rlhealth.watch.alerts import alert_in
from rlhealth.watch.loop import Limits, Watch
from rlhealth.watch.stopping import Stopping, WandbStop
from tests.sources.conftest import nobody, server  # noqa: F401 (fixtures)
from tests.sources.wandb_online import PATIENCE, RUN, rows_of, wait_for
from tests.wandb_server import HostedRun, WandbServer, half_a_body, html, nothing_at_all, status
from tests.watching import HandClock, Recorder

RULES = load_rules()
SICK = Path(__file__).parents[2] / "fixtures" / "wandb" / "run-grpo-old-nan.wandb"
FAULTS = [status(429), status(500), half_a_body, html(), nothing_at_all]


def patience(watch: Watch, seconds: float) -> None:
    """How long a look is tried: briefly while the server fails, so that the test is quick, and long while it answers, so
    that a slow machine does not blind the watch.
    """
    for one in watch.followers:
        wait_for(one.reader, seconds)  # type: ignore[arg-type]


def facts(verdict: object) -> list[str]:
    return sorted(repr(one) for one in verdict.findings if one.family != "stalled")  # type: ignore[attr-defined]


def test_a_server_that_dies_and_comes_back_loses_nothing_and_tells_nothing_twice(server: WandbServer) -> None:
    rows, random, recorded = rows_of(SICK), Random(1), Recorder()
    run = server.host(HostedRun(rows=rows[:5]))
    watch = Watch([RUN], RULES, clock=HandClock())
    recorded.look(watch, 60)
    sent = 5
    for fault in FAULTS:
        patience(watch, 0.3)
        server.fail(fault)
        for _ in range(3):
            sent = min(len(rows), sent + random.randrange(3))
            run.rows = rows[:sent]
            recorded.look(watch, 60)
        patience(watch, PATIENCE)
        server.recover()
        for _ in range(8):
            sent = min(len(rows), sent + random.randrange(3))
            run.rows = rows[:sent]
            recorded.look(watch, 60)
    run.rows, run.state = rows, "failed"
    for _ in range(3):
        recorded.look(watch, 60)
    recorded.finish(watch)
    kinds = Counter(one.kind for one in recorded.of("blind", "sees"))
    assert kinds["blind"] == kinds["sees"] == len(FAULTS)
    [reader] = find_readers(RUN)
    reader.poll()
    assert facts(watch.verdict().runs[0]) == facts(judge(reader.run, RULES)) != []
    assert max(Counter(change for change in recorded.changes if change[0] == "raised").values()) == 1
    assert watch.is_over(Limits()), "wandb says that it failed"


def test_while_it_is_blind_a_run_is_not_called_silent(server: WandbServer) -> None:
    recorded = Recorder()
    server.host(
        HostedRun(
            rows=rows_of(SICK)[:20],
            config={"max_steps": 1000},
            heartbeat=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )
    )
    watch = Watch([RUN], RULES, clock=HandClock())
    recorded.look(watch, 60)
    patience(watch, 0.3)
    server.fail(status(500))
    for _ in range(20):
        recorded.look(watch, 60)
    assert [one.kind for one in recorded.events if one.kind in ("blind", "silent")] == ["blind"]
    assert not [change for change in recorded.changes if change[1] == "run-silent"]


def test_a_run_that_does_not_exist_on_the_server_ends_a_watch_at_once(server: WandbServer) -> None:
    server.host(HostedRun(rows=rows_of(SICK)))
    recorded, watch = Recorder(), Watch(["wandb://ada/grpo/other"], RULES, clock=HandClock())
    with pytest.raises(RlhealthError, match="other"):
        recorded.look(watch)


def test_a_run_on_the_server_is_stopped_by_the_server_and_alerts_go_into_it(server: WandbServer) -> None:
    run = server.host(HostedRun(rows=rows_of(SICK)))
    recorded, watch = Recorder(), Watch([RUN], RULES, clock=HandClock())
    recorded.look(watch, 60)
    recorded.look(watch, 60)
    [follower] = watch.followers
    assert follower.verdict is not None
    change = next(
        one.change for one in recorded.events if one.change and one.change.finding.severity is Severity.CRITICAL
    )
    stopping = Stopping(Severity.CRITICAL, WandbStop(stop_run))
    follower.live = True
    assert stopping.is_due(follower)
    assert "asked to stop wandb://ada/grpo/abc12345" in stopping.stop(document(change, follower.verdict, 0.0))
    assert run.stopped and not stopping.is_due(follower)
    alert_in("wandb")(change, follower.verdict)
    assert change.finding.title in str(run.alerts)
