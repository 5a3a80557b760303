"""The screen and the command: what is drawn at every width, and the command in a real terminal."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rlhealth.engine.judge import Judge
from rlhealth.metrics import translate
from rlhealth.reports import ReportOptions
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from rlhealth.watch.ahead import projections
from rlhealth.watch.board_run import distance, trend
from rlhealth.watch.follower import Event
from rlhealth.watch.keys import keys_in
from rlhealth.watch.lines import LineDisplay
from rlhealth.watch.loop import Limits, Watch, watch
from rlhealth.watch.near import LimitMargin
from rlhealth.watch.screen import drawn
from rlhealth.watch.view import BINDINGS, View
from tests.growing import GrowingFile
from tests.logged_rows import FIXTURES
from tests.watching import HandClock, Recorder, written_now

if sys.platform == "win32":
    pytest.skip("needs a POSIX terminal", allow_module_level=True)
import pty

RULES = load_rules()
ROOT = FIXTURES.parent
SICK = next((FIXTURES / "tensorboard" / "grpo-sentences").rglob("*tfevents*"))
HEALTHY = next((FIXTURES / "tensorboard" / "grpo-sort").rglob("*tfevents*"))
WIDTHS = [20, 40, 60, 80, 100, 140, 200]


def followed(folder: Path, *files: Path) -> tuple[Watch, list[tuple[float, Event]]]:
    for number, file in enumerate(files):
        (folder / f"run{number}").mkdir(parents=True)
        shutil.copy(file, folder / f"run{number}")
    subject, recorded = Watch([str(folder)], RULES, clock=HandClock()), Recorder()
    for _ in range(2):
        recorded.look(subject)
    return subject, [(subject.clock.wall(), one) for one in recorded.events]


def text(
    watch: Watch, recorded: list[tuple[float, Event]], width: int = 80, height: int = 30, *, ascii: bool = False
) -> str:
    return "\n".join(drawn(watch, recorded, ReportOptions(width, False, ascii), width, height))


@pytest.mark.parametrize("height", [5, 10, 24, 60])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_terminal_is_filled_and_none_overflows(width: int, height: int, tmp_path: Path) -> None:
    for folder, files in ((tmp_path / "a", [SICK]), (tmp_path / "b", [SICK, HEALTHY]), (tmp_path / "c", [])):
        folder.mkdir()
        lines = drawn(*followed(folder, *files), ReportOptions(width), width, height)
        assert len(lines) <= height and max(map(cell_len, lines)) <= width
        assert "exit" in lines[-1], "the last line says what it would leave with"


def test_a_healthy_run_shows_its_metrics_and_how_near_they_are_to_their_limits(tmp_path: Path) -> None:
    shown = text(*followed(tmp_path, HEALTHY), width=140)
    assert "finished" in shown and "step 250" in shown.replace("\u202f", "") and "exit 0" in shown
    assert re.search(r"kl +[▁▂▃▄▅▆▇█· ]{40}.*% of the limit of kl-", shown)


def test_a_sick_run_shows_what_is_wrong_since_when_and_what_to_try(tmp_path: Path) -> None:
    shown = text(*followed(tmp_path, SICK), height=40)
    assert "✗ critical[step-size-too-large]  since step 2" in shown and "try " in shown and "exit 1" in shown
    assert "step-size-too-large raised" in shown and " cleared" not in shown, "one line for it all"


def test_a_run_that_cannot_be_seen_is_blind_and_says_for_how_long(tmp_path: Path) -> None:
    subject, recorded = followed(tmp_path, HEALTHY)
    shutil.rmtree(tmp_path / "run0")
    for _ in range(8):
        subject.clock.wait(15)
        recorded += [(subject.clock.wall(), one) for one in subject.look()]
    shown = text(subject, recorded)
    assert "● blind" in shown and "blind for 2 min" in shown and "exit 2" in shown


def test_several_runs_have_one_line_each_the_sick_first(tmp_path: Path) -> None:
    lines = text(*followed(tmp_path, HEALTHY, SICK)).split("\n")
    [sick] = [line for line in lines if line.startswith(" ✗ run1")]
    [well] = [line for line in lines if line.startswith(" ✓ run0")]
    assert "since 2 step-size" in sick
    assert lines.index(sick) < lines.index(well)


def test_a_terminal_without_unicode_gets_ascii(tmp_path: Path) -> None:
    for folder, files in ((tmp_path / "a", [SICK]), (tmp_path / "b", [SICK, HEALTHY])):
        folder.mkdir()
        assert text(*followed(folder, *files), ascii=True).isascii()


def test_names_from_a_log_cannot_steer_the_terminal(tmp_path: Path) -> None:
    evil = tmp_path / "\x1b[2J\x1b]0;owned\x07\nrun"
    evil.mkdir()
    subject, recorded = followed(evil, SICK)
    shown = text(subject, recorded, width=200)
    assert "\x1b" not in shown and "\x07" not in shown
    out = io.StringIO()
    for _, event in recorded:
        LineDisplay(out).show(subject, event)
    assert "\x1b" not in out.getvalue() and len(out.getvalue().splitlines()) == len(recorded)


def test_lines_tell_one_thing_each_with_the_time(tmp_path: Path) -> None:
    shutil.copy(SICK, tmp_path)
    out = io.StringIO()
    verdict = watch(Watch([str(tmp_path)], RULES, clock=HandClock()), Limits(timeout=60), LineDisplay(out))
    lines = out.getvalue().splitlines()
    assert verdict.exit_code == 1
    assert all(re.match(r"\d\d:\d\d:\d\d \S+: ", line) for line in lines)
    [recorded] = [
        line for line in lines if "raised (before it was watched) critical[step-size-too-large] step=2 " in line
    ]
    assert " incident=1 with=reward-flat-while-token-kl-grows,kl-high-per-token," in recorded


def pressed(
    keys: list[str], subject: Watch, recorded: list[tuple[float, Event]], width: int = 100, height: int = 30
) -> str:
    """What is shown after these keys."""
    view = View()
    for one in keys:
        assert view.press(one, subject.followers)
    return "\n".join(drawn(subject, recorded, ReportOptions(width, False), width, height, view))


@pytest.mark.parametrize("height", [5, 12, 40])
@pytest.mark.parametrize("width", [20, 80, 140])
def test_what_a_key_asks_for_fills_every_terminal_too(width: int, height: int, tmp_path: Path) -> None:
    subject, recorded = followed(tmp_path, SICK, HEALTHY)
    for keys in (["enter"], ["enter", "end"], ["m"], ["m", "down", "down"], ["?"], ["/", "x"]):
        lines = pressed(keys, subject, recorded, width, height).split("\n")
        assert len(lines) <= height and max(map(cell_len, lines)) <= width


def test_enter_shows_the_vital_signs_and_the_story_of_the_chosen_run_and_esc_goes_back(tmp_path: Path) -> None:
    subject, recorded = followed(tmp_path, SICK, HEALTHY)
    assert "pace and ending" in pressed(["enter"], subject, recorded) and "✗ run0" in pressed(
        ["enter"], subject, recorded
    )
    assert "✓ run1" in pressed(["down", "enter"], subject, recorded).split("\n")[0]
    assert "critical[step-size-too-large]" in pressed(["enter", "pagedown"], subject, recorded)
    assert pressed(["down", "enter", "esc"], subject, recorded) == pressed(["down"], subject, recorded)


def test_the_list_is_filtered_and_sorted(tmp_path: Path) -> None:
    subject, recorded = followed(tmp_path, SICK, HEALTHY)
    shown = pressed(["/", "h", "e", "a", "l", "enter"], subject, recorded)
    assert "run1" in shown.split("─\n")[1] and "run0" not in shown.split("─\n")[1] and "1 of 2 runs" in shown
    assert "2 runs" in pressed(["/", "h", "e", "a", "l", "esc"], subject, recorded).split("\n")[0], (
        "Esc drops the filter"
    )
    assert "/ q_" in pressed(["/", "q"], subject, recorded), "a q that is typed does not leave"
    by_step = pressed(["s", "s"], subject, recorded)
    assert by_step.index("✓ run1") < by_step.index("✗ run0") and "sorted by step" in by_step


def test_a_metric_s_curve_has_its_limits(tmp_path: Path) -> None:
    subject, recorded = followed(tmp_path, SICK)
    shown = pressed(["m", "down"], subject, recorded)
    assert " kl  " in shown and re.search(r" +3 ┤.*┄", shown) and "above 3: kl-high-per-token" in shown


def test_the_help_has_every_key(tmp_path: Path) -> None:
    shown = pressed(["?"], *followed(tmp_path, SICK))
    assert all(one.shown in shown for one in BINDINGS)
    keys = [key for one in BINDINGS for key in one.keys]
    assert len(keys) == len(set(keys)), "a key does one thing"


def test_a_metric_that_moves_to_a_limit_says_about_when_it_gets_there(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    begun = time.time() - 1200
    with log.open("w") as out:
        for step in range(1, 101):
            noise = 0.02 * ((step * 7919) % 13 - 6) / 6
            row = {
                "step": step,
                "_timestamp": begun + 12 * step,
                "reward": 0.3 + noise,
                "kl": 0.02 + 0.011 * step + noise / 9,
            }
            out.write(json.dumps(row | {"entropy": 2 + noise, "loss": noise, "max_steps": 400}) + "\n")
    subject, recorded = Watch([str(log)], RULES, clock=HandClock()), Recorder()
    recorded.look(subject)
    recorded.look(subject)
    [follower] = subject.followers
    assert follower.judge is not None
    coming = projections(follower.judge)["kl"]
    assert coming.level == pytest.approx(1.5, abs=0.05) and 130 <= coming.step <= 140, "1.5 is reached at step 135"
    assert f"at about step {coming.step}" in text(subject, [], width=140)


def test_a_metric_that_only_wanders_has_no_projection(tmp_path: Path) -> None:
    for seed in range(5):
        random = np.random.default_rng(seed)
        run = Run("calm", Place("jsonl", "calm.jsonl"))
        for tag in ("reward", "kl", "entropy", "loss"):
            run.add(tag, np.arange(1, 201), 1 + 0.2 * random.normal(size=200))
        judge = Judge(run, RULES)
        judge.advance()
        assert projections(judge) == {}


class Terminal:
    """`rlhealth watch` in a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", COLUMNS="100", LINES="40", PYTHONPATH=str(ROOT))
            os.chdir("/")
            os.execv(sys.executable, [sys.executable, "-m", "rlhealth", "watch", *arguments])
        os.set_blocking(self.file, False)
        self.seen = ""

    def until(self, wanted: str, seconds: float = 30) -> str:
        """Reads until the terminal has shown something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self.seen += os.read(self.file, 1 << 16).decode("utf-8", "replace")
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                break
            if wanted in self.seen:
                return self.seen
        raise AssertionError(f"{wanted!r} was not shown, but: {self.seen[-2000:]}")

    def press(self, key: str) -> None:
        os.write(self.file, key.encode())

    def leave(self) -> int:
        """Waits for the end; returns the exit code."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            try:
                while new := os.read(self.file, 1 << 16):  # what it wrote last is there after its end too
                    self.seen += new.decode("utf-8", "replace")
            except (BlockingIOError, OSError):
                time.sleep(0.02)
            if pid:
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("it did not leave")


