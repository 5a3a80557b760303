"""Growth: what hostile shapes of a log cost at n, 2n and 4n; every reader is linear, so the exponent stays near one.

`python -m benchmarks.growth` prints a line a shape: seconds at each size, and the exponent between the first and the
last.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.sources import open_all

#: Shapes by name: given a size, the file's name and its bytes. Sizes are bytes, or rows where the name says so.
SHAPES: dict[str, tuple[str, int, Callable[[int], bytes]]] = {}
MOST = 1.5  # a reader that is quadratic grows with 2
FLOOR = 0.05  # seconds: what takes less is all overhead


def _shape(name: str, file: str, size: int) -> Callable[[Callable[[int], bytes]], Callable[[int], bytes]]:
    def add(make: Callable[[int], bytes]) -> Callable[[int], bytes]:
        SHAPES[name] = (file, size, make)
        return make

    return add


def _row(step: int, **more: object) -> bytes:
    return json.dumps({"step": step, "loss": 0.5 + step % 7 / 10, "reward": 0.1, **more}).encode() + b"\n"


for _suffix in ("log", "json", "jsonl"):
    SHAPES[f'{{"a" repeated, .{_suffix}'] = (f"a.{_suffix}", 100_000, lambda n: b'{"a" ' * (n // 5))
    SHAPES[f"braces, .{_suffix}"] = (f"a.{_suffix}", 100_000, lambda n: b"{" * n)
    SHAPES[f"brackets, .{_suffix}"] = (f"a.{_suffix}", 100_000, lambda n: b"[" * n)
    SHAPES[f"quotes, .{_suffix}"] = (f"a.{_suffix}", 100_000, lambda n: b'"' * n)
    SHAPES[f"900 levels around a broken list, .{_suffix}"] = (
        f"a.{_suffix}",
        100_000,
        lambda n: (b'{"a": ' * 900 + b"[1, 2, }" + b"\n") * max(1, n // 5500),
    )
    SHAPES[f"900 levels in a row, .{_suffix}"] = (
        f"a.{_suffix}",
        100_000,
        lambda n: (
            _row(1) * 5
            + (b'{"step": 1, "loss": 1.0, "x": ' + b'{"a": ' * 900 + b"[1, 2, }" + b"\n") * max(1, n // 5500)
        ),
    )


@_shape("broken list of objects", "history.json", 100_000)
def _broken_list(n: int) -> bytes:
    return b'{"log_history": [' + b'{"step": 1, "loss": ' * (n // 20)


@_shape("nested broken list of objects", "history.json", 100_000)
def _nested_list(n: int) -> bytes:
    return b'{"log_history": [' + (b'{"a": ' * 900 + b"[1, }") * max(1, n // 5500)


@_shape("runs in a CSV (rows)", "progress.csv", 500)
def _csv_runs(n: int) -> bytes:
    return b"step,loss,reward\n" + b"1,0.5,0.1\n2,0.5,0.1\n" * n


@_shape("runs in JSONL (rows)", "train.jsonl", 500)
def _jsonl_runs(n: int) -> bytes:
    return (_row(1) + _row(2)) * n


@_shape("descending rows", "train.jsonl", 4000)
def _descending(n: int) -> bytes:
    return b"".join(_row(step) for step in range(n, 0, -1))


@_shape("descending rows of CSV", "progress.csv", 4000)
def _descending_csv(n: int) -> bytes:
    return b"step,loss,reward\n" + b"".join(b"%d,0.5,0.1\n" % step for step in range(n, 0, -1))


@_shape("resumes (rows)", "train.jsonl", 4500)
def _resumes(n: int) -> bytes:
    return b"".join(_row(step + part) for part in range(n // 3) for step in (3, 4, 3))


def _wandb_file(steps: Iterable[int]) -> bytes:
    from tests.sources.wandb_writing import HEADER, frame, history

    rows = ({"train/global_step": step, "train/loss": 0.5, "train/reward": 0.1} for step in steps)
    return HEADER + frame(history(row, number) for number, row in enumerate(rows, 1))


@_shape("resumes in a wandb file (rows)", "run-a.wandb", 3000)
def _wandb_resumes(n: int) -> bytes:
    return _wandb_file(step + part for part in range(n // 3) for step in (3, 4, 3))


@_shape("zigzag in a wandb file (rows)", "run-a.wandb", 4000)
def _wandb_zigzag(n: int) -> bytes:
    return _wandb_file(step for part in range(n // 2) for step in (part + 5, part))


@_shape("descending rows in a wandb file", "run-a.wandb", 4000)
def _wandb_descending(n: int) -> bytes:
    return _wandb_file(range(n, 0, -1))


@_shape("every row again (rows)", "train.jsonl", 3000)
def _again(n: int) -> bytes:
    return b"".join(_row(step, x=part) for step in range(n // 2) for part in (1, 2))


@_shape("zigzag (rows)", "train.jsonl", 4000)
def _zigzag(n: int) -> bytes:
    return b"".join(_row(step) for part in range(n // 2) for step in (part + 5, part))


@_shape("a new name in each row (rows)", "train.jsonl", 2000)
def _names(n: int) -> bytes:
    return b"".join(_row(step, **{f"m{step}": 1.0}) for step in range(n))


@_shape("blanks", "train.log", 300_000)
def _blanks(n: int) -> bytes:
    return b" " * n


@_shape("bars and dashes", "train.log", 100_000)
def _bars(n: int) -> bytes:
    return (b"|" + b"-" * 30 + b"|\n") * (n // 33)


@_shape("an open dict over lines", "train.log", 50_000)
def _open_dict(n: int) -> bytes:
    return b"{'loss': 0.5,\n" * (n // 14)


@_shape("key=value words", "train.log", 100_000)
def _words(n: int) -> bytes:
    return b"loss=" * (n // 5)


@_shape("colons", "train.log", 100_000)
def _colons(n: int) -> bytes:
    return b"a:" * (n // 2)


@_shape("a CSV quote that never ends", "progress.csv", 100_000)
def _quote(n: int) -> bytes:
    return b'step,loss\n1,"' + b"0.5,\n1," * (n // 7)


@_shape("columns of a CSV", "progress.csv", 1500)
def _columns(n: int) -> bytes:
    return (
        b"step," + b",".join(b"m%d" % one for one in range(n)) + b"\n" + (b"1," + b",".join([b"0.5"] * n) + b"\n") * 3
    )


def seconds(name: str, size: int, folder: Path, rounds: int = 2) -> float:
    """How long it takes to find and read the shape at that size, its best of so many rounds."""
    file, _, make = SHAPES[name]
    path = folder / file
    path.write_bytes(make(size))
    best = math.inf
    for _ in range(rounds):
        begun = time.process_time()
        for place in (folder, path):  # come across, and named
            with contextlib.suppress(RlhealthError):  # no run in it, or none that can be read: that is an answer too
                open_all(place)
        best = min(best, time.process_time() - begun)
    path.unlink()
    return best


def growth(name: str, folder: Path, scale: float = 1.0, rounds: int = 2) -> tuple[list[float], float]:
    """Seconds at n, 2n and 4n, and the exponent by which they grow; 0 if all of it is overhead."""
    size = int(SHAPES[name][1] * scale)
    took = [seconds(name, size * times, folder, rounds) for times in (1, 2, 4)]
    if took[-1] < FLOOR:
        return took, 0.0
    return took, math.log(took[-1] / max(took[0], FLOOR / 4)) / math.log(4)


def main() -> int:
    """Prints a line per shape; 1 if one grows faster than it may."""
    worst = 0.0
    for name in SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            took, exponent = growth(name, Path(folder), float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
        worst = max(worst, exponent)
        print(f"{name:48} {'  '.join(f'{one:7.3f} s' for one in took)}  n^{exponent:.2f}", flush=True)
    print(f"the steepest: n^{worst:.2f}, of {len(SHAPES)} shapes")
    return int(worst > MOST)


if __name__ == "__main__":
    raise SystemExit(main())
