"""Clocks that jump by hours: this machine's while it watches, and the one that the log was written by. Neither is
the run's doing, and nobody is alarmed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlhealth.check import judge
from rlhealth.rules.loading import load_rules
from rlhealth.sources import find_readers
from rlhealth.watch.loop import Watch
from tests.conftest import FIXTURES, ROOT
from tests.growing import GrowingFile
from tests.sources.conftest import nobody, server  # noqa: F401 (fixtures)
from tests.sources.wandb_online import RUN, rows_of
from tests.wandb_server import HostedRun, WandbServer
from tests.watching import HandClock, Recorder, first_time, shifted, written_now

RULES = load_rules()
SICK = next((FIXTURES / "tensorboard" / "grpo-sentences").rglob("*tfevents*"))
ROWS = rows_of(FIXTURES / "wandb" / "run-grpo-old-nan.wandb")
HOUR = 3600.0
#: What tells a program another time of day than the machine has: by so many seconds as stand in the file $OFFSET. All
#: other clocks are left alone.
SET_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    long offset = 0;
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("OFFSET"), "r") : NULL;
    if (file) {
        if (fscanf(file, "%ld", &offset) == 1) now->tv_sec += offset;
        fclose(file);
    }
    return failed;
}
"""


class Elsewhere:
    """A run that another machine writes, by a clock that nobody sets, and the watch of it here."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.recorded = HandClock(SICK), Recorder()
        self.growing = GrowingFile(SICK, folder / SICK.name)
        self.watch = Watch([str(folder)], RULES, clock=self.clock)

    def go_on(self, looks: int, share: float = 0.0) -> None:
        """So many looks, before each of which the run grows by that share of its log."""
        for _ in range(looks):
            if share:
                self.growing.grow_records(self.growing.at / len(self.growing.source) + share)
            self.recorded.look(self.watch)

    def set(self, seconds: float) -> None:
        self.clock.set(seconds)

    def stalled(self) -> list[str]:
        return [kind for kind, rule, _ in self.recorded.changes if rule == "run-silent"] + [
            one.kind for one in self.recorded.of("silent")
        ]


@pytest.mark.parametrize("hours", [3, -3, 700])
def test_a_run_that_goes_on_is_not_called_silent_when_the_clock_is_set(hours: int, tmp_path: Path) -> None:
    run = Elsewhere(tmp_path)
    run.go_on(5, 0.02)
    run.set(hours * HOUR)
    for _ in range(10):
        run.go_on(1, 0.02)
        [follower] = run.watch.followers
        assert follower.ending is not None and follower.ending.state == "running" and 0 <= follower.ending.idle < 60
    run.recorded.finish(run.watch)
    assert not run.stalled()


def test_a_clock_that_is_set_forwards_and_soon_back_alarms_nobody(tmp_path: Path) -> None:
    run = Elsewhere(tmp_path)
    run.go_on(5, 0.02)
    for seconds in (5 * HOUR, -5 * HOUR, -9 * HOUR, 9 * HOUR):
        run.set(seconds)
        run.go_on(1, 0.02)
        run.go_on(1)
    assert not run.stalled()


@pytest.mark.parametrize("hours", [3, -3])
def test_a_run_that_falls_silent_after_the_clock_was_set_is_reported_as_soon_as_ever(
    hours: int, tmp_path: Path
) -> None:
    run = Elsewhere(tmp_path)
    run.go_on(5, 0.02)
    run.set(hours * HOUR)
    run.go_on(5, 0.02)
    run.go_on(38)
    assert not run.stalled(), "ten minutes have not passed"
    run.go_on(5)
    assert run.stalled() == ["raised"]


@pytest.mark.parametrize("minutes", [20, 600])
def test_a_machine_whose_clock_is_behind_does_not_make_its_run_silent(minutes: int, tmp_path: Path) -> None:
    run = Elsewhere(tmp_path)
    run.clock.now = first_time(SICK) + 60.0 * minutes  # from the start, so that nothing jumps while it is watched
    run.watch = Watch([str(tmp_path)], RULES, clock=run.clock)
    run.go_on(1, 0.02)
    run.recorded.events.clear()  # what the first look says is what a check would: it has not seen the run grow
    for _ in range(20):
        run.go_on(1, 0.02)
        [follower] = run.watch.followers
        assert follower.ending is not None and follower.ending.state == "running" and 0 <= follower.ending.idle < 60
        run.go_on(2)
    assert [kind for kind in run.stalled() if kind != "cleared"] == []
    run.go_on(45)
    assert run.stalled()[-1] == "raised", "eleven minutes without news are eleven minutes"


def test_how_long_a_watch_was_blind_does_not_count_what_the_clock_was_set_by(tmp_path: Path) -> None:
    run = Elsewhere(tmp_path / "run")
    run.go_on(5, 0.02)
    (tmp_path / "run").rename(tmp_path / "away")
    run.go_on(2)
    run.set(5 * HOUR)
    since = time.strftime("%H:%M", time.localtime(run.clock.now - 30.0))
    assert f"not seen since {since}" in run.watch.verdict().errors[0].message, "by the clock that the reader sees now"
    (tmp_path / "away").rename(tmp_path / "run")
    run.go_on(4)
    assert [one.said for one in run.recorded.of("sees")] == ["seen again after 1.0 min"]
    assert not run.stalled()


def jumping(step: int) -> float:
    """By how much the clock of the run's machine was wrong at a step: it is set forwards by five hours, then back by
    six, then right again.
    """
    return 5 * HOUR if 8 <= step < 14 else -HOUR if 14 <= step < 20 else 0.0


def as_jsonl(folder: Path, wrong: Callable[[int], float]) -> str:
    rows = [{**row, "_timestamp": row["_timestamp"] + wrong(row["_step"])} for row in ROWS]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / "log.jsonl")


def as_events(folder: Path, wrong: Callable[[int], float]) -> str:
    shifted(SICK, folder, wrong)
    return str(folder)


@pytest.mark.parametrize("write", [as_jsonl, as_events])
def test_a_log_whose_clock_jumped_is_judged_as_if_it_had_not(
    write: Callable[[Path, Callable[[int], float]], str], tmp_path: Path
) -> None:
    said = []
    for name, wrong in (("right", lambda step: 0.0), ("jumped", jumping)):
        (tmp_path / name).mkdir()
        [reader] = find_readers(write(tmp_path / name, wrong))
        reader.poll()
        found = judge(reader.run, RULES)
        said.append(
            (
                [repr(one) for one in found.findings],
                found.state,
                found.quiet,
                [(tag, one.steps.tolist()) for tag, one in reader.run.series.items()],
            )
        )
    assert said[0] == said[1] and said[0][0]


def test_a_wandb_run_whose_clock_jumped_is_read_whole_while_it_grows(server: WandbServer) -> None:
    recorded, clock = Recorder(), HandClock()
    run, watch = server.host(HostedRun()), Watch([RUN], RULES, clock=clock)
    for row in ROWS[:-3]:
        clock.wait(30)
        run.rows.append({**row, "_timestamp": clock.now + jumping(row["_step"])})
        run.heartbeat = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clock.now))
        recorded.look(watch, 30)
    [follower] = watch.followers
    assert follower.reader.run.series["train/loss"].steps.tolist() == [
        row["train/global_step"] for row in ROWS[:-3] if "train/loss" in row
    ]
    assert not [change for change in recorded.changes if change[1] == "run-silent"] and not recorded.of(
        "silent", "blind"
    )
    assert follower.ending is not None and 0 <= follower.ending.idle < 60


@pytest.mark.parametrize("hours", [5, -5])
def test_the_command_is_not_alarmed_when_the_clock_of_the_machine_jumps(hours: int, tmp_path: Path) -> None:
    offset, out = tmp_path / "offset", tmp_path / "out"
    offset.write_text("0")
    growing = GrowingFile(written_now(SICK, tmp_path / "written"), tmp_path / "runs" / SICK.name)
    growing.grow_records(0.02)  # what is wrong with it begins after the clock was set, and is reported by the new time
    faked = {"LD_PRELOAD": str(compiled(tmp_path)), "OFFSET": str(offset), "TZ": "UTC", "PYTHONPATH": str(ROOT)}
    with out.open("w") as file:
        command = [
            sys.executable,
            "-m",
            "rlhealth",
            "watch",
            str(tmp_path / "runs"),
            "--interval",
            "0.2",
            "--until-step",
            "60",
        ]
        watching = subprocess.Popen(command, env={**os.environ, **faked}, stdout=file, stderr=file)
    while watching.poll() is None:
        if "watching:" in out.read_text():
            share = growing.at / len(growing.source)
            if share > 0.025:
                (tmp_path / "set").write_text(str(hours * 3600))
                (tmp_path / "set").replace(offset)
            growing.grow_records(min(1.0, share + (0.03 if share > 0.1 else 0.01)))
        time.sleep(0.3)
    said = out.read_text()
    recorded = [int(line[:2]) for line in said.splitlines() if line[2:3] == line[5:6] == ":"]
    assert (recorded[-1] - recorded[0]) % 24 in (hours % 24, (hours + 1) % 24), "the clock did jump"
    assert "watching:" in said and "silent" not in said and "blind" not in said
    assert watching.returncode == 1, "the run is sick, and has been read"


def compiled(folder: Path) -> Path:
    """SET_CLOCK as a library to be loaded before the system's."""
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(SET_CLOCK)
    if shutil.which("cc") is None or not sys.platform.startswith("linux"):
        pytest.skip("there is no C compiler here, or no Linux")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library
