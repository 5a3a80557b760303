"""Runs on a server are read ahead of their turn: only so many, and none is waited for when the process ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rlhealth.parallel.ahead import ahead, in_order, in_turn
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


def test_they_come_as_they_are_read_each_with_its_number_and_what_became_of_it() -> None:
    read, found = Reading(), []
    for number, item, result in ahead(range(100, 120), lambda item: read(item - 100), 5):
        assert item == 100 + number
        if number == 7:
            with pytest.raises(ValueError, match="seven"):
                result()
        else:
            found.append((number, result()))
    assert sorted(found) == [(item, item * item) for item in range(20) if item != 7] != found
    assert 2 <= read.most <= 5


def test_a_slow_one_holds_up_no_other_and_yet_they_can_be_put_in_order() -> None:
    slow = threading.Event()
    taken = []
    found = ahead(range(9), lambda item: slow.wait(20) if item == 0 else True, 3)
    for number, _, result in found:
        taken.append(number)
        slow.set() if len(taken) == 8 else None
        assert result()
    assert taken[-1] == 0 and list(in_order((number, number) for number in taken)) == list(range(9))


def test_no_more_are_begun_than_may_wait_while_one_is_judged() -> None:
    read = Reading()
    for taken, (_, item, result) in enumerate(ahead(range(50), read, 4), 1):
        if taken != 8:
            assert item == 7 or result() == item * item
            continue
        time.sleep(0.3)
        assert read.begun <= taken + 8
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
for number, item, result in ahead(range(4), lambda item: time.sleep(60 * item), 4):
    result()
    break
print("done")
"""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=50
    )
    assert done.stdout == "done\n" and done.stderr == "" and time.monotonic() - begun < 40
