"""What a watch tells of a wandb server that fails: that it is blind, once; for how long, when it sees again; and
everything that came meanwhile, once.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rlhealth.check import judge
from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import load_rules
from rlhealth.sources import find_readers
from rlhealth.watch.lines import LineDisplay
from rlhealth.watch.loop import Watch
from tests.conftest import ROOT, Cli
from tests.sources.conftest import nobody, server  # noqa: F401 (fixtures)
from tests.sources.wandb_online import IMPATIENT, PATIENCE, RUN, rows_of, wait_for
from tests.wandb_server import KEY, HostedRun, WandbServer, drip, half_a_body, html, nothing_at_all, status
from tests.wandb_server.certificate import certificate
from tests.watching import HandClock, Recorder

RULES = load_rules()
ROWS = rows_of(ROOT / "fixtures" / "wandb" / "run-grpo-old-nan.wandb")
FAULTS = {
    "401": (status(401), "the key is not accepted (401)"),
    "403": (status(403), "the key has no access (403)"),
    "404": (status(404), "the run is no longer there (deleted, or moved)"),
    "429": (status(429), "it limits the rate of requests (429)"),
    "429, wait for an hour": (
        status(429, headers={"Retry-After": "3600"}),
        "no response in time (the server is slow, or asks to wait)",
    ),
    "500": (status(500), "server error (HTTP 500)"),
    "a proxy's page of a 502": (html(502), "server error (HTTP 502)"),
    "byte by byte": (drip(8), "no response in time (the server is slow, or asks to wait)"),
    "half a body": (half_a_body, "the connection was cut"),
    "no answer": (nothing_at_all, "the connection was cut"),
    "a page in place of JSON": (html(), "it does not answer as wandb does (a login page or a proxy in between?)"),
}
OTHERS = (
    "nothing answers there (connection refused)",
    "its TLS certificate is not trusted here",
    "there is no way to it from here",
)


class WatchedRun:
    """A watch of the hosted run by a hand clock, and what it told, as events and as the lines that a person reads."""

    def __init__(self, server: WandbServer) -> None:
        self.run = server.host(HostedRun())
        self.server = server
        self.away = False  # nothing can be asked of the server
        self.watch = Watch([RUN], RULES, clock=HandClock())
        self.recorded, self.out = Recorder(), io.StringIO()
        self.grow(5)
        self.look()

    def grow(self, rows: int) -> None:
        """The run logs so many rows more."""
        for row in ROWS[len(self.run.rows) : len(self.run.rows) + rows]:
            self.run.rows.append({**row, "_timestamp": self.watch.clock.wall()})
        self.run.heartbeat = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.watch.clock.wall()))

    def look(self, times: int = 1) -> None:
        """So many looks, a minute apart."""
        lines = LineDisplay(self.out)
        for _ in range(times):
            for one in self.watch.followers:
                wait_for(one.reader, IMPATIENT if self.is_blind else PATIENCE)  # type: ignore[arg-type]
            for event in self.recorded.look(self.watch, 60.0):
                lines.show(self.watch, event)

    @property
    def is_blind(self) -> bool:
        """Whether the server fails, or failed at the last look: that is not waited out; a slow answer is."""
        return self.away or bool(self.server.faults) or len(self.recorded.of("blind")) > len(self.recorded.of("sees"))

    def look_until_back(self) -> None:
        """Looks until the watch sees again: on a slow machine not at the first look."""
        for _ in range(6):
            self.look()
            if not self.is_blind:
                break

    def lines(self, kind: str) -> list[str]:
        """What was reported of that kind, without the time of day."""
        return [line[9:] for line in self.out.getvalue().splitlines() if f"brisk-river-7: {kind}" in line]

    def assert_nothing_was_lost_or_reported_twice(self) -> None:
        """The run ends, and the watch knows of it what a check finds."""
        self.grow(len(ROWS))
        self.run.state = "failed"
        self.look(8)
        self.recorded.finish(self.watch)
        [reader] = find_readers(RUN)
        reader.poll()
        seen, whole = self.watch.verdict().runs[0], judge(reader.run, RULES, now=self.watch.clock.wall())
        assert list(map(repr, seen.findings)) == list(map(repr, whole.findings)) != []
        assert max(Counter(one for one in self.recorded.changes if one[0] == "raised").values()) == 1
        assert self.watch.verdict().exit_code == 1


def assert_blind_once(one: WatchedRun, why: str) -> None:
    """It was reported once that the watch is blind, and once that it sees again."""
    assert one.lines("blind") == [f"brisk-river-7: blind: {why}; what was read so far stands, trying again"]
    [back] = one.lines("back")
    assert 1.0 <= float(back.partition("after ")[2].removesuffix(" min")) <= 10.0


@pytest.mark.parametrize("name", FAULTS)
def test_each_way_to_fail_is_reported_once_and_then_all_that_was_missed(server: WandbServer, name: str) -> None:
    answer, why = FAULTS[name]
    one = WatchedRun(server)
    server.fail(answer)
    one.grow(3)
    one.look()
    assert one.watch.verdict().exit_code == 2, "a gate must not pass on what it cannot see"
    assert "not seen since" in one.watch.verdict().errors[0].message and why in one.watch.verdict().errors[0].message
    one.grow(8)
    one.look()
    server.recover()
    one.look_until_back()
    assert_blind_once(one, why)
    one.assert_nothing_was_lost_or_reported_twice()


def test_a_server_that_goes_and_comes_back_is_reported_once(server: WandbServer) -> None:
    through(server, server.leave, server.come_back, OTHERS[0])


def through(server: WandbServer, begin: Callable[[], object], end: Callable[[], object], why: str) -> None:
    """A watch of the server, which cannot be reached between `begin` and `end`."""
    os.environ["WANDB_BASE_URL"] = server.url
    one = WatchedRun(server)
    begin()
    one.away = True
    one.grow(6)
    one.look(3)
    end()
    one.away = False
    time.sleep(IMPATIENT / 2)  # for so long it is not asked again whether a server that was away is back
    one.look_until_back()
    assert_blind_once(one, why)
    one.assert_nothing_was_lost_or_reported_twice()


def through_another_certificate(trusted: Path, strange: Path) -> None:
    with WandbServer(trusted).serving() as there:
        through(there, lambda: there.show(strange), lambda: there.show(trusted), OTHERS[1])


def through_no_route() -> None:
    """In a network of its own, in which the server's address is taken away."""
    ip = ["ip", "address", "add", "192.0.2.1/32", "dev", "lo"]
    gone = [*ip[:2], "delete", *ip[3:]]
    subprocess.run(ip, check=True)
    with WandbServer(address="192.0.2.1").serving() as there:

        def lose() -> None:
            there.leave()
            subprocess.run(gone, check=True)

        def find() -> None:
            subprocess.run(ip, check=True)
            there.come_back()

        through(there, lose, find, OTHERS[2])


