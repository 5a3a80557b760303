"""What a watch does beside telling: commands, messages, alerts and the one stop, with real processes and real
servers on loopback.
"""

from __future__ import annotations

import http.server
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rlhealth.check import judge
from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import load_rules
from rlhealth.verdict.findings import Severity
from rlhealth.verdict.verdicts import RunVerdict
from rlhealth.watch.actions import Actions, apprise_to, argv, change_document, run_command
from rlhealth.watch.alerts import alert_in
from rlhealth.watch.changes import Change, ReportedFindings
from rlhealth.watch.follower import Event
from rlhealth.watch.lines import LineDisplay
from rlhealth.watch.loop import Limits, Watch, watch
from rlhealth.watch.stopping import Command, Process, Stopping
from tests.growing import GrowingFile
from tests.logged_rows import FIXTURES, read
from tests.watching import HandClock, Recorder

RULES = load_rules()
SICK = next((FIXTURES / "tensorboard" / "grpo-sentences").rglob("*tfevents*"))
PYTHON = sys.executable


@pytest.fixture(scope="module")
def verdict() -> RunVerdict:
    return judge(read("tensorboard/grpo-sentences"), RULES)


@pytest.fixture(scope="module")
def change(verdict: RunVerdict) -> Change:
    return next(one for one in ReportedFindings().changes(verdict) if one.kind == "raised")


def script(folder: Path, body: str) -> str:
    path = folder / "command.py"
    path.write_text(f"import json, os, signal, sys, time\n{body}\n")
    return f"{PYTHON} {path}"


def test_a_command_gets_the_finding_on_its_stdin_and_words_of_it_in_its_environment(
    tmp_path: Path, verdict: RunVerdict, change: Change
) -> None:
    command = argv(
        script(
            tmp_path,
            "json.dump([json.load(sys.stdin), *(os.environ[f'RLHEALTH_{one}'] for one in ('RULE', 'SEVERITY', "
            "'INCIDENT'))], "
            f"open({str(tmp_path / 'got')!r}, 'w'))",
        ),
        "--on-change",
    )
    run_command(command, change_document(change, verdict, 0.0))
    document, rule, severity, incident = json.loads((tmp_path / "got").read_text())
    assert (
        document["schema"] == "rlhealth.change/1"
        and document["change"] == "raised"
        and document["time"] == "1970-01-01T00:00:00+00:00"
    )
    assert document["finding"]["rule"] == rule == "step-size-too-large" and severity == "critical"
    assert document["incident"]["number"] == int(incident) == 1
    assert "reward-flat-while-token-kl-grows" in document["incident"]["rules"]


def test_text_from_a_log_reaches_no_shell(tmp_path: Path, verdict: RunVerdict, change: Change) -> None:
    evil = f"x; touch {tmp_path / 'owned'}; $(touch {tmp_path / 'owned'}) `touch {tmp_path / 'owned'}`\0\x1b]0;owned\a"
    verdict.run.name, before = evil, verdict.run.name
    try:
        command = argv(
            script(tmp_path, f"json.dump(os.environ['RLHEALTH_RUN'], open({str(tmp_path / 'got')!r}, 'w'))"),
            "--on-change",
        )
        run_command(command, change_document(change, verdict, 0.0))
    finally:
        verdict.run.name = before
    assert not (tmp_path / "owned").exists()
    assert "\0" not in json.loads((tmp_path / "got").read_text())


def test_a_command_that_fails_hangs_or_is_not_there_is_reported_and_stops_nothing(
    tmp_path: Path, verdict: RunVerdict, change: Change
) -> None:
    with pytest.raises(RlhealthError, match="left with 3: no luck"):
        run_command(
            argv(script(tmp_path, "sys.stderr.write('no luck\\n'); sys.exit(3)"), "--on-change"),
            change_document(change, verdict, 0.0),
        )
    with pytest.raises(RlhealthError, match="took longer"):
        run_command(
            argv(script(tmp_path, "time.sleep(60)"), "--on-change"), change_document(change, verdict, 0.0), timeout=0.3
        )
    for said, why in (("no-such-program-anywhere x", "no program"), ("'unclosed", "quotation"), ("  ", "no command")):
        with pytest.raises(RlhealthError, match=why):
            argv(said, "--on-change")
    actions = Actions(
        [
            lambda change, run: run_command([str(tmp_path / "gone")], change_document(change, run, 0.0)),
            lambda change, run: 1 / 0,
        ]
    )  # type: ignore[list-item, return-value]
    actions.take(change, verdict)
    actions.end()
    assert len(actions.troubles) == 2 and "gone" in actions.troubles[0] and "ZeroDivisionError" in actions.troubles[1]


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path, verdict: RunVerdict, change: Change) -> None:
    body = (
        f"import subprocess; child = subprocess.Popen(['sleep', '60']); open({str(tmp_path / 'child')!r}, "
        "'w').write(str(child.pid)); time.sleep(60)"
    )
    for seconds in (2.0, 10.0, 50.0):  # on a busy machine it takes that long to begin
        with pytest.raises(RlhealthError, match="took longer"):
            command = argv(script(tmp_path, body), "--on-change")
            run_command(command, change_document(change, verdict, 0.0), timeout=seconds)
        if (tmp_path / "child").exists():
            break
    child = int((tmp_path / "child").read_text())
    for _ in range(50):
        if not lives(child):
            break
        time.sleep(0.1)
    assert not lives(child)


