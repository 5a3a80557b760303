"""Many runs at once: over processes of this machine, or as tasks of a Ray cluster; the answers come in order, as if one after the other."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rlhealth.errors import RlhealthError
from rlhealth.findings import RunVerdict
from rlhealth.sources.reader import Reader

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Answer = RunVerdict | RlhealthError
Examine = Callable[[Reader], Answer]

PATIENCE = 0.2  # seconds of work, after which there may be enough to do for more processes: each takes as long to begin
PIECE = 8  # runs handed to a process at once, at most

_examine: Examine | None = None  # of a worker process


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def examined(readers: Sequence[Reader], examine: Examine, jobs: int = 1) -> Iterator[Answer]:
    """What `examine` says of each reader, in order; over `jobs` processes where one of them would take long."""
    begun = time.perf_counter()
    for place, reader in enumerate(readers):
        if jobs > 1 and len(readers) - place > 1 and time.perf_counter() - begun > PATIENCE:
            yield from _over_processes(readers[place:], examine, jobs)
            return
        yield examine(reader)


def _over_processes(readers: Sequence[Reader], examine: Examine, jobs: int) -> Iterator[Answer]:
    """The other processes begin with the last readers; this one goes through them in order, and takes each answer that is there, or on its way."""
    from concurrent.futures import ProcessPoolExecutor  # late: most checks are of one run
    from multiprocessing import active_children

    size = max(1, min(PIECE, len(readers) // (4 * jobs)))
    pieces = [readers[start : start + size] for start in range(0, len(readers), size)]
    pool = ProcessPoolExecutor(min(jobs - 1, len(pieces)), _context(), _begin, (examine,))
    try:
        futures = [_hand_over(pool, piece) for piece in reversed(pieces)][::-1]
        for piece, future in zip(pieces, futures, strict=True):
            if future is None or future.cancel():
                yield from map(examine, piece)
            else:
                yield from pickle.loads(future.result())  # noqa: S301 (our own process)
    except BaseException:
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _hand_over(pool: ProcessPoolExecutor, readers: Sequence[Reader]) -> Future[bytes] | None:
    """The readers' answers as another process will give them; None where one of them cannot leave this one (it holds a file or a network open)."""
    packed = _packed(readers)
    return None if packed is None else pool.submit(_work, packed)


def _packed(readers: Sequence[Reader]) -> bytes | None:
    try:
        return pickle.dumps(readers)
    except (TypeError, AttributeError, pickle.PicklingError):
        return None


def _context() -> Any:
    """A way to begin processes that copies no thread and no lock; the server imports what all of them need, once."""
    import multiprocessing

    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rlhealth.check", "rlhealth.sources.tensorboard"])
    return context


def _begin(examine: Examine) -> None:
    global _examine
    _examine = examine
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the first process to end the others


def _work(readers: bytes) -> bytes:
    assert _examine is not None
    return pickle.dumps([_examine(reader) for reader in pickle.loads(readers)])  # noqa: S301 (our own process)


def over_ray(readers: Sequence[Reader], examine: Examine, address: str) -> Iterator[Answer]:
    """What `examine` says of each reader, in order, each as a task of the Ray cluster at `address` ("auto": the one this machine belongs to; "local": one of its own).

    The cluster's machines need rlhealth, and to see the same files.

    Raises:
        RlhealthError: where Ray is not installed, or no cluster answers.
    """
    try:
        import ray
    except ImportError:
        raise RlhealthError("--ray needs Ray, which is not installed here", hint="pip install 'rlhealth[ray]'") from None
    begun_here = not ray.is_initialized()
    try:
        if begun_here:
            ray.init(address=address, log_to_driver=False, configure_logging=False, include_dashboard=False if address == "local" else None)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = "`ray start --head` begins one; --ray local uses one of its own; --ray HOST:PORT names another"
        raise RlhealthError(f"--ray {address}: no Ray cluster answers: {said}", hint=hint, location=address) from None
    try:
        told = ray.put(examine)
        task = ray.remote(max_retries=1)(_on_ray)
        packed = [_packed([reader]) for reader in readers]
        answers = [None if one is None else task.remote(told, one) for one in packed]
        for reader, answer in zip(readers, answers, strict=True):
            yield examine(reader) if answer is None else pickle.loads(ray.get(answer))  # noqa: S301 (from the user's own cluster)
    finally:
        if begun_here:
            ray.shutdown()


def _on_ray(examine: Examine, readers: bytes) -> bytes:
    (reader,) = pickle.loads(readers)  # noqa: S301 (from the user's own process)
    return pickle.dumps(examine(reader))