@pytest.fixture
def half(tmp_path: Path) -> Iterator[GrowingFile]:
    growing = GrowingFile(written_now(SICK, tmp_path / "written"), tmp_path / "run" / SICK.name)
    growing.grow_records(0.5)
    yield growing


NOT_KEYS = [
    "\x1b[A",
    "\x1b[B",
    "\x1bOC",
    "\x1b[5~",
    "\x1b[6~",
    "\x1b",
    "\x1b[<64;10;10M",
    "\x1b[M`qq",
    "\x1b[15~",
    "\x1bq",
]


def letters(sent: str) -> str:
    """The keys with a letter or sign among those that were sent."""
    return "".join(one for one in keys_in(sent) if len(one) == 1)


@pytest.mark.parametrize("sent", NOT_KEYS)
def test_arrows_paging_the_wheel_and_esc_are_no_letters(sent: str) -> None:
    assert letters(sent) == ""
    assert letters(f"{sent}{sent}") == ""
    if sent != "\x1b":  # Esc and q at once are what a terminal sends for Alt-q
        assert letters(f"{sent}q") == "q"


@given(st.lists(st.sampled_from(NOT_KEYS[:-1]), max_size=8), st.text("abcxyz?/", max_size=4))
def test_what_is_typed_between_them_comes_through_in_its_order(sent: list[str], typed: str) -> None:
    between = [one for one in sent if one != "\x1b"]
    assert letters("".join(between) + typed) == typed


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ("\x1b[A", "up"),
        ("\x1bOB", "down"),
        ("\x1b[5~", "pageup"),
        ("\x1b[6~", "pagedown"),
        ("\x1b[<65;9;9M", "down"),
        ("\r", "enter"),
        ("\x7f", "backspace"),
        ("\x1b", "esc"),
        ("\x1b[15~", ""),
    ],
)
def test_keys_without_a_letter_have_names(sent: str, key: str) -> None:
    assert keys_in(sent) == ([key] if key else [])


