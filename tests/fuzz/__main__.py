"""The command: fuzzes all targets or some, each in a process of its own, guided by coverage where atheris is
installed, and counts.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import COUNTS

WORKER = "tests.fuzz.worker"


@dataclass
class Told:
    """What came of one target."""

    name: str
    inputs: int
    read: int
    crashes: list[Path] = field(default_factory=list)
    peak: int = 0
    output: str = ""


def fuzz(name: str, seconds: int, seed: int, plain: bool, keep: Path) -> Told:
    """Fuzzes one target for so long; a crashing input is kept, and fuzzing begins again with another seed until the
    time is used up.
    """
    told = Told(name, 0, 0)
    left, mode = seconds, "plain" if plain or importlib.util.find_spec("atheris") is None else "guided"
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        while left > 0:
            command = [sys.executable, "-m", WORKER, mode, name, str(left), str(seed), folder]
            begun = time.monotonic()
            with (Path(folder) / "output").open("w+b") as output:
                process = subprocess.Popen(command, stdout=output, stderr=output)
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                output.seek(0)
                told.output = output.read().decode("utf-8", "replace")[-4000:]
            inputs, read = struct.unpack("qq", (Path(folder) / COUNTS).read_bytes())
            told.inputs, told.read, told.peak = (
                told.inputs + inputs,
                told.read + read,
                max(told.peak, used.ru_maxrss >> 10),
            )
            left -= max(round(time.monotonic() - begun), 1)
            seed += 1
            if process.returncode and not list(Path(folder).glob("*-*")):
                (Path(folder) / f"crash-{seed}").write_bytes(b"")  # it left nothing but its last words
            for crash in (
                sorted(Path(folder).glob("crash-*"))
                + sorted(Path(folder).glob("timeout-*"))
                + sorted(Path(folder).glob("oom-*"))
            ):
                kept = keep / name / crash.name[:24]
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(crash.read_bytes())
                crash.unlink()
                told.crashes.append(kept)
                print(f"{name}: {kept}\n{told.output}", flush=True)
            if len(told.crashes) >= 5:
                break
    return told


def installed(name: str) -> bool:
    """Whether a target can be tried here; says so of one that cannot."""
    needed = TARGETS[name].needs
    if needed and importlib.util.find_spec(needed) is None:
        print(f"{name:15} left out: {needed} is not installed")
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="in all, shared by the targets")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="one of them; all where not given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="without coverage, though atheris is installed")
    parser.add_argument(
        "--keep", type=Path, default=Path(__file__).with_name("crashes"), help="where crashing inputs are kept"
    )
    given = parser.parse_args()
    names = [name for name in given.target or TARGETS if installed(name)]
    share = max(given.seconds // len(names), 1)
    found = []
    for name in names:
        told = fuzz(name, share, given.seed, given.plain, given.keep)
        found.append(told)
        print(
            f"{name:15} {told.inputs:>10,} inputs, {told.read:>9,} of them readable, "
            f"{len(told.crashes)} crashes, {told.peak:>5} MB",
            flush=True,
        )
    crashes = sum(len(one.crashes) for one in found)
    print(f"{'all':15} {sum(one.inputs for one in found):>10,} inputs, {crashes} crashes")
    return 1 if crashes else 0


if __name__ == "__main__":
    raise SystemExit(main())
