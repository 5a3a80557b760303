"""A process of its own for each command line, forked from one that has imported what a check needs: of a start, which is
two thirds of a small check, only that part is shared, and each command begins with its own words, folder, environment,
streams and exit code.

A start itself is tested where a test passes an environment (`conftest.cli`), and by all tests that begin a process of
their own.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import pkgutil
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
CAN_FORK = sys.platform == "linux" and hasattr(os, "pidfd_open")
LARGEST = 1 << 20  # bytes of one command line with its environment
#: Parts of the package that are not imported ahead: they are for other programs, which they import.
ELSEWHERE = ("rlhealth.__main__", "rlhealth.integrations", "rlhealth.callback", "rlhealth.testing")


class WarmProcess:
    """The process that the others are forked from; started when the first command is run."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._started = threading.Lock()
        self._socket: socket.socket | None = None

    def run(
        self, words: Sequence[str], stdin: str, timeout: float, cwd: Path, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """`python -m rlhealth WORDS`, as subprocess.run does it."""
        with self._started:
            asking = self._socket or self._start()
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin.encode())
            given.seek(0)
            answer, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with answer, theirs:
                asked = json.dumps([list(words), str(cwd), environment]).encode()
                socket.send_fds(asking, [asked], [given.fileno(), out.fileno(), err.fileno(), theirs.fileno()])
                theirs.close()
                code = self._code(answer, words, timeout)
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(words), code, _text(out.read()), _text(err.read()))

    def _code(self, answer: socket.socket, words: Sequence[str], timeout: float) -> int:
        started = answer.recv(64)
        assert started, "the process that commands are forked from has ended: see its last words above"
        child = int(started)
        answer.settimeout(timeout)
        try:
            return int(answer.recv(64))
        except TimeoutError:
            os.kill(child, 9)
            raise subprocess.TimeoutExpired(list(words), timeout) from None

    def _start(self) -> socket.socket:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
        command = [sys.executable, "-m", "tests.warm", str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=ROOT, env=environment)
        theirs.close()
        return self._socket

    def end(self) -> None:
        """Ends it."""
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.wait()


def _text(raw: bytes) -> str:
    """As a stream in text mode reads it."""
    return io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8").read()


def import_ahead() -> None:
    """Imports all of rlhealth, and what a check of a run imported in a process that was forked for it."""
    import rlhealth

    for one in pkgutil.walk_packages(rlhealth.__path__, "rlhealth."):
        if not one.name.startswith(ELSEWHERE):
            import_module(one.name)
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        become(
            ["check", str(ROOT / "fixtures" / "runs" / "lr-jump")],
            str(ROOT),
            dict(os.environ),
            [os.open(os.devnull, os.O_RDWR)] * 3,
        )
        try:
            runpy.run_module("rlhealth", run_name="__main__", alter_sys=True)
        finally:
            with os.fdopen(theirs, "w") as stream:
                stream.write("\n".join(sys.modules))
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as stream:
        names = stream.read().split("\n")
    os.waitpid(child, 0)
    for name in names:
        if name not in sys.modules and not name.startswith(("rlhealth", "__main__")):
            import_module(name)


def become(words: list[str], cwd: str, environment: dict[str, str], streams: list[int]) -> None:
    """Makes this process what `python -m rlhealth WORDS` would be, before its first line."""
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["rlhealth", *words]
    sys.path[0] = cwd
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8")
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)


def serve(asked: socket.socket) -> bool:
    """Forks a process for each command until nobody asks any more; True in such a process."""
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        ready, _, _ = select.select([asked, *running], [], [])
        for one in ready:
            if isinstance(one, int):
                child, answer = running.pop(one)
                os.close(one)
                answer.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
                answer.close()
                continue
            raw, streams, _, _ = socket.recv_fds(asked, LARGEST, 4)
            if not raw:
                return False
            answer = socket.socket(fileno=streams.pop())
            child = os.fork()
            if not child:
                asked.close()
                answer.close()
                for _, other in running.values():
                    other.close()
                become(*json.loads(raw), streams)
                for stream in streams:
                    os.close(stream)
                return True
            for stream in streams:
                os.close(stream)
            answer.send(b"%d" % child)
            running[os.pidfd_open(child)] = child, answer


def main_of_the_command() -> None:
    """`python -m rlhealth`, and what Python does at its end, but for taking the modules apart: the pages that they lie
    on would each be copied first.
    """
    code: object = 0
    try:
        runpy.run_module("rlhealth", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    import_ahead()
    gc.freeze()
    if serve(socket.socket(fileno=int(sys.argv[1]))):
        main_of_the_command()
