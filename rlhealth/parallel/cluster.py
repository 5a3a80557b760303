"""Many runs on a Ray cluster, several of them a task; the answers come in order, as if one after another."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

from rlhealth.errors import RlhealthError
from rlhealth.parallel.jobs import Answer, Examine
from rlhealth.parallel.workers import can_be_sent
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.remote.reader import Remote

PIECE = 32  # runs of a task, at most: what a task costs by itself (the rules have to reach it) is that of several runs
EACH = 8  # tasks for each processor, at least where there are that many runs: they do not all take as long


def over_ray(readers: Sequence[Reader], examine: Examine, address: str) -> Iterator[Answer]:
    """What `examine` says of each reader, in order, by tasks of the Ray cluster at `address` ("auto": the one this
    machine belongs to; "local": one of its own).

    The cluster's machines need rlhealth, and to see the same files; a run in an object store is judged here, where its
    copy is.

    Raises:
        RlhealthError: if Ray is not installed, or no cluster answers.
    """
    try:
        import ray
    except ImportError:
        raise RlhealthError(
            "--ray needs Ray, which is not installed here", hint="pip install 'rlhealth[ray]'"
        ) from None
    begun_here = not ray.is_initialized()
    try:
        if begun_here:
            ray.init(
                address=address,
                log_to_driver=False,
                configure_logging=False,
                include_dashboard=False if address == "local" else None,
            )
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = (
            "start one with `ray start --head`, use --ray local for a temporary "
            "one, or name another with --ray HOST:PORT"
        )
        raise RlhealthError(f"--ray {address}: no Ray cluster answers: {said}", hint=hint, location=address) from None
    try:
        reference = ray.put(examine)
        task = ray.remote(max_retries=1)(_on_ray)
        size = max(1, min(PIECE, len(readers) // (EACH * int(ray.cluster_resources().get("CPU", 1)))))
        pieces = [readers[start : start + size] for start in range(0, len(readers), size)]
        answers = [
            task.remote(reference, pickle.dumps(piece)) if all(map(_can_be_sent, piece)) else None for piece in pieces
        ]
        for piece, answer in zip(pieces, answers, strict=True):
            yield from map(examine, piece) if answer is None else pickle.loads(ray.get(answer))  # noqa: S301 (from the user's own cluster)
    finally:
        if begun_here:
            ray.shutdown()


def _can_be_sent(reader: Reader) -> bool:
    return not isinstance(reader, Remote) and can_be_sent(reader)


def _on_ray(examine: Examine, readers: bytes) -> bytes:
    return pickle.dumps([examine(reader) for reader in pickle.loads(readers)])  # noqa: S301 (from the user's own process)