def in_a_process(monkeypatch: pytest.MonkeyPatch, code: str, *before: str, **environment: str) -> None:
    """Runs one of these functions with an SDK of its own, which reads the environment once, when it starts."""
    monkeypatch.delenv("WANDB_SERVICE", raising=False)
    given = {**os.environ, "PYTHONPATH": str(ROOT), "WANDB_API_KEY": KEY, **environment}
    done = subprocess.run(
        [*before, sys.executable, "-c", f"from tests.watch.test_blind import *; {code}"],
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("nobody")
def test_a_certificate_that_is_not_trusted_blinds_a_watch_until_the_old_one_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, strange = certificate(tmp_path / "trusted.pem"), certificate(tmp_path / "strange.pem")
    in_a_process(
        monkeypatch,
        f"through_another_certificate(Path({str(trusted)!r}), Path({str(strange)!r}))",
        SSL_CERT_FILE=str(trusted),
    )


@pytest.mark.usefixtures("nobody")
def test_a_network_that_is_lost_blinds_a_watch_until_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    apart = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if (
        not shutil.which("unshare")
        or not shutil.which("ip")
        or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this process cannot have a network of its own")
    in_a_process(monkeypatch, "through_no_route()", *apart)


def test_a_run_that_is_deleted_while_it_is_watched_is_reported_once_and_does_not_pass(server: WandbServer) -> None:
    one = WatchedRun(server)
    server.projects["ada", "grpo"].clear()
    one.look(20)
    assert one.lines("blind") == [
        "brisk-river-7: blind: the run is no longer there (deleted, or moved); "
        "what was read so far stands, trying again"
    ]
    assert not one.lines("back")
    assert one.watch.verdict().exit_code == 2
    assert one.watch.verdict().runs[0].run.last_step == 5


def test_ten_minutes_of_500_are_two_lines_and_then_all_that_was_missed(server: WandbServer) -> None:
    one = WatchedRun(server)
    asked = len(server.asked)
    server.fail(status(500))
    for _ in range(10):
        one.grow(2)
        one.look()
    assert len(server.asked) - asked < 60, "a server in trouble is asked more and more seldom"
    server.recover()
    one.look(5)
    assert one.lines("blind") == [
        "brisk-river-7: blind: server error (HTTP 500); what was read so far stands, trying again"
    ]
    [back] = one.lines("back")
    assert 10.0 <= float(back.partition("after ")[2].removesuffix(" min")) <= 16.0
    assert not [change for change in one.recorded.changes if change[1] == "run-silent"], "the run went on, only unseen"
    one.assert_nothing_was_lost_or_reported_twice()


def test_the_command_goes_on_through_500_and_ends_as_a_check_of_the_whole(
    server: WandbServer, tmp_path: Path, cli: Cli
) -> None:
    rows = [{**row, "_timestamp": time.time()} for row in ROWS]
    run = server.host(HostedRun(rows=rows[:5], heartbeat=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())))
    out = tmp_path / "out"
    ours = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY}
    given = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **ours}
    with out.open("w") as file:
        command = [sys.executable, "-m", "rlhealth", "watch", "--wandb", "ada/grpo/abc12345", "--interval", "0.5"]
        watching = subprocess.Popen(command, env=given, stdout=file, stderr=file, cwd=tmp_path)

    deadline = time.monotonic() + 300  # a watch that hangs is a failure, not a suite that never ends

    def until(word: str) -> None:
        while word not in out.read_text() and watching.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)

    try:
        until("watching:")
        server.fail(status(500))
        run.rows = rows[:20]
        until("blind:")
        asked = len(server.asked)
        while len(server.asked) < asked + 3 and watching.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        run.rows = rows
        server.recover()
        until("back:")
        run.state = "failed"
        until("ended:")
        watching.wait(60)
    finally:
        if watching.poll() is None:
            watching.send_signal(signal.SIGKILL)
    said = out.read_text()
    assert (
        said.count("blind: server error (HTTP 500); what was read so far stands, trying again")
        == said.count("back: seen again after")
        == 1
    )
    raised = [line.partition(" step=")[0][9:] for line in said.splitlines() if ": raised " in line]
    assert len(raised) == len(set(raised)) > 0
    checked = cli("check", "--wandb", "ada/grpo/abc12345", **ours)
    assert said.endswith(checked.stdout) and watching.returncode == checked.returncode == 1
    assert KEY not in said


def test_what_is_reported_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "watching.md").read_text()
    assert [
        why
        for why in [*(why for _, why in FAULTS.values()), *OTHERS]
        if why.replace("HTTP 502", "HTTP 500") not in page
    ] == []


def test_a_watch_that_begins_while_the_server_fails_says_so_and_begins_when_it_is_back(server: WandbServer) -> None:
    server.fail(status(500))
    one = WatchedRun(server)
    one.look()
    server.recover()
    one.look(3)
    said = [line[9:] for line in one.out.getvalue().splitlines()]
    assert said[:3] == [
        "abc12345: blind: server error (HTTP 500); nothing was read yet, trying again",
        "brisk-river-7: back: seen after 3.0 min",
        f"brisk-river-7: watching: {RUN}, at step 5",
    ]
    one.assert_nothing_was_lost_or_reported_twice()


@pytest.mark.parametrize("name", ["401", "403", "404"])
def test_what_is_refused_at_the_first_look_ends_a_watch(server: WandbServer, name: str) -> None:
    server.fail(FAULTS[name][0])
    with pytest.raises(RlhealthError) as refused:
        WatchedRun(server)
    assert refused.value.hint