def lives(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    got: ClassVar[list[Any]] = []

    def do_POST(self) -> None:
        self.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[tuple[int, list[Any]]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    Receiver.got.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], Receiver.got
    server.shutdown()
    server.server_close()


def test_a_message_goes_out_through_apprise(
    receiver: tuple[int, list[Any]], verdict: RunVerdict, change: Change
) -> None:
    pytest.importorskip("apprise")
    port, got = receiver
    apprise_to([f"json://127.0.0.1:{port}/"])(change, verdict)
    assert "Each update moves the policy too far raised" in got[0]["title"] and "critical" in got[0]["title"]
    assert "Since step 2." in got[0]["message"] and "kl-high-per-token" in got[0]["message"]
    assert "reward-flat-while-token-kl-grows" in got[0]["message"] and got[0]["type"] == "failure"


def test_an_address_that_nobody_takes_is_reported_without_its_secret(verdict: RunVerdict, change: Change) -> None:
    pytest.importorskip("apprise")
    with pytest.raises(RlhealthError) as known:
        apprise_to(["nosuch://user:secret@host"])
    assert "secret" not in known.value.message + known.value.hint
    with pytest.raises(RlhealthError, match="not every address"):
        apprise_to(["json://127.0.0.1:9/"])(change, verdict)


def test_notify_without_apprise_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['apprise'] = None\nfrom rlhealth.watch.actions import apprise_to\nfrom "
        "rlhealth.errors import RlhealthError\ntry: apprise_to(['x://'])\nexcept "
        "RlhealthError as error: print(error, error.hint)"
    )
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True, cwd=FIXTURES.parent)
    assert 'pip install "rlhealth[notify]"' in done.stdout


def test_an_alert_is_written_into_the_trackio_project_of_the_run(tmp_path: Path, change: Change) -> None:
    pytest.importorskip("trackio")
    database = next((FIXTURES / "everywhere").rglob("*.db"))
    copy = tmp_path / "trackio" / database.name
    copy.parent.mkdir()
    copy.write_bytes(database.read_bytes())
    code = (
        "import sys; from rlhealth.check import check; from rlhealth.watch.alerts import "
        "alert_in; from rlhealth.watch.changes import Change\n"
        "from tests.watch.test_changes import FINDING\n"
        f"run = check({str(copy)!r}).runs[0]; alert_in('trackio')(Change('raised', FINDING), "
        "run); alert_in('trackio')(Change('cleared', FINDING), run)"
    )
    subprocess.run(
        [PYTHON, "-c", code],
        check=True,
        cwd=FIXTURES.parent,
        env={key: value for key, value in os.environ.items() if key != "TRACKIO_DIR"},
        capture_output=True,
    )
    with sqlite3.connect(copy) as connection:
        rows = connection.execute(
            "SELECT run_name, title, level, step FROM alerts WHERE title LIKE '%Too far%'"
        ).fetchall()
        runs = {row[0] for row in connection.execute("SELECT DISTINCT run_name FROM metrics")}
    assert [(title.split(": ")[1], level, step) for _, title, level, step in rows] == [
        ("Too far raised (warning)", "warn", 12)
    ]
    assert {row[0] for row in rows} <= runs


def test_an_alert_for_a_run_that_is_not_on_a_server_is_reported(verdict: RunVerdict, change: Change) -> None:
    with pytest.raises(RlhealthError, match="not on a wandb server"):
        alert_in("wandb")(change, verdict)


