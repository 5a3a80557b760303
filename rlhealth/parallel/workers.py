"""Worker processes: each is told all readers once, then which of them to examine, and sends back what it found."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any

from rlhealth.system.process import settled

PIECE = 4  # readers that a worker is given at once, at most
AHEAD = 2  # pieces that it is given before the answers to the first are in, so that it never waits for the next
ROOM = 1 << 20  # bytes
_LENGTH = struct.Struct("<Q")
_BEGIN = "import sys; sys.path[:] = {path!r}; from rlhealth.parallel.workers import main; main()"


class Line:
    """Readers in a line, by their places: this process takes them from the front, the workers from the back, until they meet.

    Args:
        movable: of each reader, whether a worker may take it.
        workers: how many there are.
    """

    def __init__(self, movable: Sequence[bool], workers: int) -> None:
        self._movable = movable
        self._share = 4 * (workers + 1)
        self._front, self._back = 0, len(movable)  # a worker has taken what lies from `_back` on
        self._answers: dict[int, Any] = {}
        self._changed = threading.Condition()

    def claim(self, place: int) -> bool:
        """Takes the next reader for this process; False where a worker has it."""
        with self._changed:
            self._front = place + 1
            return place < self._back or not self._movable[place]

    def piece(self) -> list[int]:
        """The places of some of the last readers, for a worker; the fewer the nearer the end, so that all end at once. None where all are taken."""
        taken: list[int] = []
        with self._changed:
            while not taken and self._front < self._back:
                end = self._back
                self._back -= max(1, min(PIECE, (end - self._front) // self._share))
                taken = [place for place in range(self._back, end) if self._movable[place]]
        return taken

    def give(self, places: Sequence[int], answers: Sequence[Any]) -> None:
        """Takes in what a worker found; None for what it was lost with."""
        with self._changed:
            self._answers.update(zip(places, answers, strict=True))
            self._changed.notify_all()

    def answer(self, place: int) -> Any:
        """What a worker found, once it has; None where the worker died over it."""
        with self._changed:
            self._changed.wait_for(lambda: place in self._answers)
            return self._answers.pop(place)


class Worker:
    """One worker process, and the thread of this one that talks with it.

    Raises:
        OSError: where no process can be begun.
    """

    def __init__(self, told: bytes, line: Line) -> None:
        command = [sys.executable, "-c", _BEGIN.format(path=sys.path)]
        # in a group of its own, where an interrupt from the terminal does not reach it: it is for the first process to end the others
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)
        _widen(self._process.stdout)
        self._talk = threading.Thread(target=self._serve, args=(told, line), daemon=True, name="worker")
        self._talk.start()

    def kill(self) -> None:
        """Ends the process at once."""
        self._process.kill()

    def join(self) -> None:
        """Waits for the process to end: it does so when there is nothing left for it."""
        self._talk.join()

    def _serve(self, told: bytes, line: Line) -> None:
        waiting: deque[list[int]] = deque()
        with suppress(OSError), self._process as process:
            assert process.stdin and process.stdout
            try:
                _send(process.stdin, told)
                while True:
                    while len(waiting) < AHEAD and (piece := line.piece()):
                        waiting.append(piece)
                        _send(process.stdin, pickle.dumps(piece))
                    if not waiting:
                        return
                    answers = pickle.loads(_received(process.stdout))  # noqa: S301 (our own process)
                    line.give(waiting.popleft(), answers)
            except Exception:
                process.kill()  # it is dead, or of no use: the first process examines what it had
            finally:
                for piece in waiting:
                    line.give(piece, [None] * len(piece))


def main() -> None:
    """What a worker process does: it examines as long as it is asked, and leaves without a word when the first process is gone or something fails.

    The first process examines again what a worker has failed at, and says what there is to say.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a console of Windows, which has no such groups
    try:
        asked, answered = _private_streams()
        with settled():
            examine, readers = pickle.loads(_received(asked))  # noqa: S301 (our own process)
            while True:
                places = pickle.loads(_received(asked))  # noqa: S301
                _send(answered, pickle.dumps([examine(readers[place]) for place in places]))
    except BaseException:
        os._exit(0)


def _private_streams() -> tuple[IO[bytes], IO[bytes]]:
    """The two pipes to the first process, out of reach of whatever a library reads or prints."""
    asked, answered = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return asked, answered


def _widen(pipe: Any) -> None:
    """Room for the answers to a piece, where the system lets us: else a worker waits while they are fetched bit by bit, between two steps of this process."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, ROOM)


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)))
    stream.write(message)
    stream.flush()


def _received(stream: IO[bytes]) -> bytes:
    """The next message. Raises EOFError where the other side is gone."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], length: int) -> bytes:
    found = stream.read(length)
    if len(found) < length:
        raise EOFError
    return found


def packed(examine: Callable[..., Any], readers: Sequence[Any]) -> tuple[bytes, list[bool]]:
    """What a worker has to be told, and which readers are in it: one that holds a file or a network open cannot leave its process.

    Raises:
        TypeError, AttributeError, pickle.PicklingError: where `examine` itself cannot leave.
    """
    try:
        return pickle.dumps((examine, readers)), [True] * len(readers)
    except (TypeError, AttributeError, pickle.PicklingError):
        movable = [may_leave(reader) for reader in readers]
        return pickle.dumps(
            (examine, [reader if fits else None for reader, fits in zip(readers, movable, strict=True)])
        ), movable


def may_leave(reader: Any) -> bool:
    """Whether a reader can be sent to another process."""
    try:
        pickle.dumps(reader)
    except (TypeError, AttributeError, pickle.PicklingError):
        return False
    return True
