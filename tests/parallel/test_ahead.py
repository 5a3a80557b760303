"""Runs on a server are read ahead of their turn: in order, only so many, and none waited for when the process ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rlhealth.parallel.ahead import ahead, in_turn
from rlhealth.run import Place, Run


class Reading:
    """Counts how many are read at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = self.begun = 0

    def __call__(self, item: int) -> int:
        with self.lock:
            self.now, self.begun = self.now + 1, self.begun + 1
            self.most = max(self.most, self.now)
        time.sleep(0.02 * (item % 3))
        with self.lock:
            self.now -= 1
        if item == 7:
            raise ValueError("seven")
        return item * item


def test_they_come_in_order_and_each_with_what_became_of_it() -> None:
    read, found = Reading(), []
    for item, result in ahead(range(20), read, 5):
        if item == 7:
            with pytest.raises(ValueError, match="seven"):
                result()
        else:
            found.append((item, result()))
    assert found == [(item, item * item) for item in range(20) if item != 7]
    assert 2 <= read.most <= 5


def test_no_more_are_begun_than_may_wait_while_one_is_judged() -> None:
    read = Reading()
    for taken, (_, result) in enumerate(ahead(range(50), read, 4), 1):
        if taken != 8:
            result()
            continue
        time.sleep(0.1)
        assert read.begun <= taken + 4
        return


class OnServer:
    at_once = 3

    def __init__(self, name: str) -> None:
        self.run = Run(name, Place("wandb", name))

    def poll(self) -> bool:
        return True


class OnDisk(OnServer):
    at_once = 1


def test_files_are_read_when_it_is_their_turn_and_runs_on_a_server_before() -> None:
    readers = [OnDisk("a"), OnServer("b"), OnServer("c"), OnDisk("d")]
    threads: dict[str, str] = {}

    def read(reader: OnServer) -> str:
        threads[reader.run.name] = threading.current_thread().name
        return reader.run.name

    assert [result() for _, result in in_turn(readers, lambda one: one, read)] == ["a", "b", "c", "d"]
    assert {name for name, thread in threads.items() if thread == "MainThread"} == {"a", "d"}


def test_a_process_that_ends_does_not_wait_for_what_is_under_way() -> None:
    code = """
import time
from rlhealth.parallel.ahead import ahead
for item, result in ahead(range(4), lambda item: time.sleep(60 * item), 4):
    result()
    break
print("done")
"""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=50
    )
    assert done.stdout == "done\n" and done.stderr == "" and time.monotonic() - begun < 40