@given(st.text(max_size=40))
def test_no_input_is_too_odd(sent: str) -> None:
    assert all(len(one) == 1 or one.isalpha() for one in keys_in(sent))


def test_no_arrow_nor_esc_ends_the_watch_and_q_does_afterwards(half: GrowingFile) -> None:
    terminal = Terminal(str(half.target.parent), "--interval", "0.5")
    terminal.until("if it ended now")
    for one in NOT_KEYS:
        terminal.press(one)
        time.sleep(0.1)
    seen = len(terminal.seen)
    half.grow_records(0.7)
    terminal.until("step 69/100")
    assert len(terminal.seen) > seen
    assert "\x1b[?1049l" not in terminal.seen, "it is still watching"
    terminal.press("\x1b[")  # a sequence that a slow line cut in two
    terminal.press("A")
    time.sleep(0.3)
    terminal.press("q")
    assert terminal.leave() == 1


def test_keys_go_through_the_screens_of_a_real_terminal(half: GrowingFile) -> None:
    shutil.copytree(half.target.parent, half.target.parent.parent / "runs" / "a")
    (half.target.parent.parent / "runs" / "b").mkdir()
    shutil.copy(HEALTHY, half.target.parent.parent / "runs" / "b")
    terminal = Terminal(str(half.target.parent.parent / "runs"), "--interval", "0.5", "--bell")
    terminal.until("2 runs")
    for key, shown in (
        ("\r", "pace and ending"),
        ("\x1b[6~", "more lines below"),
        ("m", "for the others"),
        ("\x1b", "more lines below"),
        ("?", "this help"),
        ("\x1b", "more lines below"),
        ("\x1b[D", "2 runs"),
        ("/", "/ _"),
        ("b", "1 of 2 runs"),
        ("\x1b", "m2 runs"),  # a colour before it: not the "1 of 2 runs" of a frame that was on its way
        ("s", "sorted by name"),
    ):
        terminal.seen = ""
        terminal.press(key)
        terminal.until(shown)
    terminal.press("q")
    assert terminal.leave() == 1


