"""One target in a process of its own: `python -m tests.fuzz.worker guided|plain TARGET SECONDS SEED FOLDER`."""

from __future__ import annotations

import faulthandler
import hashlib
import mmap
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from random import Random

from tests.fuzz.mutate import LARGEST, mutated

COUNTS = "counts"
LONGEST = 20  # seconds for one input: more is a hang
ROOM = 1024  # MB of memory: an input of 64 KiB has no business with more
KEPT = (
    ROOM // 2
    # MB at which a guided process makes way for the next one: atheris 3.0 never lets go of an array that a comparison made
)


def plain(name: str, seconds: int, seed: int, folder: Path, counts: Counts) -> None:
    """Damages seeds at random, until the time is over or something breaks."""
    from tests.fuzz.targets import TARGETS, scratch

    target, random = TARGETS[name], Random(seed)
    path, seeds, until = scratch(str(folder), target), target.seeds(), time.monotonic() + seconds
    while time.monotonic() < until:
        raw = mutated(random, seeds, target.words)
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        counts.tried()
        try:
            counts.read(target.attempt(raw, path))
        except BaseException:
            (folder / f"crash-{hashlib.sha1(raw).hexdigest()}").write_bytes(raw)
            traceback.print_exc()
            sys.exit(1)
        finally:
            faulthandler.cancel_dump_traceback_later()


def guided(name: str, seconds: int, seed: int, folder: Path, counts: Counts) -> None:
    """Lets atheris choose the inputs by the code that they reach."""
    import atheris

    with atheris.instrument_imports(include=["rlhealth"]):
        from tests.fuzz.targets import TARGETS, scratch
    target = TARGETS[name]
    with atheris.instrument_imports(include=["rlhealth"]):
        path = scratch(str(folder), target)
        for raw in target.seeds():
            target.attempt(raw, path)
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for raw in target.seeds():
        (corpus / hashlib.sha1(raw).hexdigest()).write_bytes(raw)
    words = folder / "words"
    words.write_text(
        "".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in target.words if len(word) <= 64)
    )

    def attempt(raw: bytes) -> None:
        counts.tried()
        counts.read(target.attempt(raw, path))
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10 > KEPT:
            path.unlink(missing_ok=True)
            os._exit(0)

    options = [
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-max_len={LARGEST}",
        f"-timeout={LONGEST}",
        "-rss_limit_mb=0",
        f"-dict={words}",
    ]
    atheris.Setup(
        [sys.argv[0], *options, "-print_final_stats=0", "-verbosity=0", f"-artifact_prefix={folder}/", str(corpus)],
        attempt,
    )
    atheris.Fuzz()


class Counts:
    """How many inputs were tried, and how many of them could be read, in a file that outlives the process however it
    ends.
    """

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(16))
        with path.open("r+b") as file:
            self.words = memoryview(mmap.mmap(file.fileno(), 16)).cast("q")

    def tried(self) -> None:
        self.words[0] += 1

    def read(self, could: bool) -> None:
        self.words[1] += could


if __name__ == "__main__":
    mode, name, seconds, seed, folder = sys.argv[1:6]
    resource.setrlimit(resource.RLIMIT_DATA, (ROOM << 20, ROOM << 20))
    {"plain": plain, "guided": guided}[mode](name, int(seconds), int(seed), Path(folder), Counts(Path(folder) / COUNTS))
