"""Worker processes: loky's pool examines the runs piece by piece; what a piece was lost with is examined in this
process.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any

from loky import ProcessPoolExecutor

from rlhealth.system.process import settled

PIECE = 4  # readers sent to a worker at once, at most: the fewer the nearer the end, so that all workers end together

_process = ExitStack()  # what a worker has set for as long as it lives
_examine: list[Callable[[Any], Any]] = []  # what it does with each reader


def over_processes(readers: Sequence[Any], examine: Callable[[Any], Any], jobs: int) -> Iterator[Any]:
    """What `examine` returns for each reader, in order, by `jobs` processes.

    loky begins processes that import nothing of the caller's script, so that a script needs no `if __name__ ==
    "__main__"`.
    """
    try:
        pool = ProcessPoolExecutor(jobs, initializer=_settle, initargs=(pickle.dumps(examine),))
        resource_tracker.ensure_running()  # begun by the first worker, it would let interrupts through again
    except (OSError, TypeError, AttributeError, pickle.PicklingError):
        # no semaphore can be made where shared memory is read-only; or it cannot be sent
        yield from map(examine, readers)
        return
    pieces = list(_pieces(readers, jobs))
    try:
        futures = [_submitted(pool, piece) for piece in pieces]
        for piece, future in zip(pieces, futures, strict=True):
            try:
                answers = future.result() if future else map(examine, piece)
            except Exception:  # a worker died of it, or failed: this process examines it, and reports what there is
                answers = map(examine, piece)
            yield from answers
    except BaseException:
        with suppress(Exception):  # workers that the same interrupt has ended; it is what counts
            pool.shutdown(kill_workers=True)
        raise
    pool.shutdown()


def can_be_sent(reader: Any) -> bool:
    """Whether a reader can be sent to another process: one that holds a file or a connection open cannot."""
    try:
        pickle.dumps(reader)
    except (TypeError, AttributeError, pickle.PicklingError):
        return False
    return True


def _pieces(readers: Sequence[Any], jobs: int) -> Iterator[Sequence[Any]]:
    at = 0
    while at < len(readers):
        size = max(1, min(PIECE, (len(readers) - at) // (4 * jobs)))
        yield readers[at : at + size]
        at += size


def _submitted(pool: ProcessPoolExecutor, readers: Sequence[Any]) -> Any:
    """The future of a piece; None if it cannot be sent. Pickled here, because loky would pickle copies of open
    files.
    """
    try:
        sent = pickle.dumps(readers)
        with _interrupts_held_back():  # the first submission begins the processes
            return pool.submit(_examined, sent)
    except (TypeError, AttributeError, pickle.PicklingError):
        return None
    except (OSError, RuntimeError):  # no process can be begun, or the pool is broken
        return None


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """An interrupt that comes meanwhile is raised at the end: one that comes while Python forks is lost, or leaves
    half a worker.

    What is begun meanwhile never gets one: an interrupt is for the first process to handle.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or threading.current_thread() is not threading.main_thread() or os.name == "nt":
        yield
        return
    came: list[int] = []
    # Both are needed: another thread of this process may get the signal, and only the mask goes on to what is begun.
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


def _examined(sent: bytes) -> list[Any]:
    readers = pickle.loads(sent)  # noqa: S301 (from our own process)
    (examine,) = _examine
    return [examine(reader) for reader in readers]


def _settle(sent: bytes) -> None:
    """Prepares a worker: what it does with each run, rules and all, comes once; an interrupt is for the first process
    to handle, and stdout is for the answer only.
    """
    _examine[:] = [pickle.loads(sent)]  # noqa: S301 (from our own process)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    _process.enter_context(settled())