def test_the_bell_rings_when_an_incident_opens(half: GrowingFile) -> None:
    terminal = Terminal(str(half.target.parent), "--interval", "0.5", "--bell")
    terminal.until("\x1b]9;rlhealth: run: raised (before it was watched) critical[step-size-too-large]")
    assert "\x07" in terminal.seen
    terminal.press("q")
    assert terminal.leave() == 1


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.5, "50 % of the limit"), (0.9, "90 % of the limit"), (1.0, "at the limit"), (2.27, "2.3 times the limit")],
)
def test_how_near_a_limit_is_says_what_the_number_means(share: float, said: str) -> None:
    assert distance(LimitMargin(share, "kl-high"), 30)[0].startswith(said)
    assert len(distance(LimitMargin(share, "kl-high"), 12)[0]) <= 12
    assert "over" not in distance(LimitMargin(share, "kl-high"), 20)[0]


@pytest.mark.parametrize(("key", "how"), [("q", "q"), ("\x03", "Ctrl-C")])
def test_a_key_ends_the_watch_with_the_report_and_its_exit_code(half: GrowingFile, key: str, how: str) -> None:
    terminal = Terminal(str(half.target.parent), "--interval", "0.5")
    terminal.until("● live")
    half.grow_records(1.0)
    terminal.until("reward-flat")
    terminal.press(key)
    assert terminal.leave() == 1
    assert "\x1b[?1049l" in terminal.seen, "the alternate screen was left"
    assert "1 run critical" in terminal.seen.partition("\x1b[?1049l")[2], "the report stands on the terminal"