def started(body: str, folder: Path) -> subprocess.Popen[str]:
    """A process of which the test knows that it is under way."""
    process = subprocess.Popen(
        argv(script(folder, f"{body}\nprint('ready', flush=True)\ntime.sleep(120)"), "x"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_a_process_is_asked_to_end(tmp_path: Path) -> None:
    process = started("", tmp_path)
    assert Process(process.pid, 5.0)({}) == f"process {process.pid} ended after SIGTERM"
    assert process.wait() == -signal.SIGTERM


def test_a_process_that_will_not_end_is_killed(tmp_path: Path) -> None:
    process = started("signal.signal(signal.SIGTERM, signal.SIG_IGN)", tmp_path)
    assert "was killed" in Process(process.pid, 0.3)({})
    assert process.wait() == -signal.SIGKILL


def test_a_process_that_is_gone_or_whose_number_went_to_another_is_left_alone(tmp_path: Path) -> None:
    process = started("", tmp_path)
    how = Process(process.pid, 1.0)
    how.started = "another moment"
    assert "had ended already" in how({})
    assert process.poll() is None
    process.kill()
    process.wait()
    assert "had ended already" in how({})


@pytest.mark.parametrize(
    "pid",
    [0, 1, -1, os.getpid(), os.getppid(), 2**22 + 1],
    ids=["everyone", "init", "all", "the watch itself", "its parent", "nobody"],
)
def test_what_must_not_be_stopped_is_refused(pid: int) -> None:
    with pytest.raises(RlhealthError, match=f"--stop-pid {pid}"):
        Process(pid)


def test_a_run_is_stopped_once_reported_before_and_after_and_the_watch_ends(tmp_path: Path) -> None:
    process = started("", tmp_path)
    growing, log, clock = GrowingFile(SICK, tmp_path / "run" / SICK.name), Recorder(), HandClock(SICK)
    growing.grow(3000)

    class Notifier:
        def show(self, subject: Watch, event: Event) -> None:
            log.events.append(event)

        def wait(self, subject: Watch, seconds: float) -> bool:
            clock.wait(seconds)
            growing.grow(8000)
            return True

    stopping = Stopping(Severity.CRITICAL, Process(process.pid, 5.0))
    verdict = watch(
        Watch([str(tmp_path / "run")], RULES, clock=clock), Limits(timeout=3600), Notifier(), stopping=stopping
    )
    assert process.wait() == -signal.SIGTERM and stopping.done
    assert [one.kind for one in log.of("stopping", "stopped")] == ["stopping", "stopped"]
    assert verdict.runs[0].run.last_step < 100, "it was stopped on the way"


def test_a_run_that_ended_long_ago_is_no_reason_to_stop_anything(tmp_path: Path) -> None:
    process = started("", tmp_path)
    copy = tmp_path / "run" / SICK.name
    copy.parent.mkdir()
    copy.write_bytes(SICK.read_bytes())
    os.utime(copy, (1.6e9, 1.6e9))
    stopping = Stopping(Severity.CRITICAL, Process(process.pid, 5.0))
    verdict = watch(
        Watch([str(copy)], RULES, clock=HandClock()), Limits(), LineDisplay(io.StringIO()), stopping=stopping
    )
    assert verdict.exit_code == 1 and not stopping.done and process.poll() is None
    process.kill()
    process.wait()


def test_a_run_that_ends_by_itself_needs_no_stop(tmp_path: Path) -> None:
    growing, recorded = GrowingFile(SICK, tmp_path / SICK.name), Recorder()
    subject = Watch([str(tmp_path)], RULES, clock=HandClock(SICK))
    growing.grow_records(0.1)
    recorded.look(subject)
    stopping = Stopping(Severity.CRITICAL, Command("true"))
    growing.grow_records(0.5)
    recorded.look(subject)
    [follower] = subject.followers
    assert follower.live and stopping.is_due(follower)
    growing.grow_records(1.0)
    recorded.look(subject)
    recorded.look(subject)
    assert follower.over and not stopping.is_due(follower)


def test_a_stop_command_gets_the_finding_and_its_failure_is_reported(
    tmp_path: Path, verdict: RunVerdict, change: Change
) -> None:
    got = tmp_path / "got"
    how = Command(script(tmp_path, f"json.dump(json.load(sys.stdin), open({str(got)!r}, 'w'))"))
    assert "was run" in how(change_document(change, verdict, 0.0))
    assert json.loads(got.read_text())["finding"]["rule"] == "step-size-too-large"
    with pytest.raises(RlhealthError, match="left with 1"):
        Command(script(tmp_path, "sys.exit(1)"))(change_document(change, verdict, 0.0))


def test_what_was_over_before_the_watch_began_wakes_nobody(tmp_path: Path) -> None:
    copy = tmp_path / "run" / SICK.name
    copy.parent.mkdir()
    copy.write_bytes(SICK.read_bytes())
    woken: list[Change] = []
    actions = Actions([lambda change, run: woken.append(change)])
    watch(Watch([str(copy)], RULES, clock=HandClock()), Limits(timeout=60), LineDisplay(io.StringIO()), actions)
    assert woken and not any(one.finding.ended for one in woken)
    assert "reward-flat-while-token-kl-grows" in {rule for one in woken if one.incident for rule in one.incident.rules}