def test_what_was_stopped_is_still_reported_when_the_screen_is_gone(half: GrowingFile) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    terminal = Terminal(
        str(half.target.parent), "--interval", "0.5", "--stop-on", "critical", "--stop-pid", str(process.pid)
    )
    assert terminal.leave() == 1
    assert process.wait() == -signal.SIGTERM
    before, _, after = terminal.seen.partition("\x1b[?1049h")
    assert f"at the first critical finding: send SIGTERM to process {process.pid}" in before, (
        "it says beforehand what it will do"
    )
    assert f"process {process.pid} ended after SIGTERM" in after.partition("\x1b[?1049l")[2]


def run(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-m", "rlhealth", "watch", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        check=False,
        cwd="/",
    )


def test_a_pipe_gets_lines_and_a_report_for_programs_has_stdout_to_itself(half: GrowingFile) -> None:
    done = run(str(half.target.parent), "--timeout", "0.5", "--interval", "0.2", "-f", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "critical"
    assert "raised (before it was watched) critical[step-size-too-large]" in done.stderr


def test_a_watch_in_which_nothing_appeared_is_no_answer(tmp_path: Path) -> None:
    done = run(str(tmp_path / "nothing"), "--timeout", "0.3", "--interval", "0.1")
    assert (
        done.returncode == 2
        and done.stdout.count("waiting to appear") + done.stdout.count("waiting for it to appear") == 1
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no run is named"),
        (["-"], "can be read only once"),
        (["x", "--stop-pid", "5"], "add --stop-on"),
        (["x", "--stop-on", "critical"], "how is the run to be stopped"),
        (["x", "--stop-on", "critical", "--stop-pid", "1"], "not a training process"),
        (["x", "--on-change", "nosuchprogram"], "no program"),
        (["ftp://x/y"], "this kind of address is not read"),
        (["x", "--stop-on", "critical", "--stop-pid", "5", "--stop-command", "true"], "one of them"),
    ],
)
def test_what_cannot_be_done_is_reported_at_once(arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_sigterm_ends_a_watch_as_ctrl_c_does(half: GrowingFile) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "rlhealth", "watch", str(half.target.parent), "--interval", "0.2"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd="/",
    )
    assert process.stdout is not None
    for line in process.stdout:  # which ends when the watch does
        if "reward-flat-while-token-kl-grows" in line:
            break
    else:
        raise AssertionError("it left before it told what is wrong")
    process.send_signal(signal.SIGTERM)
    assert "exit 1" in process.communicate(timeout=30)[0]
    assert process.returncode == 1


def test_a_change_reaches_a_command_through_the_command_line(half: GrowingFile, tmp_path: Path) -> None:
    script = tmp_path / "tell.py"
    script.write_text(f"import sys\nopen({str(tmp_path / 'got')!r}, 'a').write(sys.stdin.read() + chr(10))\n")
    run(str(half.target.parent), "--timeout", "0.5", "--interval", "0.2", "--on-change", f"{sys.executable} {script}")
    documents = [json.loads(line) for line in (tmp_path / "got").read_text().splitlines()]
    [recorded] = [one for one in documents if one["change"] == "raised"]
    assert recorded["incident"]["number"] == 1 and "reward-flat-while-token-kl-grows" in recorded["incident"]["rules"]


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (0.5, 0.25, "↓ −50 %"),
        (0.5, 0.75, "↑ +50 %"),
        (0.2, -0.64, "↓ −0.84"),
        (-0.2, -0.9, "↓ −0.7"),
        (-1.0, 2.0, "↑ +3"),
        (0.5, 0.5, "→"),
    ],
)
def test_a_trend_is_no_percentage_where_a_value_is_negative(then: float, now: float, said: str) -> None:
    run = Run("made", Place("table", "made.csv"))
    run.add("reward", list(range(30)), [then] * 20 + [now] * 10)
    assert trend(translate(run).metrics["reward"]) == said


def test_the_log_names_the_step_at_which_a_finding_was_raised_and_the_one_since_which_it_holds(tmp_path: Path) -> None:
    shown = text(*followed(tmp_path, SICK), width=160)
    raised = re.search(r"raised.*  step (\d+), since (\d+)", shown)
    assert raised is not None and int(raised[2]) < int(raised[1])
